"""Which worker drives which turn."""

import asyncio
from datetime import timedelta

import pytest

from app.ports import Commit
from app.store.pool import Database
from app.turn import inputs as i
from app.turn.agent import RetryPolicy
from app.turn.decide import decide
from app.turn.evolve import advance
from app.turn.ids import AgentId, AgentVersion, AttemptId, FailureId, TurnId
from app.turn.state import Turn
from app.turn.status import Status
from tests.store.stored import VERSIONS, Stored, begin
from tests.support.turns import NOON, OVERLOADED, a_call, an_agent, an_answer


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database)


async def test_every_turn_is_claimed_by_one_of_many_workers(stored: Stored) -> None:
    for n in range(20):
        await stored.a_turn(f"t{n:02}", f"c{n}")

    claimed = await asyncio.gather(
        *(stored.claims.claim(f"w{n}", limit=3, versions=VERSIONS) for n in range(10))
    )

    ids = [held.turn.identity.turn_id for some in claimed for held in some]
    assert sorted(ids) == [f"t{n:02}" for n in range(20)]


async def test_claiming_does_not_change_the_turn(stored: Stored) -> None:
    turn = await stored.a_turn()

    (held,) = await stored.claims.claim("w1", limit=1, versions=VERSIONS)

    assert held.turn == turn


async def test_a_held_turn_is_claimed_again_only_when_its_lease_has_run_out(
    stored: Stored,
) -> None:
    await stored.a_turn()
    await stored.claims.claim("w1", limit=1, versions=VERSIONS)
    assert not await stored.claims.claim("w2", limit=1, versions=VERSIONS)

    await stored.expire_claims()

    assert len(await stored.claims.claim("w2", limit=1, versions=VERSIONS)) == 1


async def test_of_the_turns_named_those_are_claimed_that_are_due_and_nobodys(
    stored: Stored,
) -> None:
    for turn_id in ("free", "held", "lapsed", "unnamed"):
        await stored.a_turn(turn_id, f"of {turn_id}")
    await stored.a_turn("on hold", "of on hold", held=True)
    for turn_id in ("lapsed", "held"):
        named = frozenset({TurnId(turn_id)})
        assert await stored.claims.claim("w1", limit=1, versions=VERSIONS, named=named)
        if turn_id == "lapsed":
            await stored.expire_claims()
    names = frozenset(map(TurnId, ("free", "held", "lapsed", "on hold", "gone")))

    assert not await stored.claims.claim("w2", limit=9, versions=[], named=names)
    found = await stored.claims.claim("w2", limit=9, versions=VERSIONS, named=names)

    told = {each.turn.identity.turn_id: (each.is_taken_over, each.deaths) for each in found}
    assert told == {TurnId("free"): (False, 0), TurnId("lapsed"): (True, 1)}


async def test_no_more_turns_are_claimed_than_asked_for_however_many_are_named(
    stored: Stored,
) -> None:
    names = frozenset(TurnId(f"t{n}") for n in range(5))
    for name in names:
        await stored.a_turn(name, f"of {name}")

    found = [
        await stored.claims.claim("w1", limit=2, versions=VERSIONS, named=names) for _ in range(4)
    ]

    assert [len(some) for some in found] == [2, 2, 1, 0]


async def test_a_turn_on_hold_is_nobodys_until_it_is_told_to_run(stored: Stored) -> None:
    turn = await stored.a_turn(held=True)
    assert await stored.turns.load(turn.identity.turn_id) == turn
    assert not await stored.claims.claim("w1", limit=1, versions=VERSIONS)

    ready = await stored.tell(turn, i.Run())

    (held,) = await stored.claims.claim("w1", limit=1, versions=VERSIONS)
    assert held.turn == ready


async def test_a_turn_on_hold_that_was_stopped_stays_nobodys(stored: Stored) -> None:
    paused = await stored.tell(await stored.a_turn("t1", "c1", held=True), i.Pause())
    cancelled = await stored.tell(await stored.a_turn("t2", "c2", held=True), i.Cancel())

    assert (paused.status, cancelled.status) == (Status.PAUSED, Status.CANCELLED)
    assert not await stored.claims.claim("w1", limit=2, versions=VERSIONS)


async def test_a_renewal_prolongs_what_is_held_and_says_what_is_not(stored: Stored) -> None:
    await stored.a_turn("t1", "c1")
    await stored.a_turn("t2", "c2")
    held = await stored.claims.claim("w1", limit=2, versions=VERSIONS)
    await stored.expire_claims()
    (taken,) = await stored.claims.claim("w2", limit=1, versions=VERSIONS)

    still = await stored.claims.renew(
        "w1", {claim.turn.identity.turn_id: claim.claim.epoch for claim in held}
    )

    assert still == {TurnId("t1"), TurnId("t2")} - {taken.turn.identity.turn_id}


async def test_a_release_of_another_epoch_is_nothing(stored: Stored) -> None:
    await stored.a_turn()
    (held,) = await stored.claims.claim("w1", limit=1, versions=VERSIONS)
    turn_id = held.turn.identity.turn_id

    await stored.claims.release("w1", {turn_id: held.claim.epoch + 1})
    assert not await stored.claims.claim("w2", limit=1, versions=VERSIONS)
    await stored.claims.release("w1", {turn_id: held.claim.epoch})

    assert len(await stored.claims.claim("w2", limit=1, versions=VERSIONS)) == 1


async def test_turns_of_agents_that_are_not_here_are_left_to_others(stored: Stored) -> None:
    await stored.a_turn()

    others = [(AgentId("clerk"), AgentVersion("2")), (AgentId("cook"), AgentVersion("1"))]

    assert not await stored.claims.claim("w1", limit=1, versions=others)
    assert not await stored.claims.claim("w1", limit=1, versions=[])


async def scheduled(stored: Stored, due_in: timedelta) -> Turn:
    """A turn whose retry is due then, by the database's clock."""
    turn = await stored.tell(await stored.a_turn(), begin())
    failed = i.ModelGaveUp(
        attempt_id=AttemptId("a1"), failure=OVERLOADED, failure_id=FailureId("f1")
    )
    events = decide(turn, failed, at=NOON, agent=an_agent(retry=RetryPolicy(max_retries=1)))
    after = advance(turn, events)
    await stored.turns.append(Commit(before=turn, after=after, events=events, at=NOON))
    await stored.database.execute(
        "UPDATE turns SET runnable_at = clock_timestamp() + $1::interval", due_in
    )
    return after


async def test_case_38_a_retry_that_is_due_is_claimed_once_by_one_worker(stored: Stored) -> None:
    await scheduled(stored, -timedelta(seconds=1))

    claimed = await asyncio.gather(
        *(stored.claims.claim(f"w{n}", limit=1, versions=VERSIONS) for n in range(4))
    )

    assert sorted(len(held) for held in claimed) == [0, 0, 0, 1]


async def test_case_38_a_retry_that_is_not_due_is_not_claimed_until_it_is_continued(
    stored: Stored,
) -> None:
    after = await scheduled(stored, timedelta(hours=1))
    assert not await stored.claims.claim("w1", limit=1, versions=VERSIONS)

    continued = await stored.tell(after, i.ContinueNow())

    (held,) = await stored.claims.claim("w1", limit=1, versions=VERSIONS)
    assert held.turn == continued


async def test_a_waiting_turn_is_never_claimed(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    await stored.tell(
        turn,
        i.ModelGaveUp(attempt_id=AttemptId("a1"), failure=OVERLOADED, failure_id=FailureId("f1")),
    )

    assert not await stored.claims.claim("w1", limit=1, versions=VERSIONS)


async def test_a_turn_that_is_to_stop_is_claimed_by_whoever_is_there(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    await stored.tell(turn, i.Cancel())

    (held,) = await stored.claims.claim("w1", limit=1, versions=[])

    assert held.turn.cancel_requested


async def died(stored: Stored, *, age: timedelta = timedelta(hours=1)) -> None:
    """The worker that has the turn does not come back; its claim ran out so long ago."""
    await stored.database.execute(
        "UPDATE turns SET claimed_until = clock_timestamp() - $1::interval "
        "WHERE claimed_until IS NOT NULL",
        age,
    )


async def taken(stored: Stored) -> tuple[bool, int]:
    """What the next worker is told of those before it."""
    (held,) = await stored.claims.claim("w2", limit=1, versions=VERSIONS)
    return held.is_taken_over, held.deaths


def asks_for_a_tool() -> i.ModelAnswered:
    return i.ModelAnswered(
        attempt_id=AttemptId("a1"),
        answer=an_answer("", a_call("A")),
        next_attempt_id=AttemptId("a2"),
        failure_id=FailureId("f1"),
        taken_call_ids=frozenset(),
    )


async def test_deaths_in_a_row_without_anything_new_are_counted(stored: Stored) -> None:
    turn = await stored.a_turn()
    assert await taken(stored) == (False, 0)
    await stored.tell(turn, begin())
    await died(stored)
    assert await taken(stored) == (True, 1)
    await died(stored)
    assert await taken(stored) == (True, 2)
    await died(stored)
    assert await taken(stored) == (True, 3)


async def test_deaths_before_something_new_was_stored_do_not_count(
    stored: Stored,
) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    await taken(stored)
    await died(stored)
    assert await taken(stored) == (True, 1)

    await stored.tell(turn, asks_for_a_tool())
    await died(stored)

    assert await taken(stored) == (True, 1)


async def test_a_worker_that_cannot_read_a_turn_has_not_died_of_it(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    body = await stored.database.value("SELECT body FROM turns")
    await stored.database.execute("UPDATE turns SET body = '{\"newer\": 1}'")
    for _ in range(3):
        assert not await stored.claims.claim("old", limit=1, versions=VERSIONS)
        assert not await stored.claims.claim("new", limit=1, versions=VERSIONS), "it waits"
        await died(stored)
    await stored.database.execute("UPDATE turns SET body = $1", body)
    assert await taken(stored) == (False, 0)

    await died(stored)
    await stored.database.execute("UPDATE turns SET body = '{\"newer\": 1}'")
    assert not await stored.claims.claim("old", limit=1, versions=VERSIONS)
    await died(stored)
    await stored.database.execute("UPDATE turns SET body = $1", body)
    assert await taken(stored) == (True, 1), turn.identity.turn_id


async def test_a_worker_that_gave_its_claim_up_has_not_died(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    (held,) = await stored.claims.claim("w1", limit=1, versions=VERSIONS)
    await stored.tell(turn, i.ModelWrote(attempt_id=AttemptId("a1"), text="Once", reasoning=""))
    await stored.claims.release("w1", {turn.identity.turn_id: held.claim.epoch})

    assert await taken(stored) == (False, 0)
    await died(stored)
    assert await taken(stored) == (True, 1)


async def test_a_turn_of_which_workers_have_died_is_left_alone_for_longer_each_time(
    stored: Stored,
) -> None:
    """5 s more for each, of a lease of 15 s; the first is taken over as soon as it can be."""
    await stored.a_turn()
    await taken(stored)
    await died(stored, age=timedelta(0))
    assert await taken(stored) == (True, 1)
    await died(stored, age=timedelta(seconds=4))
    assert not await stored.claims.claim("w2", limit=1, versions=VERSIONS)
    await died(stored, age=timedelta(seconds=6))
    assert await taken(stored) == (True, 2)
    await died(stored, age=timedelta(seconds=6))
    assert not await stored.claims.claim("w2", limit=1, versions=VERSIONS)
    await died(stored, age=timedelta(seconds=11))
    assert await taken(stored) == (True, 3)


async def test_a_turn_that_only_has_to_be_stopped_is_not_left_alone(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    await taken(stored)
    await died(stored)
    await taken(stored)
    await stored.tell(turn, i.Cancel())
    await died(stored, age=timedelta(0))

    assert await taken(stored) == (True, 2)


async def test_an_orphan_is_taken_by_one_and_by_no_worker_meanwhile(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    turn_id = turn.identity.turn_id
    assert await stored.claims.take("request", turn_id) is None, "it waits for its first claim"
    await taken(stored)
    assert await stored.claims.take("request", turn_id) is None, "its worker is there"
    await died(stored)

    found = await asyncio.gather(*(stored.claims.take(f"r{n}", turn_id) for n in range(4)))

    claims = [claim for claim in found if claim is not None]
    assert len(claims) == 1
    assert not await stored.claims.claim("w2", limit=1, versions=VERSIONS)
    await stored.claims.lapse(turn_id, claims[0])
    assert await taken(stored) == (True, 1)


async def test_requests_that_are_refused_do_not_put_an_orphans_worker_off(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    await taken(stored)
    await died(stored)
    assert await taken(stored) == (True, 1)
    await died(stored, age=timedelta(seconds=6))

    claim = await stored.claims.take("request", turn.identity.turn_id)
    assert claim is not None
    await stored.claims.lapse(turn.identity.turn_id, claim)

    assert await stored.claims.take("request", turn.identity.turn_id), "it is orphaned as before"
    await died(stored, age=timedelta(seconds=6))
    claim = await stored.claims.take("request", turn.identity.turn_id)
    assert claim is not None
    await stored.claims.lapse(turn.identity.turn_id, claim)
    assert await taken(stored) == (True, 2)


async def test_a_turn_that_rests_is_nobodys_orphan(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    await taken(stored)
    await stored.tell(turn, i.Pause())

    assert await stored.claims.take("request", turn.identity.turn_id) is None


async def test_case_51_a_renewal_by_another_owner_or_of_an_older_claim_changes_nothing(
    stored: Stored,
) -> None:
    turn = await stored.a_turn()
    turn_id = turn.identity.turn_id
    (held,) = await stored.claims.claim("w1", limit=1, versions=VERSIONS)
    lease = "SELECT claimed_until FROM turns"
    before = await stored.database.value(lease)

    assert not await stored.claims.renew("w2", {turn_id: held.claim.epoch})
    assert not await stored.claims.renew("w1", {turn_id: held.claim.epoch - 1})
    await stored.claims.release("w2", {turn_id: held.claim.epoch})
    await stored.claims.release("w1", {turn_id: held.claim.epoch + 1})

    assert await stored.database.value(lease) == before
    assert await stored.claims.renew("w1", {turn_id: held.claim.epoch}) == {turn_id}
