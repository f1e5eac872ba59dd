"""Where a conversation can be resumed, told from what is stored; nothing is changed by asking.

The stored status of a turn decides first (C6). Only where no turn is at work or waits is the
history asked what it says of itself (seed rules ZA-1 to ZA-7):

nothing                           `empty`
a user's message or a notice      the model is called, nothing is added
tool results                      the model is called, once those that are missing are answered;
                                  `malformed` when no call stands before them
calls                             the same, whatever the answer's stop reason (case 78)
an answer without calls           by its stop reason: interrupted, begin again; cut at the output
                                  limit, continue; paused, call the model; anything else is an end

What the service itself has written at a turn's end is passed over (T115), and so are a question
that nobody has answered and another service's system messages (case 77).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.turn.agent import Agent
from app.turn.decide_orphans import is_open
from app.turn.events import RecoveryRule
from app.turn.ids import CallId, FailureId
from app.turn.lost_tools import foreseen
from app.turn.state import Turn
from app.turn.states import CallingModel, Completed, Failed, Paused, WaitingForModel
from app.turn.transcript import (
    AssistantMessage,
    ClosingMessage,
    Message,
    Outcome,
    QuestionMessage,
    StopReason,
    SystemMessage,
    ToolResult,
)

Kind: TypeAlias = Literal["CALL_MODEL", "RECOVER_TOOLS", "RETRY_RESPONSE", "CONTINUE_RESPONSE"]
Reason: TypeAlias = Literal[
    "empty",
    "completed",
    "refused",
    "context_full",
    "unknown_stop",
    "malformed",
    "running",
    "waiting",
]
Rule: TypeAlias = RecoveryRule | Literal["wait"]
"""As in `app.turn.lost_tools`; `wait`: somebody's answer is still needed, before and after."""
Known: TypeAlias = Literal[Outcome.UNKNOWN, Outcome.NOT_STARTED]
"""What can be known of a call without a result."""


@dataclass(frozen=True, slots=True, kw_only=True)
class UnansweredCall:
    """A call without a result, and what becomes of it on a resume."""

    call_id: CallId
    tool_name: str
    rule: Rule
    outcome: Known = Outcome.UNKNOWN
    """What the model is told where the rule is `report`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resumable:
    """It can be resumed, and this is what the resume does first."""

    kind: Kind
    unanswered: tuple[UnansweredCall, ...] = ()
    """In the order of the calls; empty unless the kind is `RECOVER_TOOLS`."""
    stop: StopReason | None = None
    """Of the last answer, where that decided."""
    failure_id: FailureId | None = None
    """The failure that a resume must name: the turn waits for its model (T60a)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotResumable:
    """There is nothing to resume, or nothing that could be."""

    reason: Reason
    stop: StopReason | None = None


ResumePoint: TypeAlias = Resumable | NotResumable

PASSED_OVER = (SystemMessage, ClosingMessage, QuestionMessage)
"""Messages that say nothing of where a history can be resumed."""

_GOES_ON: Mapping[StopReason, Kind] = {
    StopReason.INTERRUPTED: "RETRY_RESPONSE",
    StopReason.MAX_OUTPUT: "CONTINUE_RESPONSE",
    StopReason.PAUSED: "CALL_MODEL",
}
_ENDS: Mapping[StopReason, Reason] = {
    StopReason.END_TURN: "completed",
    StopReason.TOOL_USE: "completed",
    StopReason.REFUSAL: "refused",
    StopReason.CONTEXT_FULL: "context_full",
    StopReason.OTHER: "unknown_stop",
}


def of_history(messages: Sequence[Message]) -> ResumePoint:
    """Where a history can be resumed that no turn is at work on (ZA-4 to ZA-7, T113).

    Its end is enough: the last message that is neither a tool result nor passed over, and all
    behind it.
    """
    said = [message for message in messages if not isinstance(message, PASSED_OVER)]
    if not said:
        return NotResumable(reason="empty")
    results = _results_at_the_end(said)
    asked = said[-len(results) - 1] if len(results) < len(said) else None
    match asked:
        case AssistantMessage(tool_calls=calls) if calls:
            return _with_calls(asked, results)
        case _ if results:
            return NotResumable(reason="malformed")
        case AssistantMessage(stop_reason=stop):
            return _by_stop(stop)
        case _:
            return Resumable(kind="CALL_MODEL")


def of_ended(turn: Turn | None, messages: Sequence[Message]) -> ResumePoint:
    """Where the history can be resumed that `turn` has ended, or nobody has begun to go on with.

    An answer without text is not in a transcript, so its stop reason is the turn's to say. A
    finished answer with which a turn has failed is not the one that was asked for: it is begun
    again.
    """
    match turn.state if turn else None:
        case Completed(position=None, stop_reason=stop):
            return _by_stop(stop)
        case Failed():
            point = of_history(messages)
            if isinstance(point, NotResumable) and point.reason == "completed":
                return Resumable(kind="RETRY_RESPONSE", stop=point.stop)
            return point
        case _:
            return of_history(messages)


def of_active(turn: Turn, agent: Agent | None, *, is_lost: bool) -> ResumePoint:
    """Where a turn can be resumed that has not ended.

    Args:
        turn: as it is stored.
        agent: its own, where its version is there; it knows the rules of its tools.
        is_lost: whether its worker is gone: the claim has run out and was not given up. One of
            which it is decided that it ends is not gone on with for that.
    """
    is_lost = is_lost and is_open(turn)
    match turn.state:
        case WaitingForModel(record=record, text_kept=text_kept):
            return Resumable(kind=_asked_again(text_kept=text_kept), failure_id=record.failure_id)
        case Paused(text_kept=text_kept):
            return _on(turn, agent, text_kept=text_kept)
        case CallingModel(text_stored=text_stored) if is_lost:
            return _on(turn, agent, text_kept=text_stored > 0)
        case _ if is_lost:
            return _on(turn, agent, text_kept=False)
        case _ if turn.is_at_work:
            return NotResumable(reason="running")
        case _:
            return NotResumable(reason="waiting")


def _on(turn: Turn, agent: Agent | None, *, text_kept: bool) -> Resumable:
    """A call that waits for somebody still does (T107, T108)."""
    rules: Mapping[CallId, Rule] = {call.call_id: call.rule for call in foreseen(turn, agent)}
    calls = tuple(
        UnansweredCall(
            call_id=call.call_id,
            tool_name=call.tool_name,
            rule=rules.get(call.call_id, "wait"),
        )
        for call in turn.open_calls
    )
    if calls:
        return Resumable(kind="RECOVER_TOOLS", unanswered=calls)
    return Resumable(kind=_asked_again(text_kept=text_kept))


def _asked_again(*, text_kept: bool) -> Kind:
    return "RETRY_RESPONSE" if text_kept else "CALL_MODEL"


def _results_at_the_end(said: Sequence[Message]) -> list[ToolResult]:
    results: list[ToolResult] = []
    for message in reversed(said):
        if not isinstance(message, ToolResult):
            break
        results.append(message)
    return results


def _with_calls(asked: AssistantMessage, results: Sequence[ToolResult]) -> Resumable:
    """A call that nobody knows the end of is reported, never run: it is not ours (T113)."""
    answered = {result.call_id for result in results}
    missing: dict[CallId, UnansweredCall] = {}
    for call in asked.tool_calls:
        if call.call_id not in answered:
            unanswered = UnansweredCall(
                call_id=call.call_id, tool_name=call.tool_name, rule="report"
            )
            missing.setdefault(call.call_id, unanswered)
    if not missing:
        return Resumable(kind="CALL_MODEL")
    return Resumable(kind="RECOVER_TOOLS", unanswered=tuple(missing.values()))


def _by_stop(stop: StopReason) -> ResumePoint:
    kind = _GOES_ON.get(stop)
    if kind is not None:
        return Resumable(kind=kind, stop=stop)
    return NotResumable(reason=_ENDS[stop], stop=stop)
