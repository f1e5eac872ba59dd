"""Forks, new conversations from the history of a turn, and reverts, which hide an end of one."""

import asyncio
from collections.abc import AsyncGenerator

import pytest

from tests.e2e.conftest import Stage
from tests.http.rig import assert_problem, fresh_id
from tests.support.oracles import check_everything
from tests.support.resuming import brought, last_request, point_of, resume, transcript_of
from tests.support.service import Service, running_service
from tests.support.story import MODEL, QUOTA, THREE_CALLS, clerk

REFUSED = {
    "times": 1,
    "status": 400,
    "body": {"error": {"message": "not this", "type": "invalid_request_error"}},
}


@pytest.fixture
async def service(stage: Stage) -> AsyncGenerator[Service]:
    agents = [clerk(stage.ledger)]
    async with running_service(stage.dsn, stage.settings, agents=agents) as running:
        yield running
    await check_everything(stage.dsn, stage.ledger)


async def talk(service: Service, stage: Stage) -> str:
    """A conversation of three questions with their answers."""
    stage.provider.script(MODEL, [{"text": f"answer {n}"} for n in range(1, 9)])
    for n in (1, 2, 3):
        await service.send("c1", f"question {n}", agentId="clerk", messageId=f"m{n}")
    return "c1"


def questions(*numbers: int) -> list[tuple[str, str]]:
    return [
        each for n in numbers for each in (("user", f"question {n}"), ("assistant", f"answer {n}"))
    ]


# --- Forks ---------------------------------------------------------------------------------------


async def test_a_failed_turn_is_forked_with_everything_its_tools_have_done(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [THREE_CALLS, {"text": "All done.", "faults": [REFUSED]}])
    failed = await service.send("c1", "Pay it.", agentId="clerk")

    answer = await service.client.post(
        f"/turns/{failed['turnId']}/fork", headers={"Prefer": "wait=20"}
    )

    fork = answer.json()
    assert failed["status"] == "FAILED"
    assert (answer.status_code, fork["status"], fork["finalOutput"]) == (
        202,
        "COMPLETED",
        "All done.",
    )
    assert fork["resumesTurnId"] == failed["turnId"]
    assert fork["conversationId"] != "c1"
    assert [m["role"] for m in last_request(stage.provider)] == [
        "user",
        "assistant",
        *["tool"] * 3,
    ]
    assert stage.ledger.tools() == ["book", "look_up", "pay"]
    assert (await service.turn(failed["turnId"]))["status"] == "FAILED"


async def test_a_turn_in_the_middle_is_forked_as_it_ended(service: Service, stage: Stage) -> None:
    stage.provider.script(
        MODEL, [{"text": "one,", "stop": "length"}, {"text": "two."}, {"text": "three."}]
    )
    cut = await service.send("c1", "Count.", agentId="clerk")
    await service.send("c1", "Go on.")

    fork = (
        await service.client.post(f"/turns/{cut['turnId']}/fork", headers={"Prefer": "wait=20"})
    ).json()

    shown = await transcript_of(service, fork["conversationId"])
    assert [role for role, _ in shown] == ["user", "assistant", "notice", "assistant"]
    assert len(await transcript_of(service, "c1")) == 4


async def test_a_waiting_turn_is_forked_and_goes_on_waiting(service: Service, stage: Stage) -> None:
    stage.provider.script(MODEL, [{"text": "Done.", "faults": [QUOTA]}])
    waiting = await service.send("c1", "Go.", agentId="clerk")

    fork = (
        await service.client.post(f"/turns/{waiting['turnId']}/fork", headers={"Prefer": "wait=20"})
    ).json()

    assert fork["status"] == "COMPLETED"
    assert (await service.turn(waiting["turnId"]))["version"] == waiting["version"]


async def test_a_finished_turn_is_not_forked_for_nothing(service: Service, stage: Stage) -> None:
    await talk(service, stage)
    turn = (await service.client.get("/conversations/c1")).json()["lastTurn"]

    refused = await service.client.post(f"/turns/{turn['turnId']}/fork")
    unknown = await service.client.post("/turns/another/fork")

    assert assert_problem(refused, 409, "not_resumable")["reason"] == "completed"
    assert_problem(unknown, 404, "turn_not_found")


async def test_a_fork_under_a_key_is_made_once(service: Service, stage: Stage) -> None:
    stage.provider.script(MODEL, [{"text": "one,", "stop": "length"}, {"text": "two."}])
    cut = await service.send("c1", "Count.", agentId="clerk")
    key = {"Idempotency-Key": fresh_id(), "Prefer": "wait=20"}

    made = [
        (await service.client.post(f"/turns/{cut['turnId']}/fork", headers=key)).json()
        for _ in range(2)
    ]

    assert made[0] == made[1]
    conversations = (await service.client.get("/conversations")).json()["items"]
    assert len(conversations) == 2


# --- Reverts -------------------------------------------------------------------------------------


async def test_a_revert_hides_what_came_after_a_message_and_can_be_undone(
    service: Service, stage: Stage
) -> None:
    await talk(service, stage)

    reverted = await service.client.post("/conversations/c1/revert", json={"messageId": "m2"})
    hidden = await transcript_of(service, "c1")
    restored = await service.client.post("/conversations/c1/unrevert")

    assert (reverted.status_code, reverted.json()["revertedTo"]) == (200, "m2")
    assert hidden == [*questions(1), ("user", "question 2")]
    assert (restored.status_code, restored.json()["revertedTo"]) == (200, None)
    assert await transcript_of(service, "c1") == questions(1, 2, 3)


async def test_the_point_of_a_revert_can_be_moved_either_way(
    service: Service, stage: Stage
) -> None:
    await talk(service, stage)

    shown: list[int] = []
    for message in ("m2", "m1", "m3"):
        await service.client.post("/conversations/c1/revert", json={"messageId": message})
        shown.append(len(await transcript_of(service, "c1")))

    assert shown == [3, 1, 5]


async def test_the_next_message_makes_a_revert_final(service: Service, stage: Stage) -> None:
    await talk(service, stage)
    await service.client.post("/conversations/c1/revert", json={"messageId": "m1"})

    await service.send("c1", "question 4", messageId="m4")
    undone = await service.client.post("/conversations/c1/unrevert")
    gone = await service.client.post("/conversations/c1/revert", json={"messageId": "m2"})

    said = [("user", "question 1"), ("user", "question 4"), ("assistant", "answer 1")]
    assert [(m["role"], m["content"]) for m in last_request(stage.provider)] == said[:2]
    assert await transcript_of(service, "c1") == said
    assert undone.json()["revertedTo"] is None
    assert_problem(gone, 404, "message_not_found")


async def test_a_revert_behind_a_final_one_hides_and_restores_its_own_part_alone(
    service: Service, stage: Stage
) -> None:
    await talk(service, stage)
    await service.client.post("/conversations/c1/revert", json={"messageId": "m2"})
    await service.send("c1", "question 4", messageId="m4")
    before = await transcript_of(service, "c1")

    await service.client.post("/conversations/c1/revert", json={"messageId": "m1"})
    hidden = await transcript_of(service, "c1")
    await service.client.post("/conversations/c1/unrevert")

    assert hidden == [("user", "question 1")]
    assert await transcript_of(service, "c1") == before


async def test_a_resume_answers_anew_and_leaves_the_revert_as_it_is(
    service: Service, stage: Stage
) -> None:
    await talk(service, stage)
    await service.client.post("/conversations/c1/revert", json={"messageId": "m2"})

    point = await point_of(service, "c1")
    resumed = (await resume(service, "c1")).json()
    anew = await transcript_of(service, "c1")
    still = (await service.client.get("/conversations/c1")).json()["revertedTo"]
    await service.client.post("/conversations/c1/unrevert")

    again = [("user", "question 2"), ("assistant", "answer 2")]
    assert point["kind"] == "CALL_MODEL"
    assert resumed["status"] == "COMPLETED"
    assert anew == [*questions(1), *again]
    assert still == "m2"
    assert await transcript_of(service, "c1") == [*questions(1, 2, 3), ("assistant", "answer 2")]


async def test_what_is_hidden_is_read_page_by_page_without_a_hole(
    service: Service, stage: Stage
) -> None:
    await talk(service, stage)
    await service.client.post("/conversations/c1/revert", json={"messageId": "m1"})
    await service.send("c1", "question 4", messageId="m4")

    pages: list[str] = []
    query = "limit=1"
    while query:
        page = (await service.client.get(f"/conversations/c1/messages?{query}")).json()
        pages += [message["content"] for message in page["items"]]
        query = page["nextCursor"] and f"limit=1&cursor={page['nextCursor']}"

    assert pages == ["question 1", "question 4", "answer 1"]


async def test_a_conversation_whose_turn_is_not_over_is_not_reverted(
    service: Service, stage: Stage
) -> None:
    stage.provider.script(MODEL, [{"text": "Done.", "faults": [QUOTA]}])
    await service.send("c1", "Go.", agentId="clerk", messageId="m1")

    for path, body in (("revert", {"messageId": "m1"}), ("unrevert", None)):
        refused = await service.client.post(f"/conversations/c1/{path}", json=body)

        assert_problem(refused, 409, "conversation_busy")


async def test_a_revert_and_a_message_at_the_same_time_leave_a_whole_conversation(
    service: Service, stage: Stage
) -> None:
    await talk(service, stage)

    await asyncio.gather(
        service.send("c1", "question 4", messageId="m4"),
        *(
            service.client.post("/conversations/c1/revert", json={"messageId": "m1"})
            for _ in range(3)
        ),
    )

    shown = await transcript_of(service, "c1")
    assert ("user", "question 4") in shown or shown == [("user", "question 1")]
    assert all(request["status"] == 200 for request in stage.provider.requests(MODEL))


async def test_an_imported_message_can_be_gone_back_to(service: Service, stage: Stage) -> None:
    stage.provider.script(MODEL, [{"text": "Anew."}])
    history = [{"role": "user", "content": "go"}, {"role": "assistant", "content": "Gone."}]
    conversation = await brought(service, history)
    messages = (await service.client.get(f"/conversations/{conversation}/messages")).json()

    message_id = messages["items"][0]["messageId"]
    await service.client.post(
        f"/conversations/{conversation}/revert", json={"messageId": message_id}
    )
    done = (await resume(service, conversation)).json()

    assert done["finalOutput"] == "Anew."
    assert last_request(stage.provider) == [{"role": "user", "content": "go"}]
