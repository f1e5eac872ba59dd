"""The sentences a person reads: English and Chinese, safe, and there for every failure."""

import re
from dataclasses import replace
from typing import get_args

import pytest

from app.routers.sentences import sentence_for
from app.turn.states import Failed
from app.turn.status import RoundFailure
from tests.http.rig import Rig, fresh_id, outage
from tests.routers.stage import Stage
from tests.support.transitions import STATES
from tests.support.turns import Told

KINDS = ["quota", "rate", "overloaded", "unavailable", "context", "output", "auth"]
_CHINESE = re.compile(r"[\u4e00-\u9fff]")


@pytest.mark.parametrize("kind", KINDS)
async def test_every_failure_is_explained_in_the_callers_language(rig: Rig, kind: str) -> None:
    turn = await rig.service.send(fresh_id(), outage(kind), agentId="clerk")
    path = f"/turns/{turn['turnId']}"

    english = (await rig.client.get(path, headers={"Accept-Language": "en"})).json()["message"]
    chinese = (await rig.client.get(path, headers={"Accept-Language": "zh-CN"})).json()["message"]

    assert turn["status"] == "WAITING_FOR_MODEL"
    assert turn["message"] == english
    assert english.endswith(".")
    assert not _CHINESE.search(english)
    assert chinese.endswith("。")
    assert _CHINESE.search(chinese)
    said_by_the_provider = turn["suspension"]["modelFailure"]["message"]
    assert said_by_the_provider not in {english, chinese}


async def test_a_stated_time_is_part_of_the_sentence(rig: Rig) -> None:
    turn = await rig.service.send(fresh_id(), outage("rate"), agentId="clerk")

    at = turn["retryAt"][11:16]
    assert f"{at} UTC" in turn["message"]


async def test_a_turn_with_nothing_to_explain_has_no_sentence(rig: Rig) -> None:
    assert (await rig.completed())["message"] is None


@pytest.mark.parametrize(
    "state",
    [
        "WAITING_FOR_APPROVAL",
        "WAITING_FOR_USER",
        "WAITING_FOR_USER, a tool's form",
        "WAITING_FOR_TOOL",
    ],
)
async def test_every_wait_for_somebody_is_explained(stage: Stage, state: str) -> None:
    turn = await stage.in_state(STATES[state]())

    headers = {"Accept-Language": "zh"}
    chinese = await stage.rig.client.get(f"/turns/{turn['turnId']}", headers=headers)

    assert turn["message"].endswith(".")
    assert _CHINESE.search(chinese.json()["message"])


@pytest.mark.parametrize("reason", [*get_args(RoundFailure), "policy_failed"])
def test_every_way_in_which_a_turn_fails_is_explained(reason: str) -> None:
    turn = replace(Told().turn, state=Failed(reason=reason))
    unknown = replace(Told().turn, state=Failed(reason="internal_error"))

    assert sentence_for(turn, "en") != sentence_for(unknown, "en")
    assert sentence_for(turn, "zh") != sentence_for(unknown, "zh")
