"""A queue is part of its turn; a turn that ends opens the next one in the same statement."""

import asyncio

import pytest

from app.ports import Commit, MessageTaken, VersionConflict
from app.store.pool import Database
from app.turn import inputs as i
from app.turn.evolve import fold
from app.turn.ids import ConversationId, TurnId
from app.turn.state import Turn
from app.turn.status import Status
from tests.store.stored import (
    ALL,
    VERSIONS,
    Stored,
    a_command,
    a_commit,
    begin,
    with_successor,
)
from tests.support.turns import a_message


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database)


def queues(message_id: str) -> i.PostMessage:
    return i.PostMessage(message=a_message("and?", message_id), when_running="queue")


async def queued(stored: Stored, turn: Turn, *message_ids: str) -> Turn:
    for message_id in message_ids:
        commit = a_commit(turn, queues(message_id))
        await stored.turns.append(commit, command=a_command(message_id))
        turn = commit.after
    return turn


def an_end(turn: Turn, turn_id: str = "t2") -> Commit:
    return with_successor(a_commit(turn, i.Cancel()), turn_id)


async def test_a_queue_is_read_as_it_was_written(stored: Stored) -> None:
    turn = await queued(stored, await stored.a_turn(), "m2", "m3")

    rows = await stored.turns.journal(turn.identity.turn_id, after=0, limit=10)

    assert await stored.turns.load(turn.identity.turn_id) == turn
    assert fold(event for row in rows for event in row.events) == turn


async def test_case_93_the_end_of_a_turn_and_the_beginning_of_the_next_are_one_change(
    stored: Stored,
) -> None:
    turn = await queued(stored, await stored.a_turn(), "m2", "m3")
    end = an_end(turn)

    await stored.turns.append(end, command=a_command())

    assert end.successor is not None
    following = end.successor.turn
    rows = await stored.turns.journal(following.identity.turn_id, after=0, limit=10)
    assert await stored.turns.load(following.identity.turn_id) == following
    assert fold(event for row in rows for event in row.events) == following
    assert [(await stored.received_by(m)) for m in ("m1", "m2", "m3")] == ["t1", "t2", "t2"]
    messages = await stored.conversations.messages(ALL, ConversationId("c1"), after=-1, limit=9)
    assert [(m.position, m.turn_id, m.message.role) for m in messages] == [
        (0, "t1", "user"),
        (1, "t1", "closing"),
        (2, "t2", "user"),
    ]
    (claimed,) = await stored.claims.claim("w1", limit=5, versions=VERSIONS)
    assert claimed.turn == following


async def test_a_queue_opens_one_turn_whoever_ends_the_turn_at_once(stored: Stored) -> None:
    turn = await queued(stored, await stored.a_turn(), "m2")
    ends = [an_end(turn, f"t{n}") for n in range(2, 10)]

    results = await asyncio.gather(
        *(stored.turns.append(end) for end in ends), return_exceptions=True
    )

    assert sum(isinstance(result, VersionConflict) for result in results) == 7
    assert await stored.count("turns") == 2


async def test_a_message_that_is_queued_while_the_turn_ends_loses_and_finds_the_next_turn(
    stored: Stored,
) -> None:
    turn = await queued(stored, await stored.a_turn(), "m2")
    late = a_commit(turn, queues("m3"))
    await stored.turns.append(an_end(turn))

    with pytest.raises(VersionConflict):
        await stored.turns.append(late, command=a_command("m3"))

    found = await stored.conversations.look_up(ALL, ConversationId("c1"), None)
    assert found.active is not None
    assert found.active.turn.identity.turn_id == "t2"
    assert await stored.count("received") == 2


async def test_no_successor_is_left_behind_by_an_end_that_did_not_happen(stored: Stored) -> None:
    turn = await queued(stored, await stored.a_turn(), "m2")
    end = an_end(turn)
    await queued(stored, turn, "m3")  # somebody was faster

    with pytest.raises(VersionConflict):
        await stored.turns.append(end)

    assert await stored.turns.load(TurnId("t2")) is None
    assert await stored.received_by("m2") == "t1"


async def test_a_message_id_that_is_taken_is_told_from_a_version_that_moved(
    stored: Stored,
) -> None:
    turn = await queued(stored, await stored.a_turn(), "m2")

    with pytest.raises(MessageTaken):
        await stored.turns.append(a_commit(turn, queues("m1")), command=a_command("m1"))

    assert await stored.turns.load(turn.identity.turn_id) == turn


async def test_a_turn_with_a_queue_that_is_at_work_is_ended_by_its_worker_alike(
    stored: Stored,
) -> None:
    turn = await queued(stored, await stored.a_turn(), "m2")
    (held,) = await stored.claims.claim("w1", limit=5, versions=VERSIONS)
    turn = await stored.tell(held.turn, begin(), claim=held.claim)
    crash = a_commit(turn, i.StepCrashed(attempt_id=begin().attempt_id))

    await stored.append(with_successor(crash), held.claim)

    found = await stored.conversations.look_up(ALL, ConversationId("c1"), None)
    assert found.active is not None
    assert found.active.turn.status is Status.READY
    assert found.next_position == found.active.turn.next_position
