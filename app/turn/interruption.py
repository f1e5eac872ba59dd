"""Answers for calls that get no result of their tool, and the words for them.

Every call a model has asked for needs exactly one result in the history, or the provider refuses
the next request. These are the results the service writes itself.

What becomes of a call is its `outcome`, why is its `reason`; both are for programs. The words are
for the model: those of the turn's agent, if it is there and has some for the outcome, else ours.
They are put in at the one way out of `decide`, so that no rule has to think of them.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace

from app.turn import events as e
from app.turn.agent import Agent
from app.turn.ids import MessageId
from app.turn.journal import Interruption
from app.turn.open_calls import OpenCall
from app.turn.state import Turn
from app.turn.transcript import ClosingMessage, InterruptionReason, Outcome, ToolResult

WORDS: Mapping[Outcome, str] = {
    Outcome.NOT_STARTED: "The call was not started. Nothing was done.",
    Outcome.UNKNOWN: (
        "The call was interrupted while it ran. It may or may not have taken effect: "
        "check the current state before you try it again."
    ),
    Outcome.CANCELLED: "The call was cancelled before it started. Nothing was done.",
    Outcome.SUPERSEDED: "The call was given up: a new message of the user came first.",
    Outcome.EXPIRED: "Nobody answered in time, so the call was given up.",
}
"""What the model reads where an agent has no words of its own, by outcome."""

_NOBODY_SAID = (
    "Nobody said in time how the call went. It may or may not have taken effect: "
    "check the current state before you try it again."
)
_CUT_OFF = "The call was stopped before it had a result. It may be made again."
PLACEHOLDERS = frozenset({"toolName", "reason", "callId", "turnId"})
"""What a template may name in braces."""

_PLACEHOLDER = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")  # other braces are text, JSON say
_BECAUSE: Mapping[InterruptionReason, str] = {
    InterruptionReason.USER_MESSAGE: "a new message of the user came first",
    InterruptionReason.REPLANNED: "the user wants something else instead",
    InterruptionReason.TURN_CANCELLED: "the turn was cancelled",
    InterruptionReason.TURN_FAILED: "the turn ended because of an error",
    InterruptionReason.LIMIT_REACHED: "the turn reached a limit",
    InterruptionReason.WORKER_LOST: "the process that ran it was lost",
    InterruptionReason.EARLIER_CALL_FAILED: "a call before it failed",
    InterruptionReason.UNANSWERED: "its history does not say how it ended",
    InterruptionReason.WAIT_EXPIRED: "nobody answered in time",
    InterruptionReason.CUT_OFF: "it did not end in time when it was to be stopped",
    InterruptionReason.EARLIER_CALL_INTERRUPTED: "a call before it was interrupted",
    InterruptionReason.GIVEN_UP: "a person gave it up",
}


def interrupted(
    call: OpenCall,
    outcome: Outcome,
    reason: InterruptionReason,
    *,
    source_message_id: MessageId | None = None,
) -> e.ToolInterrupted:
    """The event that answers `call` without running it.

    Args:
        call: which call.
        outcome: one of `NOT_STARTED`, `UNKNOWN`, `CANCELLED`, `SUPERSEDED` and `EXPIRED`.
        reason: why it is not run, or not to its end.
        source_message_id: the message it is given up for, if it is for one.
    """
    content = WORDS[outcome]
    if outcome is Outcome.EXPIRED and call.may_have_had_effect:
        content = _NOBODY_SAID
    elif outcome is Outcome.CANCELLED and call.in_flight:
        content = _CUT_OFF
    result = ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=outcome, content=content
    )
    return e.ToolInterrupted(
        position=call.position, result=result, reason=reason, source_message_id=source_message_id
    )


def skipped(call: OpenCall, message_id: MessageId) -> Interruption:
    """The event that answers a call because the message, which steers, came first (T9)."""
    answered = interrupted(
        call,
        outcome_when_overtaken(call),
        InterruptionReason.USER_MESSAGE,
        source_message_id=message_id,
    )
    if answered.result.outcome is Outcome.UNKNOWN:
        return answered
    return e.ToolSkipped(
        position=call.position, result=answered.result, source_message_id=message_id
    )


def outcome_when_overtaken(call: OpenCall) -> Outcome:
    """What becomes of a call that a message came before.

    One that may have done something, and was to be run again, is `unknown`: nobody looks any more.
    """
    return Outcome.UNKNOWN if call.may_have_had_effect else Outcome.SUPERSEDED


def closing(turn: Turn, words: str, reason: InterruptionReason) -> tuple[e.Event, ...]:
    """What makes the history whole when a turn ends abnormally (case 128).

    One result per open call, then one closing message of the service.
    """
    answers = tuple(interrupted(call, _outcome_at_end(call), reason) for call in turn.open_calls)
    message = ClosingMessage(text=words)
    return (*answers, e.MessageAdded(position=turn.next_position, message=message))


def _outcome_at_end(call: OpenCall) -> Outcome:
    """A begun call is `unknown`: stopping our side does not show that nothing was done."""
    return Outcome.UNKNOWN if call.may_have_had_effect else Outcome.CANCELLED


def in_words_of(agent: Agent | None, turn: Turn, events: Iterable[e.Event]) -> tuple[e.Event, ...]:
    """The same events; interrupted calls are told of in the agent's words where it has some."""
    texts: Mapping[Outcome, str] = {} if agent is None else agent.interruption_text
    return tuple(
        _worded(event, texts[event.result.outcome], turn)
        if isinstance(event, Interruption) and event.result.outcome in texts
        else event
        for event in events
    )


def unknown_placeholders(template: str) -> tuple[str, ...]:
    """Names in braces that stand for nothing, in the order of the text."""
    return tuple(name for name in _PLACEHOLDER.findall(template) if name not in PLACEHOLDERS)


def _worded(event: Interruption, template: str, turn: Turn) -> Interruption:
    """In one pass, so that what is put in is never read as a template itself."""
    result = event.result
    values = {
        "toolName": result.tool_name,
        "callId": result.call_id,
        "turnId": turn.identity.turn_id,
        "reason": "" if event.reason is None else _BECAUSE[event.reason],
    }
    content = _PLACEHOLDER.sub(lambda found: values[found[1]], template)
    return replace(event, result=replace(result, content=content))
