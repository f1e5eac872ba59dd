"""The client of the OpenAI-compatible wire, against real sockets."""

import json
from dataclasses import replace

import httpx
import pytest

from app.ports import ModelRequest, TextDelta
from app.providers.http import HttpClient, Timeouts, address_of, new_client, post
from app.providers.openai_chat import OpenAiChat
from app.turn.agent import ToolSpec
from app.turn.transcript import ModelAnswer, StopReason, Usage
from tests.providers.asking import (
    a_request,
    answer_of,
    assistant,
    events_of,
    result,
    text_of,
    user,
)
from tests.providers.raw_server import sending, whole
from tests.support.provider import RunningProvider

QUICK = Timeouts(connect_seconds=2, first_byte_seconds=0.05, idle_seconds=0.05, total_seconds=5)
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def _chat(http: HttpClient, base_url: str, timeouts: Timeouts | None = None) -> OpenAiChat:
    return OpenAiChat(http=http, base_url=base_url, api_key="k", timeouts=timeouts or Timeouts())


def _body(request: ModelRequest, **fields: object) -> bytes:
    chat = OpenAiChat(http=new_client(), base_url="https://x.test/v1", extra_body=fields)
    return chat.request_body(request)


# --- What is sent --------------------------------------------------------------------------------


def test_stored_messages_go_into_the_request_as_the_text_they_are() -> None:
    stored = '{ "role":"user",  "content":"caf\\u00e9 \u2028" }'
    request = a_request()
    body = _body(
        type(request)(
            model="m", instructions="Be kind.", messages=[stored, stored], tools=(), attempt=1
        )
    )

    assert body.count(stored.encode()) == 2
    assert [message["role"] for message in json.loads(body)["messages"]] == [
        "system",
        "user",
        "user",
    ]


def test_a_request_streams_with_usage_and_names_its_tools() -> None:
    look = ToolSpec(name="look", description='Looks "up".', parameters='{"type": "object"}')
    body = json.loads(_body(a_request(tools=[look])))

    assert body["model"] == "m"
    assert body["stream"] is True
    assert body["stream_options"] == {"include_usage": True}
    assert body["tools"] == [
        {
            "type": "function",
            "function": {
                "name": "look",
                "description": 'Looks "up".',
                "parameters": {"type": "object"},
            },
        }
    ]


def test_without_instructions_or_tools_nothing_is_said_of_them() -> None:
    body = json.loads(_body(a_request(user("hello"))))

    assert body["messages"] == [user("hello")]
    assert "tools" not in body


def test_fields_of_the_provider_go_over_the_defaults_and_null_leaves_one_out() -> None:
    body = json.loads(_body(a_request(), max_tokens=9, stream_options=None))

    assert body["max_tokens"] == 9
    assert "stream_options" not in body


async def test_the_key_goes_out_as_a_bearer_token_and_a_query_stays_at_the_end() -> None:
    seen: list[httpx.Request] = []

    def serve(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, content=CHUNK + END)

    async with new_client(transport=httpx.MockTransport(serve)) as http:
        await answer_of(_chat(http, "https://models.test/v1/?api-version=3"), a_request())

    assert str(seen[0].url) == "https://models.test/v1/chat/completions?api-version=3"
    assert seen[0].headers["authorization"] == "Bearer k"


async def test_without_a_key_no_authorization_is_sent() -> None:
    seen: list[httpx.Request] = []

    def serve(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(200, content=CHUNK + END)

    async with new_client(transport=httpx.MockTransport(serve)) as http:
        await answer_of(OpenAiChat(http=http, base_url="https://models.test/v1"), a_request())

    assert "authorization" not in seen[0].headers


def test_the_key_is_not_in_the_representation_of_a_client() -> None:
    client = OpenAiChat(http=new_client(), base_url="u", api_key="sk-secret")

    assert "sk-secret" not in repr(client)


def test_neither_the_key_nor_the_prompt_is_in_the_representation_of_a_request() -> None:
    address = address_of(httpx.URL("https://who:why@models.test/v1"))
    request = post(address, {"authorization": "Bearer sk-secret"}, b"a prompt", Timeouts())

    assert "models.test" in repr(request)
    assert not [word for word in ("who", "why", "sk-secret", "prompt") if word in repr(request)]


# --- What comes back -----------------------------------------------------------------------------


async def test_an_answer_streams_and_ends_as_a_whole(
    http: HttpClient, provider: RunningProvider
) -> None:
    provider.script(
        "m",
        [
            {
                "text": "Hello there",
                "chunks": 3,
                "usage": {"prompt_tokens": 5, "completion_tokens": 2},
            }
        ],
    )

    events = await events_of(_chat(http, provider.base_url), a_request())

    assert all(isinstance(event, TextDelta) for event in events[:-1])
    assert text_of(events) == "Hello there"
    assert events[-1] == ModelAnswer(
        text="Hello there",
        stop_reason=StopReason.END_TURN,
        raw_stop="stop",
        usage=Usage(input_tokens=5, output_tokens=2),
    )


async def test_text_that_comes_together_is_shown_together(http: HttpClient) -> None:
    async with sending(whole(CHUNK, CHUNK, END)) as server:
        events = await events_of(_chat(http, server.base_url), a_request())

    assert events[:-1] == [TextDelta(text="HiHi")]


async def test_a_round_of_tools_is_asked_for_and_its_results_are_sent_back(
    http: HttpClient, provider: RunningProvider
) -> None:
    calls = [{"id": "c1", "name": "look", "arguments": {"q": "a"}}, {"id": "c2", "name": "look"}]
    provider.script("m", [{"calls": calls}, {"text": "Done."}])
    chat = _chat(http, provider.base_url)

    asked = await answer_of(chat, a_request(user("go")))
    done = await answer_of(
        chat, a_request(user("go"), assistant(None, "c1", "c2"), result("c1"), result("c2"))
    )

    assert [(call.call_id, call.arguments) for call in asked.tool_calls] == [
        ("c1", '{"q":"a"}'),
        ("c2", "{}"),
    ]
    assert asked.stop_reason is StopReason.TOOL_USE
    assert done.text == "Done."


@pytest.mark.parametrize(
    ("base_url", "fields", "name"),
    [
        ("https://x.test/v1", {}, "max_tokens"),
        ("https://api.openai.com/v1", {}, "max_completion_tokens"),
        ("https://one.openai.azure.com/openai/v1", {}, "max_completion_tokens"),
        ("https://x.test/v1", {"max_completion_tokens": 500}, "max_completion_tokens"),
        ("https://api.openai.com/v1", {"max_tokens": 500}, "max_tokens"),
    ],
)
def test_the_length_of_an_answer_is_bounded_under_the_name_that_its_provider_takes(
    base_url: str, fields: dict[str, object], name: str
) -> None:
    chat = OpenAiChat(http=new_client(), base_url=base_url, extra_body=fields)
    bounded = replace(a_request(), max_output_tokens=99)

    body = json.loads(chat.request_body(bounded))
    plain = json.loads(chat.request_body(a_request()))

    bounds = {"max_tokens", "max_completion_tokens"}
    assert {key: value for key, value in body.items() if key in bounds} == {name: 99}
    assert {key: value for key, value in plain.items() if key in bounds} == fields
