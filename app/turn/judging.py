"""Which calls need a judgement before they begin, and what the judgement comes to.

The shell finds out what a call needs, since that takes the agent's own code: whether its arguments
fit, what the policy says, what a form asks for (`app.turn.waits`, "What the shell finds out"). It
hands that in with the report that may begin the call. No judgement, no begin: unknown means no.
"""

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from app.turn.agent import Agent, ToolKind
from app.turn.ids import CallId
from app.turn.open_calls import OpenCall
from app.turn.waits import Allowed, ApprovalNeeded, ApprovalStage, JudgedCall, Judgement, NotJudged

Judged: TypeAlias = Mapping[CallId, Judgement]
NOTHING_JUDGED: Judged = {}


def needs_judging(call: OpenCall, agent: Agent) -> bool:
    """Whether the call may begin only with a judgement.

    One that has been entered was allowed, and one that waits has its judgement already.
    """
    spec = agent.tool(call.tool_name)
    if spec is None or call.attempt > 0 or call.wait is not None:
        return False
    return agent.has_policy or spec.needs_approval or spec.kind != "local"


def by_call(judged: Iterable[JudgedCall]) -> Judged:
    """The judgements, to be looked up by call; of two on one call the later counts."""
    return {each.call_id: each.judgement for each in judged}


def judgement_on(call: OpenCall, agent: Agent, judged: Judged) -> Judgement | None:
    """What is known of a call that has no wait; `None`: the shell has to find out first.

    What somebody has approved since it was judged is allowed. A judgement that the call's kind of
    tool cannot be begun with is none that the policy may give.
    """
    if not needs_judging(call, agent):
        return Allowed()
    match judged.get(call.call_id):
        case ApprovalNeeded(fingerprint=fingerprint, content=content) if is_approved(
            call, "policy", fingerprint
        ):
            return Allowed(arguments=content)
        case Allowed(arguments=None) if kind_of(call, agent) == "external":
            return NotJudged()
        case Allowed() if kind_of(call, agent) == "input":
            return NotJudged()
        case judgement:
            return judgement


def is_approved(call: OpenCall, stage: ApprovalStage, fingerprint: str) -> bool:
    """Whether somebody has approved this very request; never whether another one (case 96)."""
    return any((each.stage, each.fingerprint) == (stage, fingerprint) for each in call.approvals)


def kind_of(call: OpenCall, agent: Agent) -> ToolKind:
    """What kind of tool the call is for; one that the agent does not have is none of the others."""
    spec = agent.tool(call.tool_name)
    return "local" if spec is None else spec.kind
