"""What is measured: this service, and peers as their own documentation would have them."""

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

import orjson

ROOT = Path(__file__).resolve().parent.parent
PEERS = ROOT / "bench/peers"
ENVIRONMENTS = Path(os.environ.get("BENCH_ENVIRONMENTS", ROOT / ".bench"))
"""A folder with one virtual environment per peer, made by `scripts/bench --install NAME`."""
TOKEN = "bench-bench-bench-bench"  # noqa: S105 - of a server that lives for minutes

Asked = tuple[str, bytes, str]
"""Path, body and content type of the request for one turn."""


def _turn(conversation: str, text: str) -> Asked:
    body = orjson.dumps({"conversation_id": conversation, "message": text})
    return "/turn", body, "application/json"


def _message(conversation: str, text: str) -> Asked:
    body = orjson.dumps({"content": text, "agentId": "bench"})
    return f"/conversations/{conversation}/messages", body, "application/json"


def _agno(conversation: str, text: str) -> Asked:
    body = f"message={quote(text)}&stream=true&session_id={conversation}"
    return "/agents/agent/runs", body.encode(), "application/x-www-form-urlencoded"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """A server to be measured."""

    name: str
    environment: str | None = None
    """The peer's virtual environment; `None`: this project's own."""
    script: str | None = None
    """The peer's app in `bench/peers`; `None`: this service."""
    ask: Callable[[str, str], Asked] = _turn
    settings: Mapping[str, str] = field(default_factory=dict[str, str])

    @property
    def is_ours(self) -> bool:
        return self.script is None

    @property
    def python(self) -> Path:
        if self.environment is None:
            return Path(sys.executable)
        return ENVIRONMENTS / self.environment / "bin/python"

    @property
    def is_installed(self) -> bool:
        return self.python.exists()

    def command(self) -> Sequence[str]:
        """What starts it."""
        if self.script is None:
            return [str(self.python.parent / "turnkeeper"), "serve"]
        return [str(self.python), str(PEERS / self.script)]

    def preparation(self) -> Sequence[str] | None:
        """What is run before it is started, as a deployment does; a peer's script needs nothing."""
        return [*self.command()[:-1], "migrate"] if self.is_ours else None

    def env(self, *, database: str, port: int, stub_port: int, folder: Path) -> Mapping[str, str]:
        """Its environment variables beside those of this process."""
        stub = f"http://127.0.0.1:{stub_port}/v1"
        shared = {"PYTHONPATH": str(ROOT), "DO_NOT_TRACK": "1", **self.settings}
        if self.is_ours:
            provider = {"kind": "openai", "base_url": stub, "api_key_env": "BENCH_KEY"}
            return {
                **shared,
                "BENCH_KEY": "sk-stub",
                "DATABASE_URL": database,
                "TURNKEEPER_AGENTS": "bench.service_agents:agents",
                "TURNKEEPER_DATA_DIR": str(folder),
                "TURNKEEPER_LOG_LEVEL": "warning",
                "TURNKEEPER_PORT": str(port),
                "TURNKEEPER_PROVIDERS": orjson.dumps({"stub": provider}).decode(),
                "TURNKEEPER_TOKEN": TOKEN,
            }
        return {
            **shared,
            "BENCH_DSN": database,
            "BENCH_PORT": str(port),
            "BENCH_STUB": stub,
            "LANGSMITH_TRACING": "false",
            "OPENAI_API_KEY": "sk-stub",
        }


OURS = Target(name="turnkeeper", ask=_message)
TARGETS: Mapping[str, Target] = {
    target.name: target
    for target in (
        OURS,
        Target(name="floor", script="floor.py"),
        Target(name="langgraph", environment="langgraph", script="langgraph_oss.py"),
        Target(
            name="langgraph-sync",
            environment="langgraph",
            script="langgraph_oss.py",
            settings={"BENCH_DURABILITY": "sync"},
        ),
        Target(name="agno", environment="agno", script="agno_os.py", ask=_agno),
        Target(name="dbos", environment="dbos", script="dbos_loop.py"),
        Target(name="openai-agents", environment="openai-agents", script="openai_agents.py"),
    )
}
PACKAGES: Mapping[str, Sequence[str]] = {
    "langgraph": (
        "langgraph",
        "langchain",
        "langchain-openai",
        "langgraph-checkpoint-postgres",
        "psycopg[binary,pool]",
    ),
    "agno": ("agno", "psycopg[binary]", "sqlalchemy", "greenlet", "openai", "python-multipart"),
    "dbos": ("dbos", "openai", "psutil", "psycopg[binary,pool]", "asyncpg"),
    "openai-agents": ("openai-agents[sqlalchemy]", "asyncpg", "greenlet"),
}
"""What a peer's environment holds beside `SERVER_PACKAGES`; the newest of each, as users get it."""
SERVER_PACKAGES = ("fastapi", "uvicorn", "httptools", "uvloop", "orjson")


if __name__ == "__main__":
    print(" ".join((*SERVER_PACKAGES, *PACKAGES[sys.argv[1]])))
