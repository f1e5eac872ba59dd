"""A history is read at the cost of its messages, whatever the plan's time knew of the tables."""

import re

import pytest

from app.store.message_rows import HISTORY
from app.store.pool import Database
from tests.store.stored import TENANT, Stored, begin
from tests.store.test_turns import answered

_LOOPS = re.compile(r" on conversations .*loops=(\d+)")


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database)


async def test_its_conversation_is_looked_up_once_and_not_for_every_message(
    stored: Stored,
) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    await stored.tell(turn, answered(text="Yes."))

    of_it = TENANT, turn.identity.conversation_id
    assert len(await stored.database.rows(HISTORY, *of_it)) == 2
    plan = await stored.database.rows(f"EXPLAIN (ANALYZE) {HISTORY}", *of_it)
    text = "\n".join(next(iter(row.values())) for row in plan)

    assert set(_LOOPS.findall(text)) == {"1"}, text
