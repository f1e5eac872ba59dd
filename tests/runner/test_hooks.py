"""Hooks: when each is called, what it may change, and what is stored of what it does."""

import asyncio
from dataclasses import replace
from typing import Any

import orjson
import pytest
from typing_extensions import override

from app.agents import Ask, GoOn, Hooks, Run, RunError, ToolCall, ToolOutput, UserMessage, text_of
from app.ports import ModelAnswer, ModelRequest, NotDone, TextDelta
from app.services.turns import pause, resume
from app.settings import Settings
from app.tools import tool
from app.turn.agent import Limits
from app.turn.events import ModelText
from app.turn.failures import FailureType, ModelFailure
from app.turn.inputs import Resume, RetryModel
from app.turn.states import Failed, WaitingForModel, WaitingForUser
from app.turn.status import Status
from app.turn.transcript import AssistantMessage, Outcome, QuestionMessage
from tests.support.bench import CALLER, bench
from tests.support.deaths import let_claims_run_out
from tests.support.models import Line, Model, calls, says
from tests.support.polling import eventually

QUOTA = ModelFailure(type=FailureType.QUOTA_EXCEEDED, message="no credit", retryable=False)


@tool(effect="reads")
def look_up() -> str:
    return "found"


class Diary(Hooks):
    """Writes down what it is told, in order."""

    def __init__(self) -> None:
        self.lines: list[str] = []

    @override
    async def before_run(self, run: Run) -> None:
        self.lines.append(f"before_run{' again' if run.is_resume else ''}")

    @override
    async def on_message(self, run: Run, message: UserMessage) -> None:
        self.lines.append(f"on_message {text_of(message.content)}")

    @override
    async def after_run(self, run: Run) -> None:
        self.lines.append(f"after_run {run.status}")

    @override
    async def on_error(self, run: Run, error: RunError) -> None:
        self.lines.append(f"on_error {type(error).__name__} {run.status}")

    @override
    async def before_model(self, run: Run, request: ModelRequest) -> None:
        self.lines.append(f"before_model {len(request.messages)}")

    @override
    async def around_tool(self, run: Run, call: ToolCall, go_on: GoOn) -> ToolOutput:
        self.lines.append(f"before {call.tool_name}")
        output = await go_on(call)
        self.lines.append(f"behind {call.tool_name}: {output.content}")
        return output


# --- When they are called ------------------------------------------------------------------------


async def test_a_run_is_told_from_its_begin_to_its_rest(
    database_dsn: str, settings: Settings
) -> None:
    diary = Diary()
    model = Model([[calls("look_up")], [says("Done.")]])
    async with bench(database_dsn, settings, model, [look_up], hooks=diary) as one:
        await one.post()
        await one.run()

    assert diary.lines == [
        "before_run",
        "on_message Go.",
        "before_model 1",
        "before look_up",
        "behind look_up: found",
        "before_model 3",
        "after_run COMPLETED",
    ]


async def test_a_message_that_steers_is_told_before_the_call_that_answers_it(
    database_dsn: str, settings: Settings
) -> None:
    diary, gate = Diary(), asyncio.Event()
    model = Model([[gate, calls("look_up")], [says("Done.")]])
    async with bench(database_dsn, settings, model, [look_up], hooks=diary) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.run())
        await model.asked.wait()
        await one.say("No, this.", "m2", when_running="steer")
        gate.set()
        await driving
        await one.checked(turn_id)

    assert diary.lines == [
        "before_run",
        "on_message Go.",
        "before_model 1",
        "on_message No, this.",
        "before_model 4",
        "after_run COMPLETED",
    ]


async def test_on_a_retry_the_run_is_told_and_no_message(
    database_dsn: str, settings: Settings
) -> None:
    diary = Diary()
    model = Model([[QUOTA], [says("Done.")]])
    async with bench(database_dsn, settings, model, hooks=diary) as one:
        turn_id = await one.post()
        await one.run()
        state = (await one.record(turn_id)).turn.state
        assert isinstance(state, WaitingForModel)
        first, diary.lines = diary.lines, []
        retry = RetryModel(failure_id=state.record.failure_id)
        await resume(one.services, CALLER, turn_id, retry)
        await one.run()

    assert first[2:] == [
        "before_model 1",
        "on_error ModelFailure WAITING_FOR_MODEL",
        "after_run WAITING_FOR_MODEL",
    ]
    assert diary.lines == ["before_run again", "before_model 1", "after_run COMPLETED"]


async def test_an_answer_that_is_none_is_told_as_the_failure_it_amounts_to(
    database_dsn: str, settings: Settings
) -> None:
    diary = Diary()
    async with bench(database_dsn, settings, Model([[says("")]] * 3), hooks=diary) as one:
        await one.post()
        await one.run()

    assert diary.lines[2:] == [
        *["before_model 1"] * 3,
        "on_error ModelFailure WAITING_FOR_MODEL",
        "after_run WAITING_FOR_MODEL",
    ]


async def test_a_message_to_a_waiting_turn_is_told(database_dsn: str, settings: Settings) -> None:
    diary = Diary()
    model = Model([[QUOTA], [says("Done.")]])
    async with bench(database_dsn, settings, model, hooks=diary) as one:
        await one.post()
        await one.run()
        diary.lines.clear()
        await one.say("And now?", "m2")
        await one.run()

    assert diary.lines[:2] == ["before_run again", "on_message And now?"]


async def test_a_takeover_is_a_run_of_its_own_without_a_message(
    database_dsn: str, settings: Settings
) -> None:
    diary, gate = Diary(), asyncio.Event()
    model = Model([[calls("look_up")], [gate], [says("Done.")]])
    async with bench(database_dsn, settings, model, [look_up], hooks=diary) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.run())

        async def is_asked_again() -> bool:
            return len(model.requests) == 2

        await eventually(is_asked_again)
        await let_claims_run_out(one.dsn)
        second = await one.claim()
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        diary.lines.clear()
        await one.drive(second)
        record = await one.checked(turn_id)

    assert diary.lines == ["before_run again", "before_model 3", "after_run COMPLETED"]
    assert record.types.count("STEP_RECOVERED") == 1


async def test_a_turn_that_is_only_to_be_stopped_is_no_run(
    database_dsn: str, settings: Settings
) -> None:
    diary, gate = Diary(), asyncio.Event()
    model = Model([[gate]])
    async with bench(database_dsn, settings, model, hooks=diary) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.run())
        await one.until_stored(turn_id, "MODEL_STARTED")
        await let_claims_run_out(one.dsn)
        second = await one.claim()
        driving.cancel()
        await asyncio.gather(driving, return_exceptions=True)
        await one.cancel(turn_id)
        diary.lines.clear()
        await one.drive(second)
        record = await one.checked(turn_id)

    assert record.turn.status is Status.CANCELLED
    assert diary.lines == []


# --- What they may change ------------------------------------------------------------------------


async def test_a_request_may_be_changed_before_it_is_sent(
    database_dsn: str, settings: Settings
) -> None:
    class Dated(Hooks):
        @override
        async def before_model(self, run: Run, request: ModelRequest) -> ModelRequest:
            return replace(request, instructions="It is Monday.")

    model = Model([[says("Done.")]])
    async with bench(database_dsn, settings, model, hooks=Dated()) as one:
        await one.post()
        await one.run()

    assert [request.instructions for request in model.requests] == ["It is Monday."]


@pytest.mark.parametrize("answer", ["From the cache.", ModelAnswer(text="From the cache.")])
async def test_an_answer_may_take_the_place_of_the_model(
    database_dsn: str, settings: Settings, answer: str | ModelAnswer
) -> None:
    class Cache(Hooks):
        @override
        async def before_model(self, run: Run, request: ModelRequest) -> str | ModelAnswer:
            return answer

    model = Model([])
    async with bench(database_dsn, settings, model, hooks=Cache()) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert record.turn.status is Status.COMPLETED
    assert record.transcript[-1] == AssistantMessage(text="From the cache.")
    assert model.requests == []


async def test_an_answer_may_be_changed_and_nothing_of_it_is_seen_before(
    database_dsn: str, settings: Settings
) -> None:
    class Discreet(Hooks):
        @override
        async def after_model(self, run: Run, answer: ModelAnswer) -> ModelAnswer:
            return replace(answer, text=answer.text.replace("secret", "…"))

    pieces = ["the secret " * 300] * 3
    model = Model([[*(TextDelta(text=piece) for piece in pieces), says("".join(pieces))]])
    async with bench(database_dsn, settings, model, hooks=Discreet()) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    texts = [event.text for event in record.events if isinstance(event, ModelText)]
    assert texts == ["".join(pieces).replace("secret", "…")]


async def test_a_tool_may_be_kept_from_running_and_its_arguments_changed(
    database_dsn: str, settings: Settings
) -> None:
    paid: list[int] = []

    @tool(effect="writes")
    def pay(cents: int) -> str:
        paid.append(cents)
        return f"paid {cents}"

    class Careful(Hooks):
        @override
        async def around_tool(self, run: Run, call: ToolCall, go_on: GoOn) -> ToolOutput:
            cents = int(orjson.loads(call.arguments)["cents"])
            if cents > 1_000:
                raise NotDone("that is too much")
            return await go_on(replace(call, arguments='{"cents": 7}'))

    async def result(cents: int, conversation: str) -> tuple[Outcome, str]:
        rounds: list[list[Line]] = [
            [calls("pay", arguments=f'{{"cents": {cents}}}')],
            [says("Done.")],
        ]
        async with bench(database_dsn, settings, Model(rounds), [pay], hooks=Careful()) as one:
            turn_id = await one.post(conversation)
            await one.run()
            said = (await one.checked(turn_id)).results["A"]
            return said.outcome, said.content

    assert await result(5, "small") == (Outcome.COMPLETED, "paid 7")
    assert await result(5_000, "large") == (
        Outcome.NOT_STARTED,
        "Nothing was done: that is too much",
    )
    assert paid == [7]


async def test_what_a_hook_says_of_a_tool_can_be_stored(
    database_dsn: str, settings: Settings
) -> None:
    class Wild(Hooks):
        @override
        async def around_tool(self, run: Run, call: ToolCall, go_on: GoOn) -> ToolOutput:
            if call.call_id == "A":
                return ToolOutput(outcome=Outcome.COMPLETED, content="\ud800" + "x" * 100_000)
            return "no output"  # type: ignore[return-value]  # pyright: ignore[reportReturnType]

    model = Model([[calls("look_up", "look_up")], [says("Done.")]])
    async with bench(database_dsn, settings, model, [look_up], hooks=Wild()) as one:
        turn_id = await one.post()
        await one.run()
        results = (await one.checked(turn_id)).results

    assert len(results["A"].content.encode()) <= 64 * 1024
    assert results["B"].outcome is Outcome.ERROR
    assert "around_tool returns a ToolOutput" in results["B"].content


# --- Questions -----------------------------------------------------------------------------------


class Asking(Hooks):
    """Asks once, in the hook it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.asked = 0
        self.heard: list[str] = []

    def _ask(self, where: str) -> None:
        if where == self.where and not self.asked:
            self.asked += 1
            self._wrapped()

    def _wrapped(self) -> None:
        """As a library around it would (case 143)."""
        try:
            raise Ask("Where to?")  # noqa: TRY301 - it is to be wrapped here
        except Ask as asked:
            raise RuntimeError("a library stumbled") from asked

    @override
    async def before_run(self, run: Run) -> None:
        self._ask("before_run")

    @override
    async def on_message(self, run: Run, message: UserMessage) -> None:
        self.heard.append(text_of(message.content))
        self._ask("on_message")

    @override
    async def before_model(self, run: Run, request: ModelRequest) -> None:
        self._ask("before_model")

    @override
    async def after_model(self, run: Run, answer: ModelAnswer) -> None:
        self._ask("after_model")

    @override
    async def around_tool(self, run: Run, call: ToolCall, go_on: GoOn) -> ToolOutput:
        output = await go_on(call)
        self._ask("around_tool")
        return output


class AsksAbout(Hooks):
    """Asks about one message, and writes down all that it is told of."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.heard: list[str] = []

    @override
    async def on_message(self, run: Run, message: UserMessage) -> None:
        self.heard.append(text_of(message.content))
        if self.heard[-1] == self.text:
            raise Ask("Which one?")


@pytest.mark.parametrize(
    ("where", "steps", "heard"),
    [
        ("before_run", 0, ["Go.", "Tokyo"]),
        ("on_message", 0, ["Go.", "Tokyo"]),
        ("before_model", 1, ["Go.", "Tokyo"]),
        ("after_model", 1, ["Go.", "Tokyo"]),
        ("around_tool", 2, ["Go.", "Tokyo"]),
    ],
)
async def test_case_143_a_hook_that_asks_makes_the_turn_wait_and_the_answer_goes_on(
    database_dsn: str, settings: Settings, where: str, steps: int, heard: list[str]
) -> None:
    asking = Asking(where)
    first = [calls("look_up")]
    again = [first, first] if where == "after_model" else [first]
    model = Model([*again, [says("Booked.")]])
    async with bench(database_dsn, settings, model, [look_up], hooks=asking) as one:
        turn_id = await one.post()
        await one.run()
        waiting = await one.checked(turn_id)
        await one.say("Tokyo", "m2")
        await one.run()
        record = await one.checked(turn_id)

    assert isinstance(waiting.turn.state, WaitingForUser)
    assert waiting.turn.state.question == "Where to?"
    assert waiting.turn.counters.steps == steps
    assert waiting.transcript[-1] == QuestionMessage(text="Where to?")
    assert record.turn.status is Status.COMPLETED
    assert record.user_messages == ["m1", "m2"]
    assert sum(isinstance(m, QuestionMessage) for m in record.transcript) == 1
    assert asking.heard == heard


async def test_every_message_that_steers_is_told_also_behind_a_question_about_one(
    database_dsn: str, settings: Settings
) -> None:
    asking, gate = AsksAbout("Tokyo"), asyncio.Event()
    model = Model([[gate, says("Booked.")], [says("Booked again.")]])
    async with bench(database_dsn, settings, model, hooks=asking) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.run())
        await one.until_stored(turn_id, "MODEL_STARTED")
        await one.say("Tokyo", "m2", when_running="steer")
        await one.say("On Monday.", "m3", when_running="steer")
        gate.set()
        await driving
        waiting = await one.checked(turn_id)
        await one.say("The city.", "m4")
        await one.run()
        record = await one.checked(turn_id)

    assert isinstance(waiting.turn.state, WaitingForUser)
    assert waiting.turn.counters.model_attempts == 1
    assert asking.heard == ["Go.", "Tokyo", "On Monday.", "The city."]
    assert record.turn.status is Status.COMPLETED
    assert record.user_messages == ["m1", "m2", "m3", "m4"]


async def test_a_question_asked_while_a_turn_goes_on_with_its_tools_leaves_them_due(
    database_dsn: str, settings: Settings
) -> None:
    entered, gate = list[str](), asyncio.Event()

    @tool(effect="writes")
    async def first() -> str:
        entered.append("first")
        await gate.wait()
        return "one"

    @tool(effect="writes")
    def second() -> str:
        entered.append("second")
        return "two"

    class AsksOnResume(Hooks):
        @override
        async def before_run(self, run: Run) -> None:
            if run.is_resume and run.status is Status.RUNNING and entered == ["first"]:
                entered.append("asked")
                raise Ask("Still?")

    model = Model([[calls("first", "second")], [says("Done.")]])
    limits = Limits(parallel_tools=1)
    async with bench(
        database_dsn, settings, model, [first, second], limits=limits, hooks=AsksOnResume()
    ) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.run())
        await one.until_stored(turn_id, "TOOL_STARTED")
        await pause(one.services, CALLER, turn_id)
        gate.set()
        await driving
        await resume(one.services, CALLER, turn_id, Resume())
        await one.run()
        waiting = await one.record(turn_id)
        await one.say("Yes.", "m2")
        await one.run()
        record = await one.checked(turn_id)

    assert isinstance(waiting.turn.state, WaitingForUser)
    assert [call.tool_name for call in waiting.turn.open_calls] == ["second"]
    assert record.turn.status is Status.COMPLETED
    assert entered == ["first", "asked", "second"]


# --- Hooks that fail -----------------------------------------------------------------------------


class Broken(Hooks):
    """Raises in the hook it is told to."""

    def __init__(self, where: str) -> None:
        self.where = where
        self.errors: list[str] = []

    def _break(self, where: str) -> None:
        if where == self.where:
            raise ZeroDivisionError(where)

    @override
    async def before_run(self, run: Run) -> None:
        self._break("before_run")

    @override
    async def on_message(self, run: Run, message: UserMessage) -> None:
        self._break("on_message")

    @override
    async def before_model(self, run: Run, request: ModelRequest) -> Any:
        self._break("before_model")
        return 7 if self.where == "a wrong request" else None

    @override
    async def after_model(self, run: Run, answer: ModelAnswer) -> Any:
        self._break("after_model")
        bad = (
            ToolCall(call_id=answer.tool_calls[0].call_id, tool_name="x", arguments="[")
            if (answer.tool_calls)
            else None
        )
        if self.where == "bad arguments" and bad is not None:
            return replace(answer, tool_calls=(bad,))
        return 7 if self.where == "a wrong answer" else None

    @override
    async def around_tool(self, run: Run, call: ToolCall, go_on: GoOn) -> ToolOutput:
        self._break("around_tool")
        return await go_on(call)

    @override
    async def after_run(self, run: Run) -> None:
        self._break("after_run")

    @override
    async def on_error(self, run: Run, error: RunError) -> None:
        self.errors.append(type(error).__name__)
        self._break("on_error")


@pytest.mark.parametrize(
    ("where", "error"),
    [
        ("before_run", "ZeroDivisionError"),
        ("on_message", "ZeroDivisionError"),
        ("before_model", "ZeroDivisionError"),
        ("after_model", "ZeroDivisionError"),
        ("a wrong request", "TypeError"),
        ("a wrong answer", "TypeError"),
        ("bad arguments", "TypeError"),
    ],
)
async def test_a_hook_that_fails_fails_the_turn_with_its_history_closed(
    database_dsn: str, settings: Settings, where: str, error: str
) -> None:
    broken = Broken(where)
    model = Model([[calls("look_up")], [says("Done.")]])
    async with bench(database_dsn, settings, model, [look_up], hooks=broken) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert record.turn.state == Failed(reason="hook_failed")
    assert broken.errors == [error]


async def test_a_hook_that_fails_around_a_tool_is_the_tools_error(
    database_dsn: str, settings: Settings
) -> None:
    model = Model([[calls("look_up")], [says("Done.")]])
    async with bench(database_dsn, settings, model, [look_up], hooks=Broken("around_tool")) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert record.turn.status is Status.COMPLETED
    assert record.results["A"].outcome is Outcome.ERROR
    assert record.results["A"].content == "ZeroDivisionError: around_tool"


@pytest.mark.parametrize("where", ["after_run", "on_error"])
async def test_a_hook_that_fails_behind_what_is_stored_changes_nothing(
    database_dsn: str, settings: Settings, where: str
) -> None:
    model = Model([[QUOTA]])
    async with bench(database_dsn, settings, model, hooks=Broken(where)) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert record.turn.status is Status.WAITING_FOR_MODEL


# --- Hooks that take their time ------------------------------------------------------------------


class Slow(Hooks):
    """Begins no run before its gate opens."""

    def __init__(self) -> None:
        self.entered = asyncio.Event()
        self.left = asyncio.Event()

    @override
    async def before_run(self, run: Run) -> None:
        self.entered.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.left.set()


async def test_a_cancellation_drops_a_hook_that_takes_its_time(
    database_dsn: str, settings: Settings
) -> None:
    slow = Slow()
    async with bench(database_dsn, settings, Model([]), hooks=slow) as one:
        turn_id = await one.post()
        driving = asyncio.create_task(one.run())
        await slow.entered.wait()
        await one.cancel(turn_id)
        async with asyncio.timeout(4):
            await driving
        record = await one.checked(turn_id)

    assert record.turn.status is Status.CANCELLED
    assert slow.left.is_set()


async def test_a_stop_of_the_worker_drops_a_hook_and_leaves_the_turn_as_it_was(
    database_dsn: str, settings: Settings
) -> None:
    slow, stopping = Slow(), asyncio.Event()
    async with bench(database_dsn, settings, Model([]), hooks=slow) as one:
        turn_id = await one.post()
        before = await one.record(turn_id)
        driving = asyncio.create_task(one.drive(await one.claim(), stopping))
        await slow.entered.wait()
        stopping.set()
        assert not await driving
        after = await one.record(turn_id)

    assert after.turn == before.turn
