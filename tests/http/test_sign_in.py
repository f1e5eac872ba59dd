"""Who is asking: the token, the one-time code, and the cookie it becomes."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

import httpx
import pytest

from app.entrypoints.api import create_app
from app.http.auth import COOKIE, Authenticator
from app.services.principal import Principal, Role
from app.turn.ids import ActorId, TenantId
from tests.http.rig import Rig, assert_problem, fresh_id, running_rig, unchanged
from tests.support.service import TOKEN

OPERATIONS = [
    ("GET", "/conversations"),
    ("POST", "/conversations"),
    ("GET", "/conversations/c"),
    ("PUT", "/conversations/c"),
    ("GET", "/conversations/c/messages"),
    ("POST", "/conversations/c/messages"),
    ("GET", "/turns"),
    ("GET", "/turns/t"),
    ("GET", "/turns/t/events"),
    ("POST", "/turns/t/resume"),
    ("POST", "/turns/t/cancel"),
    ("GET", "/agents"),
    ("GET", "/metrics"),
]
BAD_TOKENS = [
    "Bearer",
    "Bearer wrong",
    f"Bearer {TOKEN}x",
    f"Bearer x{TOKEN}",
    f"Bearer {TOKEN[:-1]}",
    f"Bearer {TOKEN.upper()}",
    f"Basic {TOKEN}",
    f"Token {TOKEN}",
    TOKEN,
    f"Bearer: {TOKEN}",
    f"Bearer {TOKEN} {TOKEN}",
    f"Bearer {TOKEN}, Bearer {TOKEN}",
    "Bearer \xfc\xff",
    "Bearer " + "x" * 4_000,
    "Bearer null",
    "",
]


@asynccontextmanager
async def browser(rig: Rig, cookie: str | None = None) -> AsyncGenerator[httpx.AsyncClient]:
    """A client that has no token, and perhaps a session."""
    headers = {} if cookie is None else {"Cookie": f"{COOKIE}={cookie}"}
    async with httpx.AsyncClient(
        base_url=rig.service.url, headers=headers, trust_env=False
    ) as client:
        yield client


async def signed_in(rig: Rig) -> str:
    """The cookie of somebody who used a fresh code."""
    code = rig.service.runtime.login_codes.issue()
    async with browser(rig) as client:
        answer = await client.post("/console/login", json={"code": code})
        assert answer.status_code == 204
        return answer.cookies[COOKIE]


@pytest.mark.parametrize(("method", "path"), OPERATIONS)
async def test_nothing_is_told_to_nobody(rig: Rig, method: str, path: str) -> None:
    async with browser(rig) as client:
        answer = await client.request(method, path, json={} if method == "POST" else None)

    assert_problem(answer, 401, "unauthenticated")
    assert answer.headers["WWW-Authenticate"] == "Bearer"


@pytest.mark.parametrize("authorization", BAD_TOKENS, ids=range(len(BAD_TOKENS)))
async def test_a_wrong_token_is_no_token(rig: Rig, authorization: str) -> None:
    header = [(b"Authorization", authorization.encode("latin-1"))]

    async with browser(rig) as client:
        read = await client.get("/agents", headers=header)
        command = await client.post("/conversations", headers=header)

    for answer in (read, command):
        assert_problem(answer, 401, "unauthenticated")
        assert TOKEN not in answer.text


async def test_a_wrong_token_is_not_made_good_by_a_session(rig: Rig) -> None:
    async with browser(rig, await signed_in(rig)) as client:
        answer = await client.get("/agents", headers={"Authorization": "Bearer wrong"})

    assert_problem(answer, 401, "unauthenticated")


@pytest.mark.parametrize("path", ["/livez", "/readyz", "/openapi.json", "/"])
async def test_health_and_description_and_page_need_no_sign_in(rig: Rig, path: str) -> None:
    async with browser(rig) as client:
        answer = await client.get(path)

    assert answer.status_code == 200


async def test_a_code_is_good_once(rig: Rig) -> None:
    code = rig.service.runtime.login_codes.issue()

    async with browser(rig) as client:
        first = await client.post("/console/login", json={"code": code})
        client.cookies.clear()
        second = await client.post("/console/login", json={"code": code})

    assert first.status_code == 204
    assert_problem(second, 401, "login_code_invalid")
    assert COOKIE not in second.cookies


async def test_the_printed_address_may_be_opened_again_by_who_is_signed_in(rig: Rig) -> None:
    cookie = await signed_in(rig)
    async with browser(rig, cookie) as client:
        answer = await client.post("/console/login", json={"code": "used-before"})
        found = await client.get("/agents")

    assert (answer.status_code, answer.content) == (204, b"")
    assert "Set-Cookie" not in answer.headers
    assert found.status_code == 200


@pytest.mark.parametrize("cookie", ["", "x", "ImRlZmF1bHQi.aaaaaa.x"])
async def test_a_used_code_with_a_cookie_of_nobody_is_refused(rig: Rig, cookie: str) -> None:
    async with browser(rig, cookie) as client:
        answer = await client.post("/console/login", json={"code": "used-before"})

    assert_problem(answer, 401, "login_code_invalid")
    assert "Set-Cookie" not in answer.headers


async def test_a_token_is_no_session_that_makes_a_used_code_good(rig: Rig) -> None:
    answer = await rig.post("/console/login", {"code": "used-before"})

    assert_problem(answer, 401, "login_code_invalid")


@pytest.mark.parametrize(
    "body", [{}, {"code": ""}, {"code": 5}, {"code": "x", "role": "admin"}, []]
)
async def test_a_sign_in_that_cannot_be_is_refused(rig: Rig, body: object) -> None:
    async with browser(rig) as client:
        answer = await client.post("/console/login", json=body)

    assert_problem(answer, 422, "payload_invalid")


@pytest.mark.parametrize(
    ("content", "kind", "status", "code"),
    [
        (b"{", "application/json", 400, "bad_request"),
        (b"\xff", "application/json", 400, "bad_request"),
        (b"code=x", "application/x-www-form-urlencoded", 415, "unsupported_media_type"),
        (b"x" * 1_100_000, "application/json", 413, "payload_too_large"),
    ],
)
async def test_nobody_may_send_anything_as_a_sign_in(
    rig: Rig, content: bytes, kind: str, status: int, code: str
) -> None:
    async with browser(rig) as client:
        answer = await client.post(
            "/console/login", content=content, headers={"Content-Type": kind}
        )

    assert_problem(answer, status, code)


async def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites(rig: Rig) -> None:
    code = rig.service.runtime.login_codes.issue()
    async with browser(rig) as client:
        answer = await client.post("/console/login", json={"code": code})

    [morsel] = SimpleCookie(answer.headers["Set-Cookie"]).values()
    assert morsel.key == COOKIE
    assert morsel["httponly"] is True
    assert morsel["samesite"].lower() == "strict"
    assert morsel["path"] == "/"
    assert int(morsel["max-age"]) == 30 * 24 * 3600
    assert not morsel["domain"]
    assert TOKEN not in answer.headers["Set-Cookie"]
    assert answer.headers["Cache-Control"] == "no-store"


async def test_over_https_the_cookie_never_travels_in_the_clear(rig: Rig) -> None:
    code = rig.service.runtime.login_codes.issue()
    transport = httpx.ASGITransport(app=create_app(rig.service.runtime))
    async with httpx.AsyncClient(transport=transport, base_url="https://turnkeeper") as client:
        answer = await client.post("/console/login", json={"code": code})

    assert "; Secure" in answer.headers["Set-Cookie"]


async def test_the_cookie_and_the_token_are_one_actor(rig: Rig) -> None:
    conversation = fresh_id()
    async with browser(rig, await signed_in(rig)) as client:
        made = await client.put(f"/conversations/{conversation}")
        found = await client.get("/conversations?limit=1")

    assert made.status_code == 201
    assert found.json() == (await rig.client.get("/conversations?limit=1")).json()
    [row] = await rig.rows(
        "SELECT tenant_id, actor_id FROM audit WHERE conversation_id = $1", conversation
    )
    assert row == {"tenant_id": "default", "actor_id": "default"}


async def test_the_cookie_is_good_for_another_process_with_the_token(
    database_dsn: str, tmp_path: Path
) -> None:
    async with running_rig(database_dsn, tmp_path) as before:
        cookie = await signed_in(before)
        async with browser(before, cookie) as client:
            turn = await client.post("/conversations", json={"title": "kept"})
    async with running_rig(database_dsn, tmp_path) as after, browser(after, cookie) as client:
        found = await client.get(turn.headers["Location"])

    assert found.json() == turn.json()


async def test_another_token_ends_the_sessions_of_the_one_before(rig: Rig) -> None:
    cookie = await signed_in(rig)
    principal = Principal(
        tenant_id=TenantId("default"), actor_id=ActorId("default"), role=Role.OPERATOR
    )

    assert Authenticator(TOKEN, principal).by_cookie(cookie) == principal
    assert Authenticator("another-token-altogether", principal).by_cookie(cookie) is None
    assert Authenticator(TOKEN, replace(principal, actor_id=ActorId("x"))).by_cookie(cookie) is None


@pytest.mark.parametrize("odd", ["", "x", "a.b.c", "ImRlZmF1bHQi.aaaaaa.x", '"', "x" * 4_000])
async def test_a_cookie_that_is_none_of_ours_is_nobody(rig: Rig, odd: str) -> None:
    async with browser(rig, odd) as client:
        answer = await client.get("/agents")

    assert_problem(answer, 401, "unauthenticated")


async def test_a_cookie_that_was_changed_is_nobody(rig: Rig) -> None:
    cookie = await signed_in(rig)
    changed = [
        cookie[:at] + ("A" if cookie[at] != "A" else "B") + cookie[at + 1 :] for at in range(6)
    ]

    for each in changed:
        async with browser(rig, each) as client:
            assert_problem(await client.get("/agents"), 401, "unauthenticated")


@pytest.mark.parametrize(
    "origin",
    [
        "null",
        "",
        "https://elsewhere.example",
        "http://127.0.0.1",
        "http://127.0.0.1:1",
        "http://[",
        "{url}.elsewhere.example",
        "elsewhere",
    ],
)
async def test_a_command_from_another_sites_page_is_refused(
    rig: Rig, still: dict[str, Any], origin: str
) -> None:
    request = fresh_id()
    headers = {"Origin": origin.format(url=rig.service.url), "X-Request-Id": request}
    async with browser(rig, await signed_in(rig)) as client:
        answer = await client.post(
            f"/turns/{still['turnId']}/resume",
            json={"failureId": still["failureId"]},
            headers=headers,
        )

    assert_problem(answer, 403, "cross_site")
    assert await unchanged(rig, still)
    found = await rig.rows("SELECT outcome, code FROM audit WHERE request_id = $1", request)
    assert found == [{"outcome": "refused", "code": "cross_site"}]


async def test_a_command_of_our_own_page_is_taken(rig: Rig) -> None:
    async with browser(rig, await signed_in(rig)) as client:
        answer = await client.post("/conversations", headers={"Origin": rig.service.url})

    assert answer.status_code == 201


async def test_a_token_is_not_sent_by_browsers_on_their_own_so_its_origin_is_no_matter(
    rig: Rig,
) -> None:
    answer = await rig.post("/conversations", Origin="https://elsewhere.example")

    assert answer.status_code == 201
