"""What may be done to a turn now: the list a page draws its buttons from.

It is the same list that a refusal carries as `allowedActions`, so it must agree with `decide`:
every enabled action is accepted, and a test holds the two together.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Literal, TypeAlias

from app.turn import questions
from app.turn.decide_calls import asks_in_words, keeps_out_messages
from app.turn.decide_queue import is_full
from app.turn.failures import FailureRecord
from app.turn.ids import CallId, FailureId
from app.turn.retry_advice import Prospect, Remedy, advice_on_retry
from app.turn.state import Turn
from app.turn.states import (
    Paused,
    Ready,
    RetryScheduled,
    ToolRetryScheduled,
    WaitingForCalls,
    WaitingForModel,
    WaitingForUser,
)
from app.turn.status import PauseCause
from app.turn.waits import is_late

Command: TypeAlias = Literal[
    "RETRY_MODEL",
    "RETRY",
    "CONTINUE",
    "RESUME",
    "USER_INPUT",
    "APPROVE_TOOL",
    "REJECT_TOOL",
    "TOOL_RESULT",
    "TOOL_ERROR",
    "MESSAGE",
    "QUEUE",
    "STEER",
    "REPLAN_WITH_MESSAGE",
    "RUN",
    "PAUSE",
    "CANCEL",
]
Barrier: TypeAlias = Literal[
    "not_due",
    "already_requested",
    "at_work",
    "queue_full",
    "being_cancelled",
    "agent_version_unavailable",
    "wait_expired",
    "form_waits",
]
"""Why an action would not be accepted now."""
Caution: TypeAlias = Prospect | Literal["limit_reached"]
"""Why one that would be accepted may not help."""
Reason: TypeAlias = Barrier | Caution


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    command: Command
    enabled: bool = True
    failure_id: FailureId | None = None
    call_id: CallId | None = None
    """The call that waits for it; `None`: it is not about a call."""
    reason: Reason | None = None
    """Why it is not enabled, or why it may not help."""
    helps: tuple[Remedy, ...] = ()
    """What would help instead, or first."""
    helps_from: datetime | None = None
    """From when on it helps, as the provider has stated it."""
    changes: tuple[str, ...] = ()
    """What may be changed with it, by the names in its `changes`."""
    models: tuple[str, ...] = ()
    """Of a `model` that may be changed: those that are known, without the one that is asked now."""


def actions(turn: Turn, *, at: datetime, agent_is_there: bool = True) -> tuple[Action, ...]:
    """What would be accepted now, most helpful first.

    Without its agent a turn cannot go on (T97); stopping it needs none.
    """
    if turn.is_terminal:
        return ()
    offered = (*_on_calls(turn, at), *_offered(turn, at))
    if agent_is_there:
        return offered
    closing = _CLOSING if isinstance(turn.state, WaitingForCalls) else frozenset[Command]()
    if asks_in_words(turn):
        closing -= {"MESSAGE"}  # it would be the answer
    return tuple(_without_agent(action, closing) for action in offered)


_NEED_NO_AGENT: frozenset[Command] = frozenset({"REJECT_TOOL", "PAUSE", "CANCEL", "QUEUE", "STEER"})
_CLOSING: frozenset[Command] = frozenset({"MESSAGE", "REPLAN_WITH_MESSAGE"})
"""What only closes calls, where calls are all that is waited for."""


def _without_agent(action: Action, closing: frozenset[Command]) -> Action:
    if action.command in _NEED_NO_AGENT | closing or action == _NO_MESSAGE:
        return action
    return Action(
        command=action.command,
        enabled=False,
        failure_id=action.failure_id,
        call_id=action.call_id,
        reason="agent_version_unavailable",
    )


def _offered(turn: Turn, at: datetime) -> tuple[Action, ...]:
    match turn.state:
        case WaitingForModel() as state:
            retry = Action(command="RETRY_MODEL", failure_id=state.record.failure_id)
            return (_advised(retry, state.record, at), *_with_message(turn), _cancel(turn))
        case WaitingForUser() as state:
            answer = _in_time(Action(command="USER_INPUT"), is_late=questions.is_late(state, at=at))
            return (answer, *_WITH_MESSAGE, _cancel(turn))
        case WaitingForCalls():
            return (*_with_message(turn), _cancel(turn))
        case Paused() as state:
            return (_resume(state), *_with_message(turn), _cancel(turn))
        case RetryScheduled(due_at=due_at) | ToolRetryScheduled(due_at=due_at) as state:
            due = at >= due_at
            early = Action(command="CONTINUE")
            return (
                _advised(early, state.record, at) if isinstance(state, RetryScheduled) else early,
                Action(command="RETRY", enabled=due, reason=None if due else "not_due"),
                *_with_message(turn),
                Action(command="PAUSE"),
                _cancel(turn),
            )
        case Ready(held=True):
            run = Action(command="RUN")
            return (run, _pause(turn), _cancel(turn), _NO_MESSAGE, *_queued(turn))
        case _:
            return (_pause(turn), _cancel(turn), _NO_MESSAGE, *_queued(turn))


_NO_MESSAGE = Action(command="MESSAGE", enabled=False, reason="at_work")
_WITH_MESSAGE = (Action(command="MESSAGE"), Action(command="REPLAN_WITH_MESSAGE"))


def _with_message(turn: Turn) -> tuple[Action, ...]:
    """A message gives up what is open, unless it answers it; a strict form is in its way (C22)."""
    if keeps_out_messages(turn) and not asks_in_words(turn):
        message = Action(command="MESSAGE", enabled=False, reason="form_waits")
        return (message, Action(command="REPLAN_WITH_MESSAGE"))
    return _WITH_MESSAGE


_ANSWERS: Mapping[str, tuple[Command, ...]] = {
    "approval": ("APPROVE_TOOL", "REJECT_TOOL"),
    "form": ("USER_INPUT",),
    "external": ("TOOL_RESULT", "TOOL_ERROR"),
}
"""What answers a call, by the kind of its wait."""
_OF_A_PARKED: tuple[Command, ...] = ("TOOL_RESULT", "APPROVE_TOOL", "REJECT_TOOL")
"""It is done, with this result; it is not done, so run it; give it up."""


def _on_calls(turn: Turn, at: datetime) -> tuple[Action, ...]:
    """Answers to the calls that wait for one, whatever else the turn does (C28)."""
    return tuple(
        _in_time(
            Action(command=command, call_id=call.call_id),
            is_late=is_late(call.wait, at=at),
        )
        for call in turn.waiting_calls
        if call.wait is not None
        for command in (_OF_A_PARKED if call.is_parked else _ANSWERS[call.wait.kind])
    )


def _in_time(action: Action, *, is_late: bool) -> Action:
    return replace(action, enabled=False, reason="wait_expired") if is_late else action


def _queued(turn: Turn) -> tuple[Action, ...]:
    """A message with `whenRunning` queue or steer: it runs nothing, so it needs no agent."""
    if is_full(turn):
        full: Reason = "queue_full"
        return (
            Action(command="QUEUE", enabled=False, reason=full),
            Action(command="STEER", enabled=False, reason=full),
        )
    if turn.cancel_requested:
        late: Reason = "being_cancelled"
        return (Action(command="QUEUE"), Action(command="STEER", enabled=False, reason=late))
    if keeps_out_messages(turn):
        return (
            Action(command="QUEUE"),
            Action(command="STEER", enabled=False, reason="form_waits"),
        )
    return (Action(command="QUEUE"), Action(command="STEER"))


def _pause(turn: Turn) -> Action:
    if turn.pause_requested or turn.cancel_requested:
        return Action(command="PAUSE", enabled=False, reason="already_requested")
    return Action(command="PAUSE")


def _cancel(turn: Turn) -> Action:
    if turn.cancel_requested:
        return Action(command="CANCEL", enabled=False, reason="already_requested")
    return Action(command="CANCEL")


def _advised(action: Action, record: FailureRecord, at: datetime) -> Action:
    """Asking the model again is always allowed; what to know before is said with it."""
    advice = advice_on_retry(record, at=at)
    if advice is None:
        return action
    return replace(action, reason=advice.reason, helps=advice.helps, helps_from=advice.helps_from)


def _resume(state: Paused) -> Action:
    """Where a limit has paused the turn, only another limit lets it get further."""
    resume = Action(command="RESUME", changes=("limits",))
    if state.cause is not PauseCause.LIMIT:
        return resume
    return replace(resume, reason="limit_reached", helps=("higher_limit",))
