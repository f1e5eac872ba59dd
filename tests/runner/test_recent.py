"""What a process remembers of the commits it has just made, for those who follow their turns."""

import asyncio
from random import Random

import pytest

from app.ports import Commit
from app.runner.recent import RecentCommits
from app.turn import inputs as i
from app.turn.decide import decide
from app.turn.evolve import advance
from app.turn.ids import AttemptId, TurnId
from app.turn.state import Turn
from tests.support.turns import NOON, Told, an_agent

AGENT = an_agent()


def commits(count: int) -> list[Commit]:
    """Consecutive changes of one turn: a model call begins, and then writes and writes."""
    turn, made, text = Told().turn, list[Commit](), ""
    for number in range(count):
        text += "word "
        given: i.Report = (
            i.ModelWrote(attempt_id=AttemptId("a1"), text=text, reasoning="")
            if number
            else i.BeginStep(attempt_id=AttemptId("a1"))
        )
        events = decide(turn, given, at=NOON, agent=AGENT)
        after = advance(turn, events)
        made.append(Commit(before=turn, after=after, events=events, at=NOON))
        turn = after
    return made


def turn_id(of: Turn) -> TurnId:
    return of.identity.turn_id


def sequences(recent: RecentCommits, commit: Commit, version: int) -> list[int]:
    return [row.sequence for row in recent.behind(turn_id(commit.after), version)]


def test_rows_follow_a_version_without_a_gap_in_whatever_order_their_commits_came_back() -> None:
    made, recent = commits(6), RecentCommits()
    with recent.followed(turn_id(made[0].after)):
        for commit in Random(3).sample(made, len(made)):  # noqa: S311 - to repeat, not to hide
            recent.stored(commit)

        for commit in made:
            later = [m.after.version for m in made if m.after.version > commit.before.version]
            assert sequences(recent, commit, commit.before.version) == later


def test_a_row_that_does_not_follow_is_not_handed_out() -> None:
    first, second, third = commits(3)
    recent = RecentCommits()
    with recent.followed(turn_id(first.after)):
        recent.stored(first)
        recent.stored(third)

        assert sequences(recent, first, first.before.version) == [first.after.version]
        assert sequences(recent, first, second.before.version) == []
        assert sequences(recent, first, second.after.version) == [third.after.version]


def test_a_row_tells_what_the_commit_stored() -> None:
    (commit,) = commits(1)
    recent = RecentCommits()
    with recent.followed(turn_id(commit.after)):
        recent.stored(commit)

        (row,) = recent.behind(turn_id(commit.after), commit.before.version)

    assert (row.sequence, row.occurred_at) == (commit.after.version, commit.at)
    assert row.events == commit.events


def test_only_the_last_commits_are_kept() -> None:
    made, recent = commits(40), RecentCommits()
    with recent.followed(turn_id(made[0].after)):
        for commit in made:
            recent.stored(commit)

        assert sequences(recent, made[0], made[0].before.version) == []
        assert sequences(recent, made[0], made[24].before.version) == [
            commit.after.version for commit in made[24:]
        ]
        assert sequences(recent, made[0], made[23].before.version) == []


@pytest.mark.parametrize("readers", [0, 1, 2])
def test_nothing_is_kept_of_a_turn_that_nobody_follows_any_more(readers: int) -> None:
    (commit,) = commits(1)
    recent = RecentCommits()
    opened = [recent.followed(turn_id(commit.after)) for _ in range(readers)]
    for reader in opened:
        reader.__enter__()
    recent.stored(commit)
    for reader in opened:
        assert sequences(recent, commit, commit.before.version) == [commit.after.version]
        reader.__exit__(None, None, None)

    assert sequences(recent, commit, commit.before.version) == []


async def test_a_turn_that_was_opened_here_is_remembered_until_its_reader_may_have_come() -> None:
    first, second, third = commits(3)
    recent = RecentCommits(opened_seconds=0)
    recent.opened(first)
    recent.stored(second)
    versions = [first.after.version, second.after.version]
    assert sequences(recent, first, first.before.version) == versions

    with recent.followed(turn_id(first.after)):
        await its_time_is_over()
        recent.stored(third)

        assert sequences(recent, first, first.before.version) == [*versions, third.after.version]
    assert sequences(recent, first, first.before.version) == []


async def test_a_turn_that_was_opened_here_and_has_no_reader_is_forgotten() -> None:
    (commit,) = commits(1)
    recent = RecentCommits(opened_seconds=0)
    recent.opened(commit)

    await its_time_is_over()

    assert sequences(recent, commit, commit.before.version) == []


async def its_time_is_over() -> None:
    """Until timers that were set before, for no time at all, have gone off."""
    is_over = asyncio.Event()
    asyncio.get_running_loop().call_later(0, is_over.set)
    await is_over.wait()
