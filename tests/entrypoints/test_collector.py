"""How seldom a process looks for cycles once it is ready."""

import pytest

from tests.entrypoints.command import Command


class Counted(Command):
    """Tells at its end how the collector was set, and how many objects it left alone."""

    program = f"""
import atexit, gc
atexit.register(lambda: print("collector:", gc.get_threshold()[0], gc.get_freeze_count()))
{Command.program}
"""


@pytest.mark.parametrize("verb", ["serve", "worker"])
def test_a_process_that_is_ready_leaves_what_it_is_made_of_alone(
    verb: str, database_dsn: str
) -> None:
    ports = {"TURNKEEPER_PORT": "0", "TURNKEEPER_WORKER_HEALTH_PORT": "0"}
    with Counted(verb, DATABASE_URL=database_dsn, **ports) as process:
        process.ready_url()
        process.interrupt()
        status, printed = process.ended()

    young, frozen = map(int, printed.rpartition("collector: ")[2].split())
    assert status == 0
    assert young > 10_000
    assert frozen > 100_000
