"""The simulated provider over HTTP."""

import json

import httpx
import pytest

from app.providers.http import HttpClient
from app.providers.openai_chat import OpenAiChat
from app.turn.failures import FailureType
from tests.providers.asking import (
    DEMO_TOOLS,
    a_request,
    answer_of,
    asking_for,
    assistant,
    events_of,
    failure_of,
    refusal_of,
    result,
    text_of,
    user,
)
from tests.support.provider import RunningProvider


@pytest.fixture
def http(http: HttpClient, provider: RunningProvider) -> HttpClient:
    """The client, with the provider's address in front of every path."""
    http.base_url = httpx.URL(provider.base_url.removesuffix("/v1"))
    return http


def _chat(http: HttpClient, provider: RunningProvider) -> OpenAiChat:
    return OpenAiChat(http=http, base_url=provider.base_url)


def _body(*messages: dict[str, object], **more: object) -> dict[str, object]:
    return {"model": "m", "messages": list(messages), **more}


async def test_scripts_are_set_read_and_deleted_over_http(http: HttpClient) -> None:
    script = {"rounds": [{"text": "Hi", "usage": {"prompt_tokens": 2, "completion_tokens": 1}}]}
    put = await http.put("/scripts/vendor/m", json=script)
    asked = _body(user("a"), model="vendor/m")
    answer = await http.post("/v1/chat/completions", json=asked)
    listed = await http.get("/requests/vendor/m")
    await http.delete("/scripts/vendor/m")
    emptied = await http.get("/requests/vendor/m")

    assert put.status_code == 204
    assert answer.json()["choices"][0]["message"]["content"] == "Hi"
    assert answer.json()["usage"]["prompt_tokens"] == 2
    assert listed.json() == {"items": [{"status": 200, "body": asked}]}
    assert emptied.json() == {"items": []}


async def test_models_and_liveness_are_told(http: HttpClient, provider: RunningProvider) -> None:
    provider.script("m", [{"text": "Hi"}])

    models = (await http.get("/v1/models")).json()["data"]

    assert {"demo", "m"} <= {model["id"] for model in models}
    assert (await http.get("/livez")).status_code == 200


@pytest.mark.parametrize(
    "script", [{}, {"rounds": []}, {"rounds": ["a"]}, {"rounds": [{"txt": "a"}]}, {"round": []}]
)
async def test_a_script_that_is_none_is_refused(
    http: HttpClient, script: dict[str, object]
) -> None:
    assert (await http.put("/scripts/m", json=script)).status_code == 400


async def test_a_body_that_is_no_json_is_refused(http: HttpClient) -> None:
    answer = await http.post("/v1/chat/completions", content=b"nonsense")

    assert answer.status_code == 400
    assert answer.json()["error"]["type"] == "invalid_request_error"


async def test_the_history_picks_the_round_so_a_repeated_request_gets_the_same_one(
    http: HttpClient, provider: RunningProvider
) -> None:
    provider.script("m", [{"calls": [{"name": "look"}]}, {"text": "Done."}])
    chat = _chat(http, provider)
    first = a_request(user("a"))

    asked = await answer_of(chat, first)
    (call,) = asked.tool_calls
    second = a_request(user("a"), assistant(None, call.call_id), result(call.call_id))

    assert await answer_of(chat, first) == asked
    assert [(await answer_of(chat, second)).text for _ in range(2)] == ["Done.", "Done."]


async def test_a_round_too_many_is_refused(http: HttpClient, provider: RunningProvider) -> None:
    provider.script("m", [{"text": "Only one."}])

    refusal = await refusal_of(
        _chat(http, provider), a_request(user("a"), assistant("b"), user("c"))
    )

    assert "1 rounds" in refusal.message


async def test_faults_are_used_up_in_order_and_as_often_as_they_say(
    http: HttpClient, provider: RunningProvider
) -> None:
    error = {"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}
    faults: list[object] = [{"times": 2, "status": 429, "body": error}, {"status": 503}]
    provider.script("m", [{"text": "Hi", "faults": faults}])
    chat = _chat(http, provider)

    failures = [await failure_of(chat, a_request()) for _ in range(3)]

    assert [failure.type for failure in failures] == [
        FailureType.QUOTA_EXCEEDED,
        FailureType.QUOTA_EXCEEDED,
        FailureType.UNAVAILABLE,
    ]
    assert (await answer_of(chat, a_request())).text == "Hi"
    assert [request["status"] for request in provider.requests("m")] == [429, 429, 503, 200]


async def test_a_strict_script_names_the_fault_of_a_malformed_history(
    http: HttpClient, provider: RunningProvider
) -> None:
    broken = a_request(user("a"), assistant(None, "c9"))
    provider.script("m", [{"text": "Hi"}, {"text": "Ho"}])
    refusal = await refusal_of(_chat(http, provider), broken)
    provider.script("m", [{"text": "Hi"}, {"text": "Ho"}], strict=False)
    answer = await answer_of(_chat(http, provider), broken)

    assert refusal.error_type == "invalid_request_error"
    assert "'c9'" in refusal.message
    assert answer.text == "Ho"


@pytest.mark.parametrize("at_byte", [1, 100, 250])
async def test_a_cut_sends_exactly_the_bytes_before_it(
    http: HttpClient, provider: RunningProvider, at_byte: int
) -> None:
    fault = {"cut_at_byte": at_byte}
    provider.script("m", [{"text": "Hello there", "faults": [fault]}])
    received = bytearray()

    with pytest.raises(httpx.RemoteProtocolError):
        await _read_all(http, _body(user("a"), stream=True), received)

    assert len(received) == at_byte


async def _read_all(http: HttpClient, body: object, into: bytearray) -> None:
    async with http.stream("POST", "/v1/chat/completions", json=body) as answer:
        async for piece in answer.aiter_raw():
            into += piece


async def test_a_model_without_a_script_plays_the_demo(
    http: HttpClient, provider: RunningProvider
) -> None:
    chat = _chat(http, provider)
    question = user("/outage quota\nHow does TP-4410 sell?")
    asked = await answer_of(chat, a_request(question, model="demo", tools=DEMO_TOOLS))
    history = [
        question,
        asking_for(asked),
        *(result(call.call_id, json.dumps({"count": 5})) for call in asked.tool_calls),
    ]
    second = a_request(*history, model="demo", tools=DEMO_TOOLS)

    failure = await failure_of(chat, second)
    events = await events_of(chat, second)

    assert len(asked.tool_calls) == 3
    assert failure.type is FailureType.QUOTA_EXCEEDED
    assert "5 count" in text_of(events)


async def test_the_demo_breaks_its_stream_on_request(
    http: HttpClient, provider: RunningProvider
) -> None:
    failure = await failure_of(_chat(http, provider), a_request(user("/outage cut"), model="demo"))

    assert (failure.type, failure.exception_type) == (
        FailureType.UNAVAILABLE,
        "RemoteProtocolError",
    )
