"""Resumes and forks of turns whose calls wait for somebody: only an answer goes on with those."""

import pytest

from app.turn.interruption import WORDS
from app.turn.transcript import Outcome
from tests.http.rig import assert_problem, unchanged
from tests.routers.stage import Stage
from tests.support.calls_that_wait import WAITS_OF_CALLS, together
from tests.support.turns import REFUND, SHIP, a_call

WAITING = ["WAITING_FOR_APPROVAL", "WAITING_FOR_USER, a tool's form", "WAITING_FOR_TOOL"]
AT_WORK = "RUNNING, a tool is begun, another call waits"


@pytest.mark.parametrize(
    ("state", "reason"), [*((state, "waiting") for state in WAITING), (AT_WORK, "running")]
)
async def test_a_resume_answers_for_nobody(stage: Stage, state: str, reason: str) -> None:
    turn = await stage.in_state(WAITS_OF_CALLS[state]())
    path = f"/conversations/{turn['conversationId']}"

    point = (await stage.rig.client.get(f"{path}/resume-point")).json()
    refused = await stage.rig.post(f"{path}/resume")

    problem = assert_problem(refused, 409, "not_resumable")
    assert problem["reason"] == point["reason"] == reason
    assert (point["status"], point["turnId"]) == (turn["status"], turn["turnId"])
    assert point["actions"] == problem["allowedActions"]
    assert any(action.get("callId") for action in point["actions"])
    assert await unchanged(stage.rig, turn)


async def test_a_paused_turn_that_is_resumed_waits_for_its_calls_again(stage: Stage) -> None:
    turn = await stage.in_state(WAITS_OF_CALLS["PAUSED, a call waits"]())
    path = f"/conversations/{turn['conversationId']}"

    point = (await stage.rig.client.get(f"{path}/resume-point")).json()
    resumed = await stage.rig.post(f"{path}/resume")

    assert (point["kind"], point["unansweredToolCalls"]) == (
        "RECOVER_TOOLS",
        [{"callId": "A", "toolName": "ship", "rule": "wait"}],
    )
    assert (resumed.status_code, resumed.json()["status"]) == (202, "WAITING_FOR_TOOL")


async def test_a_fork_closes_the_calls_that_wait_for_itself_alone(stage: Stage) -> None:
    turn = await stage.in_state(together(a_call("A", REFUND), a_call("B", SHIP)))

    fork = await stage.rig.post(f"/turns/{turn['turnId']}/fork")

    assert fork.status_code == 202
    assert fork.json()["waits"] == []
    assert await stage.results(fork.json()) == [
        ("A", WORDS[Outcome.NOT_STARTED]),
        ("B", WORDS[Outcome.UNKNOWN]),
    ]
    assert await unchanged(stage.rig, turn)
    assert (await stage.answer(turn, "TOOL_RESULT", callId="B", output="sent")).is_success
