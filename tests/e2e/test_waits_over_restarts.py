"""Whatever a turn waits for, a restart changes nothing about it, and it goes on with its answer."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import timedelta

import pytest

from app.agents import Agent, RetryPolicy
from app.ports import StoredTurn
from app.services.calls import answer_call
from app.services.deps import Services
from app.services.drafts import Draft
from app.services.messages import post_message
from app.services.turns import wait_until_at_rest
from app.tools import Ask, tool
from app.turn.errors import Rejected
from app.turn.ids import AgentId, ConversationId, MessageId
from app.turn.inputs import ApproveTool, CallCommand, GiveToolResult
from app.turn.open_calls import OpenCall
from app.turn.status import Status
from app.turn.transcript import Outcome, TextPart
from app.turn.waits import ApprovalWait
from tests.e2e.conftest import Stage
from tests.support.bench import CALLER
from tests.support.deaths import Fate, Fault, let_claims_run_out, lives
from tests.support.ledger import Bank
from tests.support.sizes import IS_SOAK
from tests.support.story import MODEL, QUOTA
from tests.support.waits import DONE, Desk, Round, Turn, a_desk, asks, call
from tests.support.waits_cashier import cashier
from tests.support.waits_checks import check_waits

LATER = RetryPolicy(max_retries=1, initial_delay=timedelta(hours=1), max_delay=timedelta(hours=1))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """A way to wait, and a way to go on."""

    rounds: tuple[Round, ...]
    status: str
    goes_on: Callable[[Desk, Turn], Awaitable[Turn]]
    agent: str = "cashier"


async def _retried(desk: Desk, turn: Turn) -> Turn:
    desk.stage.provider.script(MODEL, [DONE])
    answer = await desk.sends(turn, "RETRY_MODEL", failureId=turn["failureId"])
    return await desk.rests(answer.json())


async def _continued(desk: Desk, turn: Turn) -> Turn:
    desk.stage.provider.script(MODEL, [DONE])
    answer = await desk.sends(turn, "CONTINUE")
    return await desk.rests(answer.json())


OUTAGE: Round = {"text": "", "faults": [QUOTA | {"times": 9}]}
OVERLOADED: Round = {"text": "", "faults": [{"status": 503, "times": 9}]}
WAITS = {
    "an approval of the policy's stage": Wait(
        rounds=(asks(call("A", "gated_pay", amount=7)),),
        status="WAITING_FOR_APPROVAL",
        goes_on=lambda desk, turn: desk.approves(turn, "A"),
    ),
    "an approval of the tool's stage": Wait(
        rounds=(asks(call("A", "shuffle"), call("B", "wrap")),),
        status="WAITING_FOR_APPROVAL",
        goes_on=lambda desk, turn: desk.rejects(turn, "A"),
    ),
    "a form of the model's": Wait(
        rounds=(asks(call("A", "request_user_input", message="?", form="address")),),
        status="WAITING_FOR_USER",
        goes_on=lambda desk, turn: desk.fills_in(turn, "A", city="Oslo"),
    ),
    "a form of a tool's": Wait(
        rounds=(asks(call("A", "ship", parcel="p")),),
        status="WAITING_FOR_USER",
        goes_on=lambda desk, turn: desk.fills_in(turn, "A", city="Oslo"),
    ),
    "a plain question": Wait(
        rounds=(asks(call("A", "ask")), DONE),
        status="WAITING_FOR_USER",
        goes_on=lambda desk, turn: desk.says("Tokyo", conversation=turn["conversationId"]),
    ),
    "an outside tool": Wait(
        rounds=(asks(call("A", "scan", parcel="p")),),
        status="WAITING_FOR_TOOL",
        goes_on=lambda desk, turn: desk.delivers(turn, "A", "scanned"),
    ),
    "several at once": Wait(
        rounds=(
            asks(
                call("A", "request_user_input", message="?"),
                call("B", "scan", parcel="b"),
                call("C", "gated_pay", amount=3),
            ),
        ),
        status="WAITING_FOR_USER",
        goes_on=lambda desk, turn: desk.approves(turn, "C"),
        agent="together",
    ),
    "its model": Wait(rounds=(OUTAGE,), status="WAITING_FOR_MODEL", goes_on=_retried),
    "a retry": Wait(
        rounds=(OVERLOADED,), status="RETRY_SCHEDULED", goes_on=_continued, agent="patient"
    ),
}


@pytest.mark.parametrize("wait", WAITS.values(), ids=WAITS.keys())
async def test_case_133_a_turn_that_waits_is_after_a_restart_what_it_was(
    stage: Stage, wait: Wait
) -> None:
    agents = every_agent(Bank(stage.ledger.folder))
    async with a_desk(stage, *agents) as desk:
        stage.provider.script(MODEL, [*wait.rounds, DONE, DONE])
        sent = await desk.service.send("ses_1", "Go.", agentId=wait.agent)
        before = await desk.rests(sent)
        entered = desk.bank.entered()
        asked = len(desk.requests())
    await let_claims_run_out(stage.dsn)
    async with a_desk(stage, *agents) as desk:
        after = await desk.now(before)
        listed = await desk.listed("/turns", status=wait.status)
        assert (desk.bank.entered(), len(desk.requests())) == (entered, asked)
        went_on = await wait.goes_on(desk, after)

    assert before["status"] == wait.status
    assert after == before
    assert listed == [before]
    assert went_on["version"] > before["version"]


def every_agent(bank: Bank) -> tuple[Agent, ...]:
    @tool
    async def ask() -> str:
        """Ask where to go."""
        raise Ask("Where to?")

    whole = cashier(bank)
    return (
        replace(whole, tools=(*whole.tools, ask)),
        cashier(bank, id="together", open_waits="together"),
        cashier(bank, id="patient", retry=LATER),
    )


# --- Deaths ---------------------------------------------------------------------------------------

MIXED = asks(
    call("A", "gated_pay", amount=7),
    call("B", "scan", parcel="b"),
    call("C", "pay", amount=1),
    call("D", "gated_scan", parcel="d"),
    call("E", "look_up", what="e"),
)


@pytest.mark.parametrize("agent", ["cashier", "together"])
@pytest.mark.parametrize(
    "fault",
    [Fault.DEATH_AFTER_COMMIT, *([Fault.DEATH_BEFORE_COMMIT] if IS_SOAK else [])],
    ids=lambda fault: fault.name.lower(),
)
async def test_case_112_nothing_is_handed_over_twice_wherever_the_process_dies(
    stage: Stage, agent: str, fault: Fault
) -> None:
    fate, n = Fate(fault, at=frozenset()), 0
    while fate.struck >= fate.at:
        n += 1
        fate = await run_mixed(stage, agent, Fate(fault, at=frozenset({n})))

    for record in await check_waits(stage.dsn, Bank(stage.ledger.folder)):
        assert record.types.count("EXTERNAL_TOOL_REQUESTED") == 2
        assert record.types.count("TOOL_APPROVAL_REQUESTED") == 2
        outcomes = {call_id: result.outcome for call_id, result in record.results.items()}
        assert [outcomes[call_id] for call_id in "BD"] == [Outcome.COMPLETED] * 2
    assert n > 10


async def run_mixed(stage: Stage, agent: str, fate: Fate) -> Fate:
    """One conversation, to its end; everything that waits is answered, the last of it first."""
    stage.provider.script(MODEL, [MIXED, DONE])
    draft = Draft(
        conversation_id=ConversationId(f"ses_{min(fate.at)}"),
        content=(TextPart(text="Go."),),
        message_id=MessageId("m1"),
        agent_id=AgentId(agent),
    )

    async def client(services: Services) -> StoredTurn:
        stored = (await post_message(services, CALLER, draft)).stored
        while True:
            stored = await wait_until_at_rest(
                services, CALLER, stored, seconds=15, stopping=asyncio.Event()
            )
            if not stored.turn.waiting_calls:
                return stored
            command = answer_to(stored.turn.waiting_calls[-1])
            with suppress(Rejected):  # it was taken before, and the answer was lost
                turn_id = stored.turn.identity.turn_id
                stored = (await answer_call(services, CALLER, turn_id, command)).stored

    agents = every_agent(Bank(stage.ledger.folder))
    ended = await lives(stage.settings, stage.dsn, agents, fate, client)
    assert ended.turn.status is Status.COMPLETED
    return fate


def answer_to(waiting: OpenCall) -> CallCommand:
    match waiting.wait:
        case ApprovalWait():
            return ApproveTool(call_id=waiting.call_id, actor_id=CALLER.principal.actor_id)
        case _:
            return GiveToolResult(call_id=waiting.call_id, output='"scanned"')
