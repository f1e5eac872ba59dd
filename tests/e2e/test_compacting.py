"""Histories that are too long for their model, over HTTP and on both wires.

The models here count: what they are sent is too long above so many characters.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import pytest

from app.agents import Agent, HistoryWindow
from app.ports import ModelEvent, ModelRequest, ResolvedModel
from app.providers.failures import Evidence, classify
from app.providers.strict_history import check_history
from app.tools import tool
from app.turn.ids import CallId
from app.turn.transcript import ModelAnswer, ToolCall, Usage
from tests.e2e.conftest import Stage
from tests.support.oracles import records
from tests.support.polling import eventually
from tests.support.service import Service, running_service

SUMMARY = "They spoke of one thing after another."
LONG = "a long story " * 40


@tool(effect="reads")
def look() -> str:
    return "seen " * 40


AGENT = Agent(id="clerk", instructions="", model="narrow", tools=[look])


def is_for_a_summary(request: ModelRequest) -> bool:
    return request.instructions.startswith("You sum up conversations")


def length(request: ModelRequest) -> int:
    return sum(len(message) for message in request.messages)


def too_long() -> ModelEvent:
    body = {"error": {"message": "prompt is too long", "code": "context_length_exceeded"}}
    return classify(Evidence(where="response", status=400, body=body))


@dataclass(slots=True)
class Narrow:
    """A model whose window is so many characters wide; it answers from a script when they fit."""

    window: int
    answers: list[ModelAnswer] = field(default_factory=list[ModelAnswer])
    summary: Callable[[], ModelEvent] = lambda: ModelAnswer(
        text=SUMMARY, usage=Usage(input_tokens=100, output_tokens=10)
    )
    summaries_fit: bool = True
    before_summary: asyncio.Event | None = None
    requests: list[ModelRequest] = field(default_factory=list[ModelRequest])

    def resolve(self, model: str | None) -> ResolvedModel:
        return ResolvedModel(client=self, model=model or "narrow", provider="a test")

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        self.requests.append(request)
        if is_for_a_summary(request):
            if self.before_summary is not None:
                await self.before_summary.wait()
            yield self.summary() if self.summaries_fit else too_long()
        elif length(request) > self.window:
            yield too_long()
        else:
            yield self.answers.pop(0) if self.answers else ModelAnswer(text="Yes.")

    @property
    def asked(self) -> list[list[Any]]:
        """The messages of each request but those for a summary."""
        return [
            [json.loads(message) for message in request.messages]
            for request in self.requests
            if not is_for_a_summary(request)
        ]

    async def has_been_asked_for_one(self) -> bool:
        return bool(self.summed_up)

    @property
    def summed_up(self) -> list[str]:
        """What summaries were asked of."""
        return [
            json.loads(request.messages[0])["content"]
            for request in self.requests
            if is_for_a_summary(request)
        ]


def calling(*call_ids: str) -> ModelAnswer:
    calls = [ToolCall(call_id=CallId(one), tool_name="look", arguments="{}") for one in call_ids]
    return ModelAnswer(text="", tool_calls=tuple(calls))


async def texts(service: Service) -> list[str]:
    page = await service.client.get("/conversations/c1/messages")
    return [str(item.get("content", item.get("text"))) for item in page.json()["items"]]


async def types_of(stage: Stage, turn: dict[str, Any]) -> list[str]:
    async with records(stage.dsn) as found:
        return list((await found.of(turn["turnId"])).types)


async def talked(service: Service, *said: str) -> dict[str, Any]:
    """The last turn of so many."""
    turn: dict[str, Any] = {}
    for words in said:
        turn = await service.send("c1", words, agentId="clerk")
    return turn


def starts(messages: Sequence[Any]) -> list[str]:
    return [str(message["content"])[:20] for message in messages]


async def test_what_was_said_before_is_summed_up_and_the_turn_goes_on(stage: Stage) -> None:
    model = Narrow(1_200)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        done = await talked(service, LONG, LONG, "And now?")
        kept = await texts(service)
        then = await talked(service, "And then?")

    last = model.asked[-2]
    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "Yes.")
    assert len(model.summed_up) == 1
    assert SUMMARY in last[0]["content"]
    assert [message["content"] for message in last[1:]] == ["And now?"]
    assert kept == [LONG, "Yes.", LONG, "Yes.", "And now?", "Yes."], "the transcript keeps it all"
    # The summary stands in requests from then on, in a new drive too.
    assert then["status"] == "COMPLETED"
    assert [m["content"] for m in model.asked[-1][1:]] == ["And now?", "Yes.", "And then?"]
    assert SUMMARY in model.asked[-1][0]["content"]


async def test_a_summary_is_counted_once_in_the_turn_and_in_what_was_spent(stage: Stage) -> None:
    model = Narrow(1_200)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        done = await talked(service, LONG, LONG, "And now?")
        usage = await service.client.get("/usage")

    assert done["usage"] == {"inputTokens": 100, "cachedInputTokens": None, "outputTokens": 10}
    assert done["counters"] | {"modelAttempts": 3, "modelSuccesses": 1} == done["counters"]
    total = usage.json()["total"]
    assert (total["modelAttempts"], total["modelSuccesses"]) == (5, 4)
    assert (total["inputTokens"], total["outputTokens"]) == (100, 10)


async def test_case_146_a_turn_that_is_half_done_stays_whole_behind_a_summary(
    stage: Stage,
) -> None:
    model = Narrow(1_300)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        await talked(service, LONG, LONG)
        model.answers = [calling("A", "B"), ModelAnswer(text="Both seen.")]
        done = await talked(service, "Look twice.")

    last = model.asked[-1]
    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "Both seen.")
    assert [message["role"] for message in last] == ["user", "user", "assistant", "tool", "tool"]
    assert [call["id"] for call in last[2]["tool_calls"]] == ["A", "B"]
    assert [message["tool_call_id"] for message in last[3:]] == ["A", "B"]
    assert all(check_history(messages) is None for messages in model.asked)
    assert len(model.summed_up) == 1


async def test_scenario_005_in_every_request_calls_and_results_stand_together(
    stage: Stage,
) -> None:
    agent = replace(AGENT, history=HistoryWindow(messages=4))
    model = Narrow(2_500)
    model.answers = [calling(f"r{n}") for n in range(6)] + [ModelAnswer(text="Done.")]
    async with running_service(stage.dsn, stage.settings, agents=[agent], models=model) as service:
        first = await talked(service, "loop")
        model.answers = [calling(f"s{n}") for n in range(6)] + [ModelAnswer(text="Done again.")]
        second = await talked(service, "loop again")

    assert (first["status"], second["status"]) == ("COMPLETED", "COMPLETED")
    assert all(check_history(messages) is None for messages in model.asked)


async def test_scenario_095_a_summary_that_is_too_long_itself_costs_one_call_and_no_loop(
    stage: Stage,
) -> None:
    model = Narrow(1_000, summaries_fit=False)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        waiting = await talked(service, LONG, LONG, "And now?")
        seen = {waiting["failureId"]}
        calls = [len(model.requests)]
        for _ in range(5):
            answer = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
            waiting = answer.json()
            seen.add(waiting["failureId"])
            calls.append(len(model.requests))

    failure = waiting["suspension"]["modelFailure"]
    assert waiting["status"] == "WAITING_FOR_MODEL"
    assert (failure["type"], failure["tokenLimitPhase"]) == (
        "TOKEN_LIMIT_EXCEEDED",
        "INPUT_CONTEXT",
    )
    assert "too long" in waiting["message"]
    assert len(seen) == 6, "each retry has a failure of its own"
    assert [then - one for one, then in pairwise(calls)] == [2] * 5


async def test_a_first_message_that_is_too_long_has_nothing_to_be_summed_up(stage: Stage) -> None:
    model = Narrow(1_000)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        waiting = await talked(service, LONG * 9)

    assert (waiting["status"], len(model.requests)) == ("WAITING_FOR_MODEL", 1)


@pytest.mark.parametrize(
    "summary",
    [
        lambda: ModelAnswer(text="x" * 5_000),
        lambda: ModelAnswer(text=" "),
        lambda: calling("A"),
        lambda: classify(Evidence(where="response", status=503, body="")),
        lambda: classify(
            Evidence(where="response", status=429, body={"error": {"code": "insufficient_quota"}})
        ),
    ],
    ids=["larger", "blank", "calls", "outage", "quota"],
)
async def test_case_147_a_summary_that_is_none_changes_nothing(
    stage: Stage, summary: Callable[[], ModelEvent]
) -> None:
    model = Narrow(1_000, summary=summary)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        waiting = await talked(service, LONG, LONG, "And now?")
        model.window = 9_999
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})

    assert (waiting["status"], waiting["failureType"]) == (
        "WAITING_FOR_MODEL",
        "TOKEN_LIMIT_EXCEEDED",
    )
    assert done.json()["status"] == "COMPLETED"
    assert starts(model.asked[-1])[0] == LONG[:20], "the whole history, as it was"


async def test_a_later_summary_holds_the_earlier_one_and_takes_its_place(stage: Stage) -> None:
    model = Narrow(1_000)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        await talked(service, LONG, LONG, "And now?")
        model.summary = lambda: ModelAnswer(text="Much later.")
        await talked(service, LONG, "And then?")

    assert len(model.summed_up) == 2
    assert (
        f"Earlier: What was said before this was summed up, to save room:\n\n{SUMMARY}"
        in (model.summed_up[1])
    )
    assert "Much later." in model.asked[-1][0]["content"]
    assert SUMMARY not in str(model.asked[-1])


async def test_a_summary_of_what_was_taken_back_counts_no_more_until_it_is_brought_back(
    stage: Stage,
) -> None:
    model = Narrow(1_250)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        await service.send("c1", "First.", agentId="clerk", messageId="m-first")
        await talked(service, LONG, LONG, "And now?")
        reverted = await service.client.post(
            "/conversations/c1/revert", json={"messageId": "m-first"}
        )
        await talked(service, "Anew.")

    assert reverted.is_success, reverted.text
    assert SUMMARY not in str(model.asked[-1])
    assert [m["content"] for m in model.asked[-1]] == ["First.", "Anew."]


async def test_somebody_asks_for_a_summary_and_keeps_the_last_turns(stage: Stage) -> None:
    agent = replace(AGENT, on_context_full="wait")
    model = Narrow(1_250)
    async with running_service(stage.dsn, stage.settings, agents=[agent], models=model) as service:
        waiting = await talked(service, LONG, LONG, "Short.", "And now?")
        changes = {"compact": True, "keepTurns": 1}
        done = await service.resume(
            waiting["turnId"],
            {"command": "RETRY_MODEL", "failureId": waiting["failureId"], "changes": changes},
        )
        found = await types_of(stage, waiting)

    assert waiting["status"] == "WAITING_FOR_MODEL"
    assert done.json()["status"] == "COMPLETED", done.text
    assert [m["content"] for m in model.asked[-1][1:]] == ["Short.", "Yes.", "And now?"]
    assert "CONTEXT_COMPACTED" in found


async def test_somebody_leaves_older_turns_out_for_the_rest_of_the_turn(stage: Stage) -> None:
    agent = replace(AGENT, on_context_full="wait")
    model = Narrow(1_250)
    async with running_service(stage.dsn, stage.settings, agents=[agent], models=model) as service:
        waiting = await talked(service, LONG, LONG, "Short.", "And now?")
        model.answers = [calling("A"), ModelAnswer(text="Seen.")]
        done = await service.resume(
            waiting["turnId"],
            {
                "command": "RETRY_MODEL",
                "failureId": waiting["failureId"],
                "changes": {"keepTurns": 1},
            },
        )

    assert done.json()["status"] == "COMPLETED"
    assert model.summed_up == []
    assert [m["content"] for m in model.asked[-2]] == ["Short.", "Yes.", "And now?"]
    assert [m["role"] for m in model.asked[-1]] == [
        "user",
        "assistant",
        *["user"],
        "assistant",
        "tool",
    ]


@pytest.mark.parametrize(
    ("window", "kept"),
    [
        (HistoryWindow(turns=1), ["three", "Yes.", "four"]),
        (HistoryWindow(messages=4), ["two", "Yes.", "three", "Yes.", "four"]),
        (HistoryWindow(messages=3), ["three", "Yes.", "four"]),
        (HistoryWindow(tokens=30), ["three", "Yes.", "four"]),
        (HistoryWindow(turns=0), ["four"]),
    ],
)
async def test_an_agents_window_leaves_out_whole_turns_and_the_transcript_keeps_them(
    stage: Stage, window: HistoryWindow, kept: list[str]
) -> None:
    agent = replace(AGENT, history=window)
    model = Narrow(9_999)
    async with running_service(stage.dsn, stage.settings, agents=[agent], models=model) as service:
        await talked(service, "one", "two", "three", "four")
        stored = await texts(service)

    assert [message["content"] for message in model.asked[-1]] == kept
    assert len(stored) == 8


async def test_a_process_that_dies_over_a_summary_loses_nothing(stage: Stage) -> None:
    model = Narrow(1_000, before_summary=asyncio.Event())
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        await talked(service, LONG, LONG)
        answer = await service.client.post(
            "/conversations/c1/messages", json={"content": "And now?", "agentId": "clerk"}
        )
        turn_id = answer.json()["turnId"]
        await eventually(model.has_been_asked_for_one)
    model.before_summary = None
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        done = await service.at_rest(turn_id)
        found = await types_of(stage, done)

    assert done["status"] == "COMPLETED"
    assert found.count("COMPACTION_STARTED") == 2
    assert found.count("CONTEXT_COMPACTED") == 1
    assert SUMMARY in model.asked[-1][0]["content"]


async def test_a_cancellation_stops_a_summary_at_once(stage: Stage) -> None:
    model = Narrow(1_000, before_summary=asyncio.Event())
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        await talked(service, LONG, LONG)
        answer = await service.client.post(
            "/conversations/c1/messages", json={"content": "And now?", "agentId": "clerk"}
        )
        turn_id = answer.json()["turnId"]
        await eventually(model.has_been_asked_for_one)
        await service.client.post(f"/turns/{turn_id}/cancel")
        ended = await service.at_rest(turn_id)

    assert ended["status"] == "CANCELLED"
