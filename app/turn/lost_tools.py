"""What becomes of the calls of a round whose worker is gone, or has ended them itself.

A call that never began runs, under every rule. One that had begun may or may not have taken effect.
Where its tool has a probe, that is asked first:

    done          the result that it found is the call's (`keep`)
    not done      it is run, under every rule: it is known that nothing was done
    unknown       by the rule, as without a probe

The rule is the tool's (turn semantics C1); where it names none, that of its effect:

    report            the model is told that the outcome is unknown (`writes`)
    rerun             entered again (`reads`)
    rerun_idempotent  entered again under the same idempotency key (`idempotent`)
    interrupt         as `report`; the unfinished calls behind it are given up, whatever they would
                      do, unless its tool wants it otherwise (C2, case 64)
    park              a person is asked: done with this result, not done, or to be given up

No rule runs a call again whose agent replays none, or whose turn was opened so. One that waits for
somebody is left as it is: a question is no crash, and what is outside is not asked for twice (T107,
T108, case 112).

With a message waiting that steers the turn nothing is run again: each is reported (T9). The same in
a round of which it is decided that the turn fails (T48).
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import RERUNS, UNKNOWN_BY_EFFECT, Agent, OnUnknown
from app.turn.interruption import interrupted
from app.turn.lost_calls import FoundDone, LookedInto
from app.turn.open_calls import OpenCall
from app.turn.opening import parked
from app.turn.state import Turn
from app.turn.states import RunningTools
from app.turn.transcript import InterruptionReason, Outcome, ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Fate:
    """What becomes of a call, and why."""

    call: OpenCall
    told: e.RecoveredCall
    looked: LookedInto | None
    is_behind: bool
    """Whether it is given up because of a call before it."""


def declared_rule(turn: Turn, call: OpenCall, agent: Agent | None) -> OnUnknown:
    """What its tool, its agent and its turn want of a call whose end nobody knows.

    Where they are not there to say it nothing is run: unknown means no.
    """
    spec = None if agent is None else agent.tool(call.tool_name)
    if agent is None or spec is None:
        return OnUnknown.REPORT
    rule = spec.on_unknown or UNKNOWN_BY_EFFECT[call.effect]
    is_never = agent.never_replay or turn.never_replay
    return OnUnknown.REPORT if is_never and rule in RERUNS else rule


def foreseen(turn: Turn, agent: Agent | None) -> tuple[e.RecoveredCall, ...]:
    """What becomes of each open call when the turn goes on, in declared order.

    One that waits for somebody is not among them: nothing becomes of it. What a probe may find out
    is not foreseen. Without its agent nobody knows what a tool wants: it is reported.
    """
    return tuple(fate.told for fate in fates(turn, agent, None))


def fates(
    turn: Turn, agent: Agent | None, looked_into: tuple[LookedInto, ...] | None
) -> tuple[Fate, ...]:
    """What becomes of each open call that waits for nobody, in declared order.

    Args:
        turn: with the round that is lost.
        agent: its own, if it is there.
        looked_into: what was found out; `None`: it is only foreseen what will become of them.
    """
    looked = {each.call_id: each for each in looked_into or ()}
    ends_round = _goes_no_further(turn)
    found: list[Fate] = []
    is_behind = False
    for call in turn.open_calls:
        if call.wait is not None:
            continue
        known = looked.get(call.call_id)
        declared = OnUnknown.REPORT if ends_round else declared_rule(turn, call, agent)
        rule: e.RecoveryRule = _by_what_is_known(call, known) or declared.value
        if is_behind and rule != "keep":
            rule = "interrupt"
        if rule == "park" and known is None and looked_into is not None:
            rule = "report"  # there is nothing to ask somebody with
        told = e.RecoveredCall(call_id=call.call_id, rule=rule, probed=_probed(call, known))
        found.append(Fate(call=call, told=told, looked=known, is_behind=is_behind))
        is_behind = is_behind or (not ends_round and _cascades(call, rule, agent))
    return tuple(found)


def results(decided: tuple[Fate, ...], given: i.StepLost, agent: Agent) -> Iterator[e.Event]:
    """The events behind the one that tells of the recovery, in declared order."""
    cut_off, lost = InterruptionReason.CUT_OFF, InterruptionReason.WORKER_LOST
    why = cut_off if given.is_cut_off else lost
    for fate in decided:
        match fate.told.rule:
            case "keep":
                yield _kept(fate)
            case "report" | "interrupt":
                yield _answered(fate, why)
            case "park" if fate.looked is not None:
                wait = parked(fate.call, fate.looked.arguments, agent)
                yield e.ToolPutAside(call_id=fate.call.call_id, wait=wait)
            case _:
                pass


def looked_at(turn: Turn) -> tuple[OpenCall, ...]:
    """The calls that a recovery has to look into: begun, and their end not known."""
    return tuple(call for call in turn.open_calls if call.wait is None and call.may_have_run)


def _goes_no_further(turn: Turn) -> bool:
    is_failing = isinstance(turn.state, RunningTools) and turn.state.is_failing
    return is_failing or bool(turn.steering)


def _by_what_is_known(call: OpenCall, looked: LookedInto | None) -> e.RecoveryRule | None:
    """The rule that no tool has a say in; `None`: nobody knows how the call has ended."""
    if not call.may_have_run:
        return "run"
    finding = None if looked is None else looked.finding
    if isinstance(finding, FoundDone):
        return "keep"
    return "run" if finding == "not_done" else None


def _probed(call: OpenCall, looked: LookedInto | None) -> e.ProbeFinding | None:
    if looked is None or not call.may_have_run:
        return None
    return "done" if isinstance(looked.finding, FoundDone) else looked.finding


def _cascades(call: OpenCall, rule: e.RecoveryRule, agent: Agent | None) -> bool:
    """Whether what stands behind it in the answer is given up (C2)."""
    if rule not in {"report", "interrupt"}:
        return False
    spec = None if agent is None else agent.tool(call.tool_name)
    wants = None if spec is None else spec.after_interrupt
    return (wants or ("cascade" if rule == "interrupt" else "independent")) == "cascade"


def _kept(fate: Fate) -> e.ToolCompleted:
    call, looked = fate.call, fate.looked
    found = None if looked is None else looked.finding
    result = ToolResult(
        call_id=call.call_id,
        tool_name=call.tool_name,
        outcome=Outcome.COMPLETED,
        content=found.content if isinstance(found, FoundDone) else "",
    )
    return e.ToolCompleted(position=call.position, result=result, known_by="probe")


def _answered(fate: Fate, why: InterruptionReason) -> e.ToolInterrupted:
    reason = InterruptionReason.EARLIER_CALL_INTERRUPTED if fate.is_behind else why
    call = fate.call
    if fate.told.probed == "not_done":
        call = replace(call, undone=call.attempt - call.failures - call.asks)
    if call.may_have_had_effect:
        return interrupted(call, Outcome.UNKNOWN, reason)
    never = call.attempt == 0
    return interrupted(call, Outcome.NOT_STARTED if never else Outcome.CANCELLED, reason)
