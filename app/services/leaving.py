"""What a turn does without those who wanted to see what it does."""

from contextlib import suppress

import structlog

from app.ports import OutcomeUnknown, StoreUnavailable
from app.runner.commit import VersionMoved
from app.services.deps import Caller, Services
from app.services.errors import Refused
from app.services.turns import pause
from app.turn.errors import Rejected
from app.turn.ids import TurnId

_log = structlog.get_logger(__name__)


async def pause_for_want_of_readers(services: Services, caller: Caller, turn_id: TurnId) -> None:
    """Pause the turn if it is at work, as its caller has asked for in case of hanging up.

    Where that cannot be done nobody is there to be told, and the turn goes on.
    """
    with suppress(Rejected, Refused, VersionMoved):
        try:
            turn = await services.turns.load(turn_id)
            if turn is not None and turn.is_at_work:
                await pause(services, caller, turn_id)
        except (StoreUnavailable, OutcomeUnknown) as error:
            _log.warning("pause_failed", turn_id=turn_id, error=type(error).__name__)
