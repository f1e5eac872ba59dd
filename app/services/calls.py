"""Answers to calls that wait for an approval or for an outside tool, and results that come late."""

from collections.abc import Mapping, Sequence
from functools import partial

from app.ports import Commit, DecidedApproval, KeptLateResult, LateResult
from app.services.commands import Check, Commanded, carry_out
from app.services.deps import Caller, Services
from app.services.errors import RequesterMayNotApprove
from app.services.found import get_turn, require_agent
from app.turn.errors import CorrelationMismatch, Rejected, WaitExpired
from app.turn.ids import CallId, TurnId
from app.turn.inputs import ApproveTool, CallCommand, GiveToolError, GiveToolResult, RejectTool
from app.turn.state import Turn
from app.turn.waits import ApprovalWait

_ASKING = ("START_TURN", "MESSAGE", "REPLAN_WITH_MESSAGE", "USER_INPUT")
"""Commands that say what a turn is to do; whoever gave one has asked for what it does."""
MOST_LATE_BYTES = 64 * 1024
"""Of a late result, in UTF-8; the rest is cut off."""

_ACTIONS: Mapping[type[CallCommand], str] = {
    ApproveTool: "APPROVE_TOOL",
    RejectTool: "REJECT_TOOL",
    GiveToolResult: "TOOL_RESULT",
    GiveToolError: "TOOL_ERROR",
}


async def answer_call(
    services: Services,
    caller: Caller,
    turn_id: TurnId,
    given: CallCommand,
    *,
    expected_version: int | None = None,
) -> Commanded:
    """The turn, its call being answered.

    A result for a call that takes none any more is refused and kept (T83, T83a).

    Raises:
        TurnNotFound, AgentVersionUnavailable, RequesterMayNotApprove: as their names say.
        Rejected: the turn does not admit the command.
        VersionMoved: it is not at `expected_version`.
        Contended: it lost every race.
    """
    stored = await get_turn(services, caller, turn_id)
    if not isinstance(given, RejectTool) and _waits(stored.turn, given.call_id):
        require_agent(services, stored)  # a rejection closes a call only (T97)
    audit = caller.entry(
        _ACTIONS[type(given)],
        conversation_id=stored.turn.identity.conversation_id,
        turn_id=turn_id,
        call_id=given.call_id,
    )
    try:
        return await carry_out(
            services,
            caller,
            stored,
            given,
            audit,
            check=_check(services, caller, given),
            expected_version=expected_version,
        )
    except Rejected as refusal:
        await _keep_what_is_late(services, caller, given, refusal)
        raise


def _waits(turn: Turn, call_id: CallId) -> bool:
    return any(call.call_id == call_id for call in turn.waiting_calls)


def _check(services: Services, caller: Caller, given: CallCommand) -> Check | None:
    if isinstance(given, ApproveTool | GiveToolResult):
        return partial(_is_not_excluded, services, caller, given.call_id)
    return None


async def _is_not_excluded(
    services: Services, caller: Caller, call_id: CallId, commit: Commit
) -> None:
    """Raises `RequesterMayNotApprove` where whoever has asked may not approve.

    Nor may they say what has come of a call whose end nobody knows: it would stand for a result.

    Those are the owner of the conversation, and everybody who has said something in it: an operator
    may speak in a conversation of somebody else's, and is no second pair of eyes then.
    """
    turn = commit.before
    waits = {call.call_id: call.wait for call in turn.waiting_calls}
    wait = waits.get(call_id)
    if not (isinstance(wait, ApprovalWait) and wait.excludes_requester):
        return
    principal, conversation_id = caller.principal, turn.identity.conversation_id
    found = await services.conversations.summary(principal.scope, conversation_id)
    if (
        found is None
        or found.conversation.owner_id == principal.actor_id
        or await services.conversations.has_commanded(
            principal.scope, conversation_id, principal.actor_id, _ASKING
        )
    ):
        detail = (
            f"call {call_id!r} is to be approved by somebody else than {principal.actor_id!r}, "
            "who asked for it"
        )
        raise RequesterMayNotApprove(detail, turn)


async def _keep_what_is_late(
    services: Services, caller: Caller, given: CallCommand, refusal: Rejected
) -> None:
    """A call that is open takes another answer, unless this one was for another call or late."""
    if not isinstance(given, GiveToolResult | GiveToolError):
        return
    turn = refusal.turn
    is_open = any(call.call_id == given.call_id for call in turn.open_calls)
    if is_open and not isinstance(refusal, CorrelationMismatch | WaitExpired):
        return
    await services.late_results.keep(turn, _late(caller, given), is_open=is_open)


def _late(caller: Caller, given: GiveToolResult | GiveToolError) -> LateResult:
    text = given.output if isinstance(given, GiveToolResult) else given.message
    said = text.encode()
    return LateResult(
        call_id=given.call_id,
        kind="TOOL_RESULT" if isinstance(given, GiveToolResult) else "TOOL_ERROR",
        code=None if isinstance(given, GiveToolResult) else given.code,
        body=said[:MOST_LATE_BYTES].decode(errors="ignore"),
        is_cut=len(said) > MOST_LATE_BYTES,
        actor_id=caller.principal.actor_id,
    )


async def list_approvals(
    services: Services, caller: Caller, turn_id: TurnId, *, after: int, limit: int
) -> Sequence[DecidedApproval]:
    """What was approved and rejected behind the sequence `after`. Raises `TurnNotFound`."""
    await get_turn(services, caller, turn_id)
    return await services.waits.approvals(turn_id, after=after, limit=limit)


async def list_late_results(
    services: Services, caller: Caller, turn_id: TurnId, *, after: int, limit: int
) -> Sequence[KeptLateResult]:
    """The turn's late results behind the number `after`. Raises `TurnNotFound`."""
    await get_turn(services, caller, turn_id)
    return await services.late_results.page(turn_id, after=after, limit=limit)
