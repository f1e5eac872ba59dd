"""What is stored of an answer whose worker is gone: read from the journal when it is recovered."""

from app.ports import TurnStore
from app.turn.events import Event
from app.turn.partial import written
from app.turn.state import Turn
from app.turn.states import CallingModel, Paused

_ROWS_AT_ONCE = 500


async def lost_answer(store: TurnStore, turn: Turn) -> tuple[str, str]:
    """Text and reasoning of the open answer as far as they are stored; empty where none is open.

    Also of one that a paused turn has kept for its recovery.

    Raises:
        StoreUnavailable: the database is away.
    """
    state = turn.state.lost if isinstance(turn.state, Paused) else turn.state
    if not isinstance(state, CallingModel) or not (state.text_stored or state.reasoning_stored):
        return "", ""
    events: list[Event] = []
    after = state.started_version
    while after < turn.version:
        rows = await store.journal(turn.identity.turn_id, after=after, limit=_ROWS_AT_ONCE)
        if not rows:
            break
        events += (event for row in rows for event in row.events)
        after = rows[-1].sequence
    return written(events, state.attempt_id)
