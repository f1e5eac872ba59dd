"""Medians over rounds as a Markdown table, each beside its ratio to a peer of the same rounds."""

import os
import platform
import statistics
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench.results import Results

UNIT = "langgraph"
"""The peer that ratios are to."""


@dataclass(frozen=True, slots=True)
class Goal:
    """What a figure of this service is to be."""

    figure: str
    most: float | None = None
    """Of the figure itself."""
    ratio: float | None = None
    """Of the figure to the unit's; at most, or at least where more is better."""
    more_is_better: bool = False

    def is_reached(self, value: float, unit: float | None) -> bool | None:
        """`None`: it cannot be told without the unit."""
        if self.most is not None and value > self.most:
            return False
        if self.ratio is None:
            return True
        if not unit:
            return None
        return value / unit >= self.ratio if self.more_is_better else value / unit <= self.ratio


GOALS = (
    Goal("steps-5 c=1 overhead/step", ratio=0.25),
    Goal("tools-10 c=1 overhead/step", ratio=0.30),
    Goal("steps-5 c=8 turns/s", ratio=6, more_is_better=True),
    Goal("steps-5 c=32 p99", ratio=0.20),
    Goal("steps-5 c=8 server CPU", ratio=0.15),
    Goal("echo-20+think20+d5 c=1 first word", ratio=0.6),
    Goal("echo-20+think20+d5 c=8 first word", ratio=0.6),
    Goal("steps-5 c=1 statements", most=16),
    Goal("tools-10 c=1 write transactions", most=7),
    Goal("200 rounds of 64 B statements/round", most=2.1),
    Goal("200 rounds of 64 B write transactions/round", most=2.1),
    Goal("200 rounds of 64 B WAL/round", most=2_200),
    Goal("50 rounds of 4096 B WAL/round", most=8_000),
    Goal("200 rounds of 64 B gap at 195", most=2.0),
    Goal("200 rounds of 64 B gap grown", most=1.5),
    Goal("conversation turn 195", most=8.0),
    Goal("told after", most=10.0),
    Goal("resumed after", most=2.5),
    Goal("beside parked against alone", most=1.3),
    Goal("memory grown beside parked", most=2.0),
    Goal("plans off their index", most=0.0),
    Goal("idle statements/s", most=2.0),
    Goal("idle memory", most=110.0),
    Goal("readers p99", most=150.0),
    Goal("readers kB each", most=45.0),
)
"""A round of a long turn has two commits; the turn's beginning and end make it a little more."""


def medians(rounds: Iterable[Results]) -> Mapping[str, Mapping[str, float]]:
    """Per target each figure's median over its rounds."""
    found: dict[str, dict[str, list[float]]] = {}
    for results in rounds:
        by_name = found.setdefault(results.target, {})
        for name, value in results.figures().items():
            by_name.setdefault(name, []).append(value)
    return {
        target: {name: statistics.median(values) for name, values in by_name.items()}
        for target, by_name in found.items()
    }


def table(rounds: Sequence[Results], ours: str) -> str:
    """The figures of every target, and for those with a goal whether ours reaches it."""
    by_target = medians(rounds)
    targets = [ours, *(name for name in by_target if name != ours)]
    head = ["figure", *targets, f"ours / {UNIT}", "goal", "reached"]
    lines = [_row(head), _row(["---", *["--:"] * (len(head) - 2), "---"])]
    goals = {goal.figure: goal for goal in GOALS}
    for figure in by_target.get(ours, {}):
        value = by_target[ours][figure]
        unit = by_target.get(UNIT, {}).get(figure)
        shown = [_number(by_target[name].get(figure)) for name in targets]
        ratio = _number(value / unit) if unit else "-"
        lines.append(_row([figure, *shown, ratio, *_verdict(goals.get(figure), value, unit)]))
    return "\n".join(lines)


def machine() -> str:
    """What it ran on, in a line."""
    system = f"{platform.system()} {platform.machine()}, Python {platform.python_version()}"
    return f"{os.cpu_count()} cores, {system}"


def _verdict(goal: Goal | None, value: float, unit: float | None) -> tuple[str, str]:
    if goal is None:
        return "", ""
    wanted = [f"≤ {goal.most:g}"] if goal.most is not None else []
    if goal.ratio is not None:
        wanted.append(f"{'≥' if goal.more_is_better else '≤'} {goal.ratio:g}x")
    reached = goal.is_reached(value, unit)
    return ", ".join(wanted), "not known" if reached is None else "yes" if reached else "**no**"


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _number(value: float | None) -> str:
    if value is None:
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.2f}"
