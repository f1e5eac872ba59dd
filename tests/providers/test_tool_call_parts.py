"""Which fragments make which tool call, and which arguments can be used."""

import json
from collections.abc import Mapping

import pytest

from app.turn.transcript import StopReason, ToolCall
from tests.providers.wire_pieces import DONE, answer_in, chunk, failure_in


def _calls(*fragments: Mapping[str, object]) -> tuple[ToolCall, ...]:
    chunks = [chunk({"tool_calls": [fragment]}) for fragment in fragments]
    return answer_in(*chunks, chunk({}, "tool_calls"), DONE).tool_calls


def _fragment(arguments: object, **more: object) -> dict[str, object]:
    name = more.pop("name", None)
    function = {"arguments": arguments} | ({"name": name} if name else {})
    return {**more, "function": function}


def test_a_repeated_name_is_not_glued_and_a_split_one_is() -> None:
    repeated = _calls(
        _fragment("", index=0, id="a", name="look_up"),
        _fragment('{"q":1}', index=0, id="a", name="look_up"),
    )
    split = _calls(
        _fragment("", index=0, id="a", name="look_"), _fragment("{}", index=0, name="up")
    )

    assert [call.tool_name for call in (*repeated, *split)] == ["look_up", "look_up"]


def test_whole_calls_without_ids_or_indexes_are_told_apart() -> None:
    calls = _calls(_fragment({"n": 1}, name="f"), _fragment({"n": 2}, name="f"))

    assert [call.arguments for call in calls] == ['{"n":1}', '{"n":2}']


def test_calls_come_in_the_order_of_their_indexes() -> None:
    calls = _calls(
        _fragment("{}", index=2, id="c", name="f"),
        _fragment("{}", index=0, id="a", name="f"),
        _fragment("{}", index=1, id="b", name="f"),
    )

    assert [call.call_id for call in calls] == ["a", "b", "c"]


@pytest.mark.parametrize("written", ["", "  ", "null", None])
def test_no_arguments_mean_an_empty_object(written: object) -> None:
    (call,) = _calls(_fragment(written, index=0, id="a", name="f"))

    assert (call.arguments, call.problem) == ("{}", None)


@pytest.mark.parametrize("written", ['{"a":', "[1]", "7", "nonsense", '{"a":1}}', '{"a": NaN}'])
def test_arguments_that_are_no_json_object_are_a_problem_and_go_back_as_an_empty_one(
    written: str,
) -> None:
    (call,) = _calls(_fragment(written, index=0, id="a", name="f"))

    assert call.arguments == "{}"
    assert call.problem is not None
    assert written in call.problem


def test_arguments_stay_the_very_text_the_model_wrote() -> None:
    written = '{ "b": 1.0,\n "a": 12345678901234567890123, "t": "\\u00e9" }'
    (call,) = _calls(_fragment(written, index=0, id="a", name="f"))

    assert call.arguments == written


def test_a_lone_surrogate_in_arguments_is_replaced() -> None:
    (call,) = _calls(_fragment('{"t":"\\ud83d"}', index=0, id="a", name="f"))

    assert json.loads(call.arguments) == {"t": "\ufffd"}


def test_empty_arguments_of_a_cut_answer_are_a_problem() -> None:
    call = _fragment("", index=0, id="a", name="f")
    answer = answer_in(chunk({"tool_calls": [call]}), chunk({}, "length"), DONE)

    assert answer.stop_reason is StopReason.MAX_OUTPUT
    assert answer.tool_calls[0].problem is not None


def test_an_answer_that_never_stops_asking_for_tools_is_given_up() -> None:
    fragments = [_fragment("{}", index=number, name="f") for number in range(1_001)]

    failure = failure_in(*(chunk({"tool_calls": [fragment]}) for fragment in fragments))

    assert failure.exception_type == "TooManyCallsError"
