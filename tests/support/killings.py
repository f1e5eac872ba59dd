"""A real process kills itself at a fault point; another worker takes over when its lease is over.

Each story has agents of its own, and a process only those of its story, so that several stories can
be told at once over one database without their workers taking each other's turns.
"""

import asyncio
import os
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress

import httpx

from app.entrypoints import wiring
from tests.e2e.conftest import Stage
from tests.support import crash_scenarios
from tests.support.crash_matrix import (
    RELEASING,
    RENEWING,
    Passage,
    check_told,
    in_process,
    slow,
)
from tests.support.crash_scenarios import Person, Scenario, Turn, agents_of
from tests.support.deaths import working
from tests.support.nursery import Child, Nursery
from tests.support.service import TOKEN, settings_for_tests, signed_in
from tests.support.story import FOLDER_VARIABLE

LEASE_SECONDS = 1.0
_STORY_TAKES_SECONDS = 60
_KILLED = -signal.SIGKILL


async def is_killed(stage: Stage, nursery: Nursery, scenario: Scenario, passage: Passage) -> bool:
    """Tell a story whose processes kill themselves, the last at this passage; whether it did.

    Raises:
        AssertionError: something was lost, doubled, stuck, or refused by the provider.
    """
    point, n = passage
    is_slow = point in RENEWING or point in RELEASING
    stage.provider.script(scenario.model, slow(scenario.rounds) if is_slow else scenario.rounds)
    conversation = f"ses_{scenario.agent_id}_{point}_{n}_killed"
    turn: Turn | None = None
    async with asyncio.timeout(_STORY_TAKES_SECONDS):
        for death in (*scenario.dies_first, passage):
            log = stage.ledger.folder / f"{conversation}_{death[0]}.log"
            child = await nursery.born(_environment(stage, scenario, death), log)
            turn = await _told_until_death(stage, scenario, child, conversation, death)
        if turn is None:
            turn = await _taken_over(stage, scenario, conversation)
            was_killed = True
        else:
            was_killed = False
    await check_told(stage, scenario, turn)
    return was_killed


async def _told_until_death(
    stage: Stage, scenario: Scenario, child: Child, conversation: str, death: Passage
) -> Turn | None:
    """`None`: the process has killed itself; else the story's end, and the process is no more."""
    url = await child.url()
    if url is None:
        assert await child.ended() == _KILLED, child.log.read_text()
        return None
    async with signed_in(url) as http:
        person = _person(stage, scenario, conversation, http)
        telling = asyncio.create_task(scenario.told(person))
        stopping = asyncio.create_task(_stopped(child, person, death))
        dying = asyncio.create_task(child.ended())
        await asyncio.wait((telling, dying), return_when=asyncio.FIRST_COMPLETED)
        stopping.cancel()
        if telling.done() and telling.exception() is None:
            dying.cancel()
            child.kill()
            return telling.result()
        status = await dying
        telling.cancel()
        with suppress(asyncio.CancelledError, httpx.HTTPError):
            await telling
        assert status == _KILLED, child.log.read_text()
        return None


async def _stopped(child: Child, person: Person, death: Passage) -> None:
    """A process that is to die while it gives its claims back is asked to stop in mid-answer."""
    if death[0] not in RELEASING:
        return

    def is_asking(turn: Turn) -> bool:
        return bool(turn["counters"]["modelAttempts"])

    with suppress(httpx.HTTPError):
        await person.rests(await person.begins(), but_for=is_asking)
        child.terminate()


async def _taken_over(stage: Stage, scenario: Scenario, conversation: str) -> Turn:
    """The story's end, as another process brings it about once the dead one's lease is over."""
    async with (
        _survivor(stage, scenario) as runtime,
        working(runtime),
        in_process(runtime) as http,
    ):
        return await scenario.told(_person(stage, scenario, conversation, http))


def _person(stage: Stage, scenario: Scenario, conversation: str, http: httpx.AsyncClient) -> Person:
    return Person(http=http, scenario=scenario, conversation=conversation, ledger=stage.ledger)


@asynccontextmanager
async def _survivor(stage: Stage, scenario: Scenario) -> AsyncGenerator[wiring.Runtime]:
    settings = settings_for_tests(
        stage.settings.data_dir, openai_base_url=stage.provider.base_url, claim_lease_seconds=15
    )
    agents = [agent for agent in agents_of(stage.ledger) if agent.id == scenario.agent_id]
    async with wiring.build(
        settings, stage.dsn, stopping=asyncio.Event(), agents=agents
    ) as runtime:
        yield runtime


def _environment(stage: Stage, scenario: Scenario, death: Passage) -> dict[str, str]:
    ours = ("TURNKEEPER_", "OPENAI_", "DATABASE_")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    point, n = death
    return kept | {
        "DATABASE_URL": stage.dsn,
        "OPENAI_BASE_URL": stage.provider.base_url,
        "TURNKEEPER_AGENTS": f"{crash_scenarios.__name__}:agents",
        "TURNKEEPER_CLAIM_LEASE_SECONDS": f"{LEASE_SECONDS:g}",
        "TURNKEEPER_CLAIM_RENEW_SECONDS": "0.1" if point in RENEWING else "0.3",
        "TURNKEEPER_CLAIM_POLL_SECONDS": "0.2",
        "TURNKEEPER_DATA_DIR": str(stage.ledger.folder),
        "TURNKEEPER_ENVIRONMENT": "test",
        "TURNKEEPER_FAULT_POINT": f"{point}:{n}",
        "TURNKEEPER_PORT": "0",
        "TURNKEEPER_TOKEN": TOKEN,
        FOLDER_VARIABLE: str(stage.ledger.folder),
        crash_scenarios.SCENARIO_VARIABLE: scenario.agent_id,
    }
