"""A process's runner and worker over a database, taken in hand step by step by a test."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from app.agents import Agent, Hooks
from app.entrypoints import wiring
from app.ports import ClaimedTurn, Tool
from app.runner.drive import Driver
from app.runner.model_call import ModelCaller
from app.services.deps import Caller, Services
from app.services.drafts import Draft
from app.services.messages import post_message
from app.services.principal import Principal, Role
from app.services.turns import cancel
from app.settings import Settings
from app.turn.agent import Limits, RetryPolicy
from app.turn.ids import ActorId, AgentId, ConversationId, MessageId, TenantId, TurnId
from app.turn.inputs import Request, WhenRunning
from app.turn.state import Turn
from app.turn.transcript import TextPart
from app.workers.loop import Worker
from tests.support.models import Model
from tests.support.oracles import Record, check_events, check_fold, check_history, records
from tests.support.polling import eventually

CALLER = Caller(
    principal=Principal(
        tenant_id=TenantId("default"), actor_id=ActorId("default"), role=Role.OPERATOR
    ),
    request_id="a-request",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Bench:
    """One process; its worker runs only where a test runs it."""

    dsn: str
    services: Services
    worker: Worker

    @property
    def driver(self) -> Driver:
        return self.worker.driver

    async def post(self, conversation: str = "ses_1", *, hold: bool = False) -> TurnId:
        """A turn of the bench's agent, ready to be claimed."""
        draft = Draft(
            conversation_id=ConversationId(conversation),
            content=(TextPart(text="Go."),),
            message_id=MessageId("m1"),
            agent_id=AgentId("bench"),
            hold=hold,
        )
        return (await post_message(self.services, CALLER, draft)).stored.turn.identity.turn_id

    async def say(
        self,
        text: str,
        message_id: str,
        conversation: str = "ses_1",
        *,
        when_running: WhenRunning = "reject",
    ) -> None:
        """A message to the bench's turn."""
        draft = Draft(
            conversation_id=ConversationId(conversation),
            content=(TextPart(text=text),),
            message_id=MessageId(message_id),
            when_running=when_running,
        )
        await post_message(self.services, CALLER, draft)

    async def run(self) -> None:
        """Claim the one turn that is due, and drive it until it rests."""
        await self.drive(await self.claim())

    async def command(self, turn_id: TurnId, given: Request) -> Turn:
        """What a person asks for, as it leaves the turn."""
        turn = await self.services.turns.load(turn_id)
        assert turn is not None
        audit = CALLER.entry("A_COMMAND", turn_id=turn_id)
        written = await self.services.writer.request(turn, given, partial(CALLER.command, audit))
        return written.turn

    async def cancel(self, turn_id: TurnId) -> None:
        await cancel(self.services, CALLER, turn_id)

    async def claim(self) -> ClaimedTurn:
        """The one turn that is due, claimed under the worker's name."""
        (held,) = await self.worker.claims.claim(
            self.worker.name, limit=2, versions=self.worker.catalog.versions()
        )
        return held

    async def drive(self, held: ClaimedTurn, stopping: asyncio.Event | None = None) -> bool:
        return await self.driver.drive(held, stopping or asyncio.Event())

    async def record(self, turn_id: TurnId) -> Record:
        async with records(self.dsn) as found:
            return await found.of(turn_id)

    async def checked(self, turn_id: TurnId) -> Record:
        """What is stored of the turn, which is whole."""
        record = await self.record(turn_id)
        check_fold(record)
        check_events(record.journal, record.turn)
        check_history(record)
        return record

    async def until_stored(self, turn_id: TurnId, event_type: str, *, times: int = 1) -> None:
        """Wait until the turn's journal holds so many events of a type."""

        async def is_stored() -> bool:
            rows = await self.services.turns.journal(turn_id, after=0, limit=1_000)
            types: list[str] = [event.type for row in rows for event in row.events]
            return types.count(event_type) >= times

        await eventually(is_stored)


@asynccontextmanager
async def bench(
    dsn: str,
    settings: Settings,
    model: Model,
    tools: Sequence[Tool] = (),
    *,
    limits: Limits | None = None,
    retry: RetryPolicy | None = None,
    hooks: Hooks | None = None,
    grace_seconds: float = 10.0,
    **more: Any,  # noqa: ANN401 - of an agent
) -> AsyncGenerator[Bench]:
    """A process whose agent, `bench`, asks `model` and has `tools`, `hooks` and `more`."""
    agent = Agent(
        id="bench",
        instructions="",
        tools=tools,
        limits=limits or Limits(),
        retry=retry or RetryPolicy(),
        hooks=hooks,
        **more,
    )
    async with wiring.build(settings, dsn, stopping=asyncio.Event(), agents=[agent]) as runtime:
        caller = ModelCaller(models=model, live_text=runtime.services.live_text)
        driver = replace(runtime.worker.driver, caller=caller, grace_seconds=grace_seconds)
        worker = replace(runtime.worker, driver=driver)
        yield Bench(dsn=dsn, services=runtime.services, worker=worker)
