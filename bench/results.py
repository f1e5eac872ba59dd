"""The figures of one target in one round."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from bench.crowds import Idle, Readers, Waiting
from bench.failing import Failing
from bench.growth import LongConversation, LongTurn
from bench.turns import Loop


@dataclass(slots=True, kw_only=True)
class Results:
    """What has been measured; a scenario that was not run is absent."""

    target: str
    memory_at_start: float
    loops: list[Loop] = field(default_factory=list[Loop])
    long_turns: list[LongTurn] = field(default_factory=list[LongTurn])
    conversation: LongConversation | None = None
    failing: Failing | None = None
    idle: Idle | None = None
    waiting: Waiting | None = None
    readers: Readers | None = None

    def figures(self) -> Mapping[str, float]:
        """All figures by name, so that rounds can be compared."""
        found: dict[str, float] = {"memory": self.memory_at_start}
        for loop in self.loops:
            found |= _of_loop(loop)
        for turn in self.long_turns:
            found |= _of_turn(turn)
        if self.conversation is not None:
            found |= {f"conversation turn {n}": ms for n, ms in self.conversation.walls.items()}
        if self.failing is not None:
            found["told after"] = self.failing.told_after
            found["requests until told"] = self.failing.requests
            if self.failing.resumed_after is not None:
                found["resumed after"] = self.failing.resumed_after
        return found | self._of_crowds()

    def _of_crowds(self) -> dict[str, float]:
        found: dict[str, float] = {}
        if self.idle is not None:
            found["idle statements/s"] = self.idle.statements_per_second
            found["idle memory"] = self.idle.memory
        if self.waiting is not None:
            found["resumed beside parked"] = self.waiting.resumed_beside
            found["beside parked against alone"] = (
                self.waiting.resumed_beside / self.waiting.resumed_alone
            )
            found["memory grown beside parked"] = self.waiting.memory_grown
            found["bytes per parked turn"] = self.waiting.bytes_per_turn
            found["plans off their index"] = self.waiting.off_their_index
        if self.readers is not None:
            found["readers p99"] = self.readers.p99
            found["readers statements"] = self.readers.statements
            found["readers kB each"] = self.readers.kb_per_reader
            found["readers complete"] = float(self.readers.is_complete)
        return found


def _of_loop(loop: Loop) -> dict[str, float]:
    name = f"{loop.script} c={loop.concurrency}"
    return {
        f"{name} overhead/step": loop.overhead_per_step,
        f"{name} p50": loop.p50,
        f"{name} p99": loop.p99,
        f"{name} turns/s": loop.turns_per_second,
        f"{name} server CPU": loop.server_cpu,
        f"{name} database CPU": loop.database_cpu,
        f"{name} statements": loop.statements,
        f"{name} write transactions": loop.transactions,
        f"{name} WAL": loop.wal,
        f"{name} first word": loop.first_overhead,
    }


def _of_turn(turn: LongTurn) -> dict[str, float]:
    name = f"{turn.rounds} rounds of {turn.size} B"
    return {
        **{f"{name} gap at {mark}": gap for mark, gap in turn.gaps.items()},
        f"{name} gap grown": turn.gaps[turn.rounds - 5] / turn.gaps[5],
        f"{name} WAL/round": turn.wal,
        f"{name} statements/round": turn.statements,
        f"{name} write transactions/round": turn.transactions,
        f"{name} server CPU/round": turn.server_cpu,
    }
