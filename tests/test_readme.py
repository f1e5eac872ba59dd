"""The README's claims are commands, and they do what it says."""

import asyncio
import json
import os
import re
from pathlib import Path

from app.turn.status import Status
from tests.support.service import TOKEN, running_service, settings_for_tests

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def _blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


async def test_the_curl_session_works_as_pasted(database_dsn: str, tmp_path: Path) -> None:
    (session,) = _blocks("bash")
    async with running_service(database_dsn, settings_for_tests(tmp_path)) as service:
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-euo",
            "pipefail",
            "-c",
            session,
            cwd=ROOT,
            env=os.environ | {"URL": service.url, "TURNKEEPER_TOKEN": TOKEN},
            stdout=asyncio.subprocess.PIPE,
        )
        output, _ = await process.communicate()

    lines = output.decode().splitlines()
    assert process.returncode == 0
    assert lines[0] == "WAITING_FOR_MODEL"
    assert lines[1].startswith("The usage allowance for this model is used up.")
    assert "not 'another'" in lines[2]
    assert lines[3].startswith("Here is what I found")
    assert lines[4] == lines[3]
    assert lines[5].startswith("{'modelAttempts': 3, 'modelSuccesses': 2, ")
    assert lines[6] == "event: TURN_STARTED"
    assert lines[-4] == "event: TURN_COMPLETED"
    assert lines[-3] == "WAITING_FOR_APPROVAL"
    assert json.loads(lines[-2]) == {"order_id": "88121", "cents": 4900}
    assert lines[-1] == "COMPLETED"


def test_the_agent_takes_fifteen_lines_and_is_one() -> None:
    (example,) = _blocks("python")
    names: dict[str, object] = {}

    exec(compile(example, "README.md", "exec"), names)  # noqa: S102 - our own text

    lines = [line for line in example.splitlines() if line.strip() and not line.startswith("#")]
    assert len(lines) <= 15
    assert type(names["agents"]).__name__ == "Agent"


def test_everything_the_readme_points_to_is_there() -> None:
    targets = re.findall(r"\]\(([^)#]+)\)", README)

    assert [target for target in targets if not (ROOT / target).exists()] == []


def test_the_diagram_shows_every_status() -> None:
    (diagram,) = _blocks("mermaid")

    assert [status for status in Status if status.value not in diagram] == []
