"""Turns that wait: found by people who look for them, and by the clock."""

from datetime import timedelta

from app.ports import Commit, Scope
from app.store.pool import Database
from app.store.waits import PostgresWaits
from app.turn import events as e
from app.turn.evolve import advance
from app.turn.ids import ActorId, TenantId, TurnId
from app.turn.queued_input import QueuedInput
from app.turn.transcript import Outcome
from tests.store.stored import ALL, TENANT, Stored, with_successor
from tests.store.waiting import (
    ARGUMENTS,
    a_form,
    a_waiting_turn,
    an_approval,
    an_errand,
    approved,
    happened,
    returned,
    within,
)
from tests.support.turns import NOON, a_message

QUEUED = QueuedInput(message=a_message(message_id="m2"), mode="queue", queued_at=NOON)
HOURS = [NOON + timedelta(hours=n) for n in range(4)]


async def waiting(database: Database, scope: Scope = ALL, *, others: bool = False) -> list[str]:
    found = await PostgresWaits(database).waiting(
        scope, with_calls_of_others=others, after=None, limit=10
    )
    return [each.stored.turn.identity.turn_id for each in found]


async def test_turns_that_wait_are_listed_by_how_long_they_have(database: Database) -> None:
    stored = Stored(database)
    await a_waiting_turn(stored, a_form(since=HOURS[2]), turn_id="t1")
    await a_waiting_turn(
        stored, an_approval(since=HOURS[3]), an_errand(since=HOURS[0]), turn_id="t2"
    )
    await a_waiting_turn(stored, an_errand(since=HOURS[1]), turn_id="t3")
    await stored.a_turn("t4", "c4", message_id="m4")

    assert await waiting(database) == ["t2", "t3", "t1"]


async def test_a_page_begins_behind_the_last_one(database: Database) -> None:
    stored, waits = Stored(database), PostgresWaits(database)
    for turn_id in ("t1", "t2", "t3"):
        await a_waiting_turn(stored, a_form(), turn_id=turn_id)

    found = await waits.waiting(
        ALL, with_calls_of_others=False, after=(NOON, TurnId("t1")), limit=1
    )

    assert [each.stored.turn.identity.turn_id for each in found] == ["t2"]
    assert (found[0].waiting_since, found[0].title) == (NOON, "hello")


async def test_others_see_calls_that_anybody_may_answer_and_owners_all_of_theirs(
    database: Database,
) -> None:
    stored = Stored(database)
    await a_waiting_turn(stored, a_form(), turn_id="form")
    await a_waiting_turn(stored, a_form(), an_approval(), turn_id="form and approval")
    await a_waiting_turn(stored, an_errand(), turn_id="errand")
    ann = Scope(tenant_id=TENANT, owner_id=ActorId("ann"))
    bob = Scope(tenant_id=TENANT, owner_id=ActorId("bob"))
    elsewhere = Scope(tenant_id=TenantId("other"), owner_id=None)

    assert await waiting(database, ann) == ["errand", "form", "form and approval"]
    assert await waiting(database, bob) == []
    assert await waiting(database, bob, others=True) == ["errand", "form and approval"]
    assert await waiting(database, elsewhere, others=True) == []


async def test_whatever_ends_the_wait_takes_the_turn_out_of_the_list(database: Database) -> None:
    stored = Stored(database)
    turn = await a_waiting_turn(stored, an_approval())

    await happened(stored, turn, *approved(turn))

    columns = "waiting_since", "wait_expires_at", "waits_for"
    row = await database.row(f"SELECT {', '.join(columns)} FROM turns")  # noqa: S608 - constants
    assert row is not None
    assert [row[name] for name in columns] == [None, None, None]


async def test_a_wait_is_looked_for_from_the_moment_its_time_is_over(database: Database) -> None:
    stored, waits = Stored(database), PostgresWaits(database)
    await a_waiting_turn(stored, an_approval(policy=within(60)), turn_id="t1")
    await a_waiting_turn(stored, an_approval(), turn_id="t2")
    await a_waiting_turn(stored, a_form(policy=within(30)), an_errand(), turn_id="t3")

    async def expired(seconds: float) -> list[str]:
        found = await waits.expired(at=NOON + timedelta(seconds=seconds), limit=10)
        return [turn.identity.turn_id for turn in found]

    assert await expired(29.9) == []
    assert await expired(30) == ["t3"]
    assert await expired(60) == ["t3", "t1"]


async def test_what_was_approved_is_kept_with_what_was_shown(database: Database) -> None:
    stored, waits = Stored(database), PostgresWaits(database)
    turn = await a_waiting_turn(stored, an_approval())
    sequence = turn.version + 1

    await happened(stored, turn, *approved(turn, is_approved=False))

    (kept,) = await waits.approvals(TurnId("t1"), after=-1, limit=10)
    assert (kept.seq, kept.call_id, kept.is_approved) == (sequence, "A", False)
    assert (kept.content, kept.reason, kept.actor_id) == (ARGUMENTS, "too\0dear", "amy")
    assert kept.decided_at - kept.requested_at == timedelta(hours=1)
    assert await waits.approvals(TurnId("t1"), after=sequence, limit=10) == []


async def test_a_call_outside_is_closed_by_the_commit_that_says_how_it_went(
    database: Database,
) -> None:
    stored = Stored(database)
    for outcome, turn_id in (
        (Outcome.COMPLETED, "completed"),
        (Outcome.ERROR, "failed"),
        (Outcome.SUPERSEDED, "cancelled"),
    ):
        turn = await a_waiting_turn(stored, an_errand(), an_errand(), turn_id=turn_id)
        await happened(stored, turn, *returned(turn, "A", outcome))

    rows = await database.rows(
        "SELECT turn_id, call_id, status FROM external_calls "
        "WHERE (status = 'open') = (closed_at IS NULL) ORDER BY turn_id, call_id"
    )
    assert [tuple(row.values()) for row in rows] == [
        ("cancelled", "A", "cancelled"),
        ("cancelled", "B", "open"),
        ("completed", "A", "completed"),
        ("completed", "B", "open"),
        ("failed", "A", "failed"),
        ("failed", "B", "open"),
    ]


async def test_one_statement_ends_a_turn_takes_its_calls_back_and_opens_the_next_turn(
    database: Database,
) -> None:
    stored = Stored(database)
    turn = await a_waiting_turn(stored, an_errand())
    turn = await happened(stored, turn, e.InputQueued(queued=QUEUED))
    events = (*returned(turn, "A", Outcome.CANCELLED), e.TurnCancelled())
    commit = Commit(before=turn, after=advance(turn, events), events=events, at=NOON)

    await stored.turns.append(with_successor(commit))

    assert await stored.count("external_calls WHERE status = 'cancelled'") == 1
    assert await stored.count("turns WHERE status = 'READY' AND waiting_since IS NULL") == 1
