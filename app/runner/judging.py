"""What a call needs before it may begin, found out with the agent's own code.

In this order: its arguments have to fit, or the model is told so and nobody is asked to approve
nonsense; an approval that it has already counts; else the policy is asked, and the tool's own
`needs_approval` comes on top of what the policy allows.

It fails closed (T41, case 99): no answer of the policy in time, an exception or any other value
than the three is no permission. What was found out is kept while the turn is driven, and found out
anew when somebody has answered the call, or another worker drives.
"""

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass

import structlog

from app.ports import Allow, Deny, LoadedAgent, PolicyCall, RequireApproval
from app.ports.outputs import storable
from app.runner.tasks import is_for_us
from app.turn.ids import CallId
from app.turn.judging import needs_judging
from app.turn.open_calls import OpenCall
from app.turn.state import Turn
from app.turn.waits import (
    Allowed,
    ApprovalNeeded,
    Denied,
    JudgedCall,
    Judgement,
    NotJudged,
    fingerprint_of,
)

POLICY_SECONDS = 30.0
"""How long a policy may take for one call."""

_Verdict = Allow | RequireApproval | Deny

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A call as it was when it was judged."""

    call_id: CallId
    resumes: int


class Judge:
    """Judges the calls of one turn while it is driven."""

    def __init__(self, loaded: LoadedAgent) -> None:
        self._loaded = loaded
        self._found: dict[_Seen, Judgement] = {}

    def is_due(self, turn: Turn) -> bool:
        """Whether a call has to be judged that is not yet; none where the turn is to stop."""
        is_to_stop = turn.cancel_requested or turn.pause_requested
        return not is_to_stop and bool(self._unjudged(turn))

    async def judge(self, turn: Turn, arguments: Mapping[CallId, str]) -> None:
        """Judge what is not yet, all at once. `arguments` are the round's, as stored."""
        calls = self._unjudged(turn)
        found = await asyncio.gather(
            *(self._judgement(turn, call, arguments[call.call_id]) for call in calls)
        )
        self._found |= dict(zip(map(_seen, calls), found, strict=True))

    def known(self, turn: Turn) -> tuple[JudgedCall, ...]:
        """What is known of the turn's open calls."""
        return tuple(
            JudgedCall(call_id=call.call_id, judgement=self._found[_seen(call)])
            for call in turn.open_calls
            if _seen(call) in self._found
        )

    def _unjudged(self, turn: Turn) -> tuple[OpenCall, ...]:
        return tuple(
            call
            for call in turn.open_calls
            if needs_judging(call, self._loaded.agent) and _seen(call) not in self._found
        )

    async def _judgement(self, turn: Turn, call: OpenCall, arguments: str) -> Judgement:
        try:
            objection = self._loaded.tools[call.tool_name].look_at(arguments)
            if objection is not None:
                return objection
            if _is_approved(call, arguments):
                return Allowed(arguments=arguments)
            async with asyncio.timeout(POLICY_SECONDS):
                verdict = await self._asked(turn, call, arguments)
            return self._in_words_of_the_core(verdict, call, arguments)
        except BaseException as error:
            if is_for_us(error):
                raise
            _log.exception("policy_failed", turn_id=turn.identity.turn_id, tool=call.tool_name)
            return NotJudged()

    async def _asked(self, turn: Turn, call: OpenCall, arguments: str) -> object:
        """What the policy says, whatever that is."""
        if self._loaded.policy is None:
            return Allow()
        identity = turn.identity
        return await self._loaded.policy(
            PolicyCall(
                tool_name=call.tool_name,
                arguments=json.loads(arguments),
                call_id=call.call_id,
                turn_id=identity.turn_id,
                conversation_id=identity.conversation_id,
                tenant_id=identity.tenant_id,
                agent_id=identity.agent_id,
                agent_version=identity.agent_version,
            )
        )

    def _in_words_of_the_core(self, verdict: object, call: OpenCall, arguments: str) -> Judgement:
        match verdict:
            case Deny(code=code, message=message):
                return Denied(code=storable(code), message=storable(message))
            case RequireApproval(message=message):
                return _approval_needed(call, arguments, message)
            case Allow() if self._loaded.tools[call.tool_name].spec.needs_approval:
                return _approval_needed(call, arguments, None)
            case Allow():
                return Allowed(arguments=arguments)
            case _:
                said = f"a policy says Allow(), RequireApproval() or Deny(), not {type(verdict)}"
                raise TypeError(said)


def _seen(call: OpenCall) -> _Seen:
    return _Seen(call.call_id, call.resumes)


def _approval_needed(call: OpenCall, arguments: str, message: str | None) -> ApprovalNeeded:
    return ApprovalNeeded(
        content=arguments,
        fingerprint=fingerprint_of(call.tool_name, arguments),
        message=None if message is None else storable(message),
    )


def _is_approved(call: OpenCall, arguments: str) -> bool:
    """Whether somebody has approved the call as a whole, with these very arguments."""
    wanted = fingerprint_of(call.tool_name, arguments)
    return any(each.stage == "policy" and each.fingerprint == wanted for each in call.approvals)
