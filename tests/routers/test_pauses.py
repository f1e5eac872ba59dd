"""Pausing a turn and going on with it, over HTTP."""

from dataclasses import replace
from typing import Any, cast

import pytest

from app.ports import Scope, StoredTurn, TurnStore
from app.services.turns import resume_with
from app.turn.ids import TurnId
from app.turn.inputs import Resume
from tests.http.rig import Rig, assert_problem, unchanged
from tests.support.bench import CALLER as OPERATOR


async def paused(rig: Rig) -> dict[str, Any]:
    """A turn that was paused while it waited for its own retry, or simply stood still."""
    waiting = await rig.waiting()
    replanned = await rig.post(
        f"/turns/{waiting['turnId']}/resume",
        {"command": "REPLAN_WITH_MESSAGE", "message": {"content": "/slow please"}},
    )
    assert replanned.status_code == 202, replanned.text
    answer = await rig.post(f"/turns/{waiting['turnId']}/pause", {})
    assert answer.status_code == 200, answer.text
    body: dict[str, Any] = answer.json()
    return body


async def test_a_pause_stands_still_with_everything_kept_and_resume_goes_on(rig: Rig) -> None:
    turn = await paused(rig)
    assert turn["status"] == "PAUSED"
    assert turn["pause"]["cause"] == "person"
    assert turn["message"] == "The turn is paused. Resume goes on from where it stands."
    assert [a["command"] for a in turn["actions"] if a["enabled"]] == [
        "RESUME",
        "MESSAGE",
        "REPLAN_WITH_MESSAGE",
        "CANCEL",
    ]

    answer = await rig.post(f"/turns/{turn['turnId']}/resume", {"command": "RESUME"})

    assert answer.status_code == 202
    assert answer.json()["status"] == "RUNNING"
    await rig.post(f"/turns/{turn['turnId']}/cancel", {})


async def test_a_second_pause_changes_nothing_and_a_second_resume_is_refused(rig: Rig) -> None:
    turn = await paused(rig)

    again = await rig.post(f"/turns/{turn['turnId']}/pause", {})
    assert (again.status_code, again.json()["version"]) == (200, turn["version"])
    await rig.post(f"/turns/{turn['turnId']}/cancel", {})

    refused = await rig.post(f"/turns/{turn['turnId']}/resume", {"command": "RESUME"})
    assert_problem(refused, 409, "turn_terminal")


async def test_a_message_goes_on_with_a_paused_turn(rig: Rig) -> None:
    turn = await paused(rig)

    answer = await rig.service.send(turn["conversationId"], "hello")

    assert (answer["turnId"], answer["status"]) == (turn["turnId"], "COMPLETED")


async def test_a_turn_that_waits_for_its_model_is_not_paused(
    rig: Rig, still: dict[str, Any]
) -> None:
    answer = await rig.post(f"/turns/{still['turnId']}/pause", {})

    assert_problem(answer, 409, "wrong_command")
    assert await unchanged(rig, still)


async def test_replanning_takes_its_message_once(rig: Rig) -> None:
    waiting = await rig.waiting()
    body = {
        "command": "REPLAN_WITH_MESSAGE",
        "message": {"content": "hello", "messageId": f"again-{waiting['turnId']}"},
    }

    first = await rig.post(f"/turns/{waiting['turnId']}/resume", body, Prefer="wait=20")
    second = await rig.post(f"/turns/{waiting['turnId']}/resume", body)
    other = await rig.post(
        f"/turns/{waiting['turnId']}/resume",
        {**body, "message": {**body["message"], "content": "something else"}},  # type: ignore[dict-item]  # a dict
    )

    assert first.json()["status"] == "COMPLETED"
    assert (second.status_code, second.json()["version"]) == (202, first.json()["version"])
    assert_problem(other, 422, "payload_invalid")


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"limits": {"maxSteps": 0}},
        {"limits": {"maxSteps": "many"}},
        {"limits": {"bribe": 1}},
        {"model": "other"},
    ],
)
async def test_changes_that_make_no_sense_are_refused(
    rig: Rig, still: dict[str, Any], changes: dict[str, Any]
) -> None:
    answer = await rig.post(
        f"/turns/{still['turnId']}/resume", {"command": "RESUME", "changes": changes}
    )

    assert_problem(answer, 422, "payload_invalid")
    assert await unchanged(rig, still)


async def test_of_two_operators_who_change_limits_neither_undoes_the_other(rig: Rig) -> None:
    turn_id = TurnId((await rig.running())["turnId"])
    services, one = rig.service.runtime.services, f"/turns/{turn_id}"
    await rig.post(f"{one}/pause")
    seen = await services.turns.find(OPERATOR.principal.scope, turn_id)
    changes = {"command": "RESUME", "changes": {"limits": {"maxSteps": 50}}}
    assert (await rig.post(f"{one}/resume", changes)).status_code == 202
    await rig.post(f"{one}/pause")

    late = replace(services, turns=cast("TurnStore", _LateTurns(services.turns, seen)))
    done = await resume_with(late, OPERATOR, turn_id, Resume(), {"max_iterations": 7})

    limits = done.stored.turn.limits
    assert limits is not None
    assert (limits.max_steps, limits.max_iterations) == (50, 7)
    await rig.post(f"{one}/cancel")


class _LateTurns:
    """A store of turns whose first look shows a turn as it was a while ago."""

    def __init__(self, turns: TurnStore, seen: StoredTurn | None) -> None:
        self._turns = turns
        self._seen = seen

    async def find(self, scope: Scope, turn_id: TurnId) -> StoredTurn | None:
        seen, self._seen = self._seen, None
        return seen or await self._turns.find(scope, turn_id)

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401 - whatever else a store has
        return getattr(self._turns, name)
