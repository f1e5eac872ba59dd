"""The first thing a worker does with a turn whose worker before has died: it says so.

Before anything else, so that a turn which kills its workers is stopped by the next of them, and
before a step is recovered, so that it can be left as it was for a person to decide.
"""

from app.ports import ClaimedTurn
from app.runner.commit import TurnWriter
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.state import Turn
from app.turn.states import Paused
from app.turn.status import LostTo


async def taken_over(writer: TurnWriter, held: ClaimedTurn, agent: Agent) -> Turn | None:
    """The turn as it is to be driven; `None` when it is paused, and the claim went with that.

    Raises:
        ClaimLost, OutcomeUnknown: as for every report.
    """
    if not held.is_taken_over:
        return held.turn
    lost = i.WorkerLost(attempt_id=held.turn.attempt_in_flight, deaths=held.deaths)
    written = await writer.report(held.turn, lost, agent, held.claim)
    return None if isinstance(written.turn.state, Paused) else written.turn


def lost_to(held: ClaimedTurn) -> LostTo:
    """What a step was lost to that the turn was claimed with.

    A claim that was given up was given up by a worker that stopped in order.
    """
    return "crash" if held.is_taken_over else "shutdown"
