"""Methods and addresses: what there is, what there is not, and what each address takes."""

import pytest

from app.entrypoints.api import routes
from app.http.auth import SIGN_IN_PATH
from tests.http.rig import PROBLEM, Rig, assert_problem

TAKEN = {
    "/conversations": "GET, POST",
    "/conversations/c": "GET, PUT, DELETE",
    "/conversations/c/messages": "GET, POST",
    "/conversations/c/events": "GET",
    "/conversations/c/turns": "POST",
    "/conversations/c/resume-point": "GET",
    "/conversations/c/resume": "POST",
    "/conversations/c/revert": "POST",
    "/conversations/c/unrevert": "POST",
    "/conversations/c/queue/m": "DELETE",
    "/turns": "GET, POST",
    "/turns/t": "GET",
    "/turns/t/run": "POST",
    "/turns/t/resume": "POST",
    "/turns/t/fork": "POST",
    "/turns/t/cancel": "POST",
    "/turns/t/pause": "POST",
    "/turns/t/failures": "GET",
    "/turns/t/interruptions": "GET",
    "/turns/t/approvals": "GET",
    "/turns/t/late-results": "GET",
    "/turns/t/events": "GET",
    "/waits": "GET",
    "/external-calls": "GET",
    "/external-calls/claim": "POST",
    "/usage": "GET",
    "/agents": "GET",
    "/livez": "GET, HEAD",
    "/readyz": "GET, HEAD",
    "/metrics": "GET",
    "/": "GET, HEAD",
    "/openapi.json": "GET, HEAD",
}
METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE")


@pytest.mark.parametrize("path", TAKEN)
async def test_an_address_names_the_methods_it_takes_to_all_others(rig: Rig, path: str) -> None:
    for method in METHODS:
        if method in TAKEN[path].split(", "):
            continue
        answer = await rig.client.request(method, path)

        assert answer.status_code == 405
        assert answer.headers["Content-Type"] == PROBLEM
        assert answer.headers["Allow"] == TAKEN[path]
        if method == "HEAD":
            assert answer.content == b""
        else:
            assert_problem(answer, 405, "method_not_allowed")


async def test_a_head_is_a_get_without_a_body_where_it_is_taken(rig: Rig) -> None:
    for path in ("/livez", "/readyz", "/"):
        answer = await rig.client.head(path)

        assert answer.status_code == 200
        assert answer.content == b""


@pytest.mark.parametrize(
    "path",
    [
        "/nowhere",
        "/turns/",
        "/turns/t/",
        "/turns/t/resume/",
        "/turns/t/nothing",
        "/turns//resume",
        "/turns/t%2Fresume/x",
        "/conversations/",
        "/conversations/c/messages/1",
        "/v1/turns",
        "/TURNS",
        "/console/../turns/x/y",
        "/%2e%2e/etc/passwd",
        "//turns",
        "/docs",
        "/redoc",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST", "DELETE"])
async def test_an_address_that_is_none_is_not_found(rig: Rig, method: str, path: str) -> None:
    answer = await rig.client.request(method, rig.service.url + path)

    assert_problem(answer, 404, "not_found")


@pytest.mark.parametrize("character", ["%00", "%0A", "%0D", "%09", "%1B", "%7F"])
async def test_no_address_has_a_control_character(rig: Rig, character: str) -> None:
    for path in (f"/turns/a{character}b", f"/turns/t/events{character}", f"/{character}"):
        assert_problem(await rig.client.get(path), 404, "not_found")


def test_every_operation_of_the_api_is_in_these_lists() -> None:
    paths = routes().openapi()["paths"]

    named = {path.format(turnId="t", conversationId="c", messageId="m") for path in paths}
    assert named - {SIGN_IN_PATH} <= set(TAKEN)
