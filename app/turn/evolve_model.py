"""How a model call changes its turn; the part of `app.turn.evolve` that is about it."""

from dataclasses import replace

from app.turn import events as e
from app.turn.journal import JournalError
from app.turn.state import Turn
from app.turn.states import CallingModel, ModelDue
from app.turn.transcript import Usage


def model_changed(
    turn: Turn, event: e.ModelStarted | e.ModelText | e.ModelReasoning | e.ModelCompleted
) -> Turn:
    """The turn after a model call began, wrote or was answered."""
    match event:
        case e.ModelStarted(attempt_id=attempt_id):
            counters = turn.counters.plus(model_attempts=1)
            return replace(turn, state=CallingModel(attempt_id=attempt_id), counters=counters)
        case e.ModelText(offset=offset, text=text):
            stored = offset + len(text)
            return replace(turn, state=replace(_calling(turn), text_stored=stored))
        case e.ModelReasoning(offset=offset, text=text):
            stored = offset + len(text)
            return replace(turn, state=replace(_calling(turn), reasoning_stored=stored))
        case e.ModelCompleted():
            return _answered(turn, event)


def _answered(turn: Turn, event: e.ModelCompleted) -> Turn:
    counters = replace(turn.counters.plus(model_successes=1), consecutive_retries=0)
    return replace(
        turn,
        state=ModelDue(),
        next_position=turn.next_position if event.position is None else event.position + 1,
        counters=counters,
        usage=added(turn.usage, event.usage),
    )


def _calling(turn: Turn) -> CallingModel:
    if isinstance(turn.state, CallingModel):
        return turn.state
    message = "text of a model that was not called"
    raise JournalError(message)


def added(total: Usage, more: Usage) -> Usage:
    """The sum of what was used; `None` only where neither says."""
    """The sum of what was used; `None` only where neither says."""
    return Usage(
        input_tokens=_sum(total.input_tokens, more.input_tokens),
        cached_input_tokens=_sum(total.cached_input_tokens, more.cached_input_tokens),
        output_tokens=_sum(total.output_tokens, more.output_tokens),
    )


def _sum(total: int | None, more: int | None) -> int | None:
    return total if more is None else (total or 0) + more
