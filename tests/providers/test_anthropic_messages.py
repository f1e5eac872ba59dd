"""The Anthropic wire as a client: what goes out, what comes back, and how it fails."""

import json

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ports import ModelEvent, TextDelta
from app.providers.answer_reading import AnswerReading, Outcome
from app.providers.anthropic_answer import AnthropicAnswer
from app.providers.anthropic_messages import AnthropicMessages
from app.providers.http import HttpClient, new_client
from app.turn.failures import FailureType, ModelFailure, RequestRefused, TokenLimitPhase
from app.turn.transcript import ModelAnswer, StopReason
from tests.providers.asking import a_request, ending_of, events_of, text_of
from tests.providers.raw_server import event_stream, sending

URL = "https://claude.test"


def _event(kind: str, **fields: object) -> bytes:
    return b"data: " + json.dumps({"type": kind, **fields}).encode() + b"\n\n"


START = _event("message_start", message={"id": "m", "content": [], "usage": {"input_tokens": 3}})
HELLO = (
    _event("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    _event("content_block_delta", index=0, delta={"type": "text_delta", "text": "Hello"}),
)
STOP = _event("message_delta", delta={"stop_reason": "end_turn"}, usage={"output_tokens": 2})
END = _event("message_stop")


async def _answered(
    status: int, body: bytes, *, base_url: str = URL, key: str = "k", **extra: object
) -> tuple[list[ModelEvent], httpx.Request]:
    seen: list[httpx.Request] = []

    def serve(request: httpx.Request) -> httpx.Response:
        seen.append(request)
        return httpx.Response(status, content=body)

    async with new_client(transport=httpx.MockTransport(serve)) as http:
        client = AnthropicMessages(http=http, base_url=base_url, api_key=key, extra_body=extra)
        return await events_of(client, a_request()), seen[0]


async def test_an_answer_streams_and_ends_as_a_whole() -> None:
    events, _ = await _answered(200, b"".join((START, *HELLO, STOP, END)))

    assert events[0] == TextDelta(text="Hello")
    assert isinstance(events[-1], ModelAnswer)
    assert (events[-1].text, events[-1].stop_reason) == ("Hello", StopReason.END_TURN)


@pytest.mark.parametrize("base_url", [URL, f"{URL}/", f"{URL}/v1", f"{URL}/v1/"])
async def test_the_key_and_the_version_go_out_as_headers(base_url: str) -> None:
    _, request = await _answered(200, START, base_url=base_url)

    assert str(request.url) == "https://claude.test/v1/messages"
    assert (request.headers["x-api-key"], request.headers["anthropic-version"]) == (
        "k",
        "2023-06-01",
    )
    assert "authorization" not in request.headers


async def test_without_a_key_none_is_sent_and_a_longer_path_stays() -> None:
    _, request = await _answered(200, START, base_url="https://kimi.test/anthropic", key="")

    assert request.url.path == "/anthropic/v1/messages"
    assert "x-api-key" not in request.headers


async def test_fields_of_the_provider_go_over_the_defaults() -> None:
    thinking = {"type": "enabled", "budget_tokens": 1_024}
    _, request = await _answered(200, START, max_tokens=9, thinking=thinking)

    body = json.loads(request.content)
    assert (body["max_tokens"], body["thinking"]) == (9, thinking)


def test_the_key_is_not_in_the_representation_of_a_client() -> None:
    client = AnthropicMessages(http=new_client(), base_url="u", api_key="sk-secret")

    assert "sk-secret" not in repr(client)


def _error(kind: str, message: str) -> bytes:
    return json.dumps({"type": "error", "error": {"type": kind, "message": message}}).encode()


async def _failure(status: int, body: bytes) -> ModelFailure:
    events, _ = await _answered(status, body)
    assert isinstance(events[-1], ModelFailure), events[-1]
    return events[-1]


async def test_a_prompt_that_is_too_long_is_a_token_limit() -> None:
    message = "prompt is too long: 210045 tokens > 200000 maximum"
    failure = await _failure(400, _error("invalid_request_error", message))

    assert (failure.type, failure.token_limit_phase) == (
        FailureType.TOKEN_LIMIT_EXCEEDED,
        TokenLimitPhase.INPUT_CONTEXT,
    )


@pytest.mark.parametrize("status", [529, 200])
async def test_an_overload_is_the_same_with_its_status_and_without(status: int) -> None:
    failure = await _failure(status, _error("overloaded_error", "Overloaded"))

    assert (failure.type, failure.retryable) == (FailureType.OVERLOADED, True)


async def test_a_malformed_request_is_refused() -> None:
    events, _ = await _answered(400, _error("invalid_request_error", "tools.0: name: required"))

    assert isinstance(events[-1], RequestRefused)


async def test_an_error_behind_text_is_the_ending() -> None:
    events, _ = await _answered(
        200, b"".join((START, *HELLO, b"data: " + _error("api_error", "Internal") + b"\n\n"))
    )

    assert text_of(events) == "Hello"
    assert isinstance(events[-1], ModelFailure)
    assert events[-1].type is FailureType.UNAVAILABLE


async def test_an_answer_that_breaks_off_is_no_answer() -> None:
    failure = await _failure(200, b"".join((START, *HELLO)))

    assert (failure.type, failure.exception_type) == (
        FailureType.UNAVAILABLE,
        "IncompleteAnswer",
    )


async def test_behind_a_stop_reason_an_end_that_never_comes_is_not_waited_for(
    http: HttpClient,
) -> None:
    stream = event_stream(START, *HELLO, STOP)
    async with sending(stream, then_waits=True) as server:
        client = AnthropicMessages(http=http, base_url=server.base_url)
        answer = await ending_of(client, a_request())

    assert isinstance(answer, ModelAnswer)
    assert answer.text == "Hello"


# --- Robustness ----------------------------------------------------------------------------------

_KINDS = st.sampled_from(
    [
        *("message_start", "message", "content_block_start", "content_block_delta", "ping"),
        *("content_block_stop", "message_delta", "message_stop", "text", "thinking", "tool_use"),
        *("text_delta", "thinking_delta", "signature_delta", "input_json_delta", "web_tool_result"),
        *("redacted_thinking", "server_tool_use", "end_turn", "max_tokens"),
    ]
)
_JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-1, 3) | st.floats() | st.text(max_size=8) | _KINDS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("type", "index", "delta", "message", "content", "content_block", "usage"),
                    *("text", "thinking", "signature", "partial_json", "input", "id", "name"),
                    *("stop_reason", "input_tokens", "error", "data"),
                ]
            ),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


def _outcome(*pieces: bytes) -> Outcome:
    reading = AnswerReading(AnthropicAnswer())
    shown = [delta for piece in pieces for delta in reading.feed(piece)]
    shown += reading.close()
    outcome = reading.outcome()
    assert text_of(shown) == outcome.answer.text
    return outcome


async def test_an_error_has_the_number_of_whom_the_call_went_to() -> None:
    body = json.dumps({"error": {"code": 1113, "message": "?", "type": "x"}}).encode()

    elsewhere, _ = await _answered(503, body)
    there, _ = await _answered(503, body, base_url="https://api.z.ai/api/anthropic")

    assert [_kind_of(events) for events in (elsewhere, there)] == [
        FailureType.UNAVAILABLE,
        FailureType.QUOTA_EXCEEDED,
    ]


def _kind_of(events: list[ModelEvent]) -> FailureType:
    assert isinstance(events[-1], ModelFailure)
    return events[-1].type


@given(st.lists(_JSON, max_size=6))
def test_any_json_in_the_stream_is_read_without_an_error(values: list[object]) -> None:
    outcome = _outcome(*(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values))

    assert outcome.answer.text.encode() is not None


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_read_without_an_error(pieces: list[bytes]) -> None:
    assert _outcome(*pieces).answer.stop_reason is StopReason.INTERRUPTED
