"""Answers that were not completed, over HTTP: what people see of them, and what the model gets."""

import asyncio
from dataclasses import replace
from typing import Any

from app.agents import Agent
from app.ports import TextDelta
from app.tools import tool
from app.turn.failures import FailureType, ModelFailure
from tests.e2e.conftest import Stage
from tests.support.bench import bench
from tests.support.deaths import let_claims_run_out
from tests.support.models import Model, says
from tests.support.oracles import check_events, check_fold, check_history, records
from tests.support.resuming import last_request, point_of
from tests.support.service import Service, running_service
from tests.support.sse_reader import TurnReader

CLERK = Agent(id="clerk", instructions="Answer.", model="story")
OVERLOADED: dict[str, object] = {"error": {"message": "Overloaded", "code": "overloaded"}}
BREAKS: dict[str, object] = {
    "text": "Once upon a time",
    "faults": [{"stream_error": OVERLOADED}],
}
SLOW: dict[str, object] = {"text": "word " * 400, "chunks": 400, "delay_ms": 50}


async def messages(service: Service, conversation: str = "c1") -> list[dict[str, Any]]:
    answer = await service.client.get(f"/conversations/{conversation}/messages")
    items: list[dict[str, Any]] = answer.json()["items"]
    return items


def retry(turn: dict[str, Any]) -> dict[str, object]:
    return {"command": "RETRY_MODEL", "failureId": turn["failureId"]}


async def whole(stage: Stage, turn_id: str) -> None:
    async with records(stage.dsn) as found:
        record = await found.of(turn_id)
    check_fold(record)
    check_events(record.journal, record.turn)
    check_history(record)


async def test_case_27_half_an_answer_is_shown_and_the_model_is_told_to_begin_again(
    stage: Stage,
) -> None:
    stage.provider.script("story", [BREAKS])
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        waiting = await service.send("c1", "Tell me.", agentId="clerk")
        point = await point_of(service, "c1")
        before = await messages(service)
        done = (await service.resume(waiting["turnId"], retry(waiting))).json()
        after = await messages(service)

    assert (waiting["status"], waiting["finalOutput"]) == ("WAITING_FOR_MODEL", None)
    assert point["kind"] == "RETRY_RESPONSE"
    assert (before[1]["content"], before[1]["partial"]) == ("Once upon a time", True)
    assert before[1]["error"]["metadata"] == {"failureId": waiting["failureId"]}
    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "Once upon a time")
    assert [m["role"] for m in after] == ["user", "assistant", "notice", "assistant"]
    assert "partial" not in after[3]
    asked = last_request(stage.provider)
    assert [m["role"] for m in asked] == ["user", "assistant", "user"]
    await whole(stage, waiting["turnId"])


async def test_partial_messages_may_be_left_out_of_requests(stage: Stage) -> None:
    stage.provider.script("story", [BREAKS])
    agent = replace(CLERK, leave_out=["partial"])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Tell me.", agentId="clerk")
        done = (await service.resume(waiting["turnId"], retry(waiting))).json()
        kept = await messages(service)

    assert done["status"] == "COMPLETED"
    assert kept[1]["partial"] is True
    assert all(m["role"] == "user" for m in last_request(stage.provider))


async def test_an_agent_that_drops_partial_text_asks_as_before(stage: Stage) -> None:
    stage.provider.script("story", [BREAKS])
    agent = replace(CLERK, partial_output="drop")
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Tell me.", agentId="clerk")
        done = (await service.resume(waiting["turnId"], retry(waiting))).json()
        kept = await messages(service)

    assert (done["status"], [m["role"] for m in kept]) == ("COMPLETED", ["user", "assistant"])


async def test_a_pause_keeps_all_that_was_read_and_a_resume_begins_the_answer_again(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{**SLOW, "faults": []}])
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        turn = await service.send("c1", "Tell me.", agentId="clerk", wait=0)
        reader = TurnReader(service.client, turn["turnId"])
        await reader.read(until=lambda event: event["type"] == "MODEL_TEXT")
        paused = await service.client.post(f"/turns/{turn['turnId']}/pause")
        await reader.read(until=lambda event: event["type"] == "TURN_PAUSED")
        kept = (await messages(service))[1]
        stage.provider.script("story", [{"text": "In short: words."}])
        done = (await service.resume(turn["turnId"], {"command": "RESUME"})).json()
        after = await messages(service)

    assert (paused.status_code, paused.json()["status"]) == (200, "PAUSED")
    assert kept["partial"] is True
    assert kept["error"] == {
        "reason": "UnfinishedAssistantMessage",
        "message": "Assistant message was not completed before recovery.",
        "metadata": {"recovered": True, "mode": "resume"},
    }
    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "In short: words.")
    assert [m["role"] for m in after] == ["user", "assistant", "notice", "assistant"]
    texts = [event["data"] for event in reader.received if event["type"] == "MODEL_TEXT"]
    assert filled_in(texts) == kept["content"]
    await whole(stage, turn["turnId"])


def filled_in(pieces: list[dict[str, Any]]) -> str:
    """What a reader has that goes by offsets alone."""
    text = ""
    for piece in pieces:
        text = text[: piece["offset"]] + piece["text"]
    return text


async def test_the_answer_of_a_worker_that_died_is_closed_and_written_again(
    stage: Stage,
) -> None:
    never = asyncio.Event()
    broke = ModelFailure(type=FailureType.UNAVAILABLE, message="", retryable=False)
    long = "Once upon a time. " * 200
    model = Model([[TextDelta(text=long), never, broke], [says("The end.")]])
    async with bench(stage.dsn, stage.settings, model) as one:
        turn_id = await one.post()
        dying = asyncio.create_task(one.drive(await one.claim()))
        await one.until_stored(turn_id, "MODEL_TEXT")
        dying.cancel()
        await asyncio.wait([dying])
        await let_claims_run_out(stage.dsn)
        await one.run()
        record = await one.checked(turn_id)

    roles = [(m.role, getattr(m, "error", None) is not None) for m in record.transcript]
    assert roles == [
        ("user", False),
        ("assistant", True),
        ("notice", False),
        ("assistant", False),
    ]
    (recovered,) = (row for row in record.events if row.type == "STEP_RECOVERED")
    assert recovered.discard_from == len(long)


async def test_a_cut_answer_is_continued_and_read_as_one(stage: Stage) -> None:
    agent = replace(CLERK, on_truncated="continue")
    parts = ["Once upon ", "a time ", "there was."]
    stops = ["length", "length", "stop"]
    stage.provider.script(
        "story", [{"text": t, "stop": s} for t, s in zip(parts, stops, strict=True)]
    )
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        done = await service.send("c1", "Tell me.", agentId="clerk")
        again = await service.turn(done["turnId"])

    assert (done["status"], done["stopReason"]) == ("COMPLETED", "END_TURN")
    assert done["finalOutput"] == again["finalOutput"] == "".join(parts)
    await whole(stage, done["turnId"])


async def test_case_72_an_answer_that_has_an_error_keeps_it_over_a_resume(stage: Stage) -> None:
    stage.provider.script("story", [BREAKS])
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        waiting = await service.send("c1", "Tell me.", agentId="clerk")
        before = (await messages(service))[1]
        await service.resume(waiting["turnId"], retry(waiting))
        after = (await messages(service))[1]

    assert before == after
    assert before["error"]["reason"] == "OVERLOADED"


async def test_case_28_the_text_of_a_cut_answer_stays_and_the_model_is_told_once_to_go_on(
    stage: Stage,
) -> None:
    stage.provider.script("story", [{"text": "Once ", "stop": "length"}, {"text": "upon"}])
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        await service.send("c1", "Tell me.", agentId="clerk")
        answer = await service.client.post(
            "/conversations/c1/resume", json={}, headers={"Prefer": "wait=20"}
        )
        said = await messages(service)

    assert answer.json()["finalOutput"] == "upon"
    assert [m["role"] for m in said] == ["user", "assistant", "notice", "assistant"]
    assert said[1]["content"] == "Once "


async def test_case_30_calls_of_a_refused_answer_do_not_run_and_it_is_an_end(stage: Stage) -> None:
    ran: list[str] = []

    @tool(effect="writes")
    def pay() -> str:
        ran.append("pay")
        return "paid"

    call = {"id": "call_1", "name": "pay", "arguments": "{}"}
    refused = {"text": "No.", "calls": [call], "stop": "content_filter"}
    stage.provider.script("story", [refused])
    agent = replace(CLERK, tools=[pay])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        turn = await service.send("c1", "Pay.", agentId="clerk")
        reader = TurnReader(service.client, turn["turnId"])
        await reader.read(until=lambda event: event["type"] == "TURN_COMPLETED")
        answer = await service.client.post("/conversations/c1/resume", json={})

    assert (turn["status"], turn["stopReason"], ran) == ("COMPLETED", "REFUSAL", [])
    (stopped,) = (e["data"] for e in reader.received if e["type"] == "MODEL_STOPPED")
    assert stopped["withheldTools"] == ["pay"]
    assert (answer.status_code, answer.json()["reason"]) == (409, "refused")


async def test_case_29_an_answer_that_is_cut_again_may_be_resumed_again(stage: Stage) -> None:
    cut = {"text": "Once ", "stop": "length"}
    stage.provider.script("story", [cut, cut, {"text": "upon"}])
    async with running_service(stage.dsn, stage.settings, agents=[CLERK]) as service:
        first = await service.send("c1", "Tell me.", agentId="clerk")
        turns = [first]
        for _ in range(2):
            point = await point_of(service, "c1")
            assert point["kind"] == "CONTINUE_RESPONSE"
            answer = await service.client.post(
                "/conversations/c1/resume", json={}, headers={"Prefer": "wait=20"}
            )
            turns.append(answer.json())
        said = await messages(service)

    assert [turn["stopReason"] for turn in turns] == ["MAX_OUTPUT", "MAX_OUTPUT", "END_TURN"]
    assert [m["role"] for m in said].count("notice") == 2


async def test_a_request_that_is_wrong_may_wait_for_a_change(stage: Stage) -> None:
    agent = replace(CLERK, on_invalid_request="wait")
    wrong = {"error": {"message": "Unknown parameter: foo", "type": "invalid_request_error"}}
    stage.provider.script("story", [{"text": "Hi", "faults": [{"status": 400, "body": wrong}]}])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("c1", "Hello", agentId="clerk")
        done = (await service.resume(waiting["turnId"], retry(waiting))).json()

    assert (waiting["status"], waiting["failureType"]) == ("WAITING_FOR_MODEL", "UNAVAILABLE")
    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "Hi")
