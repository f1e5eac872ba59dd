"""`POST /turns/{id}/resume` and `/cancel`: commands on one turn."""

from typing import Any

import pytest

from tests.http.rig import Rig, assert_problem, unchanged


async def test_a_retry_with_the_current_failure_id_goes_on_and_adds_no_message(rig: Rig) -> None:
    waiting = await rig.waiting()

    answer = await rig.post(
        f"/turns/{waiting['turnId']}/resume",
        {"command": "RETRY_MODEL", "failureId": waiting["failureId"]},
        Prefer="wait=20",
    )

    turn = answer.json()
    messages = await rig.client.get(f"/conversations/{waiting['conversationId']}/messages")
    assert answer.status_code == 202
    assert answer.headers["Location"] == f"/turns/{waiting['turnId']}"
    assert answer.headers["ETag"] == f'"{turn["version"]}"'
    assert answer.headers["Preference-Applied"] == "wait=20"
    assert answer.headers["Cache-Control"] == "no-store"
    assert (turn["turnId"], turn["status"]) == (waiting["turnId"], "COMPLETED")
    assert [message["role"] for message in messages.json()["items"]] == ["user", "assistant"]


async def test_case_8_a_second_press_of_retry_is_refused_and_the_model_is_called_once_for_it(
    rig: Rig,
) -> None:
    waiting = await rig.waiting()
    body: dict[str, object] = {"command": "RETRY_MODEL", "failureId": waiting["failureId"]}

    first = await rig.service.resume(waiting["turnId"], body, wait=0)
    second = await rig.service.resume(waiting["turnId"], body, wait=0)
    done = await rig.service.at_rest(waiting["turnId"])

    assert first.status_code == 202
    assert second.status_code == 409
    assert second.json()["code"] in {"turn_not_blocked", "turn_terminal"}
    assert done["counters"]["modelAttempts"] == 2


async def test_a_body_that_holds_only_the_failure_id_means_a_retry(rig: Rig) -> None:
    waiting = await rig.waiting()

    answer = await rig.service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})

    assert answer.json().get("status") == "COMPLETED", answer.text


@pytest.mark.parametrize("stale", ["another", "ü", "x" * 10_000, "a\0b", "a\nb", "'; --"])
async def test_any_other_failure_id_is_refused_with_the_current_one(
    rig: Rig, still: dict[str, Any], stale: str
) -> None:
    answer = await rig.service.resume(still["turnId"], {"failureId": stale}, wait=0)

    body = assert_problem(answer, 409, "correlation_mismatch")
    assert body["currentFailureId"] == still["failureId"]
    assert body["currentVersion"] == still["version"]
    assert body["currentStatus"] == "WAITING_FOR_MODEL"
    assert body["allowedActions"] == still["actions"]
    assert await unchanged(rig, still)


async def test_a_retry_at_the_version_seen_goes_on_and_at_another_one_is_refused(rig: Rig) -> None:
    waiting = await rig.waiting()
    path, body = f"/turns/{waiting['turnId']}/resume", {"failureId": waiting["failureId"]}

    stale = await rig.post(path, body, If_Match=f'"{waiting["version"] - 1}"')
    unchanged = await rig.service.turn(waiting["turnId"])
    current = await rig.post(path, body, If_Match=f'"{waiting["version"]}"')

    refused = assert_problem(stale, 412, "precondition_failed")
    assert refused["currentVersion"] == waiting["version"]
    assert unchanged["version"] == waiting["version"]
    assert current.status_code == 202


@pytest.mark.parametrize("tag", ["17", '"x"', '"1", "2"', '"-1"', '"' + "9" * 20 + '"', "W/"])
async def test_an_if_match_that_is_no_version_is_refused_and_never_ignored(
    rig: Rig, still: dict[str, Any], tag: str
) -> None:
    answer = await rig.post(
        f"/turns/{still['turnId']}/resume", {"failureId": still["failureId"]}, If_Match=tag
    )

    assert_problem(answer, 400, "bad_request")
    assert await unchanged(rig, still)


@pytest.mark.parametrize("tag", ["*", 'W/"{version}"'])
async def test_an_if_match_of_any_or_of_the_weak_version_is_taken(rig: Rig, tag: str) -> None:
    waiting = await rig.waiting()

    answer = await rig.post(
        f"/turns/{waiting['turnId']}/resume",
        {"failureId": waiting["failureId"]},
        If_Match=tag.format(version=waiting["version"]),
    )

    assert answer.status_code == 202


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({"command": "START"}, "RETRY_MODEL"),
        ({"command": None}, "command"),
        ({"command": ["RETRY"]}, "command"),
        ({}, "command"),
        ([], "command"),
        ("RETRY", "command"),
        ({"command": "RETRY", "failureId": "f"}, "failureId"),
        ({"failureId": "f", "message": "hi"}, "message"),
        ({"command": "RETRY_MODEL"}, "failureId"),
        ({"command": "RETRY_MODEL", "failureId": None}, "failureId"),
        ({"command": "RETRY_MODEL", "failureId": ""}, "failureId"),
        ({"failureId": ""}, "failureId"),
        ({"failureId": None}, "failureId"),
        ({"command": "RETRY_MODEL", "failureId": 7}, "failureId"),
    ],
)
async def test_a_body_that_is_no_command_is_refused_and_says_what_is_wrong(
    rig: Rig, still: dict[str, Any], body: object, said: str
) -> None:
    answer = await rig.post(f"/turns/{still['turnId']}/resume", body)

    assert said in assert_problem(answer, 422, "payload_invalid")["detail"]
    assert await unchanged(rig, still)


async def test_case_37_a_scheduled_retry_waits_for_its_time_unless_it_is_continued(
    rig: Rig,
) -> None:
    scheduled = await rig.scheduled()
    path = f"/turns/{scheduled['turnId']}/resume"

    early = await rig.post(path, {"command": "RETRY"})
    wrong = await rig.post(path, {"failureId": scheduled["failureId"]})
    now = await rig.post(path, {"command": "CONTINUE"}, Prefer="wait=20")

    refused = assert_problem(early, 409, "retry_not_due")
    assert refused["retryAt"] is not None
    assert refused["currentVersion"] == scheduled["version"]
    assert refused["allowedActions"] == scheduled["actions"]
    assert_problem(wrong, 409, "wrong_command")
    assert scheduled["status"] == "RETRY_SCHEDULED"
    assert now.json()["status"] == "COMPLETED"


async def test_case_20_a_scheduled_retry_takes_no_retry_model(rig: Rig) -> None:
    scheduled = await rig.scheduled()
    before = await rig.service.turn(scheduled["turnId"])

    answers = [
        await rig.service.resume(scheduled["turnId"], {"failureId": failure_id}, wait=0)
        for failure_id in (scheduled["failureId"], "another")
    ]

    for answer in answers:
        assert_problem(answer, 409, "wrong_command")
    assert await unchanged(rig, before)


@pytest.mark.parametrize(
    "body", [{"failureId": "f"}, {"command": "RETRY"}, {"command": "CONTINUE"}]
)
async def test_no_command_fits_a_turn_that_has_ended(rig: Rig, body: dict[str, object]) -> None:
    ended = await rig.completed()

    answer = await rig.post(f"/turns/{ended['turnId']}/resume", body)

    assert assert_problem(answer, 409, "turn_terminal")["allowedActions"] == []


async def test_a_turn_at_work_takes_no_command_but_cancel(rig: Rig) -> None:
    running = await rig.running()

    answer = await rig.post(f"/turns/{running['turnId']}/resume", {"failureId": "f"})

    assert_problem(answer, 409, "turn_not_blocked")


async def test_case_126_a_waiting_turn_is_cancelled_at_once_and_once(rig: Rig) -> None:
    waiting = await rig.waiting()
    path = f"/turns/{waiting['turnId']}/cancel"

    first = await rig.post(path)
    second = await rig.post(path)

    assert (first.status_code, second.status_code) == (200, 200)
    assert first.json()["status"] == "CANCELLED"
    assert first.headers["ETag"] == second.headers["ETag"] == f'"{first.json()["version"]}"'
    assert first.headers["Location"] == f"/turns/{waiting['turnId']}"
    assert second.json() == first.json()


async def test_a_turn_at_work_is_cancelled_as_soon_as_it_can_be(rig: Rig) -> None:
    running = await rig.running()
    path = f"/turns/{running['turnId']}"

    asked = await rig.post(f"{path}/cancel")
    events = await rig.client.get(f"{path}/events")

    assert asked.status_code in {200, 202}
    assert asked.json()["cancelRequested"] or asked.json()["status"] == "CANCELLED"
    assert "event: TURN_CANCELLED" in events.text
    assert (await rig.service.turn(running["turnId"]))["status"] == "CANCELLED"


async def test_case_126_a_turn_that_ended_otherwise_cannot_be_cancelled(rig: Rig) -> None:
    ended = await rig.completed()

    answer = await rig.post(f"/turns/{ended['turnId']}/cancel")

    assert_problem(answer, 409, "turn_terminal")
    assert (await rig.service.turn(ended["turnId"]))["version"] == ended["version"]


async def test_a_cancel_at_another_version_is_refused(rig: Rig, still: dict[str, Any]) -> None:
    answer = await rig.post(f"/turns/{still['turnId']}/cancel", If_Match='"1"')

    assert_problem(answer, 412, "precondition_failed")
    assert await unchanged(rig, still)


@pytest.mark.parametrize("verb", ["resume", "cancel"])
async def test_commands_on_a_turn_that_is_not_there_are_not_found(rig: Rig, verb: str) -> None:
    answer = await rig.post(f"/turns/turn_nobody/{verb}", {"failureId": "f"})

    assert_problem(answer, 404, "turn_not_found")


async def test_a_resume_with_accept_event_stream_answers_with_what_it_brings(rig: Rig) -> None:
    waiting = await rig.waiting()

    answer = await rig.post(
        f"/turns/{waiting['turnId']}/resume",
        {"failureId": waiting["failureId"]},
        Accept="text/event-stream",
    )

    assert answer.status_code == 200
    assert answer.headers["Content-Type"].startswith("text/event-stream")
    assert answer.headers["ETag"].startswith('"')
    events = [line for line in answer.text.splitlines() if line.startswith(("id:", "event:"))]
    assert events[:2] == [f"id: {waiting['version'] + 1}", "event: TURN_RESUMED"]
    assert events[-1] == "event: TURN_COMPLETED"


@pytest.mark.parametrize(
    "body",
    [
        {"command": "CONTINUE", "messages": []},
        {"failureId": "f", "messages": [{"content": "hi"}]},
        {"command": "REPLAN_WITH_MESSAGE", "message": {"content": "hi"}, "messages": None},
    ],
    ids=["a command", "a retry in short", "beside the one message"],
)
async def test_a_resume_takes_no_messages(
    rig: Rig, still: dict[str, Any], body: dict[str, object]
) -> None:
    answer = await rig.post(f"/turns/{still['turnId']}/resume", body)

    assert_problem(answer, 422, "messages_not_allowed")
    assert await unchanged(rig, still)
