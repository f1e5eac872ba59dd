"""A turn that waits for its user: the question, and the two ways to answer it."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from typing_extensions import override

from app.agents import Agent, Hooks, Run, UserMessage, text_of
from app.services.principal import Role
from app.tools import Ask, tool
from tests.http.rig import Rig, assert_problem, fresh_id, running_rig, unchanged
from tests.support.postgres import PostgresServer

TRAVEL = "travel"


@tool(effect="writes")
def book() -> str:
    """Book a flight."""
    try:
        return _choose()
    except Ask as asked:
        raise RuntimeError("the booking desk stumbled") from asked


def _choose() -> str:
    raise Ask("Where to?")


@tool(effect="reads")
def look_up() -> str:
    """Look something up."""
    return "It is Monday."


class Wary(Hooks):
    """Asks before it does anything, and fails when told so."""

    @override
    async def on_message(self, run: Run, message: UserMessage) -> None:
        said = text_of(message.content)
        if said == "fail":
            raise LookupError("a secret of the agent's own")
        if not run.is_resume:
            raise Ask("Are you sure?")


AGENTS = (
    Agent(id="wary", instructions="Be brief.", model="quick", hooks=Wary()),
    Agent(id=TRAVEL, instructions="Book.", model=TRAVEL, tools=(book, look_up)),
    Agent(id="clerk", instructions="Be brief.", model="quick"),
    Agent(id="mute", instructions="Say nothing.", model="hanging"),
)


@pytest.fixture(scope="module")
async def asking_rig(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Rig]:
    dsn = await postgres_server.fresh_database()
    async with running_rig(dsn, tmp_path_factory.mktemp("asking"), agents=AGENTS) as rig:
        # To the provider the question is an answer: the round behind it is the third.
        calls = [{"id": "A", "name": "book"}, {"id": "B", "name": "look_up"}]
        rounds: list[dict[str, object]] = [
            {"calls": calls},
            {"text": "never"},
            {"text": "Booked."},
        ]
        rig.provider.script(TRAVEL, rounds)
        yield rig
    await postgres_server.drop_database(dsn)


async def asked(rig: Rig) -> dict[str, Any]:
    """A turn whose tool has asked."""
    turn = await rig.service.send(fresh_id(), "I want to fly.", agentId=TRAVEL)
    assert turn["status"] == "WAITING_FOR_USER", turn
    return await rig.service.turn(turn["turnId"])


async def messages(rig: Rig, turn: dict[str, Any]) -> list[dict[str, Any]]:
    page = await rig.client.get(f"/conversations/{turn['conversationId']}/messages")
    items: list[dict[str, Any]] = page.json()["items"]
    return items


async def test_case_143_a_question_wrapped_by_the_tool_is_shown_and_waited_with(
    asking_rig: Rig,
) -> None:
    turn = await asked(asking_rig)

    suspension = turn["suspension"]
    assert suspension["suspensionType"] == "USER_INPUT"
    assert suspension["question"] == "Where to?"
    assert (suspension["correlationId"], suspension["modelFailure"]) == (None, None)
    assert turn["waits"] == [suspension]
    assert turn["cursor"] == "INVOKE_MODEL"
    assert [a["command"] for a in turn["actions"] if a["enabled"]] == [
        "USER_INPUT",
        "MESSAGE",
        "REPLAN_WITH_MESSAGE",
        "CANCEL",
    ]
    said = await messages(asking_rig, turn)
    assert [m["role"] for m in said] == ["user", "assistant", "tool", "tool", "question"]
    assert said[2]["content"].startswith("The user has been asked: Where to?")
    assert said[3]["content"] == "It is Monday."
    assert said[4]["content"] == "Where to?"


async def test_the_events_tell_the_question_behind_the_round(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)
    await asking_rig.post(f"/turns/{turn['turnId']}/cancel")

    events = (await asking_rig.client.get(f"/turns/{turn['turnId']}/events")).text

    types = [line.removeprefix("event: ") for line in events.splitlines() if "event: " in line]
    at = types.index("TURN_SUSPENDED")
    assert types[at - 2 : at + 1] == ["STEP_COMPLETED", "MESSAGE_ADDED", "TURN_SUSPENDED"]
    assert '"role":"question","content":"Where to?"' in events
    assert '"suspensionType":"USER_INPUT"' in events


async def test_case_83_a_message_is_the_answer_and_nothing_is_interrupted(
    asking_rig: Rig,
) -> None:
    turn = await asked(asking_rig)

    answered = await asking_rig.service.send(turn["conversationId"], "Tokyo")

    assert answered["turnId"] == turn["turnId"]
    assert (answered["status"], answered["finalOutput"]) == ("COMPLETED", "Booked.")
    said = await messages(asking_rig, turn)
    assert [m["role"] for m in said[4:]] == ["question", "user", "assistant"]
    assert [m["outcome"] for m in said if m["role"] == "tool"] == ["completed", "completed"]


async def test_the_model_reads_the_question_as_its_own_and_the_answer_behind_it(
    asking_rig: Rig,
) -> None:
    turn = await asked(asking_rig)
    marked = f"Tokyo {fresh_id()}"

    await asking_rig.service.send(turn["conversationId"], marked)

    requests: list[Any] = [r["body"] for r in asking_rig.provider.requests(TRAVEL)]
    [sent] = [r["messages"] for r in requests if r["messages"][-1]["content"] == marked]
    assert sent[-2] == {"role": "assistant", "content": "Where to?"}


async def test_an_answer_given_as_a_command_becomes_a_message_of_the_users(
    asking_rig: Rig,
) -> None:
    turn = await asked(asking_rig)
    request = fresh_id()

    answer = await asking_rig.post(
        f"/turns/{turn['turnId']}/resume",
        {"command": "USER_INPUT", "text": "Tokyo"},
        Prefer="wait=20",
        X_Request_Id=request,
    )

    assert answer.json()["status"] == "COMPLETED", answer.text
    said = (await messages(asking_rig, turn))[5]
    assert (said["role"], said["content"]) == ("user", "Tokyo")
    assert said["messageId"].startswith("msg")
    rows = await asking_rig.rows(
        "SELECT action, outcome, status_before FROM audit WHERE request_id = $1", request
    )
    assert rows == [
        {"action": "USER_INPUT", "outcome": "accepted", "status_before": "WAITING_FOR_USER"}
    ]


async def test_case_84_replanning_goes_on_with_the_message(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)

    answer = await asking_rig.post(
        f"/turns/{turn['turnId']}/resume",
        {"command": "REPLAN_WITH_MESSAGE", "message": {"content": "Tokyo"}},
        Prefer="wait=20",
    )

    events = (await asking_rig.client.get(f"/turns/{turn['turnId']}/events")).text
    assert answer.json()["status"] == "COMPLETED", answer.text
    assert '"commandType":"REPLAN_WITH_MESSAGE"' in events


async def test_case_90_a_blank_answer_is_refused_and_changes_nothing(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)
    path = f"/turns/{turn['turnId']}/resume"
    blank = [
        (path, {"command": "USER_INPUT"}),
        (path, {"command": "USER_INPUT", "text": None}),
        (path, {"command": "USER_INPUT", "text": " \n"}),
        (path, {"command": "USER_INPUT", "text": 7}),
        (path, {"command": "USER_INPUT", "text": "x", "data": {"city": "Tokyo"}}),
        (path, {"command": "USER_INPUT", "text": "x", "other": 1}),
        (f"/conversations/{turn['conversationId']}/messages", {"content": "  "}),
    ]

    for address, body in blank:
        answer = await asking_rig.post(address, body)
        assert_problem(answer, 422, "payload_invalid")

    assert await unchanged(asking_rig, turn)


async def test_an_answer_that_names_a_call_is_for_none_that_waits(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)

    answer = await asking_rig.post(
        f"/turns/{turn['turnId']}/resume",
        {"command": "USER_INPUT", "text": "Tokyo", "callId": "A"},
    )

    assert_problem(answer, 409, "correlation_mismatch")
    assert await unchanged(asking_rig, turn)


@pytest.mark.parametrize(
    "body",
    [
        {"failureId": "f"},
        {"command": "RETRY"},
        {"command": "CONTINUE"},
        {"command": "RESUME"},
        {"command": "APPROVE_TOOL", "callId": "A"},
    ],
    ids=str,
)
async def test_a_question_takes_no_other_command(asking_rig: Rig, body: dict[str, Any]) -> None:
    turn = await asked(asking_rig)

    refused = await asking_rig.post(f"/turns/{turn['turnId']}/resume", body)
    paused = await asking_rig.post(f"/turns/{turn['turnId']}/pause")

    assert_problem(refused, 409, "wrong_command")
    assert_problem(paused, 409, "wrong_command")
    assert await unchanged(asking_rig, turn)


async def test_turns_that_ask_nothing_take_no_answer(asking_rig: Rig) -> None:
    waiting, ended, running = (
        await asking_rig.waiting(),
        await asking_rig.completed(),
        await asking_rig.running(),
    )
    body = {"command": "USER_INPUT", "text": "Tokyo"}

    of_waiting = await asking_rig.post(f"/turns/{waiting['turnId']}/resume", body)
    of_ended = await asking_rig.post(f"/turns/{ended['turnId']}/resume", body)
    of_running = await asking_rig.post(f"/turns/{running['turnId']}/resume", body)

    assert_problem(of_waiting, 409, "wrong_command")
    assert_problem(of_ended, 409, "turn_terminal")
    assert_problem(of_running, 409, "turn_not_blocked")


async def test_an_answer_at_another_version_is_refused(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)

    answer = await asking_rig.post(
        f"/turns/{turn['turnId']}/resume",
        {"command": "USER_INPUT", "text": "Tokyo"},
        If_Match=f'"{turn["version"] - 1}"',
    )

    assert_problem(answer, 412, "precondition_failed")
    assert await unchanged(asking_rig, turn)


async def test_a_second_answer_comes_too_late(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)
    path, body = f"/turns/{turn['turnId']}/resume", {"command": "USER_INPUT", "text": "Tokyo"}

    await asking_rig.post(path, body, Prefer="wait=20")
    again = await asking_rig.post(path, body)

    assert_problem(again, 409, "turn_terminal")


async def test_a_question_is_cancelled_at_once(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)

    answer = await asking_rig.post(f"/turns/{turn['turnId']}/cancel")

    assert (answer.status_code, answer.json()["status"]) == (200, "CANCELLED")


async def test_what_is_asked_is_explained_in_the_callers_language(asking_rig: Rig) -> None:
    turn = await asked(asking_rig)
    path = f"/turns/{turn['turnId']}"

    chinese = (await asking_rig.client.get(path, headers={"Accept-Language": "zh"})).json()

    assert turn["message"] == "The agent asks you something. The turn goes on with your answer."
    assert chinese["message"] == "智能体向你提出了一个问题。收到你的回答后，本轮将继续。"


async def test_waiting_turns_are_found_by_their_status_and_by_nobody_else(
    asking_rig: Rig,
) -> None:
    turn = await asked(asking_rig)

    found = await asking_rig.client.get(
        "/turns", params={"status": "WAITING_FOR_USER", "conversationId": turn["conversationId"]}
    )
    async with asking_rig.signed_in_as(Role.USER) as somebody:
        hidden = await somebody.post(
            f"/turns/{turn['turnId']}/resume", json={"command": "USER_INPUT", "text": "Tokyo"}
        )

    assert [item["turnId"] for item in found.json()["items"]] == [turn["turnId"]]
    assert_problem(hidden, 404, "turn_not_found")
    assert await unchanged(asking_rig, turn)


async def test_a_hook_asks_before_anything_is_begun(asking_rig: Rig) -> None:
    conversation = fresh_id()
    waiting = await asking_rig.service.send(conversation, "hello", agentId="wary")

    answered = await asking_rig.service.send(conversation, "thanks")

    assert (waiting["status"], waiting["counters"]["steps"]) == ("WAITING_FOR_USER", 0)
    assert waiting["suspension"]["question"] == "Are you sure?"
    assert (answered["turnId"], answered["status"]) == (waiting["turnId"], "COMPLETED")
    roles = [message["role"] for message in await messages(asking_rig, waiting)]
    assert roles == ["user", "question", "user", "assistant"]


async def test_a_hook_that_fails_is_told_without_what_it_raised(asking_rig: Rig) -> None:
    turn = await asking_rig.service.send(fresh_id(), "fail", agentId="wary")

    events = (await asking_rig.client.get(f"/turns/{turn['turnId']}/events")).text
    assert turn["status"] == "FAILED"
    assert turn["message"] == (
        "The turn ended because code of its agent failed. Send the message again."
    )
    assert '"reason":"hook_failed"' in events
    assert "secret" not in events
