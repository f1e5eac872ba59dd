"""Who is told of changes is told of each once, and of nothing that is not stored."""

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import partial

import pytest

from app.ports import Commit
from app.ports.fault_points import watched_by
from app.settings import Settings
from app.turn import inputs as i
from app.turn.errors import Rejected
from app.turn.ids import FailureId, TurnId
from app.turn.state import Turn
from tests.support.bench import CALLER, Bench, bench
from tests.support.deaths import Fate, Fault
from tests.support.models import Model, says
from tests.support.turns import QUOTA


async def waiting(one: Bench) -> Turn:
    """A turn that waits for its model."""
    turn_id = await one.post()
    await one.run()
    found = await one.services.turns.load(turn_id)
    assert found is not None
    return found


async def retried(one: Bench, turn: Turn, told: Callable[[Commit], None]) -> None:
    """Somebody retries, and `told` hears what comes of it."""
    writer = replace(one.services.writer, listeners=(told,))
    assert turn.current_failure is not None
    given = i.RetryModel(failure_id=FailureId(turn.current_failure.failure_id))
    audit = CALLER.entry("RETRY_MODEL", turn_id=TurnId(turn.identity.turn_id))
    await writer.request(turn, given, partial(CALLER.command, audit))


async def test_of_many_who_retry_at_once_one_change_is_told(
    database_dsn: str, settings: Settings
) -> None:
    heard: list[Commit] = []
    async with bench(database_dsn, settings, Model([[QUOTA]])) as one:
        turn = await waiting(one)
        ended = await asyncio.gather(
            *(retried(one, turn, heard.append) for _ in range(5)), return_exceptions=True
        )

    assert sum(isinstance(each, Rejected) for each in ended) == 4
    assert [[event.type for event in commit.events] for commit in heard] == [["TURN_RESUMED"]]


@pytest.mark.parametrize("fault", [Fault.CONNECTION_LOST, Fault.ANSWER_LOST])
async def test_a_commit_whose_answer_is_lost_is_told_once_when_it_is_known(
    database_dsn: str, settings: Settings, fault: Fault
) -> None:
    heard: list[Commit] = []
    async with bench(database_dsn, settings, Model([[QUOTA], [says("Done.")]])) as one:
        turn = await waiting(one)
        fate = Fate(fault=fault, at=frozenset({1}))
        with watched_by(fate.meets):
            await retried(one, turn, heard.append)

    assert fate.struck == {1}
    assert [[event.type for event in commit.events] for commit in heard] == [["TURN_RESUMED"]]
