"""The sweeper: what nobody has answered in time ends without any client."""

import asyncio
from dataclasses import replace
from datetime import datetime, timedelta

import pytest

from app.store.inspection import waits_left
from app.turn.agent import Agent, OnExpiry, WaitPolicy
from app.turn.ids import CallId
from app.turn.inputs import GiveToolResult
from app.workers.sweeper import Sweeper
from tests.support.calls_that_wait import asked_for
from tests.support.polling import eventually
from tests.support.told_over_http import ToldOverHttp
from tests.support.turns import QUESTION, REFUND, SHIP, Told, a_call, an_agent
from tests.support.world import World
from tests.support.world import here as here  # noqa: PLC0414 - a fixture


def a_sweeper(here: World, *, turns_at_once: int = 100) -> Sweeper:
    return Sweeper(
        waits=here.services.waits,
        writer=here.services.writer,
        clock=lambda: here.now[0],
        turns_at_once=turns_at_once,
    )


def for_a_minute(on_expiry: OnExpiry) -> Agent:
    return an_agent(wait=WaitPolicy(timeout=timedelta(minutes=1), on_expiry=on_expiry))


def stored(here: World, story: Told) -> ToldOverHttp:
    told = ToldOverHttp.replayed(story, here)
    assert isinstance(told, ToldOverHttp)
    return told


def waiting(here: World, on_expiry: OnExpiry) -> ToldOverHttp:
    """A turn that waits for an outside tool, for a minute."""
    return stored(here, asked_for(a_call("A", SHIP), agent=for_a_minute(on_expiry)))


def at(here: World, told: ToldOverHttp, *, seconds: float) -> None:
    """So much later."""
    here.now[0] = told.later(seconds=seconds).at


@pytest.mark.parametrize(
    ("on_expiry", "events", "status"),
    [
        ("keep", ["WAIT_EXPIRED"], "WAITING_FOR_TOOL"),
        (
            "answer_expired",
            ["WAIT_EXPIRED", "TOOL_INTERRUPTED", "EXTERNAL_TOOL_CANCEL_REQUESTED", "TURN_RESUMED"],
            "RUNNING",
        ),
        (
            "fail",
            [
                "WAIT_EXPIRED",
                "TOOL_INTERRUPTED",
                "MESSAGE_ADDED",
                "EXTERNAL_TOOL_CANCEL_REQUESTED",
                "TURN_FAILED",
            ],
            "FAILED",
        ),
        (
            "cancel",
            [
                "WAIT_EXPIRED",
                "TOOL_INTERRUPTED",
                "MESSAGE_ADDED",
                "EXTERNAL_TOOL_CANCEL_REQUESTED",
                "TURN_CANCELLED",
            ],
            "CANCELLED",
        ),
    ],
)
def test_case_121_the_end_of_a_wait_comes_without_a_client_and_once(
    here: World, on_expiry: OnExpiry, events: list[str], status: str
) -> None:
    told, sweeper = waiting(here, on_expiry), a_sweeper(here)
    before = told.turn

    at(here, told, seconds=59)
    assert here.do(sweeper.sweep()) == 0
    at(here, told, seconds=1)
    assert here.do(sweeper.sweep()) == 1
    assert here.do(sweeper.sweep()) == 0

    told.looked_at()
    assert sorted(told.types) == sorted(events)
    assert told.turn.status == status
    assert told.turn.version == before.version + len(events)
    decided = "SELECT count(*) FROM approvals WHERE turn_id = $1"
    assert here.do(here.database.value(decided, before.identity.turn_id)) == 0
    assert here.do(waits_left(here.dsn)) == 0


def test_every_wait_that_is_over_is_found_whatever_it_is_for(here: World) -> None:
    stories = [
        stored(here, asked_for(a_call("A", tool), agent=for_a_minute("fail")))
        for tool in (SHIP, REFUND, QUESTION)
    ]
    question = asked_for(a_call("A"), agent=for_a_minute("fail")).finished("A", question="where?")
    stories.append(stored(here, question))
    forever = stored(here, asked_for(a_call("A", SHIP)))
    at(here, forever, seconds=600)

    assert here.do(a_sweeper(here).sweep()) == len(stories)

    for told in stories:
        told.looked_at()
        assert told.turn.status == "FAILED"
    assert not forever.looked_at().last


def test_sweepers_that_look_at_once_end_a_wait_once(here: World) -> None:
    told = waiting(here, "answer_expired")
    at(here, told, seconds=60)

    async def all_at_once() -> list[int]:
        return await asyncio.gather(*(a_sweeper(here).sweep() for _ in range(5)))

    assert sum(here.do(all_at_once())) == 1

    assert told.looked_at().types.count("WAIT_EXPIRED") == 1


def test_an_answer_that_is_faster_than_the_sweeper_counts(here: World) -> None:
    """It was decided in time; that the sweeper had read the turn before is nothing."""
    told = waiting(here, "fail")
    at(here, told, seconds=60)
    [read] = here.do(here.services.waits.expired(at=here.now[0], limit=10))
    told.later(seconds=-1).tell(GiveToolResult(call_id=CallId("A"), output="done"))
    here.now[0] = told.later(seconds=1).at

    late = here.do(here.services.writer.time_passed(read))

    assert late.events == ()
    assert told.looked_at().turn.status == "RUNNING"
    assert here.do(a_sweeper(here).sweep()) == 0


def test_a_sweep_ends_all_that_is_over_however_much_it_is(here: World) -> None:
    stories = [waiting(here, "fail") for _ in range(5)]
    at(here, stories[-1], seconds=60)

    assert here.do(a_sweeper(here, turns_at_once=2).sweep()) == len(stories)


@pytest.mark.parametrize("turns_at_once", [100, 1])
def test_a_turn_that_this_code_cannot_read_is_left_and_keeps_no_other_waiting(
    here: World, turns_at_once: int
) -> None:
    newer, told = waiting(here, "fail"), waiting(here, "fail")
    written = "UPDATE turns SET body = '{}' WHERE turn_id = $1"
    here.do(here.database.execute(written, newer.turn.identity.turn_id))
    at(here, told, seconds=60)

    assert here.do(a_sweeper(here, turns_at_once=turns_at_once).sweep()) == 1

    assert told.looked_at().turn.status == "FAILED"


def test_a_sweeper_outlives_whatever_goes_wrong(here: World) -> None:
    told, failures = waiting(here, "cancel"), iter(range(3))
    at(here, told, seconds=60)
    now: datetime = here.now[0]

    def clock() -> datetime:
        if next(failures, None) is not None:
            msg = "no time"
            raise RuntimeError(msg)
        return now

    async def work() -> None:
        stopping = asyncio.Event()
        sweeper = replace(a_sweeper(here), clock=clock)
        working = asyncio.create_task(sweeper.run(stopping, every_seconds=0.01))
        await eventually(lambda: is_terminal(here, told))
        stopping.set()
        await working

    here.do(work())

    assert told.looked_at().turn.status == "CANCELLED"


def test_a_worker_sweeps_for_as_long_as_it_works(here: World) -> None:
    told, sweeper = waiting(here, "cancel"), a_sweeper(here)
    at(here, told, seconds=60)

    async def work() -> None:
        stopping = asyncio.Event()
        working = asyncio.create_task(sweeper.run(stopping, every_seconds=0.01))
        await eventually(lambda: is_terminal(here, told))
        stopping.set()
        async with asyncio.timeout(5):
            await working

    here.do(work())

    assert told.looked_at().turn.status == "CANCELLED"


async def is_terminal(here: World, told: ToldOverHttp) -> bool:
    found = await here.services.turns.load(told.turn.identity.turn_id)
    return found is not None and found.is_terminal
