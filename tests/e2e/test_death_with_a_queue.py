"""The death of a process, or of a connection, at every commit of two turns that a queue joins.

The first turn runs a tool behind a gate while one message steers it and another is queued; it ends
and opens the next one. Wherever a fault strikes, both messages are said once, in their places.
"""

import asyncio
from collections.abc import Mapping, Sequence

import pytest

from app.ports import StoredTurn
from app.services.deps import Services
from app.services.drafts import Draft
from app.services.messages import post_message
from app.services.turns import wait_until_at_rest
from app.turn.ids import AgentId, ConversationId, MessageId
from app.turn.inputs import WhenRunning
from app.turn.status import Status
from app.turn.transcript import AssistantMessage, Outcome, TextPart
from tests.e2e.conftest import Stage
from tests.e2e.test_death_at_every_commit import CALLER
from tests.support.deaths import Fate, Fault, lives
from tests.support.oracles import Record, check_one_active_turn, check_record, records
from tests.support.polling import eventually
from tests.support.story import MODEL, clerk

ROUNDS: Sequence[Mapping[str, object]] = [
    {
        "calls": [
            {"id": "A", "name": "look_up_slowly", "arguments": '{"what": "a"}'},
            {"id": "B", "name": "pay", "arguments": '{"amount": 3}'},
        ]
    },
    {"text": "Not paid, then."},
    {"text": "You are welcome."},
]
LEAST_COMMITS = 7
"""Three messages, of which the first begins its turn, the answer, the result with what it brings,
the end, the next end."""


@pytest.mark.parametrize("fault", Fault, ids=lambda fault: fault.name.lower())
async def test_every_message_is_said_once_wherever_the_fault_strikes(
    stage: Stage, fault: Fault
) -> None:
    is_of_claims = fault is Fault.DEATH_AFTER_CLAIM
    stage = stage.queueing if is_of_claims else stage
    n, met, least = 1, 0, 2 if is_of_claims else LEAST_COMMITS
    while n <= max(met, least):
        fate = await run(stage, Fate(fault, at=frozenset({n})))
        met = fate.claims if is_of_claims else fate.commits
        n += 1

    assert met >= least


async def run(stage: Stage, fate: Fate) -> Fate:
    """One conversation, to the end of its second turn, which is checked."""
    stage.provider.script(MODEL, ROUNDS)
    stage.ledger.shut_gate()
    conversation_id = ConversationId(f"ses_{min(fate.at)}")

    def draft(message_id: str, text: str, when: WhenRunning = "reject") -> Draft:
        return Draft(
            conversation_id=conversation_id,
            content=(TextPart(text=text),),
            message_id=MessageId(message_id),
            agent_id=AgentId("clerk"),
            when_running=when,
        )

    async def client(services: Services) -> tuple[StoredTurn, StoredTurn]:
        """Repeats from the beginning what it knows no answer to, as any client may."""
        first = (await post_message(services, CALLER, draft("m1", "Pay."))).stored
        turn_id = first.turn.identity.turn_id

        async def tool_is_entered() -> bool:
            turn = await services.turns.load(turn_id)
            return turn is not None and turn.counters.tool_calls > 0

        await eventually(tool_is_entered)
        await post_message(services, CALLER, draft("m2", "No, do not.", "steer"))
        await post_message(services, CALLER, draft("m3", "Thank you.", "queue"))
        stage.ledger.open_gate()
        ended = await rests(services, first)
        second = (await post_message(services, CALLER, draft("m3", "Thank you.", "queue"))).stored
        return ended, await rests(services, second)

    agents = [clerk(stage.ledger, parallel_tools=1)]
    first, second = await lives(stage.settings, stage.dsn, agents, fate, client)
    async with records(stage.dsn) as found:
        await check_one_active_turn(found)
        assert await found.next_turn_ids(first.turn) == [second.turn.identity.turn_id]
        one = await found.of(first.turn.identity.turn_id)
        two = await found.of(second.turn.identity.turn_id)
    check_record(one, stage.ledger)
    check_record(two, stage.ledger)
    check_end(one, two)
    return fate


async def rests(services: Services, stored: StoredTurn) -> StoredTurn:
    return await wait_until_at_rest(services, CALLER, stored, seconds=15, stopping=asyncio.Event())


def check_end(one: Record, two: Record) -> None:
    """The one end that all runs have."""
    assert (one.turn.status, two.turn.status) == (Status.COMPLETED, Status.COMPLETED)
    assert (one.user_messages, two.user_messages) == (["m1", "m2"], ["m3"])
    # A message that came while the turn had no worker answers what was never begun as just that.
    assert one.results["B"].outcome in {Outcome.SUPERSEDED, Outcome.NOT_STARTED}
    assert one.results["A"].outcome in {Outcome.COMPLETED, Outcome.UNKNOWN}
    assert (answers(one), answers(two)) == (["", "Not paid, then."], ["You are welcome."])
    # After a death the first turn may have ended before the last message came, which then opened
    # the second one by itself.
    commands = [row["action"] for row in (*one.audit, *two.audit) if row["version_after"]]
    assert commands == ["MESSAGE"] * 3


def answers(record: Record) -> list[str]:
    return [m.text for m in record.transcript if isinstance(m, AssistantMessage)]
