"""A payment with two levels of approval, killed between any two commits.

What it costs is read anew each time the tool is entered, and changes once finance has looked at it.
The bank's book is outside the turn's transaction. Wherever the process dies: what was paid is what
both levels have approved, once, and nothing was paid that was not.
"""

import asyncio
from collections.abc import Mapping, Sequence
from itertools import product

import orjson
import pytest

from app.ports import StoredTurn
from app.services.calls import answer_call
from app.services.deps import Services
from app.services.drafts import Draft
from app.services.messages import post_message
from app.services.turns import wait_until_at_rest
from app.turn import events as e
from app.turn.errors import Rejected
from app.turn.ids import AgentId, ConversationId, MessageId
from app.turn.inputs import ApproveTool
from app.turn.status import Status
from app.turn.transcript import Outcome, TextPart
from app.turn.waits import ApprovalWait
from tests.e2e.conftest import Stage
from tests.support.bench import CALLER
from tests.support.deaths import Fate, Fault, lives
from tests.support.ledger import Bank
from tests.support.oracles import Record
from tests.support.sizes import IS_SOAK
from tests.support.story import MODEL
from tests.support.waits import DONE, asks, call
from tests.support.waits_cashier import cashier
from tests.support.waits_checks import check_waits

BEFORE, AFTER = 20_000, 30_000
LEVELS = {"finance", "compliance"}
ALL = list(product(["pay_in_levels", "pay_in_levels_by_key"], Fault))
SHARE = [
    ("pay_in_levels", Fault.DEATH_BEFORE_COMMIT),
    ("pay_in_levels", Fault.DEATH_AFTER_COMMIT),
    ("pay_in_levels_by_key", Fault.DEATH_BEFORE_COMMIT),
]
LEAST_COMMITS = 11
"""The message, the begin, the answer with its first entry; three approvals, a begin and an end
behind each; the last answer, at least."""


@pytest.mark.parametrize(("tool", "fault"), ALL if IS_SOAK else SHARE)
async def test_what_is_paid_is_what_was_approved_wherever_the_process_dies(
    stage: Stage, tool: str, fault: Fault
) -> None:
    fate, n = Fate(fault, at=frozenset()), 0
    while fate.struck >= fate.at:
        n += 1
        fate = await run(stage, tool, Fate(fault, at=frozenset({n})))

    every = await check_waits(stage.dsn, Bank(stage.ledger.folder))
    assert len(every) == n
    for record in every:
        check_payment(record, tool, Bank(stage.ledger.folder))
    if fault is not Fault.DEATH_AFTER_CLAIM:
        assert n > LEAST_COMMITS


async def run(stage: Stage, tool: str, fate: Fate) -> Fate:
    """One payment, to its end."""
    bank = Bank(stage.ledger.folder)
    bank.set_price(BEFORE)
    stage.provider.script(MODEL, [asks(call("A", tool, order="o1")), DONE])
    draft = Draft(
        conversation_id=ConversationId(f"ses_{min(fate.at)}"),
        content=(TextPart(text="Pay it."),),
        message_id=MessageId("m1"),
        agent_id=AgentId("cashier"),
    )

    async def client(services: Services) -> StoredTurn:
        """Approves whatever is shown, and looks again where it got no answer."""
        stored = (await post_message(services, CALLER, draft)).stored
        while True:
            stored = await wait_until_at_rest(
                services, CALLER, stored, seconds=15, stopping=asyncio.Event()
            )
            if stored.turn.status is not Status.WAITING_FOR_APPROVAL:
                return stored
            stored = await approved(services, stored, bank)

    ended = await lives(stage.settings, stage.dsn, [cashier(bank)], fate, client)
    assert ended.turn.status is Status.COMPLETED
    return fate


async def approved(services: Services, stored: StoredTurn, bank: Bank) -> StoredTurn:
    """The turn behind the approval of exactly what it shows; the price moves meanwhile."""
    (waiting,) = stored.turn.waiting_calls
    assert isinstance(waiting.wait, ApprovalWait)
    command = ApproveTool(
        call_id=waiting.call_id,
        actor_id=CALLER.principal.actor_id,
        fingerprint=waiting.wait.fingerprint,
    )
    bank.set_price(AFTER)
    try:
        return (await answer_call(services, CALLER, stored.turn.identity.turn_id, command)).stored
    except Rejected:  # it was taken, and the answer was lost
        return stored


def check_payment(record: Record, tool: str, bank: Bank) -> None:
    """Paid once at most, at the price of now, with both levels' approval of that very price."""
    paid = [deed.amount for deed in bank.payments() if deed.turn_id == record.turn.identity.turn_id]
    contents = shown(record)
    for amount in paid:
        agreed = [contents[fingerprint] for fingerprint in agreed_to(record)]
        levels = {content["level"] for content in agreed if content["amount"] == amount}
        assert levels == LEVELS
    outcome = record.results["A"].outcome
    if outcome is Outcome.COMPLETED:
        assert (paid, record.results["A"].content) == ([AFTER], f"paid {AFTER}")
    else:
        assert (outcome, tool) == (Outcome.UNKNOWN, "pay_in_levels")


def shown(record: Record) -> Mapping[str, Mapping[str, object]]:
    """What was put to people, by its fingerprint."""
    asked = (event for event in record.events if isinstance(event, e.ToolApprovalRequested))
    return {event.wait.fingerprint: orjson.loads(event.wait.content) for event in asked}


def agreed_to(record: Record) -> Sequence[str]:
    decided = (event for event in record.events if isinstance(event, e.ToolApprovalDecided))
    return [event.fingerprint for event in decided if event.is_approved]
