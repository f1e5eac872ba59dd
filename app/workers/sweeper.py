"""The sweeper: ends what nobody has answered in time, without any client (turn semantics T91).

Every worker sweeps, and none of them claims anything: the turn's version decides who was faster, a
person or another sweeper, and losing that race is nothing.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass

import structlog

from app.ports import Clock, OutcomeUnknown, StoreUnavailable, VersionConflict, WaitStore
from app.runner.commit import TurnWriter
from app.turn.state import Turn

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sweeper:
    """Looks for waits whose time is over, by the clock that every other time is taken from."""

    waits: WaitStore
    writer: TurnWriter
    clock: Clock
    turns_at_once: int = 100
    """How many are read at a time."""

    async def run(self, stopping: asyncio.Event, *, every_seconds: float) -> None:
        """Sweep now and then until `stopping` is set; whatever goes wrong, it looks again."""
        while not stopping.is_set():
            try:
                await self.sweep()
            except StoreUnavailable:
                _log.warning("sweep_failed")
            except Exception:  # noqa: BLE001 - without a sweeper nothing would ever expire
                _log.exception("sweep_failed")
            with suppress(TimeoutError):
                await asyncio.wait_for(stopping.wait(), every_seconds)

    async def sweep(self) -> int:
        """Deal with every wait whose time is over now; the number of turns that it changed.

        Raises:
            StoreUnavailable: the database does not answer.
        """
        changed = 0
        while True:
            found = await self.waits.expired(at=self.clock(), limit=self.turns_at_once)
            now = sum([await self._changed(turn) for turn in found])
            changed += now
            if not now or len(found) < self.turns_at_once:
                return changed

    async def _changed(self, turn: Turn) -> bool:
        turn_id = turn.identity.turn_id
        try:
            written = await self.writer.time_passed(turn)
        except (VersionConflict, OutcomeUnknown) as reason:
            _log.info("wait_not_swept", turn_id=turn_id, reason=type(reason).__name__)
            return False
        except StoreUnavailable:
            raise
        except Exception:  # noqa: BLE001 - one turn's fault must not keep the others waiting
            _log.exception("sweep_of_turn_failed", turn_id=turn_id)
            return False
        return bool(written.events)
