"""The limits of a turn, and which of them is reached.

Counts are of what succeeded or was entered, so a failed model call costs a step and no iteration
(C15). A budget of tokens is broken above its figure, the others are reached at theirs (AF-111).
The order is that of turn semantics T23 to T25: time and tokens, steps, then what is due next.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from app.turn.agent import Agent, Limits
from app.turn.judging import kind_of
from app.turn.state import Turn
from app.turn.states import RunningTools, ToolsDue
from app.turn.status import LimitName
from app.turn.transcript import Usage

_NO_LIMIT = 10**9


@dataclass(frozen=True, slots=True, kw_only=True)
class Broken:
    """A limit that keeps the turn from going on."""

    limit: LimitName
    used: float
    allowed: float


def broken_limit(turn: Turn, agent: Agent, *, at: datetime) -> Broken | None:
    """The first limit that forbids the next step, or `None`."""
    return next(_broken(turn, agent, at), None)


def free_tool_calls(turn: Turn, limits: Limits) -> int:
    """How many tools may still be entered."""
    if limits.max_tool_calls is None:
        return _NO_LIMIT
    return max(limits.max_tool_calls - turn.counters.tool_calls, 0)


def _broken(turn: Turn, agent: Agent, at: datetime) -> Iterator[Broken]:
    limits = turn.limits_under(agent)
    yield from _duration(turn, limits, at)
    yield from _tokens(turn.usage, limits)
    counters = turn.counters
    if isinstance(turn.state, ToolsDue | RunningTools):
        if _enters_next(turn, agent):
            yield from _reached(LimitName.TOOL_CALLS, counters.tool_calls, limits.max_tool_calls)
        yield from _reached(LimitName.STEPS, counters.steps, limits.max_steps)
        return
    yield from _reached(LimitName.STEPS, counters.steps, limits.max_steps)
    yield from _reached(LimitName.ITERATIONS, counters.model_successes, limits.max_iterations)


def _enters_next(turn: Turn, agent: Agent) -> bool:
    """Whether tools are to be entered before anything else is waited for.

    What asks the user counts as no call (seed rule AF-79), and what is open is waited for first.
    """
    return not turn.waiting_calls and any(
        kind_of(call, agent) != "input" for call in turn.open_calls
    )


def _duration(turn: Turn, limits: Limits, at: datetime) -> Iterator[Broken]:
    if limits.max_duration is None:
        return
    not_counted = timedelta(0) if limits.count_waiting else turn.waited
    used = at - turn.created_at - not_counted
    yield from _reached(
        LimitName.DURATION, used.total_seconds(), limits.max_duration.total_seconds()
    )


def _tokens(usage: Usage, limits: Limits) -> Iterator[Broken]:
    sent, written = usage.input_tokens or 0, usage.output_tokens or 0
    yield from _passed(LimitName.INPUT_TOKENS, sent, limits.max_input_tokens)
    yield from _passed(LimitName.OUTPUT_TOKENS, written, limits.max_output_tokens)
    yield from _passed(LimitName.TOTAL_TOKENS, sent + written, limits.max_total_tokens)


def _reached(limit: LimitName, used: float, allowed: float | None) -> Iterator[Broken]:
    if allowed is not None and used >= allowed:
        yield Broken(limit=limit, used=used, allowed=allowed)


def _passed(limit: LimitName, used: float, allowed: float | None) -> Iterator[Broken]:
    if allowed is not None and used > allowed:
        yield Broken(limit=limit, used=used, allowed=allowed)
