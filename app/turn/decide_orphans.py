"""Rules for a turn whose worker has died (`app.turn.orphans` says when that is).

a worker takes it over    paused at the third death in a row that brought nothing (T116), or for a
                          person to decide where its agent says so (C25); else nothing new, and its
                          lost step is recovered
a message                 each open call gets a result, `unknown` where it had begun; what is stored
                          of the answer is kept as a partial message, else withdrawn; then the
                          message is said (T10a)
CANCEL                    as where nothing is in flight: nobody is there who could end it
"""

from datetime import datetime, timedelta

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.crash_loop import MOST_DEATHS
from app.turn.evolve import advance
from app.turn.interruption import interrupted
from app.turn.next_step import Rest, next_step
from app.turn.open_calls import OpenCall
from app.turn.partial import cut_off
from app.turn.state import Turn
from app.turn.states import CallingModel, Compacting, Paused, RunningTools
from app.turn.status import PauseCause, Status
from app.turn.steps import cancelled, end_step
from app.turn.transcript import UNFINISHED, InterruptionReason, Outcome, UserMessage


def taken_over(
    turn: Turn, given: i.WorkerLost, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    """Paused where it stands, with all that is to be recovered; or nothing new.

    What is to end, or has failed but for the record, does: nothing more is run for that. What is to
    pause is recovered first, in which a probe of a tool may have a part, and workers die of that
    too: so it is paused where it stands when enough of them have.
    """
    if not is_open(turn) or isinstance(next_step(turn, at=at), Rest):
        return ()
    if given.deaths >= MOST_DEATHS:
        return (e.TurnPaused(cause=PauseCause.CRASH_LOOP, requested_at=at),)
    if turn.pause_requested:
        return ()
    if agent.on_crash == "pause" and turn.status is Status.RUNNING:
        return (e.TurnPaused(cause=PauseCause.CRASH, requested_at=at),)
    return ()


def is_open(turn: Turn) -> bool:
    """Whether it is not decided yet that the turn ends."""
    is_failing = isinstance(turn.state, RunningTools) and turn.state.is_failing
    return not (turn.cancel_requested or is_failing)


def spoken_to(turn: Turn, given: i.PostMessage, agent: Agent | None) -> tuple[e.Event, ...]:
    """The calls are answered, the message is said, the model is called with it (T10a)."""
    message = given.message
    closed = (
        *given_up(turn, given.lost, agent),
        *(_answered(call, message) for call in turn.open_calls),
    )
    after = advance(turn, closed)
    return (
        *closed,
        e.MessageAdded(position=after.next_position, message=message),
        e.TurnResumed(
            command_type="USER_MESSAGE", waited=timedelta(0), correlation_id=message.message_id
        ),
    )


def cancelled_at_once(turn: Turn) -> tuple[e.Event, ...]:
    """Nobody is there who could see a flag."""
    ended = () if turn.attempt_in_flight is None else (end_step(turn),)
    return (*ended, *cancelled(turn))


def given_up(turn: Turn, lost: i.LostAnswer, agent: Agent | None) -> tuple[e.Event, ...]:
    """The step that is lost, and what becomes of it: nothing of it counts.

    Of a paused turn only an answer is one: its calls are the turn's, and given up like any others.
    """
    match turn.state:
        case CallingModel() as state:
            return _answer_given_up(turn, state, lost, agent)
        case Paused(lost=CallingModel() as state):
            return _answer_given_up(turn, state, lost, agent)
        case Compacting(attempt_id=attempt_id):
            return (e.StepRecovered(attempt_id=attempt_id, recovery="CALL_MODEL", cause="crash"),)
        case RunningTools(attempt_id=attempt_id, calls=calls):
            rules = tuple(e.RecoveredCall(call_id=call.call_id, rule="report") for call in calls)
            return (
                e.StepRecovered(
                    attempt_id=attempt_id, recovery="RECOVER_TOOLS", calls=rules, cause="crash"
                ),
            )
        case _:
            return ()


def _answer_given_up(
    turn: Turn, state: CallingModel, lost: i.LostAnswer, agent: Agent | None
) -> tuple[e.Event, ...]:
    """Readers have seen its text: it is kept where all of it is at hand, or taken back (C8)."""
    had_text = state.text_stored > 0 or state.reasoning_stored > 0
    is_whole = (len(lost.text), len(lost.reasoning)) == (state.text_stored, state.reasoning_stored)
    kept = (
        ()
        if agent is None or not is_whole
        else cut_off(
            turn, state.attempt_id, agent, UNFINISHED, text=lost.text, reasoning=lost.reasoning
        )
    )
    recovered = e.StepRecovered(
        attempt_id=state.attempt_id,
        recovery="CALL_MODEL",
        discard_from=(len(lost.text) if kept else 0) if had_text else None,
        cause="crash",
    )
    return (recovered, *kept)


def _answered(call: OpenCall, message: UserMessage) -> e.ToolInterrupted:
    has_begun = call.attempt > 0 or call.is_with_others
    return interrupted(
        call,
        Outcome.UNKNOWN if has_begun else Outcome.NOT_STARTED,
        InterruptionReason.USER_MESSAGE,
        source_message_id=message.message_id,
    )
