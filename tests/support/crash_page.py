"""`docs/crash-matrix.md`: how often a process died at which point of which story.

`python -m tests.support.crash_page` lets them die, inside a process and by SIGKILL, and prints the
page; a death after which anything is lost, doubled, stuck or refused ends it without one.
"""

import asyncio
import logging
import re
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import structlog

from app.ports.fault_points import POINTS
from tests.e2e.conftest import Stage
from tests.support.crash_matrix import all_die
from tests.support.crash_scenarios import EVERYTHING_ELSE, SCENARIOS, Scenario
from tests.support.killings import chosen_to_be_killed, kill_all
from tests.support.nursery import Nursery, nursery
from tests.support.postgres import PostgresServer, postgres_for_tests
from tests.support.provider import running_provider
from tests.support.service import settings_for_tests
from tests.support.story import Ledger

PAGE = Path(__file__).parents[2] / "docs" / "crash-matrix.md"
_NEVER = "-"
_ROW = re.compile(r"^\| `([a-z_.]+)` \| (.*) \|$", re.MULTILINE)
_HEAD = """\
# Crash matrix

At every fault point of every story a process dies, and another one goes on. A cell says how often:
at each passage of the point inside a process of the tests, and behind `+` real processes that sent
themselves SIGKILL at its first one. `-`: the story does not pass the point.
`scripts/test` does these at the first passage of each point; `scripts/soak` at every one, and kills
a real process in every cell.

After each of these deaths, once the lease was over and another worker had brought the turn to its
end, nothing was lost, nothing done twice, nothing stuck, and the strict provider refused no
request. What is compared: the ledger that the tools keep outside the database, the transcript, the
journal and its fold, usage, audit, failures and claims.

Written by `scripts/crash-matrix` from a run; the tests compare its rows and columns with what there
is, and the points of each story with those it passes now. What a point is stands in
[fault_points.py](../app/ports/fault_points.py), the stories in
[crash_scenarios.py](../tests/support/crash_scenarios.py). Of *{rest}* only the points
are taken that no other story passes.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deaths:
    """How often processes died in one story, by point."""

    inside: Counter[str]
    killed: Counter[str]

    def cell(self, point: str) -> str:
        if not (self.inside[point] or self.killed[point]):
            return _NEVER
        killed = self.killed[point]
        return f"{self.inside[point]} + {killed}" if killed else str(self.inside[point])


def crash_matrix_page(deaths: Mapping[str, Deaths]) -> str:
    """The page, by the names of the stories."""
    names = [scenario.name for scenario in SCENARIOS]
    lines = [
        _HEAD.format(rest=EVERYTHING_ELSE.name),
        f"| point | {' | '.join(names)} |",
        f"|---|{'---|' * len(names)}",
        *(f"| `{p}` | {' | '.join(deaths[n].cell(p) for n in names)} |" for p in POINTS),
        "",
    ]
    inside, killed = _total(deaths, "inside"), _total(deaths, "killed")
    return "\n".join(lines) + f"\n{inside} deaths inside a process, {killed} processes killed.\n"


def _total(deaths: Mapping[str, Deaths], kind: str) -> int:
    return sum(getattr(each, kind).total() for each in deaths.values())


def points_on_page(scenario: Scenario) -> set[str]:
    """Where the committed page says that processes died in this story."""
    column = [each.name for each in SCENARIOS].index(scenario.name)
    cells = {point: row.split(" | ") for point, row in _ROW.findall(PAGE.read_text())}
    return {point for point, row in cells.items() if row[column] != _NEVER}


def rows_on_page() -> Sequence[str]:
    return [point for point, _ in _ROW.findall(PAGE.read_text())]


def columns_on_page() -> Sequence[str]:
    head = next(line for line in PAGE.read_text().splitlines() if line.startswith("| point |"))
    return head.strip("| ").split(" | ")[1:]


async def matrix(stage: Stage, server: PostgresServer, nest: Nursery) -> Mapping[str, Deaths]:
    """The deaths inside a process, all there are, and the processes that every test run kills."""
    met: dict[str, Counter[str]] = {}
    for scenario in SCENARIOS:
        elsewhere = set[str]().union(*met.values()) if scenario is EVERYTHING_ELSE else ()
        met[scenario.name] = await all_die(stage, scenario, elsewhere=elsewhere)
        print(f"{scenario.name}: {met[scenario.name].total()} deaths", file=sys.stderr)  # noqa: T201
    chosen = chosen_to_be_killed(met)
    killed = await kill_all(stage, server, nest, chosen)
    return {name: Deaths(inside=met[name], killed=killed[name]) for name in met}


@asynccontextmanager
async def _stage(folder: Path, server: PostgresServer) -> AsyncGenerator[Stage]:
    async with running_provider() as provider:
        settings = settings_for_tests(folder, openai_base_url=provider.base_url)
        dsn = await server.fresh_database()
        yield Stage(dsn=dsn, provider=provider, ledger=Ledger(folder), settings=settings)


async def main() -> None:
    """Print the page."""
    quiet = structlog.make_filtering_bound_logger(logging.CRITICAL)
    structlog.configure(wrapper_class=quiet)
    asyncio.get_running_loop().set_exception_handler(lambda _loop, _context: None)
    with tempfile.TemporaryDirectory() as folder:
        async with (
            postgres_for_tests() as server,
            _stage(Path(folder), server) as stage,
            nursery() as nest,
        ):
            print(crash_matrix_page(await matrix(stage, server, nest)), end="")  # noqa: T201


if __name__ == "__main__":
    asyncio.run(main())
