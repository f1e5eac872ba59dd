"""By which index the hot statements find what they want, with as many turns as there are."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from app.store.claims import CLAIM, CLAIM_NAMED
from app.store.conversations import LOOK_UP
from app.store.turns import JOURNAL

_TENANT = "default"


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """A statement with its arguments, and the index it is meant to go by."""

    statement: str
    arguments: Sequence[object]
    index: str


def looks(turn_id: str, conversation_id: str) -> Mapping[str, Look]:
    """The claims, the feed of a turn, and what a message finds out about its conversation."""
    by_a_worker = ("a worker", 15.0, 1, ["bench"], ["1"])
    return {
        "claim": Look(
            statement=CLAIM, arguments=(*by_a_worker, ""), index="turns_claimable_by_tenant"
        ),
        "claim by name": Look(
            statement=CLAIM_NAMED, arguments=(*by_a_worker, [turn_id]), index="turns_pkey"
        ),
        "feed": Look(statement=JOURNAL, arguments=(turn_id, 0, 16), index="turn_events_pkey"),
        "active turn": Look(
            statement=LOOK_UP,
            arguments=(_TENANT, conversation_id, "a message"),
            index="one_active_turn_per_conversation",
        ),
    }


async def off_their_index(
    connection: Any,  # noqa: ANN401 - asyncpg has no types
    wanted: Mapping[str, Look],
) -> Mapping[str, str]:
    """The plans of the looks that read another way, by their names."""
    plans = {name: await _plan(connection, look) for name, look in wanted.items()}
    return {
        name: plan
        for name, plan in plans.items()
        if wanted[name].index not in plan or "Seq Scan on turn" in plan
    }


async def _plan(connection: Any, look: Look) -> str:  # noqa: ANN401
    rows = await connection.fetch(f"EXPLAIN {look.statement}", *look.arguments)
    return "\n".join(next(iter(row.values())) for row in rows)
