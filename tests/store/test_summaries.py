"""Summaries: what stands in requests for the older part of a conversation."""

import pytest

from app.store.pool import Database
from app.turn import inputs as i
from app.turn.ids import AttemptId, FailureId
from app.turn.state import Turn
from app.turn.summary import SUMMARY
from app.turn.transcript import ModelAnswer
from tests.store.stored import Stored, a_commit, begin
from tests.support.turns import TOO_LONG


@pytest.fixture
def stored(database: Database) -> Stored:
    return Stored(database)


async def answered(stored: Stored, turn_id: str, first_position: int) -> Turn:
    """A turn of the conversation that has ended well: two messages."""
    message_id = f"m-{turn_id}"
    turn = await stored.a_turn(turn_id, first_position=first_position, message_id=message_id)
    turn = await stored.tell(turn, begin(f"{turn_id}-1"))
    return await stored.tell(
        turn,
        i.ModelAnswered(
            attempt_id=AttemptId(f"{turn_id}-1"),
            answer=ModelAnswer(text=f"answer of {turn_id}"),
            next_attempt_id=AttemptId(f"{turn_id}-2"),
            failure_id=FailureId(f"{turn_id}-f"),
        ),
    )


async def compacting(stored: Stored, turn_id: str, first_position: int) -> Turn:
    """A turn of the conversation whose model is asked for a summary."""
    message_id = f"m-{turn_id}"
    turn = await stored.a_turn(turn_id, first_position=first_position, message_id=message_id)
    turn = await stored.tell(turn, begin(f"{turn_id}-1"))
    return await stored.tell(
        turn,
        i.ModelGaveUp(
            attempt_id=AttemptId(f"{turn_id}-1"),
            failure=TOO_LONG,
            failure_id=FailureId(f"{turn_id}-f"),
            next_attempt_id=AttemptId(f"{turn_id}-2"),
            can_compact=True,
        ),
    )


def summed_up(turn: Turn, last: int, text: str = "They spoke.") -> i.CompactionEnded:
    turn_id = turn.identity.turn_id
    return i.CompactionEnded(
        attempt_id=AttemptId(f"{turn_id}-2"),
        replaced=i.Replaced(first=0, last=last, tokens=1_000),
        ending=ModelAnswer(text=text),
        next_attempt_id=AttemptId(f"{turn_id}-3"),
        failure_id=FailureId(f"{turn_id}-g"),
    )


async def sent(stored: Stored, turn: Turn) -> list[str]:
    """The roles and places of what a request carries."""
    history = await stored.turns.history(turn)
    return [f"{each.role} {each.position}" for each in history if not each.is_summed_up]


async def in_conversation(stored: Stored, **columns: str) -> None:
    for name, value in columns.items():
        await stored.database.execute(f"UPDATE conversations SET {name} = {value}")  # noqa: S608


async def test_a_summary_takes_the_place_of_what_it_stands_for(stored: Stored) -> None:
    await answered(stored, "t1", 0)
    turn = await compacting(stored, "t2", 2)
    assert await sent(stored, turn) == ["user 0", "assistant 1", "user 2"]

    turn = await stored.tell(turn, summed_up(turn, last=1))

    assert await sent(stored, turn) == [f"{SUMMARY} 1", "user 2"]
    (summary, _) = [m for m in await stored.turns.history(turn) if not m.is_summed_up]
    assert "They spoke." in summary.body
    assert await stored.count("messages") == 3, "the transcript keeps it all"


async def test_a_commit_hands_out_the_summary_that_it_brings(stored: Stored) -> None:
    await answered(stored, "t1", 0)
    turn = await compacting(stored, "t2", 2)
    before = await stored.turns.history(turn)

    done = await stored.turns.append(a_commit(turn, summed_up(turn, last=1)))

    assert [(each.role, each.position) for each in done.messages] == [(SUMMARY, 1)]
    assert not any(each.is_summed_up for each in before)


async def test_of_two_summaries_the_one_that_reaches_further_counts(stored: Stored) -> None:
    await answered(stored, "t1", 0)
    turn = await compacting(stored, "t2", 2)
    turn = await stored.tell(turn, summed_up(turn, last=1))
    turn = await stored.tell(turn, i.Cancel())
    turn = await stored.tell(turn, i.StepAbandoned(attempt_id=AttemptId("t2-3")))
    after = await compacting(stored, "t3", 4)
    after = await stored.tell(after, summed_up(after, last=3, text="Much later."))

    assert await sent(stored, after) == [f"{SUMMARY} 3", "user 4"]


async def test_case_147_a_summary_is_never_saved_over_a_newer_one(stored: Stored) -> None:
    await answered(stored, "t1", 0)
    turn = await compacting(stored, "t2", 2)
    await stored.database.execute(
        "INSERT INTO context_summaries (turn_id, model_attempt, tenant_id, conversation_id, "
        "first_position, last_position, hidden, body, created_at) "
        "VALUES ('t2', 99, 'default', 'c1', 0, 7, '{}', '{}', clock_timestamp())"
    )

    await stored.tell(turn, summed_up(turn, last=1))

    assert await stored.count("context_summaries") == 1
    assert await stored.database.value("SELECT last_position FROM context_summaries") == 7


async def test_a_summary_counts_only_while_the_same_of_its_places_are_hidden(
    stored: Stored,
) -> None:
    await answered(stored, "t1", 0)
    turn = await compacting(stored, "t2", 2)
    turn = await stored.tell(turn, summed_up(turn, last=1))

    await in_conversation(stored, reverted="'[1,2)'")
    assert await sent(stored, turn) == ["user 0", "user 2"]

    await in_conversation(stored, reverted="'empty'")
    assert await sent(stored, turn) == [f"{SUMMARY} 1", "user 2"]

    await in_conversation(stored, hidden="'{[9,12)}'")
    assert await sent(stored, turn) == [f"{SUMMARY} 1", "user 2"], "that is behind it"

    await in_conversation(stored, hidden="'{[0,1)}'")
    assert await sent(stored, turn) == ["assistant 1", "user 2"]


async def test_what_was_hidden_when_it_was_made_stays_out_of_its_account(stored: Stored) -> None:
    await answered(stored, "t1", 0)
    await in_conversation(stored, hidden="'{[1,2)}'")
    turn = await compacting(stored, "t2", 2)
    turn = await stored.tell(turn, summed_up(turn, last=1))

    assert await sent(stored, turn) == [f"{SUMMARY} 1", "user 2"]


async def test_ids_of_calls_that_are_summed_up_stay_taken(stored: Stored) -> None:
    await answered(stored, "t1", 0)
    await stored.database.execute("UPDATE messages SET call_id = 'A' WHERE position = 1")
    turn = await compacting(stored, "t2", 2)
    turn = await stored.tell(turn, summed_up(turn, last=1))

    history = await stored.turns.history(turn)
    assert [each.call_id for each in history if each.is_summed_up] == [None, "A"]
    assert [each.body for each in history if each.is_summed_up] == ["", ""]


async def test_an_attempt_for_a_summary_is_counted_once(stored: Stored) -> None:
    await answered(stored, "t1", 0)
    turn = await compacting(stored, "t2", 2)
    turn = await stored.tell(turn, summed_up(turn, last=1))

    rows = await stored.database.rows(
        "SELECT model_attempt, succeeded FROM model_usage WHERE turn_id = 't2' ORDER BY 1"
    )
    found = [(row["model_attempt"], row["succeeded"]) for row in rows]
    assert found == [(1, False), (2, True)]
