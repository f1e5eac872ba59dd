import asyncio
import socket
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route

from app.entrypoints.serving import AddressTakenError, AppNotStartedError, Listener, Server

VARIABLE = "TURNKEEPER_PORT"


async def _hello(_: Request) -> PlainTextResponse:
    return PlainTextResponse("hello")


def test_port_0_takes_a_free_one_and_the_url_names_it() -> None:
    with Listener.bind("127.0.0.1", 0, variable=VARIABLE) as listener:
        assert listener.url == f"http://127.0.0.1:{listener.socket.getsockname()[1]}"


def test_a_url_is_one_that_a_browser_here_can_open() -> None:
    with Listener.bind("0.0.0.0", 0, variable=VARIABLE) as listener:  # noqa: S104  the case
        assert listener.url.startswith("http://127.0.0.1:")


def test_an_address_in_use_is_refused_by_the_name_of_the_variable_that_sets_another() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]

        with (
            pytest.raises(AddressTakenError) as refused,
            Listener.bind("127.0.0.1", port, variable=VARIABLE),
        ):
            pass

    assert f"port {port} (Address already in use): set {VARIABLE}" in str(refused.value)


def test_a_host_that_is_not_ours_is_refused() -> None:
    with (
        pytest.raises(AddressTakenError, match=r"cannot listen on 192\.0\.2\.1"),
        Listener.bind("192.0.2.1", 0, variable=VARIABLE),
    ):
        pass


async def test_a_server_answers_from_the_moment_it_is_ready_until_it_is_stopped() -> None:
    stop = asyncio.Event()
    with Listener.bind("127.0.0.1", 0, variable=VARIABLE) as listener:
        server = Server(Starlette(routes=[Route("/", _hello)]), listener)
        async with asyncio.TaskGroup() as tasks, httpx.AsyncClient() as client:
            tasks.create_task(server.serve_until(stop))

            assert await server.is_ready()
            assert (await client.get(listener.url)).text == "hello"

            stop.set()


async def test_an_app_that_cannot_start_ends_the_process_instead_of_waiting() -> None:
    @asynccontextmanager
    async def fails(app: Starlette) -> AsyncGenerator[None]:
        if not app.routes:
            message = "no"
            raise RuntimeError(message)
        yield

    stop = asyncio.Event()
    with Listener.bind("127.0.0.1", 0, variable=VARIABLE) as listener:
        server = Server(Starlette(lifespan=fails), listener)
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(server.serve_until(stop))

            assert await server.is_ready() is False
        assert stop.is_set()
        with pytest.raises(AppNotStartedError):
            server.require_started()
