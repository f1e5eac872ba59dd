"""Retrying a model call over HTTP: which failure is current, and what a retry leaves alone."""

from typing import Any

import pytest

from tests.e2e.conftest import Stage
from tests.http.rig import assert_problem
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.service import Service, running_service
from tests.support.story import MODEL, QUOTA, clerk

TEN_CALLS = [
    {"id": f"C{n}", "name": "pay", "arguments": f'{{"amount": {n}}}'} for n in range(1, 11)
]


def service_of(stage: Stage, *rounds: dict[str, object]) -> Any:  # noqa: ANN401 - a service, entered
    stage.provider.script(MODEL, rounds)
    return running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)])


def failing(times: int, text: str = "Done.") -> dict[str, object]:
    return {"text": text, "faults": [QUOTA | {"times": times}]}


async def waiting(service: Service) -> dict[str, Any]:
    turn = await service.send("ses_1", "Pay it.", agentId="clerk")
    assert turn["status"] == "WAITING_FOR_MODEL"
    return turn


async def roles(service: Service) -> list[str]:
    said = await service.client.get("/conversations/ses_1/messages")
    return [item["role"] for item in said.json()["items"]]


async def test_case_8_a_second_press_of_retry_calls_no_model(stage: Stage) -> None:
    faults = [QUOTA, {"times": 9, "hang": True}]
    async with service_of(stage, {"text": "never", "faults": faults}) as service:
        turn = await waiting(service)
        retry: dict[str, object] = {"command": "RETRY_MODEL", "failureId": turn["failureId"]}
        first = await service.resume(turn["turnId"], retry, wait=0)
        await eventually(lambda: was_asked(stage, times=2))
        before = await service.turn(turn["turnId"])
        second = await service.resume(turn["turnId"], retry, wait=0)
        after = await service.turn(turn["turnId"])
        await service.client.post(f"/turns/{turn['turnId']}/cancel")
        await service.at_rest(turn["turnId"])

    assert first.status_code == 202
    assert_problem(second, 409, "turn_not_blocked")
    assert after == before
    assert await was_asked(stage, times=2)


async def was_asked(stage: Stage, *, times: int) -> bool:
    return len(stage.provider.requests(MODEL)) == times


async def test_case_14_an_earlier_failure_cannot_be_retried_any_more(stage: Stage) -> None:
    async with service_of(stage, failing(2)) as service:
        first = await waiting(service)
        answer = await service.resume(first["turnId"], {"failureId": first["failureId"]})
        second = await service.turn(first["turnId"])
        stale = await service.resume(first["turnId"], {"failureId": first["failureId"]}, wait=0)
        unchanged = await service.turn(first["turnId"])

    assert answer.json()["status"] == "WAITING_FOR_MODEL"
    refused = assert_problem(stale, 409, "correlation_mismatch")
    assert refused["currentFailureId"] == second["failureId"] != first["failureId"]
    assert unchanged == second


async def test_case_16_a_retry_that_fails_again_waits_for_a_new_failure(stage: Stage) -> None:
    async with service_of(stage, failing(2)) as service:
        first = await waiting(service)
        again = await service.resume(first["turnId"], {"failureId": first["failureId"]})
        history = await service.client.get(f"/turns/{first['turnId']}/failures")

    second = again.json()
    assert second["status"] == "WAITING_FOR_MODEL"
    assert second["failureId"] not in (None, first["failureId"])
    assert second["counters"]["modelFailures"] == 2
    assert [failure["failureId"] for failure in history.json()["items"]] == [
        first["failureId"],
        second["failureId"],
    ]


async def test_case_17_a_retry_after_ten_tools_sends_ten_results_and_runs_none_again(
    stage: Stage,
) -> None:
    async with service_of(stage, {"calls": TEN_CALLS}, failing(1)) as service:
        turn = await waiting(service)
        done = await service.resume(turn["turnId"], {"failureId": turn["failureId"]})
        said = await roles(service)

    assert done.json()["status"] == "COMPLETED"
    request: Any = stage.provider.requests(MODEL)[-1]
    sent = [m["content"] for m in request["body"]["messages"] if m["role"] == "tool"]
    assert sent == [f"paid {n}" for n in range(1, 11)]
    assert stage.ledger.tools() == ["pay"] * 10
    assert said == ["user", "assistant", *["tool"] * 10, "assistant"]
    await check_everything(stage.dsn, stage.ledger)


async def test_case_18_a_message_goes_on_behind_the_results_and_the_failure_is_history(
    stage: Stage,
) -> None:
    async with service_of(stage, {"calls": TEN_CALLS}, failing(1)) as service:
        turn = await waiting(service)
        done = await service.send("ses_1", "Are you there?")
        said = await roles(service)
        history = await service.client.get(f"/turns/{turn['turnId']}/failures")

    assert (done["turnId"], done["status"]) == (turn["turnId"], "COMPLETED")
    assert (done["failureId"], done["suspension"]) == (None, None)
    assert said == ["user", "assistant", *["tool"] * 10, "user", "assistant"]
    assert [failure["failureId"] for failure in history.json()["items"]] == [turn["failureId"]]


@pytest.mark.parametrize("command", ["RETRY", "CONTINUE", "RESUME"])
async def test_case_19_a_turn_that_waits_for_its_model_takes_no_other_command(
    stage: Stage, command: str
) -> None:
    async with service_of(stage, failing(1)) as service:
        turn = await waiting(service)
        answer = await service.resume(turn["turnId"], {"command": command}, wait=0)
        unchanged = await service.turn(turn["turnId"])

    assert_problem(answer, 409, "wrong_command")
    assert unchanged == {name: turn[name] for name in unchanged}
