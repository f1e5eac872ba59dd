"""The sentences a person reads: English and Chinese, safe, and there for every failure."""

import re
from dataclasses import replace
from datetime import timedelta
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.routers.sentences import failure_sentence, sentence_for
from app.turn.failures import FailureRecord, FailureType, ModelFailure, TokenLimitPhase
from app.turn.ids import FailureId
from app.turn.states import Failed
from app.turn.status import RoundFailure
from tests.http.rig import Rig, fresh_id, outage
from tests.routers.stage import Stage
from tests.support.transitions import STATES
from tests.support.turns import NOON, QUOTA, Told

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


failures = st.builds(
    ModelFailure,
    type=st.sampled_from(FailureType),
    message=st.just("what the provider said"),
    retryable=st.booleans(),
    retry_after=st.none() | st.timedeltas(timedelta(0), timedelta(days=40)),
    token_limit_phase=st.none() | st.sampled_from(TokenLimitPhase),
    provider=st.just("openai"),
    model=st.just("gpt"),
    error_code=st.just("a_code"),
)


@given(failures)
def test_every_kind_of_failure_has_a_safe_sentence_in_both_languages(failure: ModelFailure) -> None:
    record = FailureRecord(
        failure_id=FailureId("f1"), failure=failure, model_attempt=1, occurred_at=NOON
    )
    english, chinese = (failure_sentence(record, language) for language in ("en", "zh"))

    assert english.endswith(".")
    assert not _CHINESE.search(english)
    assert chinese.endswith("。")
    for said in (english, chinese):
        for unsafe in ("{", "}", "provider said", "openai", "gpt", "a_code"):
            assert unsafe not in said
        assert ("UTC" in said) <= (failure.retry_after is not None)


def test_a_stated_time_of_another_day_is_told_with_its_day() -> None:
    def told(hours: int) -> str:
        failure = replace(QUOTA, retry_after=timedelta(hours=hours))
        record = FailureRecord(
            failure_id=FailureId("f1"), failure=failure, model_attempt=1, occurred_at=NOON
        )
        return failure_sentence(record, "en")

    assert "again at 15:00 UTC" in told(3)
    assert "again at 2026-08-03 12:00 UTC" in told(48)


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
