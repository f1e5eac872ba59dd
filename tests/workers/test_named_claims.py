"""Turns that a worker is told of: they are claimed by name, and nothing else is overlooked."""

import asyncio
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from typing_extensions import override

from app.ports import ClaimedTurn
from app.settings import Settings
from app.turn.ids import TurnId
from tests.support.bench import bench
from tests.support.models import Model, says
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.workers.test_claiming import QUICK, Through, a_worker, claims, ended, working


@dataclass(slots=True)
class Asked(Through):
    """Claims, and for which turns they were asked each time; `None`: for all."""

    asked: list[AbstractSet[TurnId] | None] = field(
        default_factory=list[AbstractSet[TurnId] | None]
    )

    @override
    async def claim(self, worker: str, **terms: Any) -> Sequence[ClaimedTurn]:
        self.asked.append(terms["named"])
        return await self.claims.claim(worker, **terms)

    async def has_looked_twice(self) -> bool:
        """At its beginning, and when the process began to hear of others."""
        return self.asked.count(None) == 2


async def test_a_turn_that_a_worker_is_told_of_is_claimed_without_a_look_at_all_others(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Done.")]] * 3)
    seldom = replace(QUICK, poll_seconds=600)
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        asked = Asked(queue)
        async with working(a_worker(one, asked, settings=seldom)):
            await eventually(asked.has_looked_twice)
            for n in range(3):
                turn_id = await one.post(f"ses_{n}")
                await eventually(partial(ended, one, turn_id))
                assert asked.asked[-1] == {turn_id}

    assert asked.asked.count(None) == 2


async def test_a_turn_that_nobody_tells_of_is_found_however_much_is_told_of_others(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Done.")]])
    other = TurnId("told of again and again")
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        deaf = replace(QUICK, poll_seconds=0.2)
        runnable = one.services.wakeups.runnable
        async with working(a_worker(one, Asked(queue), settings=deaf)):
            turn_id = await one.post()
            await runnable.wait(1)  # what was told of it is lost

            async def found() -> bool:
                one.services.wakeups.announce(other, runnable=True)
                return await ended(one, turn_id)

            await eventually(found)


async def test_a_turn_for_which_there_was_no_place_is_taken_when_one_gets_free(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[gate, says("Done.")], [says("Done.")], [says("Done.")]])
    one_place = replace(QUICK, concurrency=1, poll_seconds=600)
    async with (
        bench(database_dsn, settings, model) as one,
        claims(one.dsn) as queue,
        working(a_worker(one, queue, settings=one_place)),
    ):
        first = await one.post()
        await model.asked.wait()
        later = [await one.post("ses_2"), await one.post("ses_3")]
        gate.set()
        for turn_id in (first, *later):
            await eventually(partial(ended, one, turn_id))


_NOT_YET = "UPDATE turns SET runnable_at = now() + interval '1 hour'"
_NOW = "UPDATE turns SET runnable_at = now() WHERE tenant_id NOT LIKE 'other%'"
_LATER_OF_OTHERS = (
    """
    INSERT INTO conversations
    SELECT (jsonb_populate_record(c, jsonb_build_object('tenant_id', 'other' || n))).*
    FROM conversations c, generate_series(1, 4) n WHERE c.conversation_id = 'ses_0'
    """,
    """
    INSERT INTO turns
    SELECT (jsonb_populate_record(
        t, jsonb_build_object('tenant_id', 'other' || n, 'turn_id', 'other' || n))).*
    FROM turns t, generate_series(1, 4) n WHERE t.conversation_id = 'ses_0'
    """,
)
"""Four other tenants, of whom each has a turn that is due in an hour."""


async def test_more_turns_than_places_are_all_begun_though_other_tenants_have_nothing_due(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Done.")]] * 6)
    few_places = replace(QUICK, concurrency=5, poll_seconds=600)
    async with bench(database_dsn, settings, model) as one, claims(one.dsn) as queue:
        turn_ids = [await one.post(f"ses_{n}") for n in range(6)]
        for statement in (_NOT_YET, *_LATER_OF_OTHERS):
            await query(one.dsn, statement)
        asked = Asked(queue)
        async with working(a_worker(one, asked, settings=few_places)):
            await eventually(asked.has_looked_twice)
            await query(one.dsn, _NOW)
            for turn_id in turn_ids:
                one.services.wakeups.announce(turn_id, runnable=True)
            for turn_id in turn_ids:
                await eventually(partial(ended, one, turn_id))
