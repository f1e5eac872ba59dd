"""Two people and an executor answer the same waits at once, in any order; each wait has one winner.

Afterwards all accounts agree: what was paid, the approvals, the audit, the events. Losers are told
so by a clear refusal, and nobody meets an error of ours.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from random import Random
from typing import Any, TypeAlias

import httpx

from app.agents import Agent
from tests.e2e.conftest import Stage
from tests.http.rig import rows
from tests.support.ledger import Bank
from tests.support.oracles import Record
from tests.support.service import SignedIn, running_service
from tests.support.sizes import size
from tests.support.story import MODEL
from tests.support.waits import DONE, Turn, asks, call
from tests.support.waits_cashier import cashier
from tests.support.waits_checks import check_waits

INTERLEAVINGS = size(10, soak=500)
AT_ONCE = 8
SAME_CLICKS = 50
SAME_CARDS = size(2, soak=100)
LOST = {
    "correlation_mismatch",
    "wrong_command",
    "turn_not_blocked",
    "turn_terminal",
    "version_conflict",
    "conversation_busy",
}
MIX = asks(
    call("A", "gated_pay", amount=1),
    call("B", "scan", parcel="b"),
    call("C", "request_user_input", message="Where?", form="address"),
    call("D", "pay_in_levels", order="d"),
    call("E", "gated_scan", parcel="e"),
    call("F", "look_up", what="f"),
)
_AUDIT = "SELECT outcome, action FROM audit WHERE conversation_id = $1 OR turn_id = $2"
Command: TypeAlias = dict[str, Any]

YES: Sequence[Command] = [{"command": "APPROVE_TOOL", "callId": call_id} for call_id in "ADE"]
NO: Sequence[Command] = [
    {"command": "REJECT_TOOL", "callId": call_id, "reason": "No."} for call_id in "ADE"
]
FORM: Sequence[Command] = [
    {"command": "USER_INPUT", "callId": "C", "data": {"city": "Oslo"}},
    {"command": "USER_INPUT", "callId": "C", "text": "Bergen"},
]
OUTSIDE: Sequence[Command] = [
    {"command": "TOOL_RESULT", "callId": call_id, "output": "scanned"} for call_id in "BE"
] + [
    {"command": "TOOL_ERROR", "callId": call_id, "code": "lost", "message": "Lost."}
    for call_id in "BE"
]
A_MESSAGE: Command = {"message": "Something else."}
PLANS: Sequence[Command] = [
    {"command": "REPLAN_WITH_MESSAGE", "message": {"content": "Something else."}},
    A_MESSAGE,
    {"cancel": True},
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A command, and how it was answered."""

    command: Command
    status: int
    code: str | None


async def test_whatever_the_order_each_wait_has_one_winner_and_all_accounts_agree(
    stage: Stage,
) -> None:
    Bank(stage.ledger.folder).set_price(9)
    stage.provider.script(MODEL, [MIX, DONE, DONE, DONE])
    said: dict[str, list[Said]] = {}
    async with two_replicas(stage) as (one, two):
        seeds = range(INTERLEAVINGS)
        for first in range(0, INTERLEAVINGS, AT_ONCE):
            batch = seeds[first : first + AT_ONCE]
            told = await asyncio.gather(*(interleaved(one, two, seed) for seed in batch))
            said.update(told)

    for record in await check_waits(stage.dsn, Bank(stage.ledger.folder)):
        turn_id = record.turn.identity.turn_id
        if turn_id not in said:
            continue  # a message came behind the end of its turn and opened this one
        check_winners(said[turn_id], {r.call_id: r.outcome for r in record.results.values()})
        assert await audited(stage.dsn, record) == accounts(said[turn_id])


async def interleaved(one: SignedIn, two: SignedIn, seed: int) -> tuple[str, list[Said]]:
    """One turn, whose waits are answered by three at once; what was said, and the answers."""
    chance = Random(seed)  # noqa: S311 - to repeat, not to hide
    agent = chance.choice(["cashier", "together"])
    opened = await one.send(f"ses_{seed}", "Go.", agentId=agent, wait=20)
    turn = await one.at_rest(opened["turnId"])
    people = [*YES, *NO, *FORM]
    scripts = [
        chance.sample(people, len(people)),
        chance.sample(people, len(people)),
        chance.sample(OUTSIDE, len(OUTSIDE)),
    ]
    if chance.random() < 1 / 3:
        scripts[0].insert(chance.randrange(len(people)), chance.choice(PLANS))
    answered = await asyncio.gather(
        *(
            says(service, turn, script, chance.random())
            for service, script in zip((one, two, two), scripts, strict=True)
        )
    )
    said = [each for answers in answered for each in answers]
    said += await finished(one, turn)
    return turn["turnId"], [Said(command={"opened": True}, status=202, code=None), *said]


async def says(
    service: SignedIn, turn: Turn, script: Sequence[Command], patience: float
) -> list[Said]:
    """All of it, one behind another; the more patience, the longer between two."""
    said: list[Said] = []
    for command in script:
        await asyncio.sleep(patience / 100)  # so that the three do not go in step
        said.append(await answer(service, turn, command))
    return said


async def answer(service: SignedIn, turn: Turn, command: Command) -> Said:
    path = f"/turns/{turn['turnId']}"
    if "message" in command and "command" not in command:
        body = {"content": command["message"]}
        conversation = turn["conversationId"]
        answer = await service.client.post(f"/conversations/{conversation}/messages", json=body)
    elif "cancel" in command:
        answer = await service.client.post(f"{path}/cancel")
    else:
        answer = await service.client.post(f"{path}/resume", json=command)
    return Said(command=command, status=answer.status_code, code=answer.json().get("code"))


async def finished(service: SignedIn, turn: Turn) -> list[Said]:
    """What is still open gets an answer, one behind another, until the turn has ended."""
    said: list[Said] = []
    while True:
        now = await service.at_rest(turn["turnId"])
        if not now["waits"]:
            return said
        wait = now["waits"][0]
        last = next(
            command
            for command in (*YES, *FORM, *OUTSIDE)
            if command["callId"] == wait["callId"]
            and command["command"] in {a["command"] for a in now["actions"]}
        )
        said.append(await answer(service, now, last))


ENDS = {
    "rejected": {"REJECT_TOOL"},
    "error": {"TOOL_ERROR"},
    "completed": {"TOOL_RESULT", "USER_INPUT"},
}
"""What has answered a call for somebody else than its own tool, by its outcome."""
APPROVALS = {"A": 1, "D": 2, "E": 1}


def check_winners(said: Sequence[Said], outcomes: Mapping[str, str]) -> None:
    """Everybody was told clearly, and of the answers that end a wait one was taken for each."""
    for each in said:
        assert each.status in {200, 202} or (each.status, each.code in LOST) == (409, True), each
    taken = [each.command for each in said if each.status == 202]
    won = Counter((x["callId"], x["command"]) for x in taken if "callId" in x)
    if A_MESSAGE in taken and outcomes["C"] == "completed" and not won["C", "USER_INPUT"]:
        won["C", "USER_INPUT"] += 1  # in words alone it answers what the model asks
    for call_id, outcome in outcomes.items():
        ended = {name: n for (of, name), n in won.items() if of == call_id}
        approved = ended.pop("APPROVE_TOOL", 0)
        needed = APPROVALS.get(call_id, 0)
        assert approved == needed if outcome == "completed" else approved <= needed
        assert sum(ended.values()) <= 1, (call_id, won)
        if call_id in "BCE" or outcome == "rejected":
            assert ended.keys() <= ENDS.get(outcome, set()), (call_id, outcome, won)
            assert bool(ended) == (outcome in ENDS), (call_id, outcome, won)


async def audited(dsn: str, record: Record) -> Counter[tuple[str, str]]:
    """What was asked of the turn, or of its conversation: a message is refused without a turn."""
    identity = record.turn.identity
    found = await rows(dsn, _AUDIT, identity.conversation_id, identity.turn_id)
    return Counter((row["outcome"], row["action"]) for row in found)


def accounts(said: Sequence[Said]) -> Counter[tuple[str, str]]:
    """The audit that these answers should have left."""
    found: Counter[tuple[str, str]] = Counter()
    for each in said:
        is_message = "command" not in each.command and "cancel" not in each.command
        action = "MESSAGE" if is_message else each.command.get("command", "CANCEL")
        found["accepted" if each.status in {200, 202} else "refused", action] += 1
    return found


async def test_scenario_041_of_many_approvals_at_once_one_does_the_work(stage: Stage) -> None:
    stage.provider.script(MODEL, [asks(call("A", "gated_pay", amount=7)), DONE])
    async with two_replicas(stage) as (one, two):
        for n in range(SAME_CARDS):
            opened = await one.send(f"ses_{n}", "Pay.", agentId="cashier")
            answers = await asyncio.gather(
                *(
                    approved(service, opened, k)
                    for k in range(SAME_CLICKS // 2)
                    for service in (one, two)
                )
            )
            statuses = Counter(answer.status_code for answer in answers)
            assert statuses == {202: 1, 409: SAME_CLICKS - 1}
            codes = {answer.json()["code"] for answer in answers if answer.status_code == 409}
            assert codes <= LOST
            assert (await one.at_rest(opened["turnId"]))["status"] == "COMPLETED"

    every = await check_waits(stage.dsn, Bank(stage.ledger.folder))
    assert len(every) == SAME_CARDS
    for record in every:
        assert record.types.count("TOOL_APPROVAL_DECIDED") == 1
        assert record.types.count("TURN_RESUMED") == 1
    assert len(Bank(stage.ledger.folder).payments()) == SAME_CARDS


async def approved(service: SignedIn, turn: Turn, n: int) -> httpx.Response:
    return await service.client.post(
        f"/turns/{turn['turnId']}/resume",
        json={"command": "APPROVE_TOOL", "callId": "A"},
        headers={"Idempotency-Key": f"{service.url}-{turn['turnId']}-{n}"},
    )


@asynccontextmanager
async def two_replicas(stage: Stage) -> AsyncGenerator[tuple[SignedIn, SignedIn]]:
    """Both with a worker, over one database."""
    bank = Bank(stage.ledger.folder)
    agents: list[Agent] = [
        cashier(bank),
        cashier(bank, id="together", open_waits="together"),
    ]
    async with (
        running_service(stage.dsn, stage.settings, agents=agents) as one,
        running_service(stage.dsn, stage.settings, agents=agents) as two,
    ):
        yield one, two
