"""A process may die at every commit of a turn that asks, and each question is put once.

A hook asks before the first step, a tool asks in the middle, a hook asks behind an answer. Each run
has one fault, at its n-th commit; n goes up until a run ends without meeting it.
"""

import asyncio

import pytest
from typing_extensions import override

from app.agents import Agent, Ask, Hooks, ModelAnswer, Run, UserMessage, text_of
from app.ports import StoredTurn
from app.services.deps import Services
from app.services.drafts import Draft
from app.services.messages import post_message
from app.services.turns import wait_until_at_rest
from app.tools import tool
from app.turn.ids import AgentId, ConversationId, MessageId
from app.turn.states import WaitingForUser
from app.turn.status import Status
from app.turn.transcript import Outcome, QuestionMessage, TextPart
from tests.e2e.conftest import Stage
from tests.e2e.test_death_at_every_commit import CALLER
from tests.support.deaths import Fate, Fault, lives
from tests.support.oracles import (
    Record,
    check_audit,
    check_events,
    check_fold,
    check_history,
    check_one_active_turn,
    records,
)
from tests.support.sizes import IS_SOAK

MODEL = "asking"
QUESTIONS = ["Shall I begin?", "Where to?", "Is that all?"]
ANSWERS = ["Yes.", "Tokyo", "That is all."]


@tool(effect="reads")
def book() -> str:
    """Book a flight."""
    raise Ask(QUESTIONS[1])


@tool(effect="reads")
def look_up() -> str:
    """Look something up."""
    return "It is Monday."


class Polite(Hooks):
    """Asks before it begins, and once more behind the answer."""

    @override
    async def on_message(self, run: Run, message: UserMessage) -> None:
        if text_of(message.content) == "Go.":
            raise Ask(QUESTIONS[0])

    @override
    async def after_model(self, run: Run, answer: ModelAnswer) -> None:
        if answer.text == "Booked.":
            raise Ask(QUESTIONS[2])


FAULTS = (
    list(Fault)
    if IS_SOAK
    else [Fault.DEATH_BEFORE_COMMIT, Fault.DEATH_AFTER_COMMIT, Fault.ANSWER_LOST]
)
POLITE = Agent(
    id="polite", instructions="Book.", model=MODEL, tools=(book, look_up), hooks=Polite()
)


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name.lower())
async def test_each_question_is_put_once_wherever_the_fault_strikes(
    stage: Stage, fault: Fault
) -> None:
    # The round of a request is the number of answers in it, and questions read as answers.
    calls = [{"name": "book"}, {"name": "look_up"}]
    rounds: list[dict[str, object]] = [
        {"text": "never"},
        {"calls": calls},
        {"text": "never"},
        {"text": "Booked."},
        {"text": "never"},
        {"text": "Goodbye."},
    ]
    stage.provider.script(MODEL, rounds)
    fate, n = Fate(fault, at=frozenset()), 0
    while fate.struck >= fate.at:
        n += 1
        fate = await run(stage, Fate(fault, at=frozenset({n})))

    # Three messages of answers and the first one, the questions, and what lies between them.
    assert n > (4 if fault is Fault.DEATH_AFTER_CLAIM else 9)


async def run(stage: Stage, fate: Fate) -> Fate:
    conversation = ConversationId(f"ses_{min(fate.at)}")

    async def said(services: Services, text: str, message_id: str) -> StoredTurn:
        draft = Draft(
            conversation_id=conversation,
            content=(TextPart(text=text),),
            message_id=MessageId(message_id),
            agent_id=AgentId("polite"),
        )
        return (await post_message(services, CALLER, draft)).stored

    async def client(services: Services) -> StoredTurn:
        """Answers what it is asked; after a death it says everything anew, under the same ids."""
        stored = await said(services, "Go.", "m1")
        while True:
            stored = await wait_until_at_rest(
                services, CALLER, stored, seconds=15, stopping=asyncio.Event()
            )
            state = stored.turn.state
            if not isinstance(state, WaitingForUser):
                return stored
            number = QUESTIONS.index(state.question)
            stored = await said(services, ANSWERS[number], f"a{number}")

    ended = await lives(stage.settings, stage.dsn, [POLITE], fate, client)
    async with records(stage.dsn) as found:
        await check_one_active_turn(found)
        check(await found.of(ended.turn.identity.turn_id))
    return fate


def check(record: Record) -> None:
    check_fold(record)
    check_events(record.journal, record.turn)
    check_history(record)
    check_audit(record)
    assert record.turn.status is Status.COMPLETED
    asked = [m.text for m in record.transcript if isinstance(m, QuestionMessage)]
    assert asked == QUESTIONS
    assert record.user_messages == ["m1", "a0", "a1", "a2"]
    assert [r.outcome for r in record.results.values()] == [Outcome.COMPLETED] * 2
