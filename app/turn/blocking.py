"""Tools whose error stands in the way of the calls behind them (turn semantics T49, C10).

A call of such a tool is a bar: what follows it in the answer begins when it has ended well. So what
is given up after its error has certainly not begun, whichever tool would have been the quicker.
"""

from collections.abc import Iterable, Iterator

from app.turn import events as e
from app.turn.agent import Agent
from app.turn.evolve import advance
from app.turn.ids import CallId
from app.turn.state import Turn
from app.turn.transcript import InterruptionReason, Outcome, ToolResult

_WORDS = (
    "The call was not started, because a call before it failed that it may depend on. "
    "Nothing was done."
)


def held_back(turn: Turn, agent: Agent) -> frozenset[CallId]:
    """The open calls that stand behind an open call of a tool with `block_following`."""
    held: set[CallId] = set()
    is_barred = False
    for call in turn.open_calls:
        if is_barred:
            held.add(call.call_id)
        is_barred = is_barred or _blocks(agent, call.tool_name)
    return frozenset(held)


def given_up(turn: Turn, ended: tuple[e.Event, ...], agent: Agent) -> tuple[e.Event, ...]:
    """The results of calls that do not begin any more, given how others of the round ended.

    Args:
        turn: before those events.
        ended: what became of calls; the error of a tool with `block_following` bars the rest.
        agent: knows the tools.
    """
    first = min(_bars(ended, agent), default=None)
    if first is None:
        return ()
    return tuple(
        e.ToolInterrupted(
            position=call.position,
            result=ToolResult(
                call_id=call.call_id,
                tool_name=call.tool_name,
                outcome=Outcome.NOT_STARTED,
                content=_WORDS,
            ),
            reason=InterruptionReason.EARLIER_CALL_FAILED,
        )
        for call in advance(turn, ended).open_calls
        if call.position > first
    )


def _bars(ended: Iterable[e.Event], agent: Agent) -> Iterator[int]:
    """The places of the errors that bar what stands behind them."""
    for event in ended:
        if isinstance(event, e.ToolFailed | e.ExternalToolFailed) and _blocks(
            agent, event.result.tool_name
        ):
            yield event.position


def _blocks(agent: Agent, tool_name: str) -> bool:
    spec = agent.tool(tool_name)
    return spec is not None and spec.block_following
