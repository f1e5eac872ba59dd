"""The demo model's outages: when they come, and when they are over."""

from collections.abc import Sequence

import pytest

from app.ports import ModelEvent, TextDelta
from app.providers.demo_outages import CUT, OUTAGES
from app.providers.demo_script import HELP
from app.turn.failures import FailureType, ModelFailure, RequestRefused, TokenLimitPhase
from app.turn.transcript import ModelAnswer
from tests.providers.asking import (
    answer_of,
    asking_for,
    ending_of,
    events_of,
    failure_of,
    user,
)
from tests.providers.demo_talk import MODEL, after_the_tools, demo_request, demo_results


async def _endings(history: Sequence[dict[str, object]], *attempts: int) -> list[ModelEvent]:
    return [await ending_of(MODEL, demo_request(*history, attempt=attempt)) for attempt in attempts]


@pytest.mark.parametrize(
    ("kind", "expected", "retryable"),
    [
        ("quota", FailureType.QUOTA_EXCEEDED, False),
        ("rate", FailureType.RATE_LIMITED, True),
        ("overloaded", FailureType.OVERLOADED, True),
        ("unavailable", FailureType.UNAVAILABLE, True),
        ("context", FailureType.TOKEN_LIMIT_EXCEEDED, False),
        ("output", FailureType.TOKEN_LIMIT_EXCEEDED, False),
        ("auth", FailureType.UNAVAILABLE, False),
        ("cut", FailureType.UNAVAILABLE, True),
    ],
)
async def test_an_outage_fails_the_call_after_the_tools_and_then_is_over(
    kind: str, expected: FailureType, *, retryable: bool
) -> None:
    history = await after_the_tools(f"/outage {kind}")

    failed, answered = await _endings(history, 2, 3)

    assert isinstance(failed, ModelFailure)
    assert (failed.type, failed.retryable) == (expected, retryable)
    assert isinstance(answered, ModelAnswer)


async def test_a_refusal_is_the_request_s_fault() -> None:
    (refused,) = await _endings(await after_the_tools("/outage refused"), 2)

    assert isinstance(refused, RequestRefused)


async def test_token_limits_name_their_phase() -> None:
    phases = {
        kind: (await failure_of(MODEL, demo_request(*history, attempt=2))).token_limit_phase
        for kind in ("context", "output")
        for history in [await after_the_tools(f"/outage {kind}")]
    }

    assert phases == {"context": TokenLimitPhase.INPUT_CONTEXT, "output": TokenLimitPhase.OUTPUT}


async def test_a_rate_limit_states_a_wait_of_twenty_seconds() -> None:
    failure = await failure_of(
        MODEL, demo_request(*await after_the_tools("/outage rate"), attempt=2)
    )

    assert failure.retry_after is not None
    assert failure.retry_after.total_seconds() == 20


async def test_a_cut_stream_breaks_after_some_text() -> None:
    events = await events_of(MODEL, demo_request(*await after_the_tools("/outage cut"), attempt=2))

    assert any(isinstance(event, TextDelta) for event in events)
    assert isinstance(events[-1], ModelFailure)


async def test_an_outage_lasts_as_often_as_it_was_asked_for() -> None:
    history = await after_the_tools("/outage quota 2")

    assert [type(ending) for ending in await _endings(history, 2, 3, 4)] == [
        ModelFailure,
        ModelFailure,
        ModelAnswer,
    ]


async def test_a_new_message_to_the_waiting_turn_goes_on_with_the_results_it_has() -> None:
    history = [*await after_the_tools("/outage quota"), user("Never mind, go on.")]

    answer = await answer_of(MODEL, demo_request(*history, attempt=3))

    assert "148 orders" in answer.text
    assert answer.tool_calls == ()


async def test_a_new_message_may_order_the_next_outage() -> None:
    history = [*await after_the_tools("/outage quota"), user("/outage overloaded")]

    failed, answered = await _endings(history, 3, 4)

    assert isinstance(failed, ModelFailure)
    assert failed.type is FailureType.OVERLOADED
    assert isinstance(answered, ModelAnswer)


async def test_an_outage_of_an_earlier_turn_is_over() -> None:
    history = await after_the_tools("/outage quota 5")
    history.append({"role": "assistant", "content": "The turn was cancelled."})
    history.append(user("Look at TP-4410"))
    asked = await answer_of(MODEL, demo_request(*history))
    history += [asking_for(asked), *demo_results(asked)]

    assert (await answer_of(MODEL, demo_request(*history, attempt=2))).tool_calls == ()


def test_every_outage_is_in_the_help() -> None:
    assert all(kind in HELP for kind in OUTAGES)
    assert CUT in OUTAGES
