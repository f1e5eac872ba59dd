"""A process may die just before and just after every commit, and nobody can tell from the end.

Each run has one fault, at its n-th commit; n goes up until a run ends without meeting it, so that
no commit is left out whatever the runner's habits become.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pytest

from app.ports import StoredTurn
from app.services.deps import Caller, Services
from app.services.drafts import Draft
from app.services.messages import post_message
from app.services.principal import Principal, Role
from app.services.turns import resume, wait_until_at_rest
from app.turn.ids import ActorId, AgentId, ConversationId, MessageId, TenantId
from app.turn.inputs import RetryModel
from app.turn.states import WaitingForModel
from app.turn.status import Status
from app.turn.transcript import AssistantMessage, NoticeMessage, Outcome, TextPart
from tests.e2e.conftest import Stage
from tests.support.deaths import Fate, Fault, lives
from tests.support.oracles import Record, check_one_active_turn, check_record, records
from tests.support.story import (
    MODEL,
    QUOTA,
    THREE_CALLS,
    THREE_TOOLS_AND_AN_OUTAGE,
    clerk,
    counting_clerk,
)

LONG_TEXT = "Nothing of this may be lost or said twice: ünïcödé. " * 110
CALLER = Caller(
    principal=Principal(
        tenant_id=TenantId("default"), actor_id=ActorId("default"), role=Role.OPERATOR
    ),
    request_id="a-request",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Scenario:
    rounds: Sequence[Mapping[str, object]]
    """Their outages last until the turn waits."""
    answer: str
    commits: int
    """How many a run has at least."""
    tools: Sequence[str] = ()
    retries: int = 0
    agent: str = "clerk"
    output: str | None = None


PLAIN_TEXT = Scenario(
    rounds=[{"text": LONG_TEXT, "chunks": 20}],
    answer=LONG_TEXT,
    commits=5,  # the message, the begin, two batches of text, the end
)
TOOLS_AND_AN_OUTAGE = Scenario(
    rounds=THREE_TOOLS_AND_AN_OUTAGE,
    answer="All done.",
    commits=7,  # the message, begin, answer, results, failure, retry, begin, end; results may split
    tools=("look_up", "book", "pay"),
    retries=1,
)
A_WRITING_TOOL = Scenario(
    rounds=[
        {"calls": [{"id": "P", "name": "pay", "arguments": '{"amount": 7}'}]},
        {"text": "Paid."},
    ],
    answer="Paid.",
    commits=5,  # the message, the begin, the answer, the result, the end
    tools=("pay",),
)
A_REPAIR = Scenario(
    rounds=[
        THREE_CALLS,
        {"text": "About three."},
        {"text": '{"total": 3}', "faults": [QUOTA]},
    ],
    answer='{"total": 3}',
    commits=8,  # as above; the answer that does not fit and the begin of its repair are one
    tools=("look_up", "book", "pay"),
    retries=1,
    agent="counting_clerk",
    output='{"total":3}',
)
SCENARIOS = {
    "plain text": PLAIN_TEXT,
    "three tools and an outage": TOOLS_AND_AN_OUTAGE,
    "a writing tool": A_WRITING_TOOL,
    "an answer that is repaired": A_REPAIR,
}
ONLY_DOUBT = ("plain text", "a writing tool")
"""Their deaths are those of the crash matrix."""
HANDED_OVER = "three tools and an outage"
"""The scenario whose turn is also driven by the process that takes the commands."""
RUNS = [
    (fault, name)
    for fault in Fault
    for name in SCENARIOS
    if name not in ONLY_DOUBT or fault in {Fault.ANSWER_LOST, Fault.CONNECTION_LOST}
]


@pytest.mark.parametrize(
    ("fault", "scenario"), RUNS, ids=[f"{f.name.lower()}-{name}" for f, name in RUNS]
)
async def test_every_run_ends_alike_wherever_the_fault_strikes(
    stage: Stage, fault: Fault, scenario: str
) -> None:
    stage = stage.queueing
    fate, n = Fate(fault, at=frozenset()), 0
    while fate.struck >= fate.at:
        n += 1
        fate = await run(stage, SCENARIOS[scenario], Fate(fault, at=frozenset({n})))

    if fault is Fault.DEATH_AFTER_CLAIM:
        assert n > fate.claims >= 1 + SCENARIOS[scenario].retries
    else:
        assert n > fate.commits >= SCENARIOS[scenario].commits


@pytest.mark.parametrize(
    "fault",
    [f for f in Fault if f is not Fault.DEATH_AFTER_CLAIM],
    ids=lambda fault: fault.name.lower(),
)
async def test_so_does_every_run_whose_turn_is_claimed_by_the_commands(
    stage: Stage, fault: Fault
) -> None:
    scenario = SCENARIOS[HANDED_OVER]
    fate, n = Fate(fault, at=frozenset()), 0
    while fate.struck >= fate.at:
        n += 1
        fate = await run(stage, scenario, Fate(fault, at=frozenset({n})))

    # The message and the retry begin their calls themselves.
    assert n > fate.commits >= scenario.commits - 1 - scenario.retries
    assert fate.claims == 0 or fault in FATAL


FATAL = {Fault.DEATH_BEFORE_COMMIT, Fault.DEATH_AFTER_COMMIT}
"""A turn whose worker has died is claimed by the next one."""


@pytest.mark.parametrize(
    "fault",
    [Fault.DEATH_BEFORE_COMMIT, Fault.DEATH_AFTER_COMMIT],
    ids=lambda fault: fault.name.lower(),
)
async def test_a_recovery_that_dies_at_its_first_commit_is_recovered_from(
    stage: Stage, fault: Fault
) -> None:
    stage = stage.queueing
    fate, n = Fate(fault, at=frozenset()), 0
    while fate.struck >= fate.at:
        n += 1
        fate = await run(stage, TOOLS_AND_AN_OUTAGE, Fate(fault, at=frozenset({n, n + 1})))

    assert n >= TOOLS_AND_AN_OUTAGE.commits


async def run(stage: Stage, scenario: Scenario, fate: Fate) -> Fate:
    """One conversation, to its end, which is checked; its fate as it has come."""
    stage.provider.script(MODEL, lasting(scenario.rounds))
    draft = Draft(
        conversation_id=ConversationId(f"ses_{min(fate.at)}"),
        content=(TextPart(text="Do it."),),
        message_id=MessageId("m1"),
        agent_id=AgentId(scenario.agent),
    )

    async def client(services: Services) -> StoredTurn:
        """Sends, and repeats what it knows no answer to, as any client may."""
        stored = (await post_message(services, CALLER, draft)).stored
        while True:
            stored = await wait_until_at_rest(
                services, CALLER, stored, seconds=15, stopping=asyncio.Event()
            )
            if not isinstance(stored.turn.state, WaitingForModel):
                return stored
            stage.provider.simulation.put_script(MODEL, {"rounds": healthy(scenario.rounds)})
            failure_id = stored.turn.state.record.failure_id
            turn_id = stored.turn.identity.turn_id
            stored = (
                await resume(services, CALLER, turn_id, RetryModel(failure_id=failure_id))
            ).stored

    agents = [clerk(stage.ledger), counting_clerk(stage.ledger)]
    ended = await lives(stage.settings, stage.dsn, agents, fate, client)
    async with records(stage.dsn) as found:
        await check_one_active_turn(found)
        record = await found.of(ended.turn.identity.turn_id)
    check_record(record, stage.ledger)
    check_end(scenario, record)
    check_audit_rows(scenario, record, fate)
    assert {request["status"] for request in stage.provider.requests(MODEL)} <= {200, 429}
    return fate


def lasting(rounds: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    """Outages that no number of requests uses up: a death must not make one shorter."""
    return [
        {**each, "faults": [QUOTA | {"times": 99}]} if "faults" in each else each for each in rounds
    ]


def healthy(rounds: Sequence[Mapping[str, object]]) -> list[Mapping[str, object]]:
    return [{key: each[key] for key in each if key != "faults"} for each in rounds]


def check_end(scenario: Scenario, record: Record) -> None:
    """The one end that all runs of a scenario have."""
    assert record.turn.status is Status.COMPLETED
    assert record.user_messages == ["m1"]
    said = [m for m in record.transcript if isinstance(m, AssistantMessage)]
    answers = [m.text for m in said if not m.is_partial]
    assert answers[-1] == scenario.answer
    assert len(answers) == len(scenario.rounds)
    assert [result.tool_name for result in record.results.values()] == list(scenario.tools)
    for result in record.results.values():
        is_known = result.outcome is Outcome.COMPLETED
        assert is_known or (result.tool_name, result.outcome) == ("pay", Outcome.UNKNOWN)
    assert len(record.failures) == scenario.retries
    assert record.turn.output == scenario.output
    notices = [m.cause for m in record.transcript if isinstance(m, NoticeMessage)]
    assert notices.count("output_invalid") == int(scenario is A_REPAIR)
    assert notices.count("retry_response") == len(said) - len(answers), "once for each half"


def check_audit_rows(scenario: Scenario, record: Record, fate: Fate) -> None:
    """One for each command with an effect; a client that asked again after a death has more."""
    effective = [row["action"] for row in record.audit if row["version_after"] is not None]
    assert effective == ["MESSAGE", *["RETRY_MODEL"] * scenario.retries]
    if fate.fault in (Fault.ANSWER_LOST, Fault.CONNECTION_LOST):
        assert len(record.audit) == len(effective)
