"""Calls that are interrupted, over HTTP: what the model reads of them, and the records of them."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any

from app.agents import Agent, Limits, RetryPolicy
from app.tools import tool
from app.turn.interruption import WORDS
from app.turn.transcript import Outcome
from tests.e2e.conftest import Stage
from tests.http.rig import assert_problem
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.processes import serving
from tests.support.service import Service, SignedIn, running_service
from tests.support.story import MODEL, clerk

CALLS = [
    {"id": "A", "name": "pay_slowly", "arguments": '{"amount": 9}'},
    {"id": "B", "name": "look_up", "arguments": '{"what": "b"}'},
    {"id": "C", "name": "pay", "arguments": '{"amount": 3}'},
]
DAY = timedelta(days=1)
LATER = RetryPolicy(max_retries=1, initial_delay=DAY, max_delay=DAY, jitter="none")
ROUNDS: list[dict[str, object]] = [{"calls": CALLS}, {"text": "As you wish."}]


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A turn that is paused behind the first of three calls; the other two are open."""

    service: Service
    turn: dict[str, Any]

    @property
    def path(self) -> str:
        return f"/turns/{self.turn['turnId']}"

    async def say(self, text: str, message_id: str) -> dict[str, Any]:
        return await self.service.send("ses_1", text, messageId=message_id)

    async def records(self) -> list[dict[str, Any]]:
        return await records_of(self.service, self.turn["turnId"])


async def records_of(service: SignedIn, turn_id: str) -> list[dict[str, Any]]:
    answer = await service.client.get(f"/turns/{turn_id}/interruptions")
    assert answer.status_code == 200, answer.text
    assert answer.json()["nextCursor"] is None
    found: list[dict[str, Any]] = answer.json()["items"]
    return found


@asynccontextmanager
async def paused(stage: Stage, **changes: Any) -> AsyncGenerator[Scene]:  # noqa: ANN401 - of an agent
    stage.provider.script(MODEL, ROUNDS)
    agent = replace(clerk(stage.ledger), limits=Limits(parallel_tools=1), **changes)
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        sent = await service.send("ses_1", "Pay it.", wait=0, agentId="clerk")
        await eventually(lambda: began(stage, "pay_slowly"))
        await service.client.post(f"/turns/{sent['turnId']}/pause")
        stage.ledger.open_gate()
        turn = await service.at_rest(sent["turnId"])
        assert turn["status"] == "PAUSED"
        yield Scene(service=service, turn=turn)


async def began(stage: Stage, *tools: str) -> bool:
    return stage.ledger.tools() == sorted(tools)


def told(stage: Stage) -> list[str]:
    """The results in the last request to the model."""
    request: Any = stage.provider.requests(MODEL)[-1]
    messages: list[dict[str, Any]] = request["body"]["messages"]
    return [message["content"] for message in messages if message["role"] == "tool"]


async def test_a_message_leaves_a_record_of_each_call_it_closes_in_declared_order(
    stage: Stage,
) -> None:
    async with paused(stage) as scene:
        before = await scene.records()
        done = await scene.say("Never mind.", "m2")
        first, second = await scene.records()

    assert before == []
    assert done["finalOutput"] == "As you wish."
    assert first | {"interruptedAt": None} == {
        "position": 3,
        "callId": "B",
        "toolName": "look_up",
        "outcome": "superseded",
        "reason": "user_message",
        "suspensionType": None,
        "sourceMessageId": "m2",
        "interruptedAt": None,
    }
    assert (second["callId"], second["position"]) == ("C", 4)
    assert stage.ledger.tools() == ["pay_slowly"]
    await check_everything(stage.dsn, stage.ledger)


async def test_case_1_a_message_that_comes_twice_leaves_one_set_of_records(stage: Stage) -> None:
    async with paused(stage) as scene:
        first = await scene.say("Never mind.", "m2")
        again = await scene.say("Never mind.", "m2")
        records = await scene.records()
        said = await scene.service.client.get("/conversations/ses_1/messages")

    assert again["turnId"] == first["turnId"] == scene.turn["turnId"]
    assert [record["callId"] for record in records] == ["B", "C"]
    assert [item["role"] for item in said.json()["items"]].count("user") == 2


async def test_case_87_replanning_interrupts_what_is_open_and_what_is_done_stays_done(
    stage: Stage,
) -> None:
    replan: dict[str, object] = {
        "command": "REPLAN_WITH_MESSAGE",
        "message": {"content": "Pay less.", "messageId": "m2"},
    }
    async with paused(stage) as scene:
        await scene.service.resume(scene.turn["turnId"], replan)
        records = await scene.records()

    assert [(r["callId"], r["reason"], r["sourceMessageId"]) for r in records] == [
        ("B", "replanned", "m2"),
        ("C", "replanned", "m2"),
    ]
    assert told(stage) == ["paid 9 at last", WORDS[Outcome.SUPERSEDED], WORDS[Outcome.SUPERSEDED]]


async def test_the_model_reads_of_it_in_the_words_of_the_agent(stage: Stage) -> None:
    words = {"superseded": "{toolName}/{callId} of {turnId}: {reason}"}
    async with paused(stage, interruption_text=words) as scene:
        await scene.say("Never mind.", "m2")

    why = f"of {scene.turn['turnId']}: a new message of the user came first"
    assert told(stage) == ["paid 9 at last", f"look_up/B {why}", f"pay/C {why}"]


async def test_a_person_who_cancels_is_told_of_in_the_words_of_the_agent(stage: Stage) -> None:
    async with paused(stage, interruption_text={"cancelled": "{reason}"}) as scene:
        await scene.service.client.post(f"{scene.path}/cancel")
        said = await scene.service.client.get("/conversations/ses_1/messages")

    results = [item["content"] for item in said.json()["items"] if item["role"] == "tool"]
    assert results == ["paid 9 at last", "the turn was cancelled", "the turn was cancelled"]


async def test_case_42_a_call_that_waits_for_its_retry_is_interrupted_and_says_so(
    stage: Stage,
) -> None:
    entered: list[str] = []

    @tool(effect="reads", on_error="retry_then_model", retry=LATER)
    def fetch() -> str:
        """Fetch."""
        entered.append("once more")
        raise OSError("no route")

    calls = [{"id": c, "name": "fetch", "arguments": "{}"} for c in ("A", "B")]
    stage.provider.script("fetching", [{"calls": calls}, {"text": "As you wish."}])
    agent = Agent(id="fetcher", instructions="", model="fetching", tools=[fetch])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        turn = await service.send("ses_1", "Fetch.", agentId="fetcher")
        done = await service.send("ses_1", "Never mind.", messageId="m2")
        records = await records_of(service, turn["turnId"])

    assert (turn["status"], done["status"]) == ("RETRY_SCHEDULED", "COMPLETED")
    assert [(r["callId"], r["suspensionType"]) for r in records] == [("A", "RETRY"), ("B", "RETRY")]
    assert len(entered) == 2


async def test_records_are_read_in_pages(stage: Stage) -> None:
    async with paused(stage) as scene:
        await scene.say("Never mind.", "m2")
        path, client = f"{scene.path}/interruptions", scene.service.client
        page = (await client.get(path, params={"limit": 1})).json()
        more = (await client.get(path, params={"limit": 1, "cursor": page["nextCursor"]})).json()
        rest = (await client.get(path, params={"cursor": more["nextCursor"]})).json()
        wrong = await client.get(path, params={"cursor": "first"})

    assert [item["callId"] for item in page["items"] + more["items"]] == ["B", "C"]
    assert rest == {"items": [], "nextCursor": None}
    assert_problem(wrong, 400, "cursor_invalid")


async def test_records_of_a_turn_that_is_not_there_are_not_there(stage: Stage) -> None:
    async with running_service(stage.dsn, stage.settings, with_worker=False) as service:
        answer = await service.client.get("/turns/nope/interruptions")

    assert_problem(answer, 404, "turn_not_found")


async def test_case_128_a_turn_that_is_cancelled_has_one_result_per_open_call_and_one_closing(
    stage: Stage,
) -> None:
    async with paused(stage) as scene:
        ended = await scene.service.client.post(f"{scene.path}/cancel")
        again = await scene.service.client.post(f"{scene.path}/cancel")
        records = await scene.records()
        said = await scene.service.client.get("/conversations/ses_1/messages")

    assert ended.json()["status"] == "CANCELLED"
    assert again.json()["version"] == ended.json()["version"]
    assert [(r["callId"], r["outcome"], r["reason"]) for r in records] == [
        ("B", "cancelled", "turn_cancelled"),
        ("C", "cancelled", "turn_cancelled"),
    ]
    roles = [item["role"] for item in said.json()["items"]]
    assert roles == ["user", "assistant", "tool", "tool", "tool", "closing"]
    await check_everything(stage.dsn, stage.ledger)


async def test_case_128_a_turn_that_is_closed_after_a_crash_is_closed_once(stage: Stage) -> None:
    calls = [CALLS[0], {"id": "B", "name": "look_up_slowly", "arguments": '{"what": "b"}'}]
    stage.provider.script(MODEL, [{"calls": calls}, {"text": "never"}])
    place = (stage.dsn, stage.ledger, stage.provider.base_url)
    async with serving(*place) as service:
        sent = await service.send("ses_1", "Pay it.", wait=0, agentId="clerk")
        await eventually(lambda: began(stage, "pay_slowly", "look_up_slowly"))
        asked = await service.client.post(f"/turns/{sent['turnId']}/cancel")
        await service.kill()

    async with serving(*place) as service:
        ended = await service.at_rest(sent["turnId"])
        records = await records_of(service, sent["turnId"])
        await service.kill()
    async with serving(*place) as service:
        once_more = await service.turn(sent["turnId"])
        same = await records_of(service, sent["turnId"])
        said = await service.client.get("/conversations/ses_1/messages")

    assert (asked.status_code, ended["status"]) == (202, "CANCELLED")
    assert (once_more["version"], same) == (ended["version"], records)
    assert [(r["callId"], r["outcome"]) for r in records] == [("A", "unknown"), ("B", "unknown")]
    assert [item["role"] for item in said.json()["items"]].count("closing") == 1
    assert len(stage.provider.requests(MODEL)) == 1
    await check_everything(stage.dsn, stage.ledger)
