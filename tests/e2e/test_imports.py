"""Histories from elsewhere, brought along and resumed, over real HTTP with a strict provider."""

import asyncio
import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

import pytest

from tests.e2e.conftest import Stage
from tests.http.rig import assert_problem
from tests.support.brought import RECORDED
from tests.support.oracles import check_everything
from tests.support.resuming import brought, last_request, point_of
from tests.support.service import Service, running_service
from tests.support.sizes import size
from tests.support.story import MODEL, clerk

UNKNOWN = "It may or may not have taken effect"
SHARE = slice(0, None, size(8, soak=1))
"""Of the recorded histories, those that are resumed."""


@pytest.fixture
async def service(stage: Stage) -> AsyncGenerator[Service]:
    stage.provider.script(MODEL, [{"text": "Here you are."}] * 30)
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as running:
        yield running
    refused = [each for each in stage.provider.requests(MODEL) if each["status"] != 200]
    assert refused == []
    assert stage.ledger.effects() == []


async def resumed(service: Service, conversation: str, **body: object) -> dict[str, Any]:
    """The turn that goes on, once it rests."""
    answer = await service.client.post(
        f"/conversations/{conversation}/resume", json=body, headers={"Prefer": "wait=20"}
    )
    assert answer.status_code == 202, answer.text
    turn: dict[str, Any] = answer.json()
    return turn


async def test_every_recorded_history_has_the_resume_point_that_is_recorded(
    service: Service,
) -> None:
    gate = asyncio.Semaphore(4)

    async def judged(recorded: Mapping[str, Any]) -> tuple[dict[str, Any], int]:
        async with gate:
            conversation = await brought(service, recorded["messages"])
            point = await point_of(service, conversation)
            messages = f"/conversations/{conversation}/messages?limit=200"
            kept = await service.client.get(messages)
        return _as_recorded(point), len(kept.json()["items"])

    found = await asyncio.gather(*(judged(recorded) for recorded in RECORDED))

    assert [(each["id"], each["expected"], len(each["messages"])) for each in RECORDED] == [
        (each["id"], point, kept) for each, (point, kept) in zip(RECORDED, found, strict=True)
    ]


def _as_recorded(point: Mapping[str, Any]) -> dict[str, Any]:
    assert point["description"]
    if not point["resumable"]:
        return {"reason": point["reason"]}
    assert {call["rule"] for call in point["unansweredToolCalls"]} <= {"report"}
    calls = [call["callId"] for call in point["unansweredToolCalls"]]
    return {"kind": point["kind"], "unansweredToolCalls": calls}


async def test_a_recorded_history_is_resumed_and_no_provider_refuses_it(
    service: Service, stage: Stage
) -> None:
    for recorded in RECORDED[SHARE]:
        conversation = await brought(service, recorded["messages"])
        if "kind" not in recorded["expected"]:
            answer = await service.client.post(f"/conversations/{conversation}/resume")
            assert answer.status_code == 409
            assert answer.json()["code"] == "not_resumable"
            assert answer.json()["reason"] == recorded["expected"]["reason"]
            continue

        turn = await resumed(service, conversation)

        assert turn["status"] == "COMPLETED", recorded["id"]
        assert turn["resumesTurnId"] is None
        assert (await point_of(service, conversation))["reason"] == "completed"
    await check_everything(stage.dsn, stage.ledger)


async def test_a_recorded_history_takes_a_message_and_no_provider_refuses_it(
    service: Service, stage: Stage
) -> None:
    for recorded in RECORDED[SHARE]:
        conversation = await brought(service, recorded["messages"])

        turn = await service.send(conversation, "And now?")

        assert turn["status"] == "COMPLETED", recorded["id"]
        assert last_request(stage.provider)[-1] == {"role": "user", "content": "And now?"}
    await check_everything(stage.dsn, stage.ledger)


THREE_CALLS: Mapping[str, Any] = {
    "role": "assistant",
    "content": "",
    "toolCalls": [
        {"id": "A", "name": "look_up", "arguments": {"what": "a"}},
        {"id": "B", "name": "pay", "arguments": '{"amount": 3}'},
        {"id": "C", "name": "no_such_tool"},
    ],
}


async def test_calls_of_a_history_are_reported_as_unknown_and_never_run(
    service: Service, stage: Stage
) -> None:
    known = {"role": "tool", "toolCallId": "B", "content": "paid"}
    conversation = await brought(service, [{"role": "user", "content": "go"}, THREE_CALLS, known])

    point = await point_of(service, conversation)
    turn = await resumed(service, conversation)

    assert point["description"] == (
        "Resume closes 2 open calls by their rules, then asks the model again."
    )
    assert point["unansweredToolCalls"] == [
        {"callId": "A", "toolName": "look_up", "rule": "report"},
        {"callId": "C", "toolName": "no_such_tool", "rule": "report"},
    ]
    assert turn["status"] == "COMPLETED"
    results = last_request(stage.provider)[2:]
    assert [result["tool_call_id"] for result in results] == ["A", "B", "C"]
    assert [UNKNOWN in result["content"] for result in results] == [True, False, True]
    kept = await service.client.get(f"/turns/{turn['turnId']}/interruptions")
    assert [(each["callId"], each["reason"]) for each in kept.json()["items"]] == [
        ("A", "unanswered"),
        ("C", "unanswered"),
    ]


async def test_a_message_closes_the_calls_of_a_history_before_it_is_said(
    service: Service, stage: Stage
) -> None:
    conversation = await brought(service, [{"role": "user", "content": "go"}, THREE_CALLS])
    foreseen = await service.client.post(
        f"/conversations/{conversation}/messages?dryRun=true", json={"content": "stop"}
    )

    await service.send(conversation, "stop")

    assert [call["callId"] for call in foreseen.json()["closes"]] == ["A", "B", "C"]
    said = last_request(stage.provider)
    assert [message["role"] for message in said] == ["user", "assistant", *["tool"] * 3, "user"]
    assert all(UNKNOWN in result["content"] for result in said[2:5])


async def test_case_79_an_older_damaged_round_is_left_out_of_requests_and_kept(
    service: Service, stage: Stage
) -> None:
    history = [THREE_CALLS, {"role": "user", "content": "again"}]
    conversation = await brought(service, history)

    await resumed(service, conversation)

    assert last_request(stage.provider) == [{"role": "user", "content": "again"}]
    kept = await service.client.get(f"/conversations/{conversation}/messages")
    assert [message["role"] for message in kept.json()["items"]] == [
        "assistant",
        "user",
        "assistant",
    ]


PAID: Mapping[str, Any] = {"role": "tool", "toolCallId": "A", "content": "paid"}
CUT_CALLS: Mapping[str, Any] = {
    "role": "assistant",
    "content": "I pay",
    "stopReason": "MAX_OUTPUT",
    "toolCalls": [{"id": "A", "name": "pay"}],
}


async def test_case_76_results_that_no_call_has_asked_for_are_malformed(service: Service) -> None:
    conversation = await brought(service, [{"role": "user", "content": "go"}, PAID])

    assert (await point_of(service, conversation))["reason"] == "malformed"


async def test_case_77_system_messages_at_the_end_are_passed_over(service: Service) -> None:
    late = {"role": "system", "content": "late"}
    conversation = await brought(service, [{"role": "user", "content": "go"}, late, late])

    assert (await point_of(service, conversation))["kind"] == "CALL_MODEL"


async def test_case_78_calls_decide_before_an_abnormal_stop(service: Service) -> None:
    conversation = await brought(service, [CUT_CALLS])
    answered = await brought(service, [CUT_CALLS, PAID])

    assert (await point_of(service, conversation))["kind"] == "RECOVER_TOOLS"
    assert (await point_of(service, answered))["kind"] == "CALL_MODEL"


async def test_histories_of_two_wires_are_read(service: Service, stage: Stage) -> None:
    openai: Sequence[Mapping[str, Any]] = [
        {"role": "developer", "content": "Be kind."},
        {"role": "user", "content": [{"type": "text", "text": "go"}], "name": "Kim"},
        {
            "role": "assistant",
            "content": None,
            "refusal": None,
            "annotations": [],
            "tool_calls": [
                {
                    "id": "A",
                    "type": "function",
                    "function": {"name": "look_up", "arguments": '{"what": "a"}'},
                }
            ],
        },
        {"role": "tool", "tool_call_id": "A", "content": "found"},
    ]
    anthropic: Sequence[Mapping[str, Any]] = [
        {"role": "user", "content": "go"},
        {
            "role": "assistant",
            "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": "x"},
                {"type": "tool_use", "id": "A", "name": "look_up", "input": {"what": "a"}},
            ],
        },
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "A", "content": "found"},
            ],
        },
    ]

    requests: list[list[dict[str, Any]]] = []
    for form, history in (("openai", openai), ("anthropic", anthropic)):
        conversation = await brought(service, history, format=form)
        await resumed(service, conversation)
        requests.append(last_request(stage.provider))

    assert requests[0] == requests[1]
    assert [message["role"] for message in requests[0]] == ["user", "assistant", "tool"]
    assert requests[0][2]["content"] == "found"


@pytest.mark.parametrize(
    "message",
    [
        {"role": "nobody", "content": "x"},
        {"role": "user", "content": "x", "toolCalls": [{"id": "A", "name": "pay"}]},
        {"role": "user", "content": "x", "toolCallId": "A"},
        {"role": "assistant", "content": "x", "stopReason": "NEVER"},
        {"role": "assistant", "toolCalls": [{"id": "A\0", "name": "pay"}]},
        {"role": "user", "content": [{"type": "image", "url": "file:///etc/passwd"}]},
        {"role": "user", "content": "x", "turnId": "t"},
        {"content": "x"},
        "x",
        None,
    ],
    ids=str,
)
async def test_what_is_no_message_is_refused_and_nothing_is_made(
    service: Service, message: object
) -> None:
    history = [{"role": "user", "content": "hello"}, message]
    refused = await service.client.post("/conversations", json={"history": history})
    unknown = await service.client.post("/conversations", json={"format": "x", "history": []})

    assert_problem(refused, 422, "payload_invalid")
    assert_problem(unknown, 422, "payload_invalid")
    assert (await service.client.get("/conversations")).json()["items"] == []


async def test_arguments_of_any_depth_are_taken_or_refused(service: Service) -> None:
    for depth in (10, 300, 900):
        arguments = json.loads('{"a":' * depth + "1" + "}" * depth)
        call = {"id": "A", "name": "pay", "arguments": arguments}
        history = [{"role": "assistant", "toolCalls": [call]}]

        answer = await service.client.post("/conversations", json={"history": history})

        assert answer.status_code == 201 or assert_problem(answer, 422, "payload_invalid")


async def test_an_import_under_a_key_is_made_once(service: Service) -> None:
    body = {"history": [{"role": "user", "content": "hello"}]}
    key = {"Idempotency-Key": "import-1"}

    made = [await service.client.post("/conversations", json=body, headers=key) for _ in range(2)]
    other = await service.client.post("/conversations", json={"history": []}, headers=key)

    assert made[0].json() == made[1].json()
    assert (made[0].json()["title"], made[1].headers["Idempotency-Replayed"]) == ("hello", "true")
    assert_problem(other, 422, "idempotency_key_reused")


async def test_a_history_of_ten_thousand_messages_is_taken_and_one_more_is_not(
    service: Service,
) -> None:
    talk = [
        {"role": "user", "content": "hello"},
        {"role": "assistant", "content": "Hello."},
    ] * 5_000
    conversation = await brought(service, talk)

    point = await point_of(service, conversation)
    one_more = await service.client.post(
        "/conversations", json={"history": [*talk, {"role": "user", "content": "and"}]}
    )
    too_large = await service.client.post(
        "/conversations", json={"history": [{"role": "user", "content": "x" * 4 * 1024 * 1024}]}
    )

    assert point["reason"] == "completed"
    assert (one_more.status_code, one_more.json()["code"]) == (422, "payload_invalid")
    assert (too_large.status_code, too_large.json()["code"]) == (413, "payload_too_large")
