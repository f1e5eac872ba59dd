"""How a model call changes its turn; the part of `app.turn.evolve` that is about it."""

from typing import TypeAlias

from app.turn import events as e
from app.turn.journal import JournalError
from app.turn.replacing import replace
from app.turn.state import Turn
from app.turn.states import CallingModel, Compacting, CompactionDue, ModelDue
from app.turn.transcript import FINISHED, AssistantMessage, StopReason, Usage

_ModelEvent: TypeAlias = (
    e.ModelStarted
    | e.ModelText
    | e.ModelReasoning
    | e.ModelCompleted
    | e.ModelFailed
    | e.ModelStopped
)


def model_changed(turn: Turn, event: _ModelEvent) -> Turn:
    """The turn after a model call began, wrote, was answered or was not."""
    match event:
        case e.ModelStarted(attempt_id=attempt_id):
            counters = turn.counters.plus(model_attempts=1)
            state = CallingModel(attempt_id=attempt_id, started_version=turn.version + 1)
            return replace(turn, state=state, counters=counters)
        case e.ModelText(offset=offset, text=text):
            stored = offset + len(text)
            return replace(turn, state=replace(_calling(turn), text_stored=stored))
        case e.ModelReasoning(offset=offset, text=text):
            stored = offset + len(text)
            return replace(turn, state=replace(_calling(turn), reasoning_stored=stored))
        case e.ModelCompleted():
            return _answered(turn, event)
        case e.ModelFailed():
            return _failure_met(turn, event)
        case e.ModelStopped():
            return _stopped(turn, event)


def _answered(turn: Turn, event: e.ModelCompleted) -> Turn:
    counters = replace(turn.counters.plus(model_successes=1), consecutive_retries=0)
    has_paused = event.stop_reason is StopReason.PAUSED
    was_cut = event.stop_reason is StopReason.MAX_OUTPUT and event.position is not None
    return replace(
        turn,
        state=ModelDue(),
        next_position=turn.next_position if event.position is None else event.position + 1,
        parts_from=_first_part(turn, event),
        pauses=turn.pauses + 1 if has_paused else 0,
        continuations=turn.continuations + 1 if was_cut else 0,
        empty_answers=0,
        counters=counters,
        usage=added(turn.usage, event.usage),
        came_back_from=None,
        is_changed=False,
        asked=event.asked or turn.asked,
        has_compacted=False,
    )


def _first_part(turn: Turn, event: e.ModelCompleted) -> int | None:
    """Text in front of calls is no part of the answer that comes behind them."""
    match event.message:
        case AssistantMessage(tool_calls=calls) if calls:
            return None
        case _:
            return event.position if turn.parts_from is None else turn.parts_from


def _stopped(turn: Turn, event: e.ModelStopped) -> Turn:
    """Behind a completed answer it tells nothing new; else nothing is in flight any more."""
    turn = replace(turn, usage=added(turn.usage, event.usage))
    if event.position is not None:
        turn = replace(turn, next_position=event.position + 1, partial_at=event.position)
    if not isinstance(turn.state, CallingModel):
        return turn
    said_nothing = event.stop_reason in FINISHED
    return replace(turn, state=ModelDue(), empty_answers=turn.empty_answers + int(said_nothing))


def _failure_met(turn: Turn, event: e.ModelFailed) -> Turn:
    """The turn after a recognised failure, on its way to where that leads it."""
    met = replace(
        turn,
        counters=turn.counters.plus(model_failures=1),
        usage=added(turn.usage, event.usage),
        empty_answers=0,
        asked=event.asked or turn.asked,
    )
    match event.then:
        case "fall_back":
            return replace(met, fallback=turn.fallback + 1)
        case "compact":
            return replace(met, state=CompactionDue(record=event.record))
        case None:
            return met


def compaction_changed(turn: Turn, event: e.CompactionEvent) -> Turn:
    """The turn after a summary was asked for, has come, or has not."""
    match event:
        case e.CompactionStarted(attempt_id=attempt_id):
            due = _due(turn)
            return replace(
                turn,
                state=Compacting(attempt_id=attempt_id, record=due.record, is_asked=due.is_asked),
                counters=turn.counters.plus(model_attempts=1),
                has_compacted=True,
            )
        case e.ContextCompacted(usage=usage) | e.CompactionFailed(usage=usage):
            return replace(turn, state=ModelDue(), usage=added(turn.usage, usage))


def _due(turn: Turn) -> CompactionDue:
    if isinstance(turn.state, CompactionDue):
        return turn.state
    message = "a summary that was not due"
    raise JournalError(message)


def _calling(turn: Turn) -> CallingModel:
    if isinstance(turn.state, CallingModel):
        return turn.state
    message = "text of a model that was not called"
    raise JournalError(message)


def added(total: Usage, more: Usage) -> Usage:
    """The sum of what was used; `None` only where neither says."""
    return Usage(
        input_tokens=_sum(total.input_tokens, more.input_tokens),
        cached_input_tokens=_sum(total.cached_input_tokens, more.cached_input_tokens),
        output_tokens=_sum(total.output_tokens, more.output_tokens),
    )


def _sum(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more
