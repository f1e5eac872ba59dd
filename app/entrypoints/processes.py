"""The processes: what each of them starts, in which order, and how it ends in order.

A signal sets one event. Whoever serves or works watches it; what was entered first is left last,
so the database ends after everything that uses it. A second signal waits for nobody.
"""

import asyncio
import os
import signal
import sys
from collections.abc import AsyncGenerator, Coroutine
from contextlib import AbstractContextManager, asynccontextmanager, nullcontext

import structlog
import uvloop

from app.agents.errors import AgentError
from app.entrypoints import api, wiring
from app.entrypoints.collector import collect_seldom
from app.entrypoints.serving import AddressTakenError, AppNotStartedError, Listener, Server
from app.http.worker_app import worker_app
from app.ports.fault_points import SelfHarm, watched_by
from app.settings import Settings
from app.store import embedded, migrations
from app.store.inspection import (
    NEWEST_SUPPORTED,
    OLDEST_SUPPORTED,
    DatabaseUnreachableError,
    inspect,
)

_log = structlog.stdlib.get_logger(__name__)

_LEFT_WITHIN_SECONDS = 5.0
"""How long tasks may take to heed their cancellation once everything else has ended."""
_STOP_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}


class UnsupportedDatabaseError(Exception):
    """The PostgreSQL of DATABASE_URL is older than what this service is made for."""


_FOR_THE_OPERATOR = (
    AddressTakenError,
    AgentError,
    AppNotStartedError,
    DatabaseUnreachableError,
    UnsupportedDatabaseError,
    embedded.EmbeddedPostgresError,
)


def run(process: Coroutine[None, None, None]) -> None:
    """Runs one of the processes below to its end.

    What an operator can put right is told in a line, and not in a traceback.
    """
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(_to_its_end(process))
    except _FOR_THE_OPERATOR as error:
        sys.exit(f"turnkeeper: {error}")


async def serve(settings: Settings) -> None:
    """The API, with a worker beside it unless `worker_concurrency` is 0, until a signal.

    Raises:
        AddressTakenError, EmbeddedPostgresError, DatabaseUnreachableError,
        UnsupportedDatabaseError: it cannot start, and what to do about it.
    """
    stop = _stop_at_a_signal()
    with (
        _harming_itself(settings),
        Listener.bind(settings.host, settings.port, variable="TURNKEEPER_PORT") as listener,
    ):
        async with (
            _database(settings) as dsn,
            wiring.build(settings, dsn, stopping=stop) as runtime,
        ):
            server = Server(api.create_app(runtime), listener)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.serve_until(stop))
                if settings.worker_concurrency:
                    tasks.create_task(runtime.worker.run(stop))
                if await server.is_ready():
                    collect_seldom()
                    _announce(settings, f"{listener.url}/#login={runtime.login_code}")
            server.require_started()


async def work(settings: Settings) -> None:
    """A worker by itself, which answers `/livez` and `/metrics` on `worker_health_port`.

    It runs until a signal.

    Raises:
        AddressTakenError, EmbeddedPostgresError, DatabaseUnreachableError,
        UnsupportedDatabaseError: it cannot start, and what to do about it.
    """
    stop = _stop_at_a_signal()
    variable = "TURNKEEPER_WORKER_HEALTH_PORT"
    with (
        _harming_itself(settings),
        Listener.bind(settings.host, settings.worker_health_port, variable=variable) as listener,
    ):
        async with (
            _database(settings) as dsn,
            wiring.build(settings, dsn, stopping=stop) as runtime,
        ):
            server = Server(worker_app(runtime.authenticator, runtime.metrics), listener)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(server.serve_until(stop))
                tasks.create_task(runtime.worker.run(stop))
                if await server.is_ready():
                    collect_seldom()
                    _say(f"Turnkeeper's worker is ready: {listener.url}/livez")
            server.require_started()


async def _to_its_end(process: Coroutine[None, None, None]) -> None:
    """The process, which by then has given everything back; no task of foreign code keeps it.

    asyncio waits for a tool that does not heed its cancellation for as long as it likes. What it
    does is lost with the process, as its turn has been told.
    """
    await process
    left = asyncio.all_tasks() - {asyncio.current_task()}
    if not left:
        return
    for task in left:
        task.cancel()
    _, deaf = await asyncio.wait(left, timeout=_LEFT_WITHIN_SECONDS)
    if deaf:
        names = sorted(task.get_name() for task in deaf)
        _log.warning("tasks are left behind that do not end", tasks=names)
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)


async def migrate(settings: Settings) -> None:
    """Brings the schema of the database to the newest revision, which `_database` does anyway."""
    async with _database(settings) as dsn:
        facts = await inspect(dsn)
    _say(f"The database is at revision {facts.revision}.")


@asynccontextmanager
async def _runtime(settings: Settings, stop: asyncio.Event) -> AsyncGenerator[wiring.Runtime]:
    async with (
        _database(settings) as dsn,
        wiring.build(settings, dsn, stopping=stop) as runtime,
    ):
        yield runtime


def _harming_itself(settings: Settings) -> AbstractContextManager[None]:
    """What a test has asked of this process, if it has."""
    if settings.fault_point is None:
        return nullcontext()
    name, _, passage = settings.fault_point.partition(":")
    harm = SelfHarm(point=name, passage=int(passage or 1), mode=settings.fault_mode)
    return watched_by(harm.meet)


@asynccontextmanager
async def _database(settings: Settings) -> AsyncGenerator[str]:
    """The DSN of a migrated database: the one that is named, or the embedded one."""
    if settings.database_url is not None:
        await _refuse_if_unsupported(settings.database_url)
        await migrations.upgrade(settings.database_url)
        yield settings.database_url
        return
    async with embedded.running(settings.data_dir) as server:
        _log.info(
            "embedded PostgreSQL runs", data_dir=str(settings.data_dir), adopted=server.adopted
        )
        await migrations.upgrade(server.dsn)
        yield server.dsn


async def _refuse_if_unsupported(dsn: str) -> None:
    facts = await inspect(dsn)
    if facts.major_version < OLDEST_SUPPORTED:
        message = (
            f"DATABASE_URL names a PostgreSQL {facts.major_version}; "
            f"versions {OLDEST_SUPPORTED} to {NEWEST_SUPPORTED} are supported"
        )
        raise UnsupportedDatabaseError(message)
    if not facts.is_supported:
        _log.warning("PostgreSQL is newer than any tried", version=facts.major_version)


def _stop_at_a_signal() -> asyncio.Event:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    is_nohup = signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
    for number in _STOP_SIGNALS - ({signal.SIGHUP} if is_nohup else set()):
        loop.add_signal_handler(number, _stop, stop)
    return stop


def _stop(stop: asyncio.Event) -> None:
    if stop.is_set():
        # The database may be left running; the next start adopts it.
        sys.stderr.write("stopping at once\n")
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTERM)
    stop.set()


def _announce(settings: Settings, url: str) -> None:
    has_provider = settings.openai_api_key or settings.openai_base_url or settings.providers
    if has_provider and settings.model is None:
        _say("TURNKEEPER_MODEL is not set, so the scripted demo model answers.")
    _say(f"Turnkeeper is ready: {url}")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
