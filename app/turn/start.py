"""How a turn comes into being: its first events."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime, timedelta

from app.turn import events as e
from app.turn.ids import Identity, TurnId
from app.turn.interruption import WORDS
from app.turn.resume_notices import notices
from app.turn.resume_point import Resumable, UnansweredCall
from app.turn.state import Turn
from app.turn.transcript import (
    InterruptionReason,
    ToolResult,
    UserMessage,
)


def start(
    identity: Identity,
    message: UserMessage,
    *,
    first_position: int,
    at: datetime,
    held: bool = False,
    never_replay: bool = False,
    unanswered: Sequence[UnansweredCall] = (),
) -> tuple[e.Event, ...]:
    """A READY turn opened by a user's message.

    Args:
        identity: whose turn it is, and by which exact agent version.
        message: what opens it.
        first_position: the first free place in the conversation's transcript; from 0.
        at: now.
        held: whether no worker takes the turn before it is told to run (T11a).
        never_replay: whether no begun call of it is run again by itself.
        unanswered: calls at the history's end that nobody has answered; they are, before the
            message is said (seed rule ZA-11).
    """
    answers = _answers(unanswered, first_position)
    return (
        e.TurnStarted(
            identity=identity,
            first_position=first_position,
            created_at=at,
            held=held,
            never_replay=never_replay,
        ),
        *answers,
        e.MessageAdded(position=first_position + len(answers), message=message),
    )


def go_on(
    identity: Identity,
    point: Resumable,
    *,
    first_position: int,
    at: datetime,
    resumes: TurnId | None,
    model: str | None = None,
) -> tuple[e.Event, ...]:
    """A READY turn that goes on with a history from `point`; no user has said anything (T114).

    Calls without a result are answered with what is known of them. An answer that was cut off
    stays, and a notice says what to do about it.

    Args:
        identity: whose turn it is.
        point: where the history is resumed.
        first_position: the first free place in the transcript.
        at: now.
        resumes: the turn that had the history before; `None`: another service.
        model: what it calls instead of its agent's.
    """
    answers = _answers(point.unanswered, first_position)
    started = e.TurnStarted(
        identity=identity,
        first_position=first_position,
        created_at=at,
        resumes_turn_id=resumes,
        model=model,
    )
    calls = tuple(e.RecoveredCall(call_id=c.call_id, rule="report") for c in point.unanswered)
    recovered = e.StepRecovered(attempt_id=None, recovery=point.kind, calls=calls)
    told = tuple(e.MessageAdded(position=first_position, message=n) for n in notices(point.kind))
    return (started, recovered, *answers, *told)


def _answers(calls: Sequence[UnansweredCall], first_position: int) -> tuple[e.ToolInterrupted, ...]:
    return tuple(
        e.ToolInterrupted(
            position=first_position + n,
            result=ToolResult(
                call_id=call.call_id,
                tool_name=call.tool_name,
                outcome=call.outcome,
                content=WORDS[call.outcome],
            ),
            reason=InterruptionReason.UNANSWERED,
        )
        for n, call in enumerate(calls)
    )


def succeed(ended: Turn, identity: Identity, *, at: datetime) -> tuple[e.Event, ...]:
    """The READY turn that the queue of an ended one opens; no events when nothing is queued.

    The first message of the queue opens it, the others are inherited in their order. A message that
    was to steer the ended turn found no boundary: now it waits like any other (T8, case 93).

    Args:
        ended: the turn, in its last state.
        identity: of the turn to be opened.
        at: now. A turn is never as old as the one before it, whatever two clocks say.
    """
    if not ended.queue:
        return ()
    first = ended.queue[0].message
    return (
        e.TurnStarted(
            identity=identity,
            first_position=ended.next_position,
            created_at=max(at, ended.created_at + timedelta(microseconds=1)),
            queue=tuple(replace(queued, mode="queue") for queued in ended.queue),
        ),
        e.InputPromoted(message_id=first.message_id),
        e.MessageAdded(position=ended.next_position, message=first),
    )
