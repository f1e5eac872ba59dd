"""Turns that come to be at work in a process whose worker has a place free: it has them at once."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from typing_extensions import override

from app.agents import Hooks, Run
from app.ports import ClaimedTurn, Command, Commit, KeyTaken, ModelRequest, StoreUnavailable
from app.ports.fault_points import watched_by
from app.runner.hand_over import HandOver
from app.settings import Settings
from app.tools import tool
from app.turn.agent import Limits, RetryPolicy
from app.turn.failures import FailureType, ModelFailure
from app.turn.ids import ActorId, CallId, TurnId
from app.turn.inputs import ApproveTool, ContinueNow, Request, RetryModel
from app.turn.state import Turn
from app.turn.states import WaitingForModel
from app.turn.status import Status
from app.workers.loop import WorkerSettings
from tests.support.bench import Bench, bench
from tests.support.deaths import Loss, Stand
from tests.support.models import Model, calls, says
from tests.support.polling import eventually
from tests.support.postgres import query
from tests.workers.test_claiming import QUICK, a_worker, claims, ended, working
from tests.workers.test_named_claims import Asked

SELDOM = replace(QUICK, poll_seconds=600, lease_seconds=60, renew_seconds=20, give_up_seconds=40)
BUSY = ModelFailure(type=FailureType.RATE_LIMITED, message="busy", retryable=True)
QUOTA = ModelFailure(type=FailureType.QUOTA_EXCEEDED, message="no credit", retryable=False)
CLAIMS = "SELECT string_agg(claim_epoch::text, ' ' ORDER BY created_at) FROM turns"


@dataclass(slots=True)
class Faulty(Asked):
    """Claims that may fail, or whose answer may be kept back."""

    is_away: bool = False
    has_failed: bool = False
    has_claimed: asyncio.Event = field(default_factory=asyncio.Event)
    keep_back: asyncio.Event = field(default_factory=asyncio.Event)
    """Answers with turns in them wait for it."""

    @override
    async def claim(self, worker: str, **terms: Any) -> Sequence[ClaimedTurn]:
        if self.is_away:
            self.has_failed = True
            raise StoreUnavailable
        found = await Asked.claim(self, worker, **terms)
        if found:
            self.has_claimed.set()
            await self.keep_back.wait()
        return found


@dataclass(frozen=True, slots=True, kw_only=True)
class Beside:
    """A process with a worker at work, which has looked for turns and found none."""

    bench: Bench
    queue: Faulty
    stopping: asyncio.Event

    @property
    def claims(self) -> int:
        """How often the worker has asked the database for turns."""
        return len(self.queue.asked)

    async def is_idle(self) -> bool:
        return self.bench.worker.is_idle

    async def has_failed(self) -> bool:
        return self.queue.has_failed

    async def status(self, turn_id: TurnId) -> Status:
        return (await self.bench.record(turn_id)).turn.status

    async def until(self, turn_id: TurnId, status: Status) -> None:
        async def is_there() -> bool:
            return await self.status(turn_id) is status

        await eventually(is_there)

    async def tell(self, turn_id: TurnId, given: Request) -> None:
        await self.bench.command(turn_id, given)

    async def goes_on(self, turn_id: TurnId) -> None:
        """Once the turn waits for its model, somebody has it called again."""
        await self.until(turn_id, Status.WAITING_FOR_MODEL)
        waiting = (await self.bench.record(turn_id)).turn.state
        assert isinstance(waiting, WaitingForModel)
        await self.tell(turn_id, RetryModel(failure_id=waiting.record.failure_id))


@asynccontextmanager
async def beside(one: Bench, settings: WorkerSettings = SELDOM) -> AsyncGenerator[Beside]:
    """The bench's services beside a worker that they can hand turns to."""
    async with claims(one.dsn, lease_seconds=settings.lease_seconds) as claimed:
        queue = Faulty(claimed)
        queue.keep_back.set()
        worker = a_worker(one, queue, settings=settings)
        services = one.services
        to_worker = HandOver(places=worker, catalog=services.catalog, new_id=services.new_id)
        writer = replace(services.writer, hand_over=to_worker)
        handing = replace(one, services=replace(services, writer=writer), worker=worker)
        async with working(worker) as stopping:

            async def has_found_none() -> bool:
                return worker.is_idle and await queue.has_looked_twice()

            await eventually(has_found_none)
            yield Beside(bench=handing, queue=queue, stopping=stopping)


# --- What comes at once --------------------------------------------------------------------------


async def test_a_message_opens_claims_and_begins_its_turn_in_one_commit(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[gate, says("Done.")]])
    async with bench(database_dsn, settings, model) as one, beside(one) as here:
        looks = here.claims
        turn_id = await here.bench.post()
        opened = await here.bench.record(turn_id)
        gate.set()
        await eventually(partial(ended, one, turn_id))
        whole = await here.bench.checked(turn_id)

    assert [[event.type for event in row.events] for row in opened.journal] == [
        ["TURN_STARTED", "MESSAGE_ADDED", "STEP_STARTED", "MODEL_STARTED"]
    ]
    assert whole.turn.counters.model_attempts == 1
    assert await query(one.dsn, CLAIMS) == "1"
    assert here.claims == looks


async def test_a_resumed_turn_is_claimed_and_begun_by_the_resume(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[QUOTA], [says("Done.")]])
    async with bench(database_dsn, settings, model) as one, beside(one) as here:
        turn_id = await here.bench.post()
        await here.until(turn_id, Status.WAITING_FOR_MODEL)
        looks = here.claims
        await here.goes_on(turn_id)
        await eventually(partial(ended, one, turn_id))
        whole = await here.bench.checked(turn_id)

    resumed = [row for row in whole.journal if row.events[0].type == "TURN_RESUMED"]
    assert [event.type for event in resumed[0].events][-1] == "MODEL_STARTED"
    assert await query(one.dsn, CLAIMS) == "2"
    assert here.claims == looks


async def test_the_second_turn_of_a_conversation_knows_the_first(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("One.")], [says("Two.")]])
    async with bench(database_dsn, settings, model) as one, beside(one) as here:
        await eventually(partial(ended, one, await here.bench.post()))
        await here.bench.say("And now?", "m2")
        await eventually(partial(is_asked, model, 2))

    assert [len(request.messages) for request in model.requests] == [1, 3]


async def test_a_turn_whose_tools_come_next_is_claimed_and_its_tools_are_judged_as_ever(
    database_dsn: str, settings: Settings
) -> None:
    @tool(effect="writes", needs_approval=True)
    async def pay() -> str:
        return "paid"

    model = Model([[calls("pay")], [says("Done.")]])
    async with bench(database_dsn, settings, model, [pay]) as one, beside(one) as here:
        turn_id = await here.bench.post()
        await here.until(turn_id, Status.WAITING_FOR_APPROVAL)
        looks = here.claims
        await here.tell(turn_id, ApproveTool(call_id=CallId("A"), actor_id=ActorId("amy")))
        await eventually(partial(ended, one, turn_id))
        await here.bench.checked(turn_id)

    assert await query(one.dsn, CLAIMS) == "2"
    assert here.claims == looks


async def test_hooks_are_heard_before_a_turn_that_was_handed_over_is_begun(
    database_dsn: str, settings: Settings
) -> None:
    heard: list[str] = []

    class Diary(Hooks):
        @override
        async def before_run(self, run: Run) -> None:
            heard.append(f"run {run.status}")

        @override
        async def before_model(self, run: Run, request: ModelRequest) -> None:
            heard.append("model")

    model = Model([[says("Done.")]])
    async with bench(database_dsn, settings, model, hooks=Diary()) as one, beside(one) as here:
        turn_id = await here.bench.post()
        await eventually(partial(ended, one, turn_id))

    assert heard == ["run READY", "model"]
    assert await query(one.dsn, CLAIMS) == "1"


async def test_a_limit_that_keeps_a_turn_from_beginning_is_met_by_the_worker(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[QUOTA]])
    one_step = Limits(max_steps=1)
    async with bench(database_dsn, settings, model, limits=one_step) as one, beside(one) as here:
        turn_id = await here.bench.post()
        await here.goes_on(turn_id)
        await here.until(turn_id, Status.MAX_STEPS_REACHED)

    assert await query(one.dsn, CLAIMS) == "2"
    assert len(model.requests) == 1


# --- What is not handed over ---------------------------------------------------------------------


async def test_a_turn_on_hold_takes_no_place(database_dsn: str, settings: Settings) -> None:
    async with bench(database_dsn, settings, Model([])) as one, beside(one) as here:
        await here.bench.post(hold=True)
        claimed = await query(one.dsn, CLAIMS)

    assert claimed == "0"


async def test_a_process_whose_worker_does_not_run_leaves_turns_to_others(
    database_dsn: str, settings: Settings
) -> None:
    async with bench(database_dsn, settings, Model([])) as one:
        await one.post()
        claimed = await query(one.dsn, CLAIMS)

    assert claimed == "0"


async def test_no_more_turns_are_handed_over_than_there_are_places(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[gate, says("Done.")]] * 4)
    narrow = replace(SELDOM, concurrency=2)
    async with bench(database_dsn, settings, model) as one, beside(one, narrow) as here:
        turn_ids = [await here.bench.post(f"ses_{n}") for n in range(4)]
        at_first = await query(one.dsn, CLAIMS)
        gate.set()
        for turn_id in turn_ids:
            await eventually(partial(ended, one, turn_id))

    assert at_first == "1 1 0 0"
    assert await query(one.dsn, CLAIMS) == "1 1 1 1"


async def test_a_turn_does_not_go_past_one_that_waits_for_a_place(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[gate, says("Done.")], *[[says("Done.")]] * 3])
    one_place = replace(SELDOM, concurrency=1)
    async with bench(database_dsn, settings, model) as one, beside(one, one_place) as here:
        first = await here.bench.post("ses_first")
        await model.asked.wait()
        waiting = await here.bench.post("ses_waiting")
        late: list[TurnId] = []

        async def post_when_it_ends() -> None:
            with here.bench.services.wakeups.watch(first) as ends:
                gate.set()
                while not await ended(one, first):
                    await ends.wait(1)
            late.append(await here.bench.post("ses_late"))

        await post_when_it_ends()
        for turn_id in (waiting, *late):
            await eventually(partial(ended, one, turn_id))
        begun = await query(one.dsn, BEGUN)

    assert begun == "ses_first ses_waiting ses_late"


BEGUN = """
SELECT string_agg(conversation_id, ' ' ORDER BY begun) FROM (
    SELECT t.conversation_id, min(e.occurred_at) AS begun FROM turns t JOIN turn_events e
    USING (turn_id) WHERE e.events LIKE '%MODEL_STARTED%' GROUP BY 1) x
"""


async def test_a_place_that_gets_free_is_first_looked_at_for_those_who_have_waited(
    database_dsn: str, settings: Settings
) -> None:
    one_place = replace(SELDOM, concurrency=1)
    async with bench(database_dsn, settings, Model([])) as one, beside(one, one_place) as here:
        turn_id = await here.bench.post(hold=True)
        identity = (await here.bench.record(turn_id)).turn.identity
        place = here.bench.worker.keep(identity)
        assert place is not None
        assert here.bench.worker.keep(identity) is None, "there is but one"
        place.give_up()
        assert here.bench.worker.keep(identity) is None, "others may have waited for it"
        await eventually(here.is_idle)


# --- What may go wrong ---------------------------------------------------------------------------


@pytest.mark.parametrize("point", ["commit.open.after", "commit.command.after"])
async def test_a_turn_is_driven_though_the_answer_to_the_commit_that_claims_it_is_lost(
    database_dsn: str, settings: Settings, point: str
) -> None:
    model = Model([[QUOTA], [says("Done.")]])
    async with bench(database_dsn, settings, model) as one, beside(one) as here:
        with watched_by(Loss(point, times=1).meets):
            turn_id = await here.bench.post()
            await here.goes_on(turn_id)
            await eventually(partial(ended, one, turn_id))
        await here.bench.checked(turn_id)

    assert len(model.requests) == 2
    assert await query(one.dsn, "SELECT deaths FROM turns") == 0


async def test_nothing_has_died_when_the_database_goes_away_with_the_answer_and_for_the_next_look(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Done.")]])
    async with (
        bench(database_dsn, settings, model, on_crash="pause") as one,
        beside(one) as here,
    ):
        away = _with_store(here.bench, AwayForOneLook(one.services.turns))
        with watched_by(Loss("commit.open.after", times=1).meets), pytest.raises(StoreUnavailable):
            await away.post()
        turn_id = await here.bench.post()  # repeated with its id, as its client is told to
        await here.until(turn_id, Status.COMPLETED)


class AwayForOneLook:
    """A store that cannot be reached when a turn is looked for the first time."""

    def __init__(self, store: Any) -> None:  # noqa: ANN401 - whatever it is asked
        self._store, self._is_away = store, True

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self._store, name)

    async def load(self, turn_id: TurnId) -> Turn | None:
        if self._is_away:
            self._is_away = False
            raise StoreUnavailable
        found: Turn | None = await self._store.load(turn_id)
        return found


def _with_store(one: Bench, store: Any) -> Bench:  # noqa: ANN401
    writer = replace(one.services.writer, store=store)
    return replace(one, services=replace(one.services, writer=writer))


async def test_of_two_claims_whose_answers_come_in_the_other_order_the_later_one_counts(
    database_dsn: str, settings: Settings
) -> None:
    gate = asyncio.Event()
    model = Model([[BUSY], [gate, says("Done.")]])
    retry = RetryPolicy(max_retries=1, initial_delay=timedelta(seconds=1), jitter="none")
    stand = Stand("commit.command.before")
    often = replace(SELDOM, poll_seconds=0.05)
    async with (
        bench(database_dsn, settings, model, retry=retry) as one,
        beside(one, often) as here,
    ):
        turn_id = await here.bench.post()
        await here.until(turn_id, Status.RETRY_SCHEDULED)
        await eventually(here.is_idle)
        here.queue.keep_back.clear()
        with watched_by(stand.meets):
            going_on = asyncio.create_task(here.tell(turn_id, ContinueNow()))
            await stand.has_come.wait()  # a place is kept
            await here.queue.has_claimed.wait()  # the retry has become due, and was taken
            stand.may_go.set()
            await going_on
        await eventually(partial(is_asked, model, 2))
        here.queue.keep_back.set()  # the earlier claim is heard of last
        gate.set()
        await here.until(turn_id, Status.COMPLETED)

    assert len(model.requests) == 2


async def test_a_look_that_fails_is_none_that_has_found_nothing(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Done.")], [says("Done.")]])
    async with bench(database_dsn, settings, model) as one, beside(one) as here:
        here.queue.is_away = True
        here.bench.worker.wakeups.runnable.look()
        await eventually(here.has_failed)
        turn_id = await here.bench.post()
        claimed = await query(one.dsn, CLAIMS)
        here.queue.is_away = False
        here.bench.worker.wakeups.runnable.look()
        await here.until(turn_id, Status.COMPLETED)

    assert claimed == "0"


async def test_a_place_kept_for_a_request_that_is_refused_is_free_again(
    database_dsn: str, settings: Settings
) -> None:
    async def refused(_: Commit) -> Command:
        raise KeyTaken

    model = Model([[QUOTA], [says("Done.")]])
    one_place = replace(SELDOM, concurrency=1)
    async with bench(database_dsn, settings, model) as one, beside(one, one_place) as here:
        turn_id = await here.bench.post()
        await here.until(turn_id, Status.WAITING_FOR_MODEL)
        turn = (await here.bench.record(turn_id)).turn
        assert isinstance(turn.state, WaitingForModel)
        again = RetryModel(failure_id=turn.state.record.failure_id)
        with pytest.raises(KeyTaken):
            await here.bench.services.writer.request(turn, again, refused)
        await here.tell(turn_id, again)
        await eventually(partial(ended, one, turn_id))


async def test_a_turn_that_is_being_stored_when_the_worker_stops_is_released_to_others(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[says("Never.")]])
    stand = Stand("commit.open.after")
    async with bench(database_dsn, settings, model) as one:
        async with beside(one) as here:
            with watched_by(stand.meets):
                posting = asyncio.create_task(here.bench.post())
                await stand.has_come.wait()
                here.stopping.set()
                stand.may_go.set()
                turn_id = await posting
        left = await query(one.dsn, "SELECT claimed_by IS NULL AND deaths = 0 FROM turns")
        status = (await one.record(turn_id)).turn.status

    assert left
    assert status is Status.RUNNING
    assert not model.requests


async def test_a_request_that_is_given_up_when_the_process_stops_leaves_no_claim(
    database_dsn: str, settings: Settings
) -> None:
    stand = Stand("commit.open.after")
    async with bench(database_dsn, settings, Model([])) as one:
        async with beside(one) as here:
            with watched_by(stand.meets):
                posting = asyncio.create_task(here.bench.post())
                await stand.has_come.wait()
                here.stopping.set()
                posting.cancel()
                await asyncio.wait([posting])
        left = await query(one.dsn, "SELECT claimed_by IS NULL AND claim_epoch = 1 FROM turns")

    assert left


async def is_asked(model: Model, times: int) -> bool:
    return len(model.requests) == times
