"""Workers that die of one and the same turn, one after the other (turn semantics T116).

Deaths count since something new was stored: what was tried three times from one and the same place
is not tried again. What only says that something begins, or that what had begun was lost, is
nothing new: an attempt after it starts from the same place. Nor is text of an answer that has not
ended: the model writes it again from its start. Neither is what people ask meanwhile without the
turn going on for it.
"""

from collections.abc import Iterable

from app.turn import events as e
from app.turn.transcript import UserMessage

MOST_DEATHS = 3
"""Deaths in a row without anything new stored; after the last of them the turn is paused."""

_NOTHING_NEW = (
    e.StepStarted,
    e.ModelStarted,
    e.CompactionStarted,
    e.ToolStarted,
    e.ModelText,
    e.ModelReasoning,
    e.StepRecovered,
    e.TurnResumed,
    e.InputQueued,
    e.InputWithdrawn,
    e.CancellationRequested,
    e.PauseRequested,
)


def makes_progress(events: Iterable[e.Event]) -> bool:
    """Whether a commit of these events brings the turn on.

    What a recovery keeps of a lost answer, and what the model is told of that, does not: the step
    is begun again from the same place.
    """
    events = tuple(events)
    of_recovery = (e.ModelStopped,) if any(isinstance(x, e.StepRecovered) for x in events) else ()
    return any(
        not isinstance(event, (*_NOTHING_NEW, *of_recovery)) and not _is_a_notice(event)
        for event in events
    )


def _is_a_notice(event: e.Event) -> bool:
    return isinstance(event, e.MessageAdded) and not isinstance(event.message, UserMessage)
