"""What is known of calls that were begun and whose end nobody knows.

A tool may have a probe, which is told the idempotency key of a call and says whether it has taken
effect. All are asked at once, each for a bounded time. One that raises, says something else or is
not done in time has said nothing, also where it cannot be stopped: unknown means no.
"""

import asyncio
from collections.abc import Mapping, Sequence

import structlog

from app.ports import Probed, Tool
from app.runner.tasks import is_for_us, let_go
from app.turn.ids import CallId, TurnId, idempotency_key
from app.turn.lost_calls import Finding, LookedInto
from app.turn.open_calls import OpenCall

PROBE_SECONDS = 10.0
"""How long a probe may take for one call."""
_DEAF_SECONDS = 1.0
"""How long it may then take to end."""

_log = structlog.get_logger(__name__)


async def looked_into(
    turn_id: TurnId,
    calls: Sequence[OpenCall],
    arguments: Mapping[CallId, str],
    tools: Mapping[str, Tool],
    *,
    probes: bool,
) -> tuple[LookedInto, ...]:
    """What is known of the calls.

    Args:
        turn_id: whose calls they are.
        calls: those that were begun and whose end nobody knows.
        arguments: of the round, as stored.
        tools: of the agent, by name.
        probes: whether there is time to ask.
    """
    findings: Sequence[Finding | None] = (
        await asyncio.gather(*(_found(turn_id, call, tools) for call in calls))
        if probes
        else [None for _ in calls]
    )
    return tuple(
        LookedInto(call_id=call.call_id, arguments=arguments[call.call_id], finding=finding)
        for call, finding in zip(calls, findings, strict=True)
    )


async def _found(turn_id: TurnId, call: OpenCall, tools: Mapping[str, Tool]) -> Finding | None:
    tool = tools.get(call.tool_name)
    if tool is None or not tool.spec.has_probe or not isinstance(tool, Probed):
        return None
    asking = asyncio.create_task(tool.found(idempotency_key(turn_id, call.call_id)))
    try:
        await asyncio.wait((asking,), timeout=PROBE_SECONDS)
        if asking.done():
            return asking.result()
        _log.warning("probe_too_slow", turn_id=turn_id, tool=call.tool_name)
    except BaseException as error:
        if is_for_us(error):
            raise
        _log.exception("probe_failed", turn_id=turn_id, tool=call.tool_name)
    finally:
        await let_go((asking,), within_seconds=_DEAF_SECONDS)
    return "unknown"
