"""Two APIs, two workers and their database under everything that goes wrong at once, for a while.

Processes are killed, and stopped for longer than a lease; PostgreSQL is restarted, in order and
not; its backends are terminated; answers to commits are lost on the wire. Clients go on asking,
each with its journal. At the end everything that anybody has kept must tell one story: what was
accepted has come to exactly one end, nothing was done twice that must not be, and no provider would
refuse any of it.
"""

import asyncio
import random
import time
from collections import Counter, defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest
from typing_extensions import override

from app.turn.ids import TurnId
from tests.support import story
from tests.support.fleet import Fleet, Member, fleet
from tests.support.folders import reachable_folder
from tests.support.oracles import check_everything
from tests.support.postgres import query
from tests.support.provider import running_provider
from tests.support.service import TOKEN
from tests.support.sizes import IS_SOAK, size

SECONDS = size(45, soak=600)
LEAST = {"turns": size(225, soak=3_000), "kills": size(5, soak=60), "restarts": size(1, soak=8)}
"""Below that the run says nothing: on a busy machine it goes on until there is as much."""
MOST_SECONDS = 3 * SECONDS
CLIENTS = 12
LEASE_SECONDS = 1.5
SEED = random.SystemRandom().randrange(1_000_000)

ROUNDS: Sequence[Mapping[str, Any]] = [
    {"text": "I look into it. " * 12, **story.THREE_CALLS},
    {
        "text": "One more.",
        "calls": [
            {"id": "D", "name": "pay", "arguments": '{"amount": 5}'},
            {"id": "E", "name": "look_up", "arguments": '{"what": "e"}'},
        ],
    },
    {"text": "All is done now. " * 12},
]
ENDED = {"COMPLETED", "CANCELLED", "FAILED"}


@dataclass(slots=True)
class Entry:
    """What a client knows of one message: it was accepted, by which turn, and how that ended."""

    conversation: str
    turn_id: str
    status: str | None = None
    cancelled: bool = False
    """A cancellation of it was accepted."""


@dataclass(slots=True)
class Journal:
    entries: list[Entry] = field(default_factory=list[Entry])
    retries: Counter[str] = field(default_factory=Counter[str])
    surprises: list[str] = field(default_factory=list[str])
    """Answers that nothing explains."""

    @property
    def ended(self) -> int:
        return sum(entry.status in ENDED for entry in self.entries)


class Client:
    """Goes on asking, whatever breaks; a message is sent again under its id until it is taken."""

    def __init__(self, urls: Sequence[str], journal: Journal, chance: random.Random) -> None:
        self._urls = urls
        self._journal = journal
        self._chance = chance
        self._http = httpx.AsyncClient(
            headers={"Authorization": f"Bearer {TOKEN}"}, timeout=5, trust_env=False
        )

    async def run(self, name: str, over: asyncio.Event) -> None:
        number = 0
        async with self._http:
            while not over.is_set():
                number += 1
                entry = await self._post(f"{name}-{number}")
                self._journal.entries.append(entry)
                await self._follow(entry, cancels=self._chance.random() < 0.1)

    async def _post(self, conversation: str) -> Entry:
        body = {"content": "Go.", "messageId": f"m-{conversation}", "agentId": "clerk"}
        answer = await self._until(
            {202}, "POST", f"/conversations/{conversation}/messages", json=body
        )
        return Entry(conversation, answer["turnId"])

    async def _follow(self, entry: Entry, *, cancels: bool) -> None:
        while True:
            turn = await self._until({200}, "GET", f"/turns/{entry.turn_id}")
            entry.status = turn["status"]
            if entry.status in ENDED:
                return
            if entry.status == "PAUSED":  # its workers died of it three times: bad luck, here
                await self._until({202, 409}, "POST", f"/turns/{entry.turn_id}/resume", json=RESUME)
            elif cancels and not entry.cancelled:
                entry.cancelled = True
                await self._until({200, 202, 409}, "POST", f"/turns/{entry.turn_id}/cancel")
            await asyncio.sleep(0.05)

    async def _until(
        self, fine: set[int], method: str, path: str, json: object = None
    ) -> dict[str, Any]:
        """The answer, from whichever API gives one; the others are gone, or have no database."""
        while True:
            try:
                answer = await self._http.request(
                    method, self._chance.choice(self._urls) + path, json=json
                )
            except httpx.HTTPError as error:
                self._journal.retries[type(error).__name__] += 1
            else:
                if answer.status_code in fine:
                    body: dict[str, Any] = answer.json()
                    return body
                self._journal.retries[str(answer.status_code)] += 1
                if answer.status_code != 503 and not _is_contended(answer):
                    self._journal.surprises.append(f"{method} {path}: {answer.text}")
            await asyncio.sleep(0.05)


RESUME = {"command": "RESUME"}


def _is_contended(answer: httpx.Response) -> bool:
    return answer.status_code == 409 and answer.json()["code"] == "version_conflict"


class Trouble:
    """One fault after another, until it is enough."""

    def __init__(self, fleet: Fleet, chance: random.Random) -> None:
        self._fleet = fleet
        self._chance = chance
        self.done = Counter[str]()

    async def run(self, is_enough: Callable[[], bool]) -> None:
        began = time.monotonic()
        faults = self._in_any_order()
        while (lasts := time.monotonic() - began) < MOST_SECONDS:
            if lasts > SECONDS and is_enough():
                break
            fault = next(faults)
            await fault()
            self.done[fault.__name__] += 1
            for member in self._fleet.members:
                await member.ensure_started()
            await asyncio.sleep(self._chance.uniform(0.2, 1.0))

    def _in_any_order(self) -> "Any":  # noqa: ANN401 - an endless iterator of methods
        while True:
            faults: list[Callable[[], Awaitable[None]]] = [
                self.kill_worker,
                self.kill_worker,
                self.kill_api,
                self.freeze_worker,
                self.lose_answers,
                self.lose_answers,
                self.terminate_backends,
                self.cut_wire,
                self.stop_worker,
                self.restart_database,
            ]
            self._chance.shuffle(faults)
            yield from faults

    def _one(self, members: list[Member]) -> Member:
        return self._chance.choice(members)

    async def kill_worker(self) -> None:
        await self._one(self._fleet.workers).kill()

    async def kill_api(self) -> None:
        await self._one(self._fleet.apis).kill()

    async def stop_worker(self) -> None:
        """As a deploy does."""
        await self._one(self._fleet.workers).terminate()

    async def freeze_worker(self) -> None:
        """For longer than its lease: another has its turns by then."""
        member = self._one(self._fleet.workers)
        member.freeze()
        await asyncio.sleep(LEASE_SECONDS + 1)
        member.thaw()

    async def lose_answers(self) -> None:
        self._one(self._fleet.members).proxy.to_lose += 3

    async def cut_wire(self) -> None:
        self._one(self._fleet.members).proxy.cut()

    async def terminate_backends(self) -> None:
        with suppress(OSError):
            await query(self._fleet.dsn, _TERMINATE)

    async def restart_database(self) -> None:
        await self._fleet.restart_database(at_once=self._chance.random() < 0.5)


_TERMINATE = """
SELECT count(pg_terminate_backend(pid)) FROM pg_stat_activity
WHERE datname = current_database() AND pid <> pg_backend_pid() AND random() < 0.5
"""


class ReadLedger(story.Ledger):
    """A ledger that nobody writes to any more, read once."""

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.by_turn: dict[str, list[story.Effect]]
        found: dict[str, list[story.Effect]] = defaultdict(list)
        for effect in story.Ledger(folder).effects():
            found[effect.turn_id].append(effect)
        object.__setattr__(self, "by_turn", found)

    @override
    def effects(self, turn_id: str | None = None) -> list[story.Effect]:
        if turn_id is None:
            return [effect for effects in self.by_turn.values() for effect in effects]
        return self.by_turn.get(turn_id, [])


@pytest.fixture
async def folder() -> AsyncGenerator[Path]:
    with reachable_folder() as found:
        yield found


async def test_chaos(folder: Path) -> None:
    chance = random.Random(SEED)  # noqa: S311 - told in the failure
    journal, over = Journal(), asyncio.Event()
    async with running_provider() as provider:
        provider.script(story.MODEL, ROUNDS)
        environment = {
            "OPENAI_BASE_URL": provider.base_url,
            "TURNKEEPER_AGENTS": f"{story.__name__}:agents",
            "TURNKEEPER_CLAIM_LEASE_SECONDS": str(LEASE_SECONDS),
            "TURNKEEPER_CLAIM_RENEW_SECONDS": str(LEASE_SECONDS / 3),
            "TURNKEEPER_CLAIM_POLL_SECONDS": "0.2",
            story.FOLDER_VARIABLE: str(folder),
        }
        async with fleet(folder, apis=2, workers=2, environment=environment) as ships:
            urls = [member.url for member in ships.apis]
            clients = [
                asyncio.create_task(
                    Client(urls, journal, random.Random(SEED + n)).run(f"c{n}", over)  # noqa: S311
                )
                for n in range(CLIENTS)
            ]
            trouble = Trouble(ships, chance)
            try:
                await trouble.run(lambda: not _too_little(journal, trouble))
                await ships.ready()
                over.set()
                await _all_at_rest(clients)
            except TimeoutError:
                _show_the_end_of(ships)
                pytest.fail(f"seed {SEED}: stuck: {await _unfinished(ships.dsn)} {trouble.done}")
            finally:
                for client in clients:
                    client.cancel()
                await asyncio.gather(*clients, return_exceptions=True)
            lost = sum(member.proxy.lost for member in ships.members)
            records = await check_everything(ships.dsn, ReadLedger(folder))
        refused = [r for r in provider.requests(story.MODEL) if r["status"] != 200]

    told = {"seed": SEED, **trouble.done, "answers lost": lost, "retries": journal.retries}
    assert not journal.surprises, (told, journal.surprises[:5])
    assert not refused, (told, refused[:2])
    by_turn = {record.turn.identity.turn_id: record for record in records}
    for entry in journal.entries:
        record = by_turn[TurnId(entry.turn_id)]
        assert (record.turn.status, record.user_messages) == (
            entry.status,
            [f"m-{entry.conversation}"],
        ), told
        assert entry.cancelled or entry.status == "COMPLETED", (told, entry)
    assert len(by_turn) == len(journal.entries), (told, "turns that nobody asked for")
    assert not _too_little(journal, trouble), (told, journal.ended, "void")
    assert lost > 0, told
    print(f"chaos: {journal.ended} turns, {told}")  # noqa: T201 - what the run has shown


def _too_little(journal: Journal, trouble: Trouble) -> dict[str, int]:
    """What there was less of than the run needs to say anything."""
    done = {
        "turns": journal.ended,
        "kills": trouble.done["kill_worker"] + trouble.done["kill_api"],
        "restarts": trouble.done["restart_database"],
    }
    return {what: count for what, count in done.items() if count < LEAST[what]}


async def _all_at_rest(clients: Sequence[asyncio.Task[None]]) -> None:
    async with asyncio.timeout(120 if IS_SOAK else 60):
        await asyncio.gather(*clients)


def _show_the_end_of(ships: Fleet) -> None:
    """What the processes have said last."""
    for member in ships.members:
        lines = [
            line for line in member.log.read_text().splitlines() if '"level": "info"' not in line
        ]
        print(member.log.name, *lines[-40:], sep="\n")  # noqa: T201 - shown where it fails


async def _unfinished(dsn: str) -> object:
    return await query(
        dsn,
        "SELECT json_agg(json_build_array(turn_id, status, version, claimed_by, claimed_until, "
        "deaths, runnable_at)) FROM turns WHERE status NOT IN ('COMPLETED', 'CANCELLED')",
    )
