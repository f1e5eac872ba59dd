"""Wiring: the only code that knows all of it exists."""

import asyncio
import os
import secrets
import socket
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import partial

import structlog

from app.agents import Agent, Catalog, load_declared
from app.agents.builtin import builtin_agent
from app.entrypoints.identity import default_token, new_id
from app.http.auth import Authenticator, LoginCodes
from app.http.open_streams import StreamLimits
from app.observability.failure_log import log_failures
from app.observability.model_metrics import ModelMetrics
from app.ports import Renewals, ReplyStore, StoreUnavailable, Wakeups
from app.providers.directory import ProviderDirectory, ProviderEndpoint
from app.providers.http import HttpClient, Timeouts, new_client
from app.runner.commit import TurnWriter
from app.runner.drive import Driver
from app.runner.hand_over import HandOver
from app.runner.live_text import LiveText
from app.runner.model_call import ModelCaller
from app.runner.recent import RecentCommits
from app.runner.tasks import cancel_and_wait
from app.services.deps import Services
from app.services.journals import Journals
from app.services.principal import Principal, Role
from app.services.top_up import TopUpLinks
from app.settings import Settings
from app.store.agents import declare
from app.store.audit import PostgresAudit
from app.store.claims import PostgresClaims
from app.store.clock import DatabaseClock
from app.store.conversations import PostgresConversations
from app.store.external_calls import PostgresExternalCalls
from app.store.feeds import PostgresFeeds
from app.store.histories import PostgresHistories
from app.store.late_results import PostgresLateResults
from app.store.pool import Database, connected
from app.store.replies import PostgresReplies
from app.store.turns import PostgresTurns
from app.store.usage import PostgresUsage
from app.store.waits import PostgresWaits
from app.store.wakeups import PostgresWakeups
from app.tools.demo import demo_tools
from app.turn.ids import ActorId, TenantId
from app.workers.housekeeper import Housekeeper
from app.workers.loop import Worker, WorkerSettings
from app.workers.sweeper import Sweeper

_CLOCK_SECONDS = 60.0
_FORGET_SECONDS = 3_600.0
_TIDY_SECONDS = 60.0
_GIVE_UP_SHARE = 2 / 3  # of the lease: with 15 s, an owner without a renewal stops after 10

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Runtime:
    """Everything a process runs."""

    services: Services
    replies: ReplyStore
    worker: Worker
    authenticator: Authenticator
    login_codes: LoginCodes
    login_code: str
    """For the line that the start prints; good once."""
    stopping: asyncio.Event
    """Set when the process is about to stop."""
    metrics: ModelMetrics
    stream_limits: StreamLimits


@asynccontextmanager
async def build(
    settings: Settings, dsn: str, *, stopping: asyncio.Event, agents: Sequence[Agent] = ()
) -> AsyncGenerator[Runtime, None]:
    """The parts of a process over the database behind `dsn`, which is migrated already.

    Args:
        settings: of this process.
        dsn: where the database is.
        stopping: set when the process is about to stop, so that streams end.
        agents: declared in code, in front of those the settings name.

    Raises:
        AgentError: agents cannot be loaded, or a version's declaration has changed.
        StoreUnavailable: the database does not answer.
    """
    token = default_token(settings)
    catalog = Catalog((builtin_agent(demo_tools()), *agents, *_declared(settings)))
    worker_name = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    async with (
        connected(dsn, size=settings.database_pool_size) as database,
        new_client() as http,
    ):
        catalog.require_unchanged(await declare(database, catalog.declarations()))
        clock = DatabaseClock()
        await clock.synchronise(database)
        metrics = ModelMetrics()
        wakeups = PostgresWakeups(dsn, database, process_id=worker_name)
        claims = PostgresClaims(database, lease_seconds=settings.claim_lease_seconds)
        services = replace(
            _services(database, catalog, wakeups, clock, metrics, claims),
            top_up=_top_up_links(settings),
        )
        worker = _worker(settings, dsn, worker_name, claims, services, _models(settings, http))
        if settings.hand_over:
            services = _handing_over(services, worker)
        replies = PostgresReplies(database)
        codes = LoginCodes()
        runtime = Runtime(
            services=services,
            replies=replies,
            worker=worker,
            authenticator=Authenticator(token, _DEFAULT_PRINCIPAL),
            login_codes=codes,
            login_code=codes.issue(),
            stopping=stopping,
            metrics=metrics,
            stream_limits=_stream_limits(settings),
        )
        async with (
            wakeups.running(),
            services.journals.running(stopping),
            _every(_CLOCK_SECONDS, partial(clock.synchronise, database)),
            _every(_FORGET_SECONDS, partial(_forget, replies)),
            _every(_TIDY_SECONDS, _housekeeper(settings, database, clock).tidy),
        ):
            yield runtime


def _stream_limits(settings: Settings) -> StreamLimits:
    return StreamLimits(
        per_user=settings.streams_per_user,
        per_tenant=settings.streams_per_tenant,
        per_process=settings.streams_per_process,
    )


_DEFAULT_PRINCIPAL = Principal(
    tenant_id=TenantId("default"),
    actor_id=ActorId("default"),
    role=Role.OPERATOR,
    runs_the_installation=True,
)


def _declared(settings: Settings) -> tuple[Agent, ...]:
    return () if settings.agents is None else load_declared(settings.agents)


def _services(
    database: Database,
    catalog: Catalog,
    wakeups: Wakeups,
    clock: DatabaseClock,
    metrics: ModelMetrics,
    claims: PostgresClaims,
) -> Services:
    turns, recent = PostgresTurns(database), RecentCommits()
    feeds, live_text = PostgresFeeds(database), LiveText()
    return Services(
        turns=turns,
        conversations=PostgresConversations(database),
        histories=PostgresHistories(database),
        audit=PostgresAudit(database),
        usage=PostgresUsage(database),
        waits=PostgresWaits(database),
        orphans=claims,
        external_calls=PostgresExternalCalls(database),
        late_results=PostgresLateResults(database),
        feeds=feeds,
        journals=Journals(
            turns=turns, feeds=feeds, wakeups=wakeups, recent=recent, live_text=live_text
        ),
        writer=TurnWriter(
            store=turns,
            wakeups=wakeups,
            clock=clock,
            catalog=catalog,
            new_id=new_id,
            recent=recent,
            listeners=(metrics.tell, log_failures),
        ),
        catalog=catalog,
        wakeups=wakeups,
        live_text=live_text,
        recent=recent,
        clock=clock,
        new_id=new_id,
    )


def _handing_over(services: Services, worker: Worker) -> Services:
    """What people's requests let go on is handed to the worker, while that one runs here."""
    hand_over = HandOver(places=worker, catalog=services.catalog, new_id=services.new_id)
    return replace(services, writer=replace(services.writer, hand_over=hand_over))


def _housekeeper(settings: Settings, database: Database, clock: DatabaseClock) -> Housekeeper:
    days = settings.keep_events_days
    return Housekeeper(
        upkeep=PostgresFeeds(database),
        clock=clock,
        fold_after=timedelta(hours=settings.keep_text_pieces_hours),
        keep_events=None if days is None else timedelta(days=days),
    )


def _top_up_links(settings: Settings) -> TopUpLinks:
    named = {name: each.top_up_url for name, each in settings.providers.items()}
    return TopUpLinks(
        by_provider={name: url for name, url in named.items() if url is not None},
        otherwise=settings.top_up_url,
    )


@asynccontextmanager
async def _renewals(dsn: str, lease_seconds: float) -> AsyncGenerator[Renewals, None]:
    """The claims over one connection that is made when it is needed."""
    async with connected(dsn, size=1, at_once=False) as database:
        yield PostgresClaims(database, lease_seconds=lease_seconds)


def _worker(
    settings: Settings,
    dsn: str,
    name: str,
    claims: PostgresClaims,
    services: Services,
    models: ProviderDirectory,
) -> Worker:
    driver = Driver(
        store=services.turns,
        writer=services.writer,
        wakeups=services.wakeups,
        catalog=services.catalog,
        caller=ModelCaller(models=models, live_text=services.live_text),
        new_id=new_id,
        grace_seconds=settings.tool_grace_seconds,
    )
    return Worker(
        name=name,
        settings=WorkerSettings(
            concurrency=max(settings.worker_concurrency, 1),
            lease_seconds=settings.claim_lease_seconds,
            poll_seconds=settings.claim_poll_seconds,
            renew_seconds=settings.claim_renew_seconds,
            give_up_seconds=settings.claim_lease_seconds * _GIVE_UP_SHARE,
        ),
        claims=claims,
        renewals=partial(_renewals, dsn, settings.claim_lease_seconds),
        wakeups=services.wakeups,
        catalog=services.catalog,
        driver=driver,
        sweeper=Sweeper(waits=services.waits, writer=services.writer, clock=services.clock),
    )


def _models(settings: Settings, http: HttpClient) -> ProviderDirectory:
    key = settings.openai_api_key
    return ProviderDirectory(
        http=http,
        environment=lambda: os.environ,
        providers={
            name: ProviderEndpoint(
                kind=p.kind,
                base_url=p.base_url or "",
                api_key_env=p.api_key_env,
                call_ids=p.call_ids,
                extra_body=p.extra_body,
            )
            for name, p in settings.providers.items()
        },
        default_model=settings.model,
        default_base_url=settings.openai_base_url,
        default_api_key=None if key is None else key.get_secret_value(),
        timeouts=Timeouts(
            connect_seconds=settings.model_connect_timeout_seconds,
            first_byte_seconds=settings.model_first_byte_timeout_seconds,
            idle_seconds=settings.model_idle_timeout_seconds,
            total_seconds=settings.model_total_timeout_seconds,
        ),
    )


@asynccontextmanager
async def _every(
    seconds: float, chore: Callable[[], Awaitable[object]]
) -> AsyncGenerator[None, None]:
    """Do the chore now and then while the context is open; a database that is away costs a turn."""

    async def repeat() -> None:
        while True:
            try:
                await chore()
            except StoreUnavailable:
                _log.warning("chore_failed")
            await asyncio.sleep(seconds)

    repeating = asyncio.create_task(repeat())
    try:
        yield
    finally:
        await cancel_and_wait([repeating])


async def _forget(replies: PostgresReplies) -> None:
    """Clear away the replies that are past their time, a little at once."""
    while await replies.forget():
        pass
