"""What became of lost calls, read off a story."""

from app.turn import events as e
from app.turn.events import RecoveryRule
from app.turn.transcript import InterruptionReason, Outcome, ToolResult
from tests.support.turns import Told


def results(told: Told) -> dict[str, Outcome]:
    found = [m for m in told.transcript.values() if isinstance(m, ToolResult)]
    return {result.call_id: result.outcome for result in found}


def rules(told: Told) -> dict[str, RecoveryRule]:
    (recovered,) = [event for event in told.last if isinstance(event, e.StepRecovered)]
    return {call.call_id: call.rule for call in recovered.calls}


def begun_again(told: Told) -> dict[str, int]:
    return {x.call_id: x.attempt for x in told.last if isinstance(x, e.ToolStarted)}


def reasons(told: Told) -> dict[str, InterruptionReason | None]:
    found = [event for event in told.events if isinstance(event, e.ToolInterrupted)]
    return {event.result.call_id: event.reason for event in found}
