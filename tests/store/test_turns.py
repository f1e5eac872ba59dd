"""A change of a turn is one statement: everything that belongs to it, or nothing."""

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from functools import partial

import pytest

from app.ports import (
    Claim,
    ClaimLost,
    Commit,
    JournalRow,
    KeptReply,
    StoreUnavailable,
    VersionConflict,
)
from app.store.audit import PostgresAudit
from app.store.pool import Database, connected
from app.turn import inputs as i
from app.turn.evolve import fold
from app.turn.ids import AttemptId, ConversationId, FailureId, MessageId
from app.turn.state import Turn
from app.turn.status import Status
from app.turn.transcript import ModelAnswer, Outcome, StopReason, ToolCall
from tests.store.stored import ALL, VERSIONS, Stored, a_command, a_commit, an_entry, begin
from tests.support.polling import eventually
from tests.support.turns import QUOTA, WRITES, a_call

KEPT_WAITING = """
SELECT count(*) FROM pg_stat_activity
WHERE datname = current_database() AND wait_event_type = 'Lock'
"""


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database)


def answered(*calls: ToolCall, text: str = "", attempt: str = "a1") -> i.ModelAnswered:
    return i.ModelAnswered(
        attempt_id=AttemptId(attempt),
        answer=ModelAnswer(text=text, tool_calls=calls, stop_reason=StopReason.END_TURN),
        next_attempt_id=AttemptId("a2"),
        failure_id=FailureId("f1"),
    )


def finished(*call_ids: str) -> i.ToolsFinished:
    return i.ToolsFinished(
        attempt_id=AttemptId("a2"),
        finished=tuple(
            i.FinishedCall(call_id=a_call(c).call_id, outcome=Outcome.COMPLETED, content=c)
            for c in call_ids
        ),
        next_attempt_id=AttemptId("a3"),
    )


def gave_up(attempt: str = "a1", failure_id: str = "f1") -> i.ModelGaveUp:
    return i.ModelGaveUp(
        attempt_id=AttemptId(attempt), failure=QUOTA, failure_id=FailureId(failure_id)
    )


async def journal(stored: Stored, turn: Turn) -> Sequence[JournalRow]:
    return await stored.turns.journal(turn.identity.turn_id, after=0, limit=100)


async def test_no_turn_goes_on_with_a_history_that_was_deleted_meanwhile(stored: Stored) -> None:
    turn = await stored.a_turn()
    turn = await stored.tell(turn, i.Cancel())
    conversation = turn.identity.conversation_id

    assert await stored.conversations.delete(conversation, an_entry("DELETE_CONVERSATION"))
    with pytest.raises(VersionConflict):
        await stored.a_turn("t2", first_position=turn.next_position, message_id="m2")

    assert [await stored.count(table) for table in ("conversations", "turns", "messages")] == [
        0
    ] * 3


async def test_a_deletion_that_meets_the_end_of_a_turn_waits_for_it_and_leaves_nothing(
    stored: Stored,
) -> None:
    turn = await stored.a_turn()
    turn = await stored.tell(turn, begin())
    async with asyncio.TaskGroup() as tasks, stored.database.together() as ending:
        await Stored(ending).tell(turn, answered(text="Yes."))
        entry = an_entry("DELETE_CONVERSATION")
        deleted = stored.conversations.delete(turn.identity.conversation_id, entry)
        deletion = tasks.create_task(deleted)
        await eventually(lambda: stored.database.value(KEPT_WAITING))

    everywhere = ("conversations", "turns", "messages", "turn_events", "model_usage", "received")
    assert deletion.result()
    assert [await stored.count(table) for table in everywhere] == [0] * 6


async def test_a_deletion_that_meets_the_beginning_of_a_turn_leaves_everything(
    stored: Stored,
) -> None:
    turn = await stored.tell(await stored.a_turn(), i.Cancel())
    async with asyncio.TaskGroup() as tasks, stored.database.together() as beginning:
        await Stored(beginning).a_turn("t2", first_position=turn.next_position, message_id="m2")
        entry = an_entry("DELETE_CONVERSATION")
        deleted = stored.conversations.delete(turn.identity.conversation_id, entry)
        deletion = tasks.create_task(deleted)
        await eventually(lambda: stored.database.value(KEPT_WAITING))

    assert not deletion.result()
    assert [await stored.count(table) for table in ("conversations", "turns")] == [1, 2]


async def test_no_reply_is_kept_of_a_conversation_that_is_being_deleted(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), i.Cancel())
    conversation = turn.identity.conversation_id
    of_it = replace(an_entry("CANCEL"), conversation_id=conversation)
    a_reply = KeptReply(key="k", digest="d", reply="what was said")
    audit = PostgresAudit(stored.database)

    async def wait(number: int) -> bool:
        return bool(await stored.database.value(KEPT_WAITING) == number)

    async with asyncio.TaskGroup() as tasks, stored.database.together() as holding_up:
        await holding_up.rows("SELECT FROM messages FOR UPDATE")
        deleted = stored.conversations.delete(conversation, an_entry("DELETE_CONVERSATION"))
        deletion = tasks.create_task(deleted)
        await eventually(partial(wait, 1))
        tasks.create_task(audit.record(of_it, a_reply))
        await eventually(partial(wait, 2))

    assert deletion.result()
    assert await stored.count("idempotency_keys") == 0


async def test_a_turn_is_read_as_it_was_written(stored: Stored) -> None:
    turn = await stored.a_turn()
    turn = await stored.tell(turn, begin())
    turn = await stored.tell(turn, gave_up())

    assert await stored.turns.load(turn.identity.turn_id) == turn


async def test_the_fold_of_the_journal_is_the_stored_turn(stored: Stored) -> None:
    turn = await stored.a_turn()
    turn = await stored.tell(turn, begin())
    turn = await stored.tell(turn, answered(a_call("A"), a_call("B", WRITES)))
    turn = await stored.tell(turn, finished("B"))
    turn = await stored.tell(turn, finished("A"))
    turn = await stored.tell(turn, answered(text="done", attempt="a3"))

    rows = await journal(stored, turn)
    assert fold(event for row in rows for event in row.events) == turn
    assert [row.sequence for row in rows][-1] == turn.version


async def test_case_47_of_two_writers_at_one_version_one_wins_and_nothing_of_the_other_is_there(
    stored: Stored,
) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    commits = [a_commit(turn, gave_up(failure_id=f"f{n}")) for n in range(8)]

    results = await asyncio.gather(
        *(stored.turns.append(commit) for commit in commits), return_exceptions=True
    )

    assert sum(isinstance(result, VersionConflict) for result in results) == 7
    assert await stored.count("model_failures") == 1
    assert len(await journal(stored, turn)) == 3


async def test_case_12_a_conversation_has_one_active_turn(stored: Stored) -> None:
    results = await asyncio.gather(
        *(stored.a_turn(f"t{n}", message_id=f"m{n}") for n in range(8)), return_exceptions=True
    )

    assert sum(isinstance(result, Turn) for result in results) == 1
    assert sum(isinstance(result, VersionConflict) for result in results) == 7
    assert await stored.count("turns") == await stored.count("received") == 1
    assert await stored.count("audit") == 1


async def test_a_message_id_is_taken_once_in_a_conversation(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), i.Cancel())
    assert turn.status is Status.CANCELLED

    with pytest.raises(VersionConflict):
        await stored.a_turn("t2", first_position=turn.next_position, message_id="m1")

    assert await stored.count("turns") == 1


async def test_a_message_id_that_is_taken_undoes_the_whole_change(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    turn = await stored.tell(turn, gave_up())
    commit = a_commit(turn, i.RetryModel(failure_id=FailureId("f1")))

    with pytest.raises(VersionConflict):
        await stored.turns.append(commit, command=a_command("m1"))

    assert await stored.turns.load(turn.identity.turn_id) == turn


async def test_a_failed_audit_row_undoes_the_command(stored: Stored) -> None:
    turn = await stored.a_turn()
    await stored.database.execute("ALTER TABLE audit ADD CHECK (action <> 'MESSAGE') NOT VALID")

    with pytest.raises(Exception, match="audit"):
        await stored.turns.append(a_commit(turn, i.Cancel()), command=a_command())

    assert await stored.turns.load(turn.identity.turn_id) == turn


async def test_results_that_come_out_of_order_are_read_in_order_and_without_a_gap(
    stored: Stored,
) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    turn = await stored.tell(turn, answered(a_call("A"), a_call("B")))
    turn = await stored.tell(turn, finished("B"))
    early = await stored.conversations.messages(ALL, ConversationId("c1"), after=-1, limit=10)
    await stored.tell(turn, finished("A"))
    late = await stored.conversations.messages(ALL, ConversationId("c1"), after=1, limit=10)

    assert [message.position for message in early] == [0, 1]
    assert [message.position for message in late] == [2, 3]


async def test_messages_are_handed_back_as_they_are_stored(stored: Stored) -> None:
    turn = await stored.tell(await stored.a_turn(), begin())
    commit = a_commit(turn, answered(a_call("A"), text="I look."))

    added = (await stored.turns.append(commit)).messages

    history = await stored.turns.history(commit.after)
    assert list(history)[1:] == list(added)


async def test_a_look_up_says_all_that_decides_what_a_message_means(stored: Stored) -> None:
    turn = await stored.a_turn()

    found = await stored.conversations.look_up(ALL, ConversationId("c1"), MessageId("m1"))
    nothing = await stored.conversations.look_up(ALL, ConversationId("c2"), MessageId("m1"))

    assert found.received == (turn.identity.turn_id, "digest of m1")
    assert found.active is not None
    assert found.active.turn == turn
    assert found.next_position == 1
    assert (nothing.conversation, nothing.active, nothing.received) == (None, None, None)


async def test_a_claim_is_given_up_by_the_commit_that_brings_the_turn_to_rest(
    stored: Stored,
) -> None:
    await stored.a_turn()
    (held,) = await stored.claims.claim("w1", limit=5, versions=VERSIONS)
    turn = await stored.tell(held.turn, begin(), claim=held.claim)
    await stored.tell(turn, gave_up(), claim=held.claim)

    with pytest.raises(ClaimLost):
        await stored.append(_any_commit(turn), held.claim)
    row = await stored.database.row("SELECT claimed_by, runnable_at FROM turns")
    assert row is not None
    assert (row["claimed_by"], row["runnable_at"]) == (None, None)


async def test_case_48_a_worker_that_lost_its_claim_cannot_write_even_under_its_own_name(
    stored: Stored,
) -> None:
    await stored.a_turn()
    (old,) = await stored.claims.claim("w1", limit=5, versions=VERSIONS)
    await stored.expire_claims()
    (new,) = await stored.claims.claim("w1", limit=5, versions=VERSIONS)

    with pytest.raises(ClaimLost):
        await stored.append(a_commit(old.turn, begin()), old.claim)

    assert new.claim == Claim(worker="w1", epoch=old.claim.epoch + 1)
    assert await stored.turns.load(new.turn.identity.turn_id) == new.turn


async def test_a_connection_that_breaks_under_a_statement_is_the_databases_absence(
    stored: Stored, database_dsn: str
) -> None:
    sleeping = asyncio.create_task(stored.database.value("SELECT pg_sleep(60)"))
    async with connected(database_dsn, size=1) as other:
        await eventually(lambda: _ended_one(other))

    with pytest.raises(StoreUnavailable):
        await sleeping
    assert await stored.database.value("SELECT 1") == 1


async def _ended_one(database: Database) -> bool:
    ended = await database.value(
        "SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity "
        "WHERE datname = current_database() AND query = 'SELECT pg_sleep(60)'"
    )
    return bool(ended)


def _any_commit(turn: Turn) -> Commit:
    return a_commit(turn, answered(text="too late"))
