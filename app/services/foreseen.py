"""What a message would do now: decided as it would be, and not carried out.

The decision is the very one of `app.services.drafts`; what is left out is the writing. Nothing is
kept of it: no event, no audit row, no message id.
"""

from dataclasses import dataclass
from typing import Literal

from app.runner.exact_agent import exact_agent
from app.services.deps import Caller, Services
from app.services.drafts import Draft, calls_at_the_end, opening, request_to, turn_that_has
from app.turn.decide import decide_request
from app.turn.effects import Brought, Effect, brought
from app.turn.ids import ConversationId, TurnId
from app.turn.state import Turn
from app.turn.status import Status
from app.turn.transcript import ToolResult


@dataclass(frozen=True, slots=True, kw_only=True)
class Foreseen:
    """What a message would do."""

    effect: Effect | Literal["KNOWN"]
    conversation_id: ConversationId | None
    """`None`: a new one, whose id is still to be made."""
    turn_id: TurnId | None
    """The turn that would take it, or has it (`KNOWN`); `None`: one that is still to be opened."""
    closes: tuple[ToolResult, ...] = ()
    """The results that would close open calls, in declared order."""


async def foresee(services: Services, caller: Caller, draft: Draft) -> Foreseen:
    """What `post_message` would do with the draft now.

    Raises:
        As `post_message` would, but for what comes of races and of commits.
    """
    scope = caller.principal.scope
    found = await services.conversations.look_up(scope, draft.conversation_id, draft.message_id)
    known = turn_that_has(draft, found)
    if known is not None:
        return Foreseen(effect="KNOWN", conversation_id=draft.conversation_id, turn_id=known)
    if found.active is None:
        unanswered = await calls_at_the_end(services, caller, found)
        _, commit = opening(services, caller, draft, found, unanswered)
        is_unnamed = draft.is_in_new_conversation and found.conversation is None
        conversation_id = None if is_unnamed else draft.conversation_id
        return _foreseen(brought(None, commit.events), conversation_id, None)
    turn = found.active.turn
    loaded = exact_agent(services.catalog, turn.identity)
    is_orphaned = await _is_orphaned(services, caller, turn)
    events = decide_request(
        turn,
        request_to(services, draft, found.active, is_orphaned=is_orphaned),
        at=services.clock(),
        agent=None if loaded is None else loaded.agent,
    )
    return _foreseen(brought(turn, events), draft.conversation_id, turn.identity.turn_id)


async def _is_orphaned(services: Services, caller: Caller, turn: Turn) -> bool:
    if turn.status is not Status.RUNNING:
        return False
    scope, conversation_id = caller.principal.scope, turn.identity.conversation_id
    standing = await services.histories.standing(scope, conversation_id)
    return standing is not None and standing.is_lost


def _foreseen(
    what: Brought, conversation_id: ConversationId | None, turn_id: TurnId | None
) -> Foreseen:
    return Foreseen(
        effect=what.effect, conversation_id=conversation_id, turn_id=turn_id, closes=what.closes
    )
