"""The housekeeper: keeps the journals of turns that have ended from growing without end.

Two things are done, both in small batches and neither of them twice. Pieces of text are folded into
the answers that they became, some time after the turn has ended. And where a policy says how long
events are kept, those of older turns are dropped, but for the last commit: a reader who comes later
is given a snapshot and then the turn's end. The transcript is not touched by either.
"""

from dataclasses import dataclass
from datetime import timedelta

import structlog

from app.ports import Clock, JournalUpkeep, StoreUnavailable
from app.turn.folding import superfluous
from app.turn.ids import TurnId

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Housekeeper:
    """Tidies the journals of all tenants; any number of them may work side by side."""

    upkeep: JournalUpkeep
    clock: Clock
    fold_after: timedelta
    """How long after its end a turn's text is kept in pieces."""
    keep_events: timedelta | None
    """How long after its end a turn's events are kept; `None`: as long as its conversation."""
    turns_at_once: int = 100

    async def tidy(self) -> None:
        """Do all that is due now.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        while await self._fold_some():
            pass
        while await self._prune_some():
            pass

    async def _fold_some(self) -> bool:
        """Whether there may be more to do."""
        before = self.clock() - self.fold_after
        found = await self.upkeep.to_fold(ended_before=before, limit=self.turns_at_once)
        folded = sum([await self._folded(turn_id) for turn_id in found])
        return folded > 0 and len(found) == self.turns_at_once

    async def _folded(self, turn_id: TurnId) -> bool:
        try:
            rows = await self.upkeep.whole(turn_id)
            gone = superfluous([(row.sequence, row.events) for row in rows])
            await self.upkeep.fold(turn_id, gone)
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001 - one turn's fault must not leave the others as they are
            _log.exception("fold_failed", turn_id=turn_id)
            return False
        return True

    async def _prune_some(self) -> bool:
        if self.keep_events is None:
            return False
        before = self.clock() - self.keep_events
        pruned = await self.upkeep.prune(ended_before=before, limit=self.turns_at_once)
        return pruned == self.turns_at_once
