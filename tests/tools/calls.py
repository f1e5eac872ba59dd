"""Calls of tools, as the runner would make them."""

from app.ports import ToolContext, ToolOutput
from app.turn.ids import CallId, TurnId
from app.turn.transcript import Outcome


def a_context(*, attempt: int = 1, is_replay: bool = False) -> ToolContext:
    return ToolContext(
        turn_id=TurnId("turn_1"),
        call_id=CallId("call_1"),
        idempotency_key="turn_1:call_1",
        attempt=attempt,
        is_replay=is_replay,
    )


def completed(content: str) -> ToolOutput:
    return ToolOutput(outcome=Outcome.COMPLETED, content=content)


def error(content: str) -> ToolOutput:
    return ToolOutput(outcome=Outcome.ERROR, content=content)


def not_started(content: str) -> ToolOutput:
    return ToolOutput(outcome=Outcome.NOT_STARTED, content=content)
