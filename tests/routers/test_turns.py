"""`/turns`: the turn resource, and lists of turns."""

import base64
from datetime import datetime
from typing import Any

import orjson
import pytest

from tests.http.rig import Rig, assert_problem, fresh_id, outage, unchanged
from tests.routers.test_conversations import page_of

FIELDS = {
    "turnId",
    "conversationId",
    "agentId",
    "agentVersion",
    "status",
    "cursor",
    "version",
    "suspension",
    "waits",
    "pause",
    "stoppedBy",
    "failureId",
    "failureType",
    "retryAfterMillis",
    "retryAt",
    "message",
    "actions",
    "cancelRequested",
    "pauseRequested",
    "held",
    "finalOutput",
    "output",
    "stopReason",
    "usage",
    "counters",
    "queue",
    "resumesTurnId",
    "createdAt",
    "updatedAt",
}
COUNTERS = {
    "steps",
    "modelAttempts",
    "modelSuccesses",
    "modelFailures",
    "retries",
    "consecutiveRetries",
    "toolCalls",
}
FAILURE = {
    "failureId",
    "type",
    "exceptionType",
    "message",
    "httpStatus",
    "errorCode",
    "errorType",
    "retryAfterMillis",
    "tokenLimitPhase",
    "modelAttempt",
    "occurredAt",
    "provider",
    "model",
    "errorRef",
}


async def test_a_turn_has_every_field_in_every_state(rig: Rig) -> None:
    for turn in (
        await rig.completed(),
        await rig.waiting(),
        await rig.scheduled(),
        await rig.failed(),
        await rig.running(),
    ):
        found = await rig.client.get(f"/turns/{turn['turnId']}")

        assert set(found.json()) == FIELDS
        assert set(turn) == FIELDS | {"messageId", "eventsUrl"}
        assert set(found.json()["counters"]) == COUNTERS
        assert set(found.json()["usage"]) == {
            "inputTokens",
            "cachedInputTokens",
            "outputTokens",
        }
        assert found.headers["ETag"] == f'"{found.json()["version"]}"'
        assert found.headers["Cache-Control"] == "no-store"
        assert found.headers["Content-Type"] == "application/json"
        for instant in ("createdAt", "updatedAt"):
            assert datetime.fromisoformat(found.json()[instant]).tzinfo is not None


async def test_a_completed_turn_says_what_came_of_it(rig: Rig) -> None:
    turn = await rig.completed()

    assert turn["status"] == "COMPLETED"
    assert turn["cursor"] == "FINISHED"
    assert turn["stopReason"] == "END_TURN"
    assert turn["finalOutput"].startswith("Hello.")
    assert turn["actions"] == turn["waits"] == []
    assert turn["suspension"] is turn["failureId"] is turn["message"] is turn["retryAt"] is None


async def test_a_waiting_turn_says_why_it_waits_and_what_may_be_done(rig: Rig) -> None:
    turn = await rig.waiting()

    suspension = turn["suspension"]
    assert turn["status"] == "WAITING_FOR_MODEL"
    assert turn["cursor"] == "INVOKE_MODEL"
    assert turn["waits"] == [suspension]
    assert suspension["suspensionType"] == "MODEL"
    assert suspension["correlationId"] == turn["failureId"]
    assert set(suspension["modelFailure"]) == FAILURE
    assert suspension["modelFailure"]["failureId"] == turn["failureId"]
    assert suspension["modelFailure"]["httpStatus"] == 429
    assert turn["failureType"] == suspension["modelFailure"]["type"] == "QUOTA_EXCEEDED"
    assert turn["actions"] == [
        {
            "command": "RETRY_MODEL",
            "enabled": True,
            "failureId": turn["failureId"],
            "reason": "after_top_up",
            "message": "A retry will probably be refused again until the allowance is raised.",
            "helps": ["top_up", "other_model"],
            "changes": ["model", "limits"],
        },
        {"command": "MESSAGE", "enabled": True},
        {"command": "REPLAN_WITH_MESSAGE", "enabled": True},
        {"command": "CANCEL", "enabled": True},
    ]
    assert turn["counters"]["modelFailures"] == 1


async def test_a_stated_wait_is_told_in_milliseconds_and_as_a_time(rig: Rig) -> None:
    turn = await rig.service.send(fresh_id(), outage("rate"), agentId="clerk")

    assert turn["failureType"] == "RATE_LIMITED"
    assert turn["retryAfterMillis"] == 20_000
    occurred = datetime.fromisoformat(turn["suspension"]["modelFailure"]["occurredAt"])
    waited = datetime.fromisoformat(turn["retryAt"]) - occurred
    assert waited.total_seconds() == 20


async def test_a_refusal_tells_the_same_time(rig: Rig) -> None:
    turn = await rig.service.send(fresh_id(), outage("rate"), agentId="clerk")

    answer = await rig.post(f"/turns/{turn['turnId']}/resume", {"command": "RETRY"})

    at = assert_problem(answer, 409, "wrong_command")["retryAt"]
    assert datetime.fromisoformat(at) == datetime.fromisoformat(turn["retryAt"])


async def test_a_scheduled_turn_says_when_it_goes_on(rig: Rig) -> None:
    turn = await rig.scheduled()

    assert turn["suspension"]["suspensionType"] == "RETRY"
    assert turn["suspension"]["nextRunnableAt"] == turn["retryAt"] is not None
    enabled = {action["command"]: action["enabled"] for action in turn["actions"]}
    assert enabled == {
        "CONTINUE": True,
        "RETRY": False,
        "MESSAGE": True,
        "REPLAN_WITH_MESSAGE": True,
        "PAUSE": True,
        "CANCEL": True,
    }
    assert turn["actions"][1]["reason"] == "not_due"


async def test_a_failed_turn_says_so_in_safe_words(rig: Rig) -> None:
    turn = await rig.failed()

    assert turn["status"] == "FAILED"
    assert turn["message"] == "The model does not take this request. Change it and send it again."
    assert turn["actions"] == []


async def test_turns_are_found_by_status_and_by_conversation(rig: Rig) -> None:
    conversation = fresh_id()
    first = await rig.completed(conversation)
    second = await rig.waiting(conversation)

    async def found(**asked: str | list[str]) -> list[str]:
        params = {"conversationId": conversation, **asked}
        answer = await rig.client.get("/turns", params=params)
        return [item["turnId"] for item in answer.json()["items"]]

    assert await found() == [second["turnId"], first["turnId"]]
    assert await found(status="COMPLETED") == [first["turnId"]]
    assert await found(status=["WAITING_FOR_MODEL", "COMPLETED"]) == await found()
    assert await found(status="FAILED") == []
    assert await found(conversationId=fresh_id()) == []


async def test_a_list_holds_turns_as_they_are_read_one_by_one(
    rig: Rig, still: dict[str, Any]
) -> None:
    answer = await rig.client.get("/turns", params={"conversationId": still["conversationId"]})

    assert answer.json() == {"items": [still], "nextCursor": None}


async def test_pages_have_no_gap_and_no_repeat_while_turns_are_added(rig: Rig) -> None:
    conversation = fresh_id()
    made = [(await rig.completed(conversation))["turnId"] for _ in range(4)]
    seen: list[str] = []
    cursor: str | None = None

    for _ in range(2):
        page = await page_of(
            rig.client, "/turns", limit=2, cursor=cursor, conversationId=conversation
        )
        seen += [item["turnId"] for item in page["items"]]
        cursor = page["nextCursor"]
        await rig.completed(conversation)

    assert seen == made[::-1]
    assert cursor is not None
    rest = await page_of(rig.client, "/turns", limit=2, cursor=cursor, conversationId=conversation)
    assert rest["items"] == []


def _cursor(*place: object) -> str:
    return base64.urlsafe_b64encode(orjson.dumps(place)).decode().rstrip("=")


ODD_CURSORS = [
    "x",
    "%00",
    "ü",
    "W10",
    "." * 400,
    _cursor("2026-01-01", "x"),
    _cursor("2026-01-01T00:00:00Z", "a\0b"),
    _cursor("2026-01-01T00:00:00Z", ["x"]),
    _cursor("0001-01-01T00:00:00+14:00", "x"),
    _cursor("9999-12-31T23:59:59-14:00", "x"),
    _cursor(5, "x"),
    _cursor("2026-01-01T00:00:00Z", "x", "y"),
]


@pytest.mark.parametrize("cursor", ODD_CURSORS, ids=range(len(ODD_CURSORS)))
@pytest.mark.parametrize("path", ["/turns", "/conversations"])
async def test_a_cursor_of_somebody_elses_is_refused(rig: Rig, path: str, cursor: str) -> None:
    answer = await rig.client.get(path, params={"cursor": cursor})

    assert_problem(answer, 400, "cursor_invalid")


@pytest.mark.parametrize(
    "query",
    [
        "limit=0",
        "limit=201",
        "limit=-1",
        "limit=x",
        "limit=1e3",
        "limit=99999999999999999999999",
        "limit=",
        "status=BLOCKED",
        "status=completed",
        "status=",
        "conversationId=%00",
        "conversationId=a%20b",
        "conversationId=",
        f"conversationId={'x' * 129}",
        f"cursor={'x' * 401}",
    ],
)
async def test_a_filter_that_cannot_be_is_refused(rig: Rig, query: str) -> None:
    answer = await rig.client.get(f"/turns?{query}")

    assert_problem(answer, 422, "payload_invalid")


@pytest.mark.parametrize("cursor", ["-1", "1.5", "x", "٣", "9999999999", " 1"])
async def test_a_transcripts_cursor_is_a_position(
    rig: Rig, still: dict[str, Any], cursor: str
) -> None:
    path = f"/conversations/{still['conversationId']}/messages"

    answer = await rig.client.get(path, params={"cursor": cursor})

    assert_problem(answer, 400, "cursor_invalid")


@pytest.mark.parametrize(
    "odd", ["turn_x", "x" * 4_000, "%F0%9D%84%9E", "%FF%FE", "'%20OR%201=1", "%25", "null"]
)
async def test_a_turn_of_any_id_that_is_none_is_not_found(rig: Rig, odd: str) -> None:
    answer = await rig.client.get(f"/turns/{odd}")

    assert_problem(answer, 404, "turn_not_found")


async def test_reading_changes_nothing(rig: Rig, still: dict[str, Any]) -> None:
    for _ in range(3):
        await rig.client.get(f"/turns/{still['turnId']}")
        await rig.client.get(f"/turns/{still['turnId']}", headers={"If-Match": '"1"'})

    assert await unchanged(rig, still)
