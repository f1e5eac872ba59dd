"""`python -m bench`: the scenarios against this service and the peers that are installed.

Targets take turns within each round, so that a ratio compares what ran minutes apart on the same
machine. Everything talks to loopback; every loop is bounded in count and time.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Sequence
from dataclasses import asdict
from pathlib import Path

import uvloop

from bench.crowds import idle, readers, waiting
from bench.failing import failing
from bench.growth import long_conversation, long_turn
from bench.postgres import Cluster, cluster
from bench.probe import Probe
from bench.processes import free_port, running
from bench.raw_http import Pool
from bench.report import machine, table
from bench.results import Results
from bench.targets import OURS, ROOT, TARGETS, TOKEN, Target
from bench.turns import Client, Loop, closed_loop

_SCENARIOS = ("loops", "first", "growth", "conversation", "failing", "idle", "readers", "waiting")
_OF_OURS = frozenset({"idle", "readers", "waiting"})
_LOOPS = ("echo-50", "steps-5", "tools-10")
_FIRST = "echo-20+think20+d5"
_LONG = ((20, 64), (200, 64), (50, 4096))


def main() -> None:
    """Measure, print the table, keep the figures as JSON where a file is named."""
    options = _options()
    chosen = [TARGETS[name] for name in options.targets]
    missing = [target.name for target in chosen if not target.is_installed]
    for name in missing:
        print(f"{name} is not installed: scripts/bench --install {name}", file=sys.stderr)
    targets = [target for target in chosen if target.name not in missing]
    rounds: list[Results] = []
    with cluster() as database:
        for number in range(options.rounds):
            for target in targets:
                print(f"round {number + 1}: {target.name}", file=sys.stderr, flush=True)
                rounds.append(
                    _measure(target, database, options, is_last=number + 1 == options.rounds)
                )
    print(f"{machine()}; {options.rounds} rounds, medians; milliseconds, bytes, MB\n")
    print(table(rounds, OURS.name))
    if options.out is not None:
        options.out.write_text(json.dumps([asdict(r) for r in rounds], indent=1))


def _measure(
    target: Target, database: Cluster, options: argparse.Namespace, *, is_last: bool
) -> Results:
    name = f"bench_{target.name.replace('-', '_')}"
    url = database.new_database(name)
    port, stub_port = free_port(), free_port()
    with tempfile.TemporaryDirectory(prefix="turnkeeper-bench-") as folder:
        place = Path(folder)
        stub = [sys.executable, "-m", "bench.stub_model", str(stub_port)]
        env = target.env(database=url, port=port, stub_port=stub_port, folder=place / "data")
        if (first := target.preparation()) is not None:
            subprocess.run(first, env={**os.environ, **env}, cwd=ROOT, check=True)  # noqa: S603
        with (
            running(stub, log=place / "stub.log", port=stub_port, cwd=ROOT),
            running(target.command(), log=place / "log", port=port, env=env, cwd=ROOT) as pid,
        ):
            scenarios = [s for s in options.scenarios if target.is_ours or s not in _OF_OURS]
            if not is_last and "waiting" in scenarios:
                scenarios.remove("waiting")  # once: it fills the database
            drive = _drive(target, database, name, (port, stub_port, pid), scenarios, options)
            return uvloop.run(drive)


async def _drive(
    target: Target,
    database: Cluster,
    name: str,
    ports: tuple[int, int, int],
    scenarios: Sequence[str],
    options: argparse.Namespace,
) -> Results:
    port, stub_port, pid = ports
    pool, stub = Pool(port, token=TOKEN), Pool(stub_port)
    probe = await Probe.open(database, database=name, pid=pid, stub=stub)
    client = Client(target, pool)
    try:
        results = Results(target=target.name, memory_at_start=probe.resident_mb)
        await closed_loop(client, probe, "steps-2", concurrency=2, turns=20, seconds=20)
        for scenario in scenarios:
            await _run(scenario, client, probe, results, options)
        if "waiting" in scenarios:
            results.waiting = await waiting(
                target, pool, probe, database, database=name, turns=options.parked
            )
        return results
    finally:
        await probe.close()
        pool.close()
        stub.close()


async def _run(
    scenario: str, client: Client, probe: Probe, results: Results, options: argparse.Namespace
) -> None:
    match scenario:
        case "loops" | "first":
            results.loops.extend([loop async for loop in _loops(scenario, client, probe, options)])
        case "growth":
            results.long_turns.extend(
                [await long_turn(client, probe, rounds=rounds, size=size) for rounds, size in _LONG]
            )
        case "conversation":
            results.conversation = await long_conversation(client, probe, turns=200)
        case "failing":
            results.failing = await failing(client.target, client.pool, probe, repeats=9)
        case "idle":
            results.idle = await idle(probe)
        case "readers":
            results.readers = await readers(
                client.target, client.pool, probe, count=options.readers, words_per_second=20
            )
        case _:
            pass


async def _loops(
    scenario: str, client: Client, probe: Probe, options: argparse.Namespace
) -> AsyncIterator[Loop]:
    turns, seconds = options.turns, options.seconds
    plans = [(script, c, turns, seconds) for script in _LOOPS for c in (1, 8, 32)]
    if scenario == "first":
        plans = [(_FIRST, c, 30 * c, 15) for c in (1, 8)]
    for script, concurrency, most, longest in plans:
        yield await closed_loop(
            client, probe, script, concurrency=concurrency, turns=most, seconds=longest
        )


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/bench", description=__doc__)
    parser.add_argument("targets", nargs="*", default=["turnkeeper", "floor", "langgraph"])
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--scenarios", nargs="+", choices=_SCENARIOS, default=list(_SCENARIOS))
    parser.add_argument("--turns", type=int, default=300, help="most turns of a closed loop")
    parser.add_argument("--seconds", type=float, default=4, help="most time of a closed loop")
    parser.add_argument("--parked", type=int, default=1_000_000)
    parser.add_argument("--readers", type=int, default=1_000)
    parser.add_argument("--out", type=Path, help="a file for all figures, as JSON")
    options = parser.parse_args()
    if unknown := set(options.targets) - TARGETS.keys():
        parser.error(f"no target {', '.join(sorted(unknown))}; there are {', '.join(TARGETS)}")
    return options


if __name__ == "__main__":
    main()
