"""Options of a tool for its calls that were begun and whose end nobody knows."""

import inspect
from collections.abc import Awaitable, Callable
from typing import Literal, TypeAlias

from app.ports.probes import Done
from app.tools.errors import NotDone, refuse_tool
from app.tools.outputs import completed
from app.turn.agent import UNKNOWN_BY_EFFECT, AfterInterrupt, Effect, OnUnknown
from app.turn.lost_calls import Finding, FoundDone

OnUnknownName: TypeAlias = (
    OnUnknown | Literal["report", "rerun", "rerun_idempotent", "interrupt", "park"]
)
Probe: TypeAlias = Callable[[str], Awaitable[Done | NotDone | None]]
"""Told the idempotency key of a call: `Done(result)`, `NotDone(...)` or, not knowing, `None`."""

_NEEDS: dict[OnUnknown, frozenset[Effect]] = {
    OnUnknown.RERUN: frozenset({Effect.READS}),
    OnUnknown.RERUN_IDEMPOTENT: frozenset({Effect.READS, Effect.IDEMPOTENT}),
}


def unknown_rule(name: str, effect: Effect, rule: str | None) -> OnUnknown | None:
    """The rule, one that the effect allows; `None`: as the effect says."""
    if rule is None:
        return None
    try:
        known = OnUnknown(rule)
    except ValueError:
        kinds = ", ".join(repr(kind.value) for kind in OnUnknown)
        refuse_tool(name, f"on_unknown is one of {kinds}, not {rule!r}")
    if effect not in _NEEDS.get(known, frozenset(Effect)):
        why = f"{effect.value!r} tools are not run again so; it would do twice what it does"
        refuse_tool(name, f"cannot have on_unknown={known.value!r}: {why}")
    return known


def after(
    name: str, effect: Effect, rule: OnUnknown | None, value: str | None
) -> AfterInterrupt | None:
    """Whether the calls behind one that is not run to its end are given up with it."""
    if value is None:
        return None
    if value not in ("cascade", "independent"):
        refuse_tool(name, f"after_interrupt is 'cascade' or 'independent', not {value!r}")
    used = rule or UNKNOWN_BY_EFFECT[effect]
    if used not in {OnUnknown.INTERRUPT, OnUnknown.REPORT}:
        refuse_tool(name, f"after_interrupt is of no use with on_unknown={used.value!r}")
    return "cascade" if value == "cascade" else "independent"


def require_probe(name: str, probe: object) -> None:
    """Refuse what is no probe."""
    if probe is not None and not inspect.iscoroutinefunction(probe):
        refuse_tool(name, "probe must be an async function of the call's idempotency key")


async def asked(probe: Probe, key: str) -> Finding:
    """What the probe says.

    Raises:
        TypeError: it is nothing that a probe may say; and whatever the probe raises.
    """
    try:
        said: object = await probe(key)
    except NotDone:
        return "not_done"
    if isinstance(said, Done):
        return FoundDone(content=completed(said.result).content)
    if isinstance(said, NotDone):
        return "not_done"
    if said is None:
        return "unknown"
    wrong = f"a probe says Done(...), NotDone(...) or None, not {type(said)}"
    raise TypeError(wrong)
