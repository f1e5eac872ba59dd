"""Results that came too late are kept, as many as a turn may have."""

import asyncio
from dataclasses import replace

from app.ports import LateResult
from app.store.late_results import MOST_PER_TURN, PostgresLateResults
from app.store.pool import Database
from app.turn.ids import ActorId, CallId, TurnId
from app.turn.transcript import Outcome
from tests.store.stored import Stored
from tests.store.waiting import a_waiting_turn, an_errand, happened, returned

LATE = LateResult(
    call_id=CallId("A"),
    kind="TOOL_RESULT",
    code=None,
    body="it was\0done",
    is_cut=False,
    actor_id=ActorId("van 7"),
)


async def test_a_result_of_a_call_that_has_its_answer_is_kept(database: Database) -> None:
    stored, results = Stored(database), PostgresLateResults(database)
    turn = await a_waiting_turn(stored, an_errand(), an_errand())
    turn = await happened(stored, turn, *returned(turn, "A", Outcome.COMPLETED))

    assert await results.keep(turn, LATE, is_open=False)
    assert await results.keep(turn, replace(LATE, call_id=CallId("B")), is_open=True)

    found = await results.page(TurnId("t1"), after=-1, limit=10)
    assert [(each.seq, each.late.call_id) for each in found] == [(1, "A"), (2, "B")]
    assert found[0].late == LATE
    assert [each.seq for each in await results.page(TurnId("t1"), after=1, limit=10)] == [2]


async def test_a_call_the_turn_does_not_know_is_none_of_its_business(database: Database) -> None:
    stored, results = Stored(database), PostgresLateResults(database)
    turn = await a_waiting_turn(stored, an_errand())

    assert not await results.keep(turn, replace(LATE, call_id=CallId("Z")), is_open=False)
    assert not await results.keep(turn, replace(LATE, call_id=CallId("A\0")), is_open=False)
    assert not await results.keep(turn, LATE, is_open=False)  # it has no answer yet

    assert await stored.count("late_results") == 0


async def test_a_turn_keeps_a_thousand_and_no_more(database: Database) -> None:
    stored, results = Stored(database), PostgresLateResults(database)
    turn = await a_waiting_turn(stored, an_errand())
    assert await results.keep(turn, LATE, is_open=True)
    await database.execute(f"UPDATE late_results SET seq = {MOST_PER_TURN - 1}")  # noqa: S608

    kept = await asyncio.gather(*(results.keep(turn, LATE, is_open=True) for _ in range(5)))

    assert sum(kept) == 1
    assert await stored.count("late_results") == 2
