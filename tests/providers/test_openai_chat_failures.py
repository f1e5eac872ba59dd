"""How calls fail and end: errors, cuts, silence and leaving, against real sockets."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from app.ports import ModelEvent, TextDelta
from app.providers.http import HttpClient, Timeouts
from app.providers.openai_chat import OpenAiChat
from app.turn.failures import FailureType, TokenLimitPhase
from app.turn.transcript import ModelAnswer
from tests.providers.asking import (
    a_request,
    answer_of,
    assistant,
    ending_of,
    events_of,
    failure_of,
    refusal_of,
    text_of,
    user,
)
from tests.providers.raw_server import event_stream, sending
from tests.support.provider import RunningProvider

IMPATIENT = Timeouts(first_byte_seconds=0.05)
RESTLESS = Timeouts(idle_seconds=0.3)
CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def _chat(http: HttpClient, base_url: str, timeouts: Timeouts | None = None) -> OpenAiChat:
    return OpenAiChat(http=http, base_url=base_url, api_key="k", timeouts=timeouts or Timeouts())


# --- Failures ------------------------------------------------------------------------------------


async def test_an_http_error_is_a_failure_with_the_stated_wait(
    http: HttpClient, provider: RunningProvider
) -> None:
    body = {"error": {"message": "Rate limit reached", "code": "rate_limit_exceeded"}}
    fault = {"status": 429, "headers": {"retry-after": "7"}, "body": body}
    provider.script("m", [{"text": "Hi", "faults": [fault]}])
    chat = _chat(http, provider.base_url)

    failure = await failure_of(chat, a_request())

    assert failure.type is FailureType.RATE_LIMITED
    assert failure.retry_after is not None
    assert failure.retry_after.total_seconds() == 7
    assert (failure.http_status, failure.error_code) == (429, "rate_limit_exceeded")
    assert (await answer_of(chat, a_request())).text == "Hi"


@pytest.mark.parametrize("status", [503, 200])
async def test_an_error_has_the_number_of_whom_the_call_went_to(
    http: HttpClient, status: int
) -> None:
    body = b'{"error":{"code":1113,"message":"?","type":"x"}}'
    head = f"HTTP/1.1 {status} X\r\ncontent-length: {len(body)}\r\n\r\n".encode()
    async with sending(head + body) as server:
        chat = OpenAiChat(http=http, base_url=server.base_url, provider="glm")
        failure = await failure_of(chat, a_request())

    assert failure.type is FailureType.QUOTA_EXCEEDED


async def test_a_malformed_request_is_refused_and_no_failure_of_the_model(
    http: HttpClient, provider: RunningProvider
) -> None:
    provider.script("m", [{"text": "Hi"}])

    refusal = await refusal_of(
        _chat(http, provider.base_url), a_request(user("a"), assistant(None, "c1"))
    )

    assert "c1" in refusal.message
    assert refusal.http_status == 400


async def test_a_redirect_is_not_followed(http: HttpClient) -> None:
    answer = b"HTTP/1.1 307 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\n\r\n"
    async with sending(answer) as server:
        failure = await failure_of(_chat(http, server.base_url), a_request())

    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, False)


@pytest.mark.parametrize("at_byte", [0, 1, 200, 400])
async def test_a_stream_cut_before_its_end_is_an_outage_to_retry(
    http: HttpClient, provider: RunningProvider, at_byte: int
) -> None:
    provider.script("m", [{"text": "Hello there", "faults": [{"cut_at_byte": at_byte}]}])

    failure = await failure_of(_chat(http, provider.base_url), a_request())

    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, True)
    assert failure.exception_type == "RemoteProtocolError"
    assert failure.http_status == 200
    assert failure.message.endswith("(127.0.0.1)"), "it is said who was asked"


async def test_a_stream_that_just_ends_is_an_outage_too(http: HttpClient) -> None:
    async with sending(event_stream(CHUNK)) as server:
        events = await events_of(_chat(http, server.base_url), a_request())
        failure = await failure_of(_chat(http, server.base_url), a_request())

    assert text_of(events) == "Hi"
    assert (failure.type, failure.exception_type) == (FailureType.UNAVAILABLE, "IncompleteAnswer")


async def test_an_answer_whose_end_came_is_whole_although_the_connection_broke(
    http: HttpClient,
) -> None:
    broken = event_stream(CHUNK, END, head=b"content-length: 9999\r\n")
    async with sending(broken) as server:
        answer = await answer_of(_chat(http, server.base_url), a_request())

    assert answer.text == "Hi"


async def test_a_stop_value_that_is_an_outage_is_a_failure(
    http: HttpClient, provider: RunningProvider
) -> None:
    provider.script("m", [{"text": "Half", "stop": "insufficient_system_resource"}])

    failure = await failure_of(_chat(http, provider.base_url), a_request())

    assert failure.type is FailureType.UNAVAILABLE
    assert failure.error_code == "insufficient_system_resource"


async def test_an_error_in_the_stream_is_the_failure(
    http: HttpClient, provider: RunningProvider
) -> None:
    error = {"message": "You exceeded your current quota", "code": "insufficient_quota"}
    provider.script("m", [{"text": "Hi", "faults": [{"stream_error": error}]}])

    failure = await failure_of(_chat(http, provider.base_url), a_request())

    assert (failure.type, failure.retryable) == (FailureType.QUOTA_EXCEEDED, False)


@pytest.mark.parametrize(
    "fault", [{"stream_error": {"message": "Overloaded"}}, {"cut_at_byte": 1_500}]
)
async def test_calls_of_an_answer_that_breaks_are_named(
    http: HttpClient, provider: RunningProvider, fault: dict[str, object]
) -> None:
    whole = {"id": "call_1", "name": "look", "arguments": "{}"}
    long = {"id": "call_2", "name": "find", "arguments": '{"what": "' + "x" * 2_000 + '"}'}
    provider.script("m", [{"calls": [whole, long], "faults": [fault]}])

    failure = await failure_of(_chat(http, provider.base_url), a_request())

    assert failure.withheld_tools[:1] == ("look",)


async def test_an_endless_line_is_given_up(http: HttpClient) -> None:
    async with sending(event_stream(b"data: " + b"x" * (8 * 1024 * 1024 + 1))) as server:
        failure = await failure_of(_chat(http, server.base_url), a_request())

    assert (failure.exception_type, failure.retryable) == ("LineTooLongError", False)


async def test_a_refused_connection_is_an_outage_to_retry(http: HttpClient) -> None:
    failure = await failure_of(_chat(http, "http://127.0.0.1:1/v1"), a_request())

    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, True)
    assert (failure.exception_type, failure.http_status) == ("ConnectError", 0)
    assert failure.message.endswith("(127.0.0.1)"), "it is said who was asked"


@pytest.mark.parametrize("base_url", ["nonsense", "ftp://127.0.0.1/v1", "http://[::1"])
async def test_an_address_that_is_none_does_not_heal_by_waiting(
    http: HttpClient, base_url: str
) -> None:
    failure = await failure_of(_chat(http, base_url), a_request())

    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, False)


async def test_the_context_window_is_named_as_the_limit(
    http: HttpClient, provider: RunningProvider
) -> None:
    error = {"message": "maximum context length is 8 tokens", "code": "context_length_exceeded"}
    provider.script("m", [{"faults": [{"status": 400, "body": {"error": error}}]}])

    failure = await failure_of(_chat(http, provider.base_url), a_request())

    assert failure.token_limit_phase is TokenLimitPhase.INPUT_CONTEXT


# --- Waiting and leaving -------------------------------------------------------------------------


async def test_a_provider_that_says_nothing_is_given_up_after_the_first_byte_timeout(
    http: HttpClient, provider: RunningProvider
) -> None:
    provider.script("m", [{"text": "Hi", "faults": [{"hang": True}]}])

    failure = await failure_of(_chat(http, provider.base_url, IMPATIENT), a_request())

    assert (failure.exception_type, failure.retryable) == ("FirstByteTimeout", True)


async def test_an_answer_that_stops_coming_is_given_up_after_the_idle_timeout(
    http: HttpClient, provider: RunningProvider
) -> None:
    provider.script("m", [{"text": "Hi", "faults": [{"hang": True, "cut_at_byte": 300}]}])

    failure = await failure_of(_chat(http, provider.base_url, RESTLESS), a_request())

    assert (failure.exception_type, failure.retryable) == ("IdleTimeout", True)


async def test_an_answer_that_never_ends_is_given_up_after_the_total_timeout(
    http: HttpClient, provider: RunningProvider
) -> None:
    provider.script("m", [{"text": "x" * 500, "chunks": 500, "delay_ms": 1}])
    short = Timeouts(first_byte_seconds=5, idle_seconds=5, total_seconds=0.05)

    failure = await failure_of(_chat(http, provider.base_url, short), a_request())

    assert (failure.exception_type, failure.retryable) == ("TotalTimeout", True)


async def test_a_server_that_keeps_the_line_open_behind_the_end_holds_nobody_up(
    http: HttpClient,
) -> None:
    stream = event_stream(CHUNK, END, b"data: [DONE]\n\n")
    async with sending(stream, then_waits=True) as server:
        answer = await answer_of(_chat(http, server.base_url, RESTLESS), a_request())

    assert answer.text == "Hi"


async def _first(client: OpenAiChat) -> tuple[AsyncGenerator[ModelEvent, None], ModelEvent]:
    stream = client.stream(a_request())
    return stream, await anext(stream)


async def test_closing_the_stream_closes_the_connection(http: HttpClient) -> None:
    async with sending(event_stream(CHUNK), then_waits=True) as server:
        stream, first = await _first(_chat(http, server.base_url))
        await stream.aclose()

        assert first == TextDelta(text="Hi")
        await asyncio.wait_for(server.client_left.wait(), timeout=2)


async def test_cancelling_the_reader_closes_the_connection(http: HttpClient) -> None:
    async with sending(event_stream(CHUNK), then_waits=True) as server:
        began = asyncio.Event()

        async def read() -> None:
            async with aclosing(_chat(http, server.base_url).stream(a_request())) as stream:
                async for _ in stream:
                    began.set()

        reader = asyncio.create_task(read())
        await asyncio.wait_for(began.wait(), timeout=2)
        reader.cancel()

        await asyncio.wait_for(server.client_left.wait(), timeout=2)
        assert (await asyncio.gather(reader, return_exceptions=True))[0].__class__ is (
            asyncio.CancelledError
        )


async def test_concurrent_calls_over_one_client_do_not_mix(
    http: HttpClient, provider: RunningProvider
) -> None:
    for number in range(8):
        provider.script(f"m{number}", [{"text": f"Answer {number} " * 20, "chunks": 20}])
    chat = _chat(http, provider.base_url)

    answers = await asyncio.gather(
        *(ending_of(chat, a_request(model=f"m{number}")) for number in range(8))
    )

    assert [answer.text[:8] for answer in answers if isinstance(answer, ModelAnswer)] == [
        f"Answer {number}" for number in range(8)
    ]
