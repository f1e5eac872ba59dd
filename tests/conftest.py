import os
import signal
from collections.abc import AsyncGenerator
from pathlib import Path

import pytest

from tests.support.postgres import PostgresServer, postgres_for_tests

TESTS = Path(__file__).parent
IS_ROOT = os.geteuid() == 0
ONLY_AS_ROOT = ["store/test_embedded_as_root.py"]

collect_ignore = [] if IS_ROOT else ONLY_AS_ROOT


def pytest_configure() -> None:
    """A request to stop ends a session as Ctrl-C does: in order, with no server left running."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)


def pytest_report_header() -> str:
    """What root alone can test is left out aloud, and is no skip: no one can install being root."""
    left_out = "none" if IS_ROOT else f"{', '.join(ONLY_AS_ROOT)} (about running as root)"
    return f"left out: {left_out}"


LONGEST_FIRST = (
    "turn/test_any_input_in_any_state.py",
    "e2e/test_crash_matrix.py",
    "e2e/test_every_pair.py",
    "e2e/test_death_at_every_commit.py",
    "http/test_any_input_over_http.py",
    "e2e/test_killed_processes.py",
    "e2e/test_waits_over_restarts.py",
    "e2e/test_payments.py",
    "e2e/test_interleavings.py",
    "e2e/test_races.py",
    "e2e/test_event_streams.py",
)
"""Files of half a minute and more: one that is begun last keeps one process busy by itself."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files are given out in the order of their first tests (`--no-loadscope-reorder`)."""
    order = {TESTS / name: number for number, name in enumerate(LONGEST_FIRST)}
    items.sort(key=lambda item: order.get(item.path, len(order)))


@pytest.fixture(scope="session")
async def postgres_server() -> AsyncGenerator[PostgresServer]:
    async with postgres_for_tests() as server:
        yield server


@pytest.fixture
async def database_dsn(postgres_server: PostgresServer) -> AsyncGenerator[str]:
    """A migrated database that no other test sees."""
    dsn = await postgres_server.fresh_database()
    yield dsn
    await postgres_server.drop_database(dsn)


def _skipped(reporter: pytest.TerminalReporter) -> int:
    return len(reporter.stats.get("skipped", []))


def _must_not_skip() -> bool:
    return os.environ.get("CI", "").lower() in ("true", "1")


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """With CI=true a skipped test is a failure: a machine that tests must test everything."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if isinstance(reporter, pytest.TerminalReporter) and _must_not_skip() and _skipped(reporter):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Skips are counted aloud, so that nobody takes a short run for a whole one."""
    reasons: dict[str, int] = {}
    for report in terminalreporter.stats.get("skipped", []):
        reason = str(report.longrepr[2]).removeprefix("Skipped: ")
        reasons[reason] = reasons.get(reason, 0) + 1
    for reason, count in reasons.items():
        terminalreporter.write_line(f"{count} skipped: {reason}", yellow=True)
    if reasons and _must_not_skip():
        terminalreporter.write_line("CI=true: a skipped test is a failure", red=True)
