"""What docs/agents.md shows is what happens."""

import re
import sys
from pathlib import Path
from typing import cast

import pytest

from app.agents import Agent, Catalog, load_declared
from app.turn.ids import AgentId
from app.turn.transcript import Outcome
from tests.tools.calls import a_context

PAGE = Path(__file__).parents[2] / "docs" / "agents.md"
BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE)


def test_every_block_of_the_page_is_python() -> None:
    """A block in another language would be one that nothing runs."""
    assert len(BLOCKS) > 5
    assert {language for language, _ in BLOCKS} == {"python"}


def test_the_first_agent_takes_fifteen_lines() -> None:
    lines = [line for line in BLOCKS[0][1].splitlines() if line.strip()]
    assert len(lines) <= 15


async def test_the_first_agent_can_be_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "firstcompany").mkdir()
    (tmp_path / "firstcompany" / "agents.py").write_text(BLOCKS[0][1])
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])

    loaded = Catalog(load_declared("firstcompany.agents:agents")).current(AgentId("support"))
    assert loaded is not None
    output = await loaded.tools["order_status"].run('{"order_id": "88121"}', a_context())

    assert output.outcome is Outcome.COMPLETED
    assert output.content == "Order 88121 left the warehouse this morning."


def test_the_blocks_run_one_after_the_other() -> None:
    space: dict[str, object] = {}

    for number, (_, block) in enumerate(BLOCKS, start=1):
        exec(compile(block, f"{PAGE.name}, block {number}", "exec"), space)  # noqa: S102

    listed = cast("list[Agent]", space["agents"])
    assert [each.version for each in listed] == ["1", "2"]
