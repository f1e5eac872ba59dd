"""Every fault point against every story: a process dies there, another goes on, all accounts agree.

The points of a story are those that it passes when nothing happens, each at every passage. A lease
is renewed only by who holds it for long, and released only by who is asked to stop: those deaths
are died in a life that is slow, or told to stop at the first byte of its first answer.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Collection, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TypeAlias

import httpx

from app.entrypoints import wiring
from app.entrypoints.api import create_app
from app.ports.fault_points import FIRST_BYTE
from app.settings import Settings
from app.turn.transcript import AssistantMessage, NoticeMessage, Outcome
from tests.e2e.conftest import Stage
from tests.http.rig import rows
from tests.support.crash_scenarios import (
    Person,
    Round,
    Scenario,
    Turn,
    agents_of,
)
from tests.support.deaths import Doom, let_claims_run_out, living, outlived, working
from tests.support.oracles import Record, check_one_active_turn, check_record, records
from tests.support.service import TOKEN, settings_for_tests
from tests.support.sizes import size

Passage: TypeAlias = tuple[str, int]
"""A point, and the how manieth time it is passed in a life."""

RENEWING = ("claim.renew.before", "claim.renew.after")
RELEASING = ("claim.release.before", "claim.release.after")
_PASSED_IDLY = {"claim.take.before", *RENEWING, *RELEASING}
"""Whoever has nothing to do passes them too, any number of times: one passage stands for all."""
_AT_START = {"commit.forgotten.before", "commit.forgotten.after"}
_HELD_OR_DUE = """
SELECT turn_id FROM turns
WHERE (claimed_by IS NOT NULL OR runnable_at IS NOT NULL) AND turn_id = $1
"""
MOST_PASSAGES = size(1, soak=1_000)
"""At which a story dies at a point; a run that writes the page takes all of them."""
_SLOW_MS = 60
_STORY_TAKES_SECONDS = 30


async def passages(stage: Stage, scenario: Scenario) -> Sequence[Passage]:
    """Every passage at which this story's last life can die."""
    doom = Doom(scenario.dies_first)
    await told(stage, scenario, doom, f"ses_{scenario.agent_id}_undisturbed")
    found = [
        (point, n)
        for point, times in sorted(doom.passages.items())
        for n in range(1, 1 + (1 if point in _PASSED_IDLY else min(times, MOST_PASSAGES)))
        if point not in (*RENEWING, *RELEASING)
    ]
    return [*found, *((point, 1) for point in (*RENEWING, *RELEASING))]


async def all_die(
    stage: Stage, scenario: Scenario, *, elsewhere: Collection[str] = ()
) -> Counter[str]:
    """Die at every passage of a story but those of points `elsewhere`; how often at each point.

    Raises:
        AssertionError: as `dies`; a death that was to come did not.
    """
    died: Counter[str] = Counter()
    for point, n in await passages(stage, scenario):
        if point not in elsewhere and await dies(stage, scenario, (point, n)):
            died[point] += 1
        # Calls that end together are sometimes stored together: a later passage may be left out.
        assert point in elsewhere or died[point], f"nothing died at {point}"
    return died


async def dies(stage: Stage, scenario: Scenario, passage: Passage) -> bool:
    """Tell a story in which a process dies at this passage; whether it came to that.

    Raises:
        AssertionError: something was lost, doubled, stuck, or refused by the provider.
    """
    doom = Doom((*scenario.dies_first, passage))
    point, n = passage
    await told(stage, scenario, doom, f"ses_{scenario.agent_id}_{point}_{n}")
    return doom.has_come


async def told(stage: Stage, scenario: Scenario, doom: Doom, conversation: str) -> Record:
    """The story from its beginning to its end, which is checked."""
    last = doom.deaths[-1][0] if doom.deaths else ""
    is_slow = last in RENEWING or last in RELEASING
    stage.provider.script(scenario.model, slow(scenario.rounds) if is_slow else scenario.rounds)
    settings = quick_to_renew(stage) if last in RENEWING else stage.settings
    settings = settings.model_copy(update={"hand_over": scenario.is_handed_over})
    async with asyncio.timeout(_STORY_TAKES_SECONDS):
        turn = await _lived(stage, scenario, doom, conversation, settings, stops=last in RELEASING)
    return await check_told(stage, scenario, turn)


async def _lived(
    stage: Stage,
    scenario: Scenario,
    doom: Doom,
    conversation: str,
    settings: Settings,
    *,
    stops: bool,
) -> Turn:
    while True:
        async with (
            living(settings, stage.dsn, agents_of(stage.ledger), doom) as runtime,
            working(runtime),
            in_process(runtime) as http,
        ):
            if stops and doom.lives == len(doom.deaths):
                doom.sees = _stopping_at_first_byte(runtime)
            person = Person(
                http=http, scenario=scenario, conversation=conversation, ledger=stage.ledger
            )
            asking = asyncio.create_task(scenario.told(person))
            if await outlived(asking, doom):
                return asking.result()
            doom.sees = _unmoved
        await let_claims_run_out(stage.dsn)


def _stopping_at_first_byte(runtime: wiring.Runtime) -> Callable[[str], None]:
    def sees(point: str) -> None:
        if point == FIRST_BYTE:
            runtime.stopping.set()

    return sees


def _unmoved(_: str) -> None:
    """See a point passed."""


@asynccontextmanager
async def in_process(runtime: wiring.Runtime) -> AsyncGenerator[httpx.AsyncClient]:
    """A signed-in client of a process without a port."""
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=create_app(runtime)),
        base_url="http://turnkeeper",
        headers={"Authorization": f"Bearer {TOKEN}"},
    ) as client:
        yield client


def slow(rounds: Sequence[Round]) -> Sequence[Round]:
    """The same, each piece a while behind the one before it."""
    return [{**each, "delay_ms": _SLOW_MS} for each in rounds]


def quick_to_renew(stage: Stage) -> Settings:
    return settings_for_tests(
        stage.settings.data_dir,
        openai_base_url=stage.provider.base_url,
        claim_lease_seconds=1.0,
        claim_renew_seconds=0.1,
    )


# --- What must be true at the end ----------------------------------------------------------------


async def check_told(stage: Stage, scenario: Scenario, turn: Turn) -> Record:
    """The one end of the story, and all oracles content with the way to it."""
    async with records(stage.dsn) as found:
        await check_one_active_turn(found)
        record = await found.of(turn["turnId"])
    check_record(record, stage.ledger)
    assert record.turn.status == scenario.status
    assert record.user_messages == ["m1"]
    said = [m for m in record.transcript if isinstance(m, AssistantMessage)]
    answers = [m.text for m in said if not m.is_partial]
    if scenario.answer is not None:
        assert answers[-1] == scenario.answer
        assert len(answers) == len(scenario.rounds)
    assert [result.tool_name for result in record.results.values()] == list(scenario.tools)
    for result in record.results.values():
        assert result.outcome in _OUTCOMES[result.tool_name], result
    notices = [m.cause for m in record.transcript if isinstance(m, NoticeMessage)]
    if scenario.answer is not None:
        assert notices == ["retry_response"] * (len(said) - len(answers)), "once for each half"
    refused = [r for r in stage.provider.requests(scenario.model) if r["status"] == 400]
    assert not refused, "the strict provider has refused a request"
    await check_leases(stage.dsn, record)
    return record


_OUTCOMES: Mapping[str, set[Outcome]] = {
    "look_up": {Outcome.COMPLETED},
    "book": {Outcome.COMPLETED},
    "scan": {Outcome.COMPLETED},
    "pay": {Outcome.COMPLETED, Outcome.UNKNOWN},
    "gated_pay": {Outcome.COMPLETED, Outcome.UNKNOWN},
    "scan_soon": {Outcome.EXPIRED},
}


async def check_leases(dsn: str, record: Record) -> None:
    """Nobody holds a turn that has ended, and it is not due."""
    assert await rows(dsn, _HELD_OR_DUE, record.turn.identity.turn_id) == []
