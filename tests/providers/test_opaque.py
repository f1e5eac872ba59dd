"""What must go back to its maker, on the OpenAI-compatible wire: to the maker whole, else not."""

import json
import re
from typing import Any

import pytest

from app.ports import ModelAnswer
from app.providers.opaque import sealed
from app.providers.openai_messages import as_sent
from app.store.message_codec import encode
from app.turn.ids import CallId
from app.turn.transcript import AssistantMessage, ToolCall
from tests.providers.asking import result
from tests.providers.wire_pieces import DONE, chunk, outcome_of

MAKER = "openai_chat deepseek deepseek-reasoner"
CALL = {"index": 0, "id": "c1", "function": {"name": "look", "arguments": "{}"}}
GOOGLE = {"google": {"thought_signature": "c2ln+/=="}}


def _answered(*deltas: dict[str, object]) -> tuple[ModelAnswer, str]:
    """The answer of a stream of these deltas, and what it keeps for its maker."""
    outcome = outcome_of(*(chunk(delta) for delta in deltas), chunk({}, "tool_calls"), DONE)
    return outcome.answer, sealed(outcome.reading.to_return, MAKER)


def _stored(answer: ModelAnswer, opaque: str, calls: tuple[ToolCall, ...] | None = None) -> str:
    kept = answer.tool_calls if calls is None else calls
    return encode(AssistantMessage(text=answer.text, tool_calls=kept, opaque=opaque)).body


def _sent(message: str, maker: str = MAKER) -> Any:  # noqa: ANN401 - JSON
    return json.loads(as_sent(message, maker))


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning", "reasoning_text"])
def test_reasoning_goes_back_with_its_calls_under_the_name_it_came_with(field: str) -> None:
    stored = _stored(*_answered({field: " Hm 🤔"}, {field: "\u2028 \n"}, {"tool_calls": [CALL]}))

    assert _sent(stored)[field] == " Hm 🤔\u2028 \n"


def test_reasoning_that_was_empty_goes_back_empty_as_some_demand_it() -> None:
    stored = _stored(*_answered({"reasoning_content": ""}, {"tool_calls": [CALL]}))

    assert _sent(stored)["reasoning_content"] == ""


def test_reasoning_of_a_final_answer_is_not_kept_twice() -> None:
    answer, opaque = _answered({"reasoning_content": "Hm"}, {"content": "Yes."})

    assert (answer.reasoning, opaque) == ("Hm", "")


def test_the_details_of_reasoning_are_put_together_from_their_deltas() -> None:
    first = {"type": "reasoning.text", "index": 0, "text": "Let ", "signature": None}
    second = {"type": "reasoning.text", "index": 0, "text": "me.", "signature": "sgn"}
    hidden = {"type": "reasoning.encrypted", "index": 1, "data": "RW5j"}
    stored = _stored(
        *_answered(
            {"reasoning": "Let ", "reasoning_details": [first]},
            {"reasoning": "me.", "reasoning_details": [second]},
            {"reasoning_details": [hidden]},
            {"tool_calls": [CALL]},
        )
    )

    sent = _sent(stored)
    assert sent["reasoning_details"] == [first | second | {"text": "Let me."}, hidden]
    assert "reasoning" not in sent


def test_the_signature_of_a_call_goes_back_with_this_call() -> None:
    second = CALL | {"index": 1, "id": "c2"}
    stored = _stored(*_answered({"tool_calls": [CALL | {"extra_content": GOOGLE}, second]}))

    sent = _sent(stored)
    assert [call.get("extra_content") for call in sent["tool_calls"]] == [GOOGLE, None]
    assert [call["id"] for call in sent["tool_calls"]] == ["c1", "c2"]


@pytest.mark.parametrize(
    "other",
    [
        "openai_chat deepseek deepseek-chat",
        "openai_chat acme deepseek-reasoner",
        "anthropic_messages deepseek deepseek-reasoner",
    ],
)
def test_nobody_else_gets_anything_of_it(other: str) -> None:
    answer, opaque = _answered({"reasoning_content": "Hm", "tool_calls": [CALL]})

    assert _sent(_stored(answer, opaque), other) == json.loads(_stored(answer, ""))


def test_calls_that_were_withheld_take_their_reasoning_with_them() -> None:
    answer, opaque = _answered(
        {"content": "I look.", "reasoning_content": "Hm"}, {"tool_calls": [CALL]}
    )

    assert _sent(_stored(answer, opaque, calls=())) == {"role": "assistant", "content": "I look."}


def test_a_message_that_only_speaks_of_it_is_sent_as_it_is() -> None:
    call = ToolCall(call_id=CallId("c1"), tool_name="look", arguments='{"opaque":"x"}')
    stored = encode(AssistantMessage(text='the key "opaque":', tool_calls=(call,))).body

    assert as_sent(stored, MAKER) == stored.encode()


# --- Ids -----------------------------------------------------------------------------------------


def test_a_provider_of_short_ids_gets_them_alike_in_calls_and_results() -> None:
    ids = ("call_" + "a" * 40, "call_" + "a" * 39 + "b", "AbCdEfGh9")
    calls = tuple(ToolCall(call_id=CallId(i), tool_name="look", arguments="{}") for i in ids)
    asked = encode(AssistantMessage(text="", tool_calls=calls)).body
    told = [json.dumps(result(call_id)) for call_id in ids]

    sent = [
        call["id"] for call in json.loads(as_sent(asked, MAKER, "nine_characters"))["tool_calls"]
    ]
    answered = [json.loads(as_sent(one, MAKER, "nine_characters"))["tool_call_id"] for one in told]

    assert sent == answered
    assert len(set(sent)) == 3
    assert all(re.fullmatch("[A-Za-z0-9]{9}", call_id) for call_id in sent)
    assert sent[2] == "AbCdEfGh9"
