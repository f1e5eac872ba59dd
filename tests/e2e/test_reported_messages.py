"""What was reported of messages elsewhere: sent twice, sent while a turn waits, or while it works.

The numbers are those of the public reports that these stories were made from. Approvals, forms and
external tools do not exist here yet; what waits instead is a retry, a pause or a question.
"""

import asyncio
import unicodedata
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import datetime, timedelta

import httpx
import orjson
import pytest
from typing_extensions import override

from app.agents import Agent
from app.entrypoints.api import create_app
from app.http.auth import Authenticator
from app.ports import OutcomeUnknown
from app.ports.fault_points import watched_by
from app.runner.commit import CommandOf, TurnWriter, Written
from app.services.deps import Services
from app.services.principal import Principal, Role
from app.tools import Ask, tool
from app.turn.agent import Limits
from app.turn.ids import ActorId, TenantId
from app.turn.inputs import Request
from app.turn.state import Turn
from tests.e2e.conftest import Stage
from tests.e2e.test_interruptions import CALLS, LATER, records_of
from tests.e2e.test_queue import SLOWLY, at_work, messages, post, shown, with_a_tool_in_flight
from tests.http.rig import assert_problem
from tests.support.deaths import Loss
from tests.support.oracles import check_everything
from tests.support.polling import eventually
from tests.support.service import TOKEN, Service, running_service
from tests.support.story import MODEL, QUOTA, clerk

PAY_SLOWLY = {"calls": [{"id": "A", "name": "pay_slowly", "arguments": '{"amount": 3}'}]}
DONE = {"text": "Done."}
REPLAYED = "Idempotency-Replayed"


async def say(
    service: Service, text: str, message_id: str, conversation: str = "ses_1", **more: object
) -> httpx.Response:
    return await service.client.post(
        f"/conversations/{conversation}/messages",
        json={"content": text, "messageId": message_id, "agentId": "clerk"} | more,
    )


# --- 100 and 101: sent twice ----------------------------------------------------------------------


async def test_scenario_100_a_message_whose_answer_was_lost_is_said_once_and_the_replay_says_so(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [PAY_SLOWLY, DONE])
    agents = [clerk(stage.ledger)]
    async with (
        running_service(stage.dsn, stage.settings, agents=agents) as one,
        running_service(stage.dsn, stage.settings, agents=agents, with_worker=False) as two,
    ):
        await hang_up_on_the_answer(one, {"content": "Pay.", "messageId": "m1", "agentId": "clerk"})
        await eventually(lambda: is_entered(stage))
        while_it_runs = await say(two, "Pay.", "m1")
        stage.ledger.open_gate()
        ended = await one.at_rest(while_it_runs.json()["turnId"])
        behind_its_end = await say(two, "Pay.", "m1")
        async with replica_of(one, services=on_the_next_day(one.runtime.services)) as client:
            said = {"content": "Pay.", "messageId": "m1", "agentId": "clerk"}
            next_day = await client.post("/conversations/ses_1/messages", json=said)

    again = (while_it_runs, behind_its_end, next_day)
    assert [answer.status_code for answer in again] == [202] * 3
    assert [answer.headers[REPLAYED] for answer in again] == ["true"] * 3
    assert {answer.json()["turnId"] for answer in again} == {ended["turnId"]}
    assert (ended["status"], stage.ledger.tools()) == ("COMPLETED", ["pay_slowly"])
    (record,) = await check_everything(stage.dsn, stage.ledger)
    assert record.user_messages == ["m1"]


async def hang_up_on_the_answer(service: Service, said: dict[str, object]) -> None:
    """Send a message and leave before anything of the answer is read."""
    body = orjson.dumps(said)
    url = httpx.URL(service.url)
    reader, writer = await asyncio.open_connection(url.host, url.port)
    head = (
        f"POST /conversations/ses_1/messages HTTP/1.1\r\nHost: {url.host}:{url.port}\r\n"
        f"Authorization: {service.client.headers['Authorization']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    writer.write(head.encode() + body)
    await writer.drain()
    await reader.readexactly(1)  # it is on its way, so the message has been taken
    writer.close()


async def is_entered(stage: Stage) -> bool:
    return bool(stage.ledger.effects())


@asynccontextmanager
async def replica_of(
    service: Service,
    *,
    services: Services | None = None,
    authenticator: Authenticator | None = None,
) -> AsyncGenerator[httpx.AsyncClient]:
    """A client of another process over the same database, which differs in what is given."""
    runtime = replace(
        service.runtime,
        services=services or service.runtime.services,
        authenticator=authenticator or service.runtime.authenticator,
    )
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=create_app(runtime)),
        base_url="http://turnkeeper",
        headers=service.client.headers,
    ) as client:
        yield client


def on_the_next_day(services: Services) -> Services:
    """With a clock that is 23 hours ahead."""

    def clock() -> datetime:
        return services.clock() + timedelta(hours=23)

    return replace(services, clock=clock, writer=replace(services.writer, clock=clock))


class Forgetful(TurnWriter):
    """The database goes away with a request under way, for longer than the writer asks it."""

    @override
    async def request(
        self,
        turn: Turn,
        given: Request,
        command_of: CommandOf,
        *,
        expected_version: int | None = None,
    ) -> Written:
        await super().request(turn, given, command_of, expected_version=expected_version)
        raise OutcomeUnknown


def forgetful(services: Services) -> Services:
    writer = services.writer
    return replace(
        services,
        writer=Forgetful(
            store=writer.store,
            wakeups=writer.wakeups,
            clock=writer.clock,
            catalog=writer.catalog,
            new_id=writer.new_id,
            recent=writer.recent,
        ),
    )


@pytest.mark.parametrize("for_long", [True, False])
async def test_scenario_100_a_message_is_a_replay_too_when_nobody_knows_whether_it_was_taken(
    stage: Stage, *, for_long: bool
) -> None:
    """The answer to its commit is lost; where the journal can be asked, it tells of the commit."""
    stage.provider.script(MODEL, [DONE | {"faults": [QUOTA]}])
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        waiting = await service.send("ses_1", "Go.", agentId="clerk", messageId="m1")
        services = service.runtime.services
        broken = forgetful(services) if for_long else services
        lost = Loss("commit.command.after", times=0 if for_long else 1)
        async with replica_of(service, services=broken) as client:
            said = {"content": "Go on.", "messageId": "m2"}
            with watched_by(lost.meets):
                answer = await client.post("/conversations/ses_1/messages", json=said)
        await service.at_rest(waiting["turnId"])

    assert (answer.status_code, answer.json()["turnId"]) == (202, waiting["turnId"])
    assert (answer.headers.get(REPLAYED) == "true") is for_long
    assert lost.times == 0
    (record,) = await check_everything(stage.dsn, stage.ledger)
    assert record.user_messages == ["m1", "m2"]


async def test_scenario_101_a_message_id_stands_for_one_content_in_one_conversation(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [DONE])
    composed = unicodedata.normalize("NFC", "Café")
    decomposed = unicodedata.normalize("NFD", composed)
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        first = await service.send("ses_1", composed, agentId="clerk", messageId="m1")
        others = [await say(service, text, "m1") for text in ("Tea", f" {composed}", decomposed)]
        reordered = await service.client.post(
            "/conversations/ses_1/messages",
            content='{ "messageId" :"m1",\n "content":"Caf\\u00e9" }',
            headers={"Content-Type": "application/json"},
        )
        still = await service.turn(first["turnId"])
        elsewhere = await service.send("ses_2", "Tea", agentId="clerk", messageId="m1")
        said = await messages(service)

    for other in others:
        refused = assert_problem(other, 422, "payload_invalid")
        assert "messageId 'm1' was used for another content" in refused["detail"]
    assert (reordered.status_code, reordered.json()["turnId"]) == (202, first["turnId"])
    assert still["version"] == first["version"]
    assert elsewhere["turnId"] != first["turnId"]
    assert [m["content"] for m in said] == [composed, "Done."]


async def test_scenario_101_a_message_id_is_its_tenants_own(stage: Stage) -> None:
    stage.provider.script(MODEL, [DONE])
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        ours = await service.send("ses_1", "Go.", agentId="clerk", messageId="m1")
        principal = Principal(
            tenant_id=TenantId("other"), actor_id=ActorId("default"), role=Role.OPERATOR
        )
        authenticator = Authenticator(TOKEN, principal)
        async with replica_of(service, authenticator=authenticator) as client:
            said = {"content": "Other words.", "messageId": "m1", "agentId": "clerk"}
            theirs = await client.post("/conversations/ses_1/messages", json=said)
        await service.at_rest(ours["turnId"])

    assert theirs.status_code == 202
    assert theirs.json()["turnId"] != ours["turnId"]
    assert REPLAYED not in theirs.headers


# --- 049 and 050: while the turn waits ------------------------------------------------------------


async def test_scenario_049_a_message_to_a_turn_that_waits_is_taken_and_closes_what_was_open(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [{"calls": [FETCH]}, {"text": "It is three."}])
    agent, entered = fetching()
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        scheduled = await service.send("ses_1", "Fetch it.", agentId="clerk", messageId="m1")
        answer = await say(service, "How much is it, actually?", "m2")
        done = await service.at_rest(scheduled["turnId"])
        late = await service.resume(
            scheduled["turnId"], {"command": "APPROVE_TOOL", "callId": "A"}, wait=0
        )
        said = await messages(service)
        records = await records_of(service, scheduled["turnId"])

    assert scheduled["status"] == "RETRY_SCHEDULED"
    assert (answer.status_code, answer.json()["turnId"]) == (202, scheduled["turnId"])
    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "It is three.")
    assert shown(said)[1:4] == [("assistant", ""), ("tool", "superseded"), ("user", "m2")]
    assert_problem(late, 409, "turn_terminal")
    assert [(r["callId"], r["reason"], r["sourceMessageId"]) for r in records] == [
        ("A", "user_message", "m2")
    ]
    assert entered == ["fetch"]
    assert stage.ledger.tools() == []


FETCH = {"id": "A", "name": "fetch", "arguments": "{}"}


def fetching() -> tuple[Agent, list[str]]:
    """An agent whose tool fails and is tried again tomorrow, and what was entered."""
    entered: list[str] = []

    @tool(effect="reads", on_error="retry_then_model", retry=LATER)
    def fetch() -> str:
        """Fetch it."""
        entered.append("fetch")
        raise OSError("no route")

    return Agent(id="clerk", instructions="", model=MODEL, tools=[fetch]), entered


async def test_scenario_049_a_message_to_a_question_is_its_answer(stage: Stage) -> None:
    @tool(effect="writes")
    def book() -> str:
        """Book a flight."""
        raise Ask("Where to?")

    rounds: list[dict[str, object]] = [
        {"calls": [{"id": "A", "name": "book", "arguments": "{}"}]},
        {"text": "never"},
        {"text": "To Tokyo, then."},
    ]
    stage.provider.script(MODEL, rounds)
    agent = Agent(id="clerk", instructions="", model=MODEL, tools=[book])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("ses_1", "Book.", agentId="clerk")
        done = await service.send("ses_1", "Tokyo", messageId="m2")
        late = await service.resume(
            waiting["turnId"], {"command": "USER_INPUT", "text": "Oslo"}, wait=0
        )

    assert waiting["status"] == "WAITING_FOR_USER"
    assert (done["turnId"], done["finalOutput"]) == (waiting["turnId"], "To Tokyo, then.")
    assert_problem(late, 409, "turn_terminal")


LATE: Sequence[dict[str, object]] = [
    {"command": "TOOL_RESULT", "callId": "B", "output": "late"},
    {"command": "USER_INPUT", "callId": "C", "data": {}},
    {"command": "RESUME"},
]


async def test_scenario_050_a_new_message_leaves_nothing_of_what_waited(stage: Stage) -> None:
    stage.provider.script(MODEL, [{"calls": CALLS}, {"text": "Something else, then."}])
    agent = replace(clerk(stage.ledger), limits=Limits(parallel_tools=1))
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        sent = await service.send("ses_1", "Mix.", wait=0, agentId="clerk", messageId="m1")
        await eventually(lambda: is_entered(stage))
        await service.client.post(f"/turns/{sent['turnId']}/pause")
        stage.ledger.open_gate()
        paused = await service.at_rest(sent["turnId"])
        done = await service.send("ses_1", "Stop, do something else.", messageId="m2")
        waiting = await service.client.get("/turns", params={"status": "PAUSED"})
        late = [await service.resume(sent["turnId"], body, wait=0) for body in LATE]
        after = await service.turn(sent["turnId"])

    assert paused["status"] == "PAUSED"
    assert (done["turnId"], done["finalOutput"]) == (paused["turnId"], "Something else, then.")
    assert (done["waits"], done["suspension"], waiting.json()["items"]) == ([], None, [])
    for answer in late:
        assert_problem(answer, 409, "turn_terminal")
    assert after["version"] == done["version"]
    (record,) = await check_everything(stage.dsn, stage.ledger)
    assert record.types.count("TOOL_INTERRUPTED") == 2
    assert stage.ledger.tools() == ["pay_slowly"]


# --- 062: while the turn is at work ---------------------------------------------------------------


@pytest.mark.parametrize("when", ["reject", "queue", "steer"])
async def test_scenario_062_a_message_while_a_tool_runs_never_comes_between_call_and_result(
    stage: Stage, when: str
) -> None:
    stage.provider.script(MODEL, [{"calls": [SLOWLY | {"id": "A"}]}, DONE, DONE, DONE])
    async with at_work(stage) as service:
        turn_id = await with_a_tool_in_flight(stage, service)
        hurried = await post(service, "m2", when)
        stage.ledger.open_gate()
        await service.at_rest(turn_id)
        if hurried.status_code == 202:
            await eventually(lambda: is_answered(service, "m2"))
        said = shown(await messages(service))

    round_of_tools = [("user", "m1"), ("assistant", ""), ("tool", "completed")]
    done, hurry = ("assistant", "Done."), ("user", "m2")
    assert hurried.status_code == (409 if when == "reject" else 202)
    assert (
        said
        == round_of_tools
        + {
            "reject": [done],
            "queue": [done, hurry, done],
            "steer": [hurry, done],
        }[when]
    )
    assert {request["status"] for request in stage.provider.requests(MODEL)} == {200}
    await check_everything(stage.dsn, stage.ledger)


async def is_answered(service: Service, message_id: str) -> bool:
    said = shown(await messages(service))
    return ("user", message_id) in said and said[-1][0] == "assistant"


@pytest.mark.parametrize("message_is_first", [True, False])
async def test_scenario_062_a_message_that_meets_the_result_is_behind_it_whoever_commits_first(
    stage: Stage, *, message_is_first: bool
) -> None:
    stage.provider.script(MODEL, [{"calls": [SLOWLY | {"id": "A"}]}, DONE, DONE])
    async with at_work(stage) as service:
        turn_id = await with_a_tool_in_flight(stage, service)
        if message_is_first:
            answer = await post(service, "m2", "steer")
            stage.ledger.open_gate()
        else:
            stage.ledger.open_gate()
            await eventually(lambda: has_result(service))
            answer = await post(service, "m2", "steer")
        await service.at_rest(turn_id)
        await eventually(lambda: is_answered(service, "m2"))
        said = shown(await messages(service))

    assert answer.status_code == 202
    assert said[1:3] == [("assistant", ""), ("tool", "completed")]
    assert said.count(("user", "m2")) == 1
    assert {request["status"] for request in stage.provider.requests(MODEL)} == {200}
    await check_everything(stage.dsn, stage.ledger)


async def has_result(service: Service) -> bool:
    return any(m["role"] == "tool" for m in await messages(service))
