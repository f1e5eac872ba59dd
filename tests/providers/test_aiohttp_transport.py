"""What carries a model call: connections, heads and faults, against real sockets."""

import asyncio
import gc
import gzip
import ssl
from base64 import b64encode

import pytest

from app.providers import aiohttp_transport
from app.providers.aiohttp_transport import AiohttpTransport
from app.providers.carrying import Sending
from app.providers.http import HttpClient, Timeouts, new_client
from app.providers.openai_chat import OpenAiChat
from app.turn.failures import FailureType
from tests.providers.asking import a_request, answer_of, failure_of
from tests.providers.raw_server import (
    RawServer,
    closing_idle_ones,
    event_stream,
    sending,
    staying,
    whole,
)

CHUNK = b'data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":null}]}\n\n'
END = b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\n'


def _chat(http: HttpClient, base_url: str, *, key: str = "k", connect: float = 10) -> OpenAiChat:
    timeouts = Timeouts(connect_seconds=connect)
    return OpenAiChat(http=http, base_url=base_url, api_key=key, timeouts=timeouts)


def _with_password(server: RawServer) -> str:
    return server.base_url.replace("http://", "http://us%40er:p%3Aw@")


# --- Connections ---------------------------------------------------------------------------------


async def test_one_connection_serves_many_calls(http: HttpClient) -> None:
    async with staying(whole(CHUNK, END)) as server:
        for _ in range(4):
            await answer_of(_chat(http, server.base_url), a_request())

    assert (server.connections, len(server.requests)) == (1, 4)


async def test_a_connection_that_its_server_has_closed_serves_no_other_call(
    http: HttpClient,
) -> None:
    async with sending(whole(CHUNK, END)) as server:
        for _ in range(3):
            await answer_of(_chat(http, server.base_url), a_request())
            await asyncio.wait_for(server.client_left.wait(), timeout=2)
            server.client_left.clear()

    assert server.connections == 3


async def test_a_connection_that_is_closed_while_a_request_goes_out_on_it_is_no_failure(
    http: HttpClient,
) -> None:
    async with closing_idle_ones(whole(CHUNK, END)) as server:
        for _ in range(3):
            await answer_of(_chat(http, server.base_url), a_request())

    assert (server.connections, len(server.requests)) == (3, 5)


async def test_an_old_connection_that_is_closed_after_a_while_is_a_failure(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(aiohttp_transport, "_STALE_WITHIN_SECONDS", -1.0)  # that while is over
    async with closing_idle_ones(whole(CHUNK, END)) as server:
        await answer_of(_chat(http, server.base_url), a_request())
        failure = await failure_of(_chat(http, server.base_url), a_request())

    assert failure.type is FailureType.UNAVAILABLE
    assert (server.connections, len(server.requests)) == (1, 2)


async def test_a_new_connection_that_is_closed_without_an_answer_is_a_failure(
    http: HttpClient,
) -> None:
    async with sending(b"") as server:
        failure = await failure_of(_chat(http, server.base_url), a_request())

    assert failure.type is FailureType.UNAVAILABLE
    assert len(server.requests) == 1


def _requests_in_memory() -> int:
    return sum(isinstance(each, Sending) for each in gc.get_objects())


async def test_a_request_goes_from_memory_with_its_call_though_its_connection_broke(
    http: HttpClient,
) -> None:
    """A history may have megabytes, and cycles are looked for seldom."""
    gc.collect()
    gc.disable()
    try:
        async with sending(whole(CHUNK, END)[:-9]) as server:
            await failure_of(_chat(http, server.base_url), a_request())
        async with closing_idle_ones(whole(CHUNK, END)) as server:
            for _ in range(2):
                await answer_of(_chat(http, server.base_url), a_request())
        left = _requests_in_memory()
    finally:
        gc.enable()

    assert server.connections == 2, "no request was sent again"
    assert left == 0


async def test_a_server_whose_name_nobody_knows_is_a_failure_at_once(http: HttpClient) -> None:
    too_long = ".".join(["models"] * 50)

    async with asyncio.timeout(5):
        failure = await failure_of(_chat(http, f"http://{too_long}/v1"), a_request())

    assert (failure.type, failure.exception_type) == (FailureType.UNAVAILABLE, "ConnectError")


async def test_closing_the_client_closes_its_connections() -> None:
    async with staying(whole(CHUNK, END)) as server:
        async with new_client() as http:
            await answer_of(_chat(http, server.base_url), a_request())

        await asyncio.wait_for(server.client_left.wait(), timeout=2)


async def test_a_connection_that_does_not_come_to_stand_is_given_up() -> None:
    async with sending(event_stream(CHUNK, END), then_waits=True) as server, _one() as http:
        stream = _chat(http, server.base_url).stream(a_request())
        await anext(stream)

        failure = await failure_of(_chat(http, server.base_url, connect=0.05), a_request())

        await stream.aclose()
    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, True)
    assert failure.exception_type == "ConnectTimeout"


def _one() -> HttpClient:
    return new_client(max_connections=1)


async def test_what_does_not_speak_tls_is_not_spoken_to_without(http: HttpClient) -> None:
    heard: list[bytes] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(1_000))
        writer.write(b"HTTP/1.1 400 Speak plainly\r\n\r\n")
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]

    failure = await failure_of(_chat(http, f"https://127.0.0.1:{port}/v1"), a_request())

    server.close()
    assert (failure.type, failure.exception_type) == (FailureType.UNAVAILABLE, "ConnectError")
    assert b"POST" not in b"".join(heard)


async def test_certificates_are_checked_unless_somebody_says_otherwise() -> None:
    careful = AiohttpTransport(max_connections=1, verify=True, proxy=None)

    assert careful.tls.verify_mode is ssl.CERT_REQUIRED
    assert careful.tls.check_hostname


# --- What is sent --------------------------------------------------------------------------------


async def test_a_password_in_the_address_goes_out_as_a_header_and_not_in_the_address(
    http: HttpClient,
) -> None:
    async with staying(whole(CHUNK, END)) as server:
        await answer_of(_chat(http, _with_password(server)), a_request())

    assert b"POST /v1/chat/completions HTTP/1.1" in server.heads[0]
    assert b"Basic " + b64encode(b"us@er:p:w") in server.heads[0]
    assert b"Bearer" not in server.heads[0]


async def test_no_cookie_of_a_provider_goes_back_to_it(http: HttpClient) -> None:
    async with staying(whole(CHUNK, END, head=b"set-cookie: who=us\r\n")) as server:
        for _ in range(2):
            await answer_of(_chat(http, server.base_url), a_request())

    assert b"who=us" not in server.heads[1]


async def test_the_environment_names_no_proxy(
    http: HttpClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")

    async with staying(whole(CHUNK, END)) as server:
        answer = await answer_of(_chat(http, server.base_url), a_request())

    assert answer.text == "Hi"


async def test_a_proxy_that_is_named_is_gone_through() -> None:
    async with (
        staying(whole(CHUNK, END)) as proxy,
        new_client(proxy=proxy.base_url.removesuffix("/v1")) as http,
    ):
        answer = await answer_of(_chat(http, "http://models.test/v1"), a_request())

    assert answer.text == "Hi"
    assert b"POST http://models.test/v1/chat/completions" in proxy.heads[0]


# --- What comes back -----------------------------------------------------------------------------


async def test_a_head_may_be_long(http: HttpClient) -> None:
    long = b"x-policy: " + b"p" * 40_000 + b"\r\n"
    async with staying(whole(CHUNK, END, head=long)) as server:
        answer = await answer_of(_chat(http, server.base_url), a_request())

    assert answer.text == "Hi"


@pytest.mark.parametrize(
    "bytes_sent",
    [
        b"",
        b"SSH-2.0-OpenSSH_9.6\r\n",
        b"HTTP/1.1 200 OK\r\nx: " + b"y" * 80_000 + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nnot a size\r\n",
    ],
    ids=["nothing", "another protocol", "an endless head", "a broken chunk"],
)
async def test_what_is_no_answer_is_an_outage_to_retry(http: HttpClient, bytes_sent: bytes) -> None:
    async with sending(bytes_sent) as server:
        failure = await failure_of(_chat(http, _with_password(server)), a_request())

    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, True)
    assert failure.exception_type == "RemoteProtocolError"
    assert "p%3Aw" not in failure.message


async def test_a_packed_answer_is_unpacked(http: HttpClient) -> None:
    packed = gzip.compress(CHUNK + END)
    async with staying(whole(packed, head=b"content-encoding: gzip\r\n")) as server:
        answer = await answer_of(_chat(http, server.base_url), a_request())

    assert answer.text == "Hi"
