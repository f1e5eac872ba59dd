"""A process that dies, or hears no answer to COMMIT, at a chosen passage of a fault point.

A death is a `BaseException`, so no handler of the service takes it for news. From then on the dead
process does nothing more: whatever of it still runs meets its death at its next point as well.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Coroutine, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from enum import Enum, auto
from typing import Any, TypeVar

from app.agents import Agent
from app.entrypoints import wiring
from app.ports import Clock, OutcomeUnknown
from app.ports.fault_points import TURN_COMMITS, watched_by
from app.services.deps import Services
from app.settings import Settings
from tests.support.polling import eventually
from tests.support.postgres import query

Result = TypeVar("Result")

CLAIMED = "claim.take.after"


class Death(BaseException):
    """The process ends here."""


class Fault(Enum):
    """What happens at the chosen commit."""

    DEATH_BEFORE_COMMIT = auto()
    DEATH_AFTER_COMMIT = auto()
    DEATH_AFTER_CLAIM = auto()
    ANSWER_LOST = auto()
    """The commit happened, and nobody was told."""
    CONNECTION_LOST = auto()
    """The commit did not happen, and nobody was told."""


_STRIKES_BEFORE = {Fault.DEATH_BEFORE_COMMIT, Fault.CONNECTION_LOST}
_IS_NO_DEATH = {Fault.ANSWER_LOST, Fault.CONNECTION_LOST}


@dataclass(slots=True)
class Mortal:
    """What the lives of a process share: once it has died, nothing of it passes a point."""

    died: asyncio.Event = field(default_factory=asyncio.Event, kw_only=True)
    _home: asyncio.AbstractEventLoop = field(default_factory=asyncio.get_running_loop, init=False)

    async def die(self) -> None:
        """End the process; from another thread, whose loop only ever stands still then."""
        if asyncio.get_running_loop() is not self._home:
            self._home.call_soon_threadsafe(self.died.set)
            await asyncio.Event().wait()
        self.died.set()
        raise Death

    async def require_alive(self) -> None:
        if self.died.is_set():
            await self.die()


@dataclass(slots=True)
class Fate(Mortal):
    """A fault at chosen commits of turns (or claims) of all the lives that share it."""

    fault: Fault
    at: frozenset[int]
    """Counted from 1."""
    commits: int = 0
    claims: int = 0
    struck: set[int] = field(default_factory=set[int])
    _under_way: dict[object, int] = field(default_factory=dict[object, int])

    async def meets(self, point: str) -> None:
        """Strike if it is due; it strikes once at each."""
        await self.require_alive()
        self.claims += point == CLAIMED
        is_due = self._is_due(point)
        if is_due and self.fault in _IS_NO_DEATH:
            raise OutcomeUnknown
        if is_due:
            await self.die()

    def _is_due(self, point: str) -> bool:
        if self.fault is Fault.DEATH_AFTER_CLAIM:
            return point == CLAIMED and self._strikes(self.claims)
        if point not in TURN_COMMITS:
            return False
        is_before = point.endswith(".before")
        this = self._number(is_before=is_before)
        return is_before == (self.fault in _STRIKES_BEFORE) and self._strikes(this)

    def _number(self, *, is_before: bool) -> int:
        """Of this task's commit: others may be under way before it has ended."""
        self.commits += is_before
        task = asyncio.current_task()
        if is_before:
            self._under_way[task] = self.commits
        return self._under_way[task]

    def _strikes(self, count: int) -> bool:
        if count not in self.at - self.struck:
            return False
        self.struck.add(count)
        return True


@dataclass(slots=True)
class Doom(Mortal):
    """One death after another: in each life at the n-th passage of a point, counted anew."""

    deaths: Sequence[tuple[str, int]]
    """Points and passages, counted from 1, in the order of the lives."""
    lives: int = 1
    passages: Counter[str] = field(default_factory=Counter[str])
    """Of the last life so far."""
    sees: Callable[[str], None] = lambda _: None
    """Told of every passage."""

    @property
    def has_come(self) -> bool:
        """Whether all the deaths have been died."""
        return self.lives > len(self.deaths)

    async def meets(self, point: str) -> None:
        """Die if it is due."""
        await self.require_alive()
        self.passages[point] += 1
        self.sees(point)
        if not self.has_come and (point, self.passages[point]) == self.deaths[self.lives - 1]:
            self.lives += 1
            await self.die()

    def is_reborn(self) -> None:
        self.passages.clear()


@dataclass(slots=True)
class Stand:
    """A point at which everything stands until it may go on."""

    point: str
    has_come: asyncio.Event = field(default_factory=asyncio.Event)
    may_go: asyncio.Event = field(default_factory=asyncio.Event)

    async def meets(self, point: str) -> None:
        if point == self.point:
            self.has_come.set()
            await self.may_go.wait()


@dataclass(slots=True)
class Loss:
    """The answers to so many commits are lost behind a point; they happened."""

    point: str
    times: int

    async def meets(self, point: str) -> None:
        if point == self.point and self.times:
            self.times -= 1
            raise OutcomeUnknown


@asynccontextmanager
async def living(
    settings: Settings, dsn: str, agents: Sequence[Agent], fate: Fate | Doom
) -> AsyncGenerator[wiring.Runtime]:
    """A process subject to fate, whose worker is not running yet."""
    fate.died.clear()
    if isinstance(fate, Doom):
        fate.is_reborn()
    with watched_by(fate.meets):
        async with wiring.build(settings, dsn, stopping=asyncio.Event(), agents=agents) as runtime:
            yield runtime


@asynccontextmanager
async def working(runtime: wiring.Runtime) -> AsyncGenerator[None]:
    """Its worker at work; leaving ends it without any farewell.

    It waits for turns by then, so that it depends on the settings alone whether any are handed to
    it; unless it has died by then.
    """
    running = asyncio.create_task(runtime.worker.run(runtime.stopping))

    async def has_begun() -> bool:
        return runtime.worker.is_waiting or running.done()

    try:
        await eventually(has_begun)
        yield
    finally:
        running.cancel()
        with suppress(Death, asyncio.CancelledError):
            await running


@asynccontextmanager
async def life(
    settings: Settings,
    dsn: str,
    agents: Sequence[Agent],
    fate: Fate,
    clock: Clock | None = None,
) -> AsyncGenerator[Services]:
    """The services of a process with a worker; leaving ends it without any farewell.

    `clock` instead of its own, where one is given.
    """
    async with living(settings, dsn, agents, fate) as built:
        runtime = built if clock is None else _by(clock, built)
        async with working(runtime):
            yield runtime.services


def _by(clock: Clock, runtime: wiring.Runtime) -> wiring.Runtime:
    writer = replace(runtime.services.writer, clock=clock)
    services = replace(runtime.services, writer=writer, clock=clock)
    driver = replace(runtime.worker.driver, writer=writer)
    return replace(runtime, services=services, worker=replace(runtime.worker, driver=driver))


async def lives(
    settings: Settings,
    dsn: str,
    agents: Sequence[Agent],
    fate: Fate,
    client: Callable[[Services], Coroutine[Any, Any, Result]],
    clock: Clock | None = None,
) -> Result:
    """What `client` comes to; after each death it begins anew, in a new process."""
    while True:
        async with life(settings, dsn, agents, fate, clock) as services:
            asking = asyncio.create_task(client(services))
            if await outlived(asking, fate):
                return asking.result()
        await let_claims_run_out(dsn)


async def outlived(asking: asyncio.Task[Any], fate: Fate | Doom) -> bool:
    """Whether the client came to its end; else the process has died, and the client is gone."""
    dying = asyncio.create_task(fate.died.wait())
    await asyncio.wait((asking, dying), return_when=asyncio.FIRST_COMPLETED)
    dying.cancel()
    if not fate.died.is_set():
        return True
    asking.cancel()
    with suppress(Death, asyncio.CancelledError):
        await asking
    return False


async def let_claims_run_out(dsn: str) -> None:
    """As if the lease of every claim had passed, and all that a turn is left alone for then."""
    await query(
        dsn,
        "UPDATE turns SET claimed_until = clock_timestamp() - interval '1 hour' "
        "WHERE claimed_until IS NOT NULL",
    )
