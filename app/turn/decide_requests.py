"""Rules for what people ask of a turn: which request fits which state (turn semantics, 2.3).

All checks come before any event, so a refused request leaves the turn as it was.
"""

from dataclasses import replace
from datetime import datetime
from typing import Literal

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.begin_tools import has_due
from app.turn.decide_calls import answered_in_words, is_answered_by, keeps_out_messages
from app.turn.decide_orphans import cancelled_at_once, given_up, is_open, spoken_to
from app.turn.decide_queue import queued
from app.turn.errors import (
    ConversationBusy,
    CorrelationMismatch,
    RetryNotDue,
    TurnTerminal,
    WrongCommand,
)
from app.turn.evolve import advance
from app.turn.evolve_stops import held_for
from app.turn.interruption import interrupted, outcome_when_overtaken
from app.turn.opening import suspended
from app.turn.resume_notices import told_to_begin_again
from app.turn.resuming import changed, does_not_fit, resumed
from app.turn.state import Turn
from app.turn.states import (
    Cancelled,
    Paused,
    Ready,
    RetryScheduled,
    ToolRetryScheduled,
    WaitingForCalls,
    WaitingForModel,
    WaitingForUser,
)
from app.turn.status import BLOCKED, PauseCause, ResumedBy, Status
from app.turn.steps import cancelled
from app.turn.transcript import InterruptionReason, UserMessage


def message_posted(
    turn: Turn, given: i.PostMessage, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    """A message goes on with a turn that waits (T62, T68, T86); one at work is left alone (T7).

    Unless the message may wait until that turn's end or its next boundary (T8, T9), or nobody is
    there who is at work (T10a). It answers what
    was asked in words (T75, T76); anything else that is open it gives up (T74, T80, T84), which a
    strict form does not let it (C22), nor one that would steer.
    """
    if turn.is_terminal:
        raise TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status}")
    if turn.status not in BLOCKED:
        return _said_to_work(turn, given, agent, at=at)
    if isinstance(turn.state, WaitingForUser):
        return answered(turn, given.message, "USER_MESSAGE", at=at)
    if is_answered_by(turn, given.message):
        return answered_in_words(turn, given.message, at=at, agent=agent)
    if keeps_out_messages(turn):
        raise _form_waits(turn)
    return _replanned(turn, given, "USER_MESSAGE", agent, at)


def _said_to_work(
    turn: Turn, given: i.PostMessage, agent: Agent | None, *, at: datetime
) -> tuple[e.Event, ...]:
    """To a turn at work, or to one that only seems to be: its worker is gone."""
    mode = given.when_running
    if given.is_orphaned and turn.status is Status.RUNNING and is_open(turn):
        if not (given.recover_first or mode == "queue" or keeps_out_messages(turn)):
            return spoken_to(turn, given, agent)
        mode = "queue" if given.recover_first else mode
    if mode == "reject":
        detail = (
            f"turn {turn.identity.turn_id!r} of this conversation is {turn.status}; "
            "send the message again when it has ended or waits"
        )
        raise ConversationBusy(turn, detail)
    if mode == "steer" and keeps_out_messages(turn):
        raise _form_waits(turn)
    return queued(turn, given.message, mode, at=at)


def _form_waits(turn: Turn) -> WrongCommand:
    detail = "a form waits for its values; fill it in, or say REPLAN_WITH_MESSAGE to give it up"
    if turn.status not in BLOCKED:
        detail = "a form waits for its values; fill it in, or queue the message for the next turn"
    return WrongCommand(turn, detail)


def answered(
    turn: Turn,
    message: UserMessage,
    command: Literal["USER_MESSAGE", "USER_INPUT"],
    *,
    at: datetime,
) -> tuple[e.Event, ...]:
    """The message is the answer to the question; nothing is interrupted (T75)."""
    return (
        e.MessageAdded(position=turn.next_position, message=message),
        resumed(turn, command, at=at, correlation_id=message.message_id),
    )


def replanned(
    turn: Turn, given: i.Replan, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    """Always interrupts what is open; never read as an answer (T87)."""
    if turn.status not in BLOCKED:
        raise does_not_fit(turn, "REPLAN_WITH_MESSAGE")
    return _replanned(turn, given, "REPLAN_WITH_MESSAGE", agent, at)


def model_retried(turn: Turn, given: i.RetryModel, *, at: datetime) -> tuple[e.Event, ...]:
    """Only the failure that the turn waits for now can be retried (T60, T61).

    With changes, where they can help with it; a plain retry of a token limit is taken (case 32).
    """
    state = turn.state
    if not isinstance(state, WaitingForModel):
        raise does_not_fit(turn, "RETRY_MODEL")
    if given.failure_id != state.record.failure_id:
        detail = (
            f"turn {turn.identity.turn_id!r} waits for failure {state.record.failure_id!r}, "
            f"not {given.failure_id!r}; reload and retry with that one"
        )
        raise CorrelationMismatch(turn, detail)
    going_on = resumed(turn, "RETRY_MODEL", at=at, correlation_id=given.failure_id)
    return (*told_to_begin_again(turn), changed(turn, going_on, given.changes))


def scheduled_retry_taken(
    turn: Turn, command: Literal["RETRY", "CONTINUE"], *, at: datetime
) -> tuple[e.Event, ...]:
    """`RETRY` takes a retry that is due, `CONTINUE` takes it now (T64 to T66)."""
    state = turn.state
    if not isinstance(state, RetryScheduled | ToolRetryScheduled):
        raise does_not_fit(turn, command)
    if command == "RETRY" and at < state.due_at:
        detail = f"the retry is due at {state.due_at.isoformat()}; CONTINUE takes it now"
        raise RetryNotDue(turn, detail)
    return (resumed(turn, command, at=at),)


def pause_asked(turn: Turn, *, at: datetime) -> tuple[e.Event, ...]:
    """At once where nothing is in flight (T54b, T54c); else when its worker has let go (T53).

    It drops a model call at once, and stores what has come of the answer; tools end first.
    """
    if isinstance(turn.state, Paused):
        return ()
    if turn.is_terminal:
        raise TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status} already")
    if isinstance(turn.state, WaitingForModel | WaitingForUser | WaitingForCalls):
        raise WrongCommand(turn, f"a turn that is {turn.status} waits already")
    if turn.cancel_requested or turn.pause_requested:
        return ()
    if turn.attempt_in_flight is not None:
        return (e.PauseRequested(),)
    return (e.TurnPaused(cause=PauseCause.PERSON, requested_at=at),)


def pause_ended(
    turn: Turn, given: i.Resume, *, at: datetime, agent: Agent | None
) -> tuple[e.Event, ...]:
    """A paused turn goes on from where it stood (T85), if need be under other limits (C16).

    Where all that stands there waits for somebody, it waits again.
    """
    if given.is_orphaned and turn.status is Status.RUNNING and is_open(turn):
        paused = (e.TurnPaused(cause=PauseCause.CRASH, requested_at=at),)
        now = replace(given, is_orphaned=False)
        return (*paused, *pause_ended(advance(turn, paused), now, at=at, agent=agent))
    if not isinstance(turn.state, Paused):
        raise does_not_fit(turn, "RESUME")
    goes_on = changed(turn, resumed(turn, "RESUME", at=at), given.changes)
    if turn.state.lost is not None:
        return (goes_on,)  # what is to be said of it comes with its recovery
    events: tuple[e.Event, ...] = (*told_to_begin_again(turn), goes_on)
    after = advance(turn, events)
    return (*events, *(() if has_due(after, agent, at=at) else suspended(after, at=at)))


def hold_ended(turn: Turn, *, at: datetime) -> tuple[e.Event, ...]:
    """A turn on hold is READY like any other from now on (T11a)."""
    if not turn.is_held:
        raise does_not_fit(turn, "RUN")
    return (e.TurnResumed(command_type="RUN", waited=held_for(turn, at=at)),)


def cancel_asked(turn: Turn, given: i.Cancel) -> tuple[e.Event, ...]:
    """At once where nothing is in flight (T54a, T92); else a flag that is never cleared (T54)."""
    if isinstance(turn.state, Cancelled):
        return ()
    if turn.is_terminal:
        raise TurnTerminal(turn, f"turn {turn.identity.turn_id!r} is {turn.status} already")
    if turn.status in BLOCKED or isinstance(turn.state, Ready):
        return cancelled(turn)
    if given.is_orphaned:
        return cancelled_at_once(turn)
    return () if turn.cancel_requested else (e.CancellationRequested(),)


def _replanned(
    turn: Turn,
    given: i.PostMessage | i.Replan,
    command: ResumedBy,
    agent: Agent | None,
    at: datetime,
) -> tuple[e.Event, ...]:
    """One result per open call in declared order, then the message (table 2.3, RP).

    The answer of a worker that has died of it is given up as well.
    """
    message, lost = given.message, given_up(turn, given.lost, agent)
    is_replan = command == "REPLAN_WITH_MESSAGE"
    reason = InterruptionReason.REPLANNED if is_replan else InterruptionReason.USER_MESSAGE
    return (
        *lost,
        *(
            interrupted(
                call, outcome_when_overtaken(call), reason, source_message_id=message.message_id
            )
            for call in turn.open_calls
        ),
        e.MessageAdded(position=advance(turn, lost).next_position, message=message),
        resumed(turn, command, at=at, correlation_id=message.message_id),
    )
