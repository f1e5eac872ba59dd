"""Any input gets an answer below 500 that says what is wrong, and changes nothing."""

import asyncio
from collections.abc import Mapping
from typing import Any

import httpx

from app.entrypoints.api import routes
from app.http.problems import PROBLEMS
from tests.http.bad_inputs import Request, bad_requests
from tests.http.rig import PROBLEM, Rig, unchanged

_FEWEST = 300


async def ask(rig: Rig, turn: Mapping[str, Any], request: Request) -> httpx.Response:
    path = request.path.replace("{turn}", turn["turnId"])
    async with asyncio.timeout(20):  # a stream that should be refused would never end
        return await rig.client.request(
            request.method,
            rig.service.url + path.replace("{conversation}", turn["conversationId"]),
            content=request.content,
            headers=[(name.encode(), value) for name, value in request.headers],
        )


def told(request: Request, answer: httpx.Response) -> str:
    return f"{request.name}: {request.method} {request.path[:80]} -> {answer.text[:300]}"


def assert_described(paths: Mapping[str, Any], request: Request, answer: httpx.Response) -> None:
    """What an operation of the description answers is in the description."""
    template = request.path.partition("?")[0]
    template = template.replace("{turn}", "{turnId}")
    template = template.replace("{conversation}", "{conversationId}")
    operation = paths.get(template, {}).get(request.method.lower())
    if operation is not None:
        assert answer.json()["code"] in operation["x-problem-codes"], told(request, answer)


async def test_no_bad_input_is_taken_or_breaks_anything(rig: Rig, still: dict[str, Any]) -> None:
    requests = bad_requests()
    before = await rig.rows("SELECT count(*) FROM conversations")

    answers = [await ask(rig, still, request) for request in requests]

    paths: dict[str, dict[str, Any]] = routes().openapi()["paths"]
    assert len(requests) >= _FEWEST
    for request, answer in zip(requests, answers, strict=True):
        assert 400 <= answer.status_code < 500, told(request, answer)
        assert answer.headers["Content-Type"] == PROBLEM, told(request, answer)
        body = answer.json()
        assert PROBLEMS[body["code"]].status == answer.status_code == body["status"]
        assert body["detail"], told(request, answer)
        assert_described(paths, request, answer)
    assert await unchanged(rig, still)
    assert await rig.rows("SELECT count(*) FROM conversations") == before


async def test_bad_inputs_at_once_do_no_harm_either(rig: Rig, still: dict[str, Any]) -> None:
    some = bad_requests()[:60]

    answers = await asyncio.gather(*(ask(rig, still, request) for request in some))

    assert all(400 <= answer.status_code < 500 for answer in answers)
    assert await unchanged(rig, still)
