"""What every answer has: an id, a rule for caches, and a problem in place of a crash."""

from typing import Any, Literal

import pytest
from starlette.types import Receive, Scope, Send

from app.http.request_context import RequestContext
from tests.http.rig import Rig, assert_problem, fresh_id, logging_as_served


@pytest.mark.parametrize("given", ["req-1", "A.b:c_9", "x" * 128])
async def test_a_callers_request_id_comes_back(rig: Rig, given: str) -> None:
    for path in ("/agents", "/nowhere", "/livez"):
        answer = await rig.client.get(path, headers={"X-Request-Id": given})

        assert answer.headers["X-Request-Id"] == given


@pytest.mark.parametrize("odd", ["", "a b", "x" * 129, "a\tb", "<script>", "ü"])
async def test_a_request_id_that_is_none_is_replaced(rig: Rig, odd: str) -> None:
    headers = [(b"X-Request-Id", odd.encode("latin-1"))]

    answer = await rig.client.get("/livez", headers=headers)

    assert answer.headers["X-Request-Id"].startswith("req_")
    assert len(answer.headers.get_list("X-Request-Id")) == 1


async def test_every_request_has_an_id_of_its_own(rig: Rig) -> None:
    ids = {(await rig.client.get("/livez")).headers["X-Request-Id"] for _ in range(3)}

    assert len(ids) == 3


async def test_no_answer_about_somebodys_turns_is_to_be_stored(
    rig: Rig, still: dict[str, Any]
) -> None:
    for path in (
        "/turns",
        f"/turns/{still['turnId']}",
        "/turns/nobody",
        "/conversations",
        f"/conversations/{still['conversationId']}",
        f"/conversations/{still['conversationId']}/messages",
        "/agents",
    ):
        answer = await rig.client.get(path)

        assert answer.headers["Cache-Control"] == "no-store", path


async def test_an_exception_that_nobody_answered_is_a_problem_without_its_words() -> None:
    async def crashing(_scope: Scope, _receive: Receive, _send: Send) -> None:
        message = "a secret of ours"
        raise ValueError(message)

    sent: list[Any] = []

    async def send(message: Any) -> None:  # noqa: ANN401 - an ASGI message
        sent.append(message)

    async def receive() -> Any:  # noqa: ANN401
        return {"type": "http.request", "body": b"", "more_body": False}

    scope: Scope = {"type": "http", "method": "GET", "path": "/x", "headers": [], "state": {}}
    await RequestContext(crashing)(scope, receive, send)

    assert sent[0]["status"] == 500
    assert b"internal_error" in sent[1]["body"]
    assert b"secret" not in sent[1]["body"]


SAID = "PRIVATE-WORDS-OF-A-USER"
KEY = "sk-PRIVATE-KEY-OF-A-PROVIDER"


@pytest.mark.parametrize("form", ["console", "json"])
async def test_the_log_tells_of_requests_and_nothing_of_what_was_said(
    rig: Rig, form: Literal["console", "json"], capsys: pytest.CaptureFixture[str]
) -> None:
    fault = {"times": 1, "status": 429, "body": {"error": {"message": f"{SAID} {KEY}"}}}
    rig.provider.script("quick", [{"text": SAID, "faults": [fault]}])
    conversation, token = fresh_id(), str(rig.client.headers["Authorization"])
    path = f"/conversations/{conversation}/messages"

    with logging_as_served(form):
        waiting = await rig.service.send(conversation, SAID, agentId="clerk")
        await rig.service.resume(waiting["turnId"], {"failureId": "stale"})
        done = await rig.service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        refused = [
            await rig.post(path, {"content": [SAID]}),
            await rig.post(path, {"content": SAID, SAID: 1}),
            await rig.client.post(
                path,
                content=f'{{"content": "{SAID}',
                headers={"Content-Type": "application/json"},
            ),
            await rig.client.get(path, headers={"Authorization": f"Bearer {KEY}"}),
        ]
    rig.provider.simulation.reset("quick")

    assert waiting["status"] == "WAITING_FOR_MODEL"
    assert done.json()["status"] == "COMPLETED"
    assert {answer.status_code for answer in refused} == {400, 401, 422}
    logged = capsys.readouterr().err
    assert path in logged
    for private in (SAID, KEY, token.removeprefix("Bearer ")):
        assert private not in logged


async def test_a_line_of_the_log_stays_one_line_whatever_the_address(
    rig: Rig, capsys: pytest.CaptureFixture[str]
) -> None:
    with logging_as_served("console"):
        await rig.client.get("/turns/a%0A2026-01-01%20forged%1B[2J")

    logged = capsys.readouterr().err
    assert "/turns/a%0A2026-01-01%20forged%1B%5B2J" in logged
    assert "\x1b[2J" not in logged


async def test_what_is_wrong_with_a_request_is_told_within_bounds(rig: Rig) -> None:
    body = {"x" * 50_000: 1} | {f"field{number}": 1 for number in range(5_000)} | {"content": "x"}

    answer = await rig.post(f"/conversations/{fresh_id()}/messages", body)

    problem = assert_problem(answer, 422, "payload_invalid")
    assert len(problem["errors"]) == 20
    assert len(answer.content) < 10_000
