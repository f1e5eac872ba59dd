"""What becomes of an OpenAI-compatible body, beyond the recorded cases."""

import json
from collections.abc import Sequence
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.ports import ReasoningDelta, TextDelta
from app.providers import openai_answer
from app.providers.answer_reading import AnswerReading, Delta, joined
from app.providers.openai_answer import OpenAiAnswer
from app.turn.failures import FailureType, ModelFailure, RequestRefused
from app.turn.transcript import StopReason, Usage
from tests.providers.wire_pieces import DONE, answer_in, chunk, failure_in, outcome_of

# --- Text and reasoning --------------------------------------------------------------------------


@pytest.mark.parametrize("field", ["reasoning_content", "reasoning"])
def test_reasoning_is_read_from_either_field(field: str) -> None:
    answer = answer_in(chunk({field: "Let me see."}), chunk({"content": "Yes."}, "stop"), DONE)

    assert (answer.reasoning, answer.text) == ("Let me see.", "Yes.")


def test_reasoning_sent_in_two_fields_counts_once() -> None:
    answer = answer_in(chunk({"reasoning": "A", "reasoning_content": "A"}), chunk({}, "stop"))

    assert answer.reasoning == "A"


def test_think_tags_at_the_start_are_reasoning_wherever_they_are_cut() -> None:
    stream = "<think>\nA < b</th>c</think>\n\nDone <think>"
    for size in (1, 2, 3, 7, len(stream)):
        pieces = [stream[at : at + size] for at in range(0, len(stream), size)]
        answer = answer_in(*(chunk({"content": piece}) for piece in pieces), chunk({}, "stop"))

        assert (answer.reasoning, answer.text) == ("A < b</th>c", "Done <think>")


def test_half_of_a_tag_at_the_end_is_text_after_all() -> None:
    reading = AnswerReading(OpenAiAnswer())
    list(reading.feed(chunk({"content": "<thi"}, "stop")))

    assert list(reading.close()) == [TextDelta(text="<thi")]
    assert reading.outcome().answer.text == "<thi"


def test_the_halves_of_an_emoji_in_two_chunks_become_one_character() -> None:
    answer = answer_in(
        b'data: {"choices":[{"delta":{"content":"a\\ud83d"}}]}\n\n',
        b'data: {"choices":[{"delta":{"content":"\\ude00b"},"finish_reason":"stop"}]}\n\n',
    )

    assert answer.text == "a\U0001f600b"


def test_a_lone_surrogate_is_replaced_and_a_null_character_kept() -> None:
    answer = answer_in(
        b'data: {"choices":[{"delta":{"content":"a\\udc00b\\u0000"},"finish_reason":"stop"}]}\n\n'
    )

    assert answer.text == "a\ufffdb\x00"


def test_a_closing_frame_that_repeats_everything_adds_nothing() -> None:
    repeated = {"index": 0, "message": {"content": "Hi"}, "finish_reason": "stop"}
    closing = b"data: " + json.dumps({"choices": [repeated]}).encode() + b"\n\n"

    assert answer_in(chunk({"content": "Hi"}), closing).text == "Hi"


# --- Usage and stops -----------------------------------------------------------------------------


def test_the_last_figures_win_and_empty_ones_erase_nothing() -> None:
    answer = answer_in(
        chunk({"content": "a"}, usage={"prompt_tokens": 9, "completion_tokens": 1}),
        chunk({}, "stop", usage={"completion_tokens": 2, "prompt_cache_hit_tokens": 4}),
        chunk({}, usage={}),
        chunk({}, usage={"prompt_tokens": None, "completion_tokens": "many"}),
        chunk({}, usage={"prompt_tokens": 10**30, "completion_tokens": -1}),
    )

    assert answer.usage == Usage(input_tokens=9, cached_input_tokens=4, output_tokens=2)


def test_usage_behind_the_end_is_taken_and_text_is_not() -> None:
    late = chunk({"content": " more"}, usage={"prompt_tokens": 3, "completion_tokens": 1})
    answer = answer_in(chunk({"content": "All"}, "stop"), DONE, late)

    assert (answer.text, answer.usage.input_tokens) == ("All", 3)


def test_a_normal_end_with_calls_is_a_wish_for_tools() -> None:
    call = {"index": 0, "id": "a", "function": {"name": "f", "arguments": "{}"}}

    assert (
        answer_in(chunk({"tool_calls": [call]}), chunk({}, "stop")).stop_reason
        is StopReason.TOOL_USE
    )


def test_an_unknown_stop_value_is_kept_and_taken_for_nothing() -> None:
    answer = answer_in(chunk({"content": "a"}, "new_thing"))

    assert (answer.stop_reason, answer.raw_stop) == (StopReason.OTHER, "new_thing")


def test_a_stream_that_ends_without_a_word_about_it_is_interrupted() -> None:
    assert outcome_of(chunk({"content": "a"})).answer.stop_reason is StopReason.INTERRUPTED


# --- Failures inside a 200 -----------------------------------------------------------------------


def test_an_error_object_in_the_stream_is_the_failure_and_keeps_the_text_so_far() -> None:
    error = b'data: {"error":{"message":"Rate limit reached","code":"rate_limit_exceeded"}}\n\n'
    outcome = outcome_of(chunk({"content": "par"}), error, DONE)

    assert isinstance(outcome.failure, ModelFailure)
    assert outcome.failure.type is FailureType.RATE_LIMITED
    assert (outcome.answer.text, outcome.answer.stop_reason) == ("par", StopReason.INTERRUPTED)


@pytest.mark.parametrize(
    "body",
    [
        b'{"base_resp":{"status_code":1002,"status_msg":"rate limit"}}',
        b'{"object":"error","message":"Rate limit exceeded","code":"1300"}',
        b'[{"error":{"code":429,"message":"Too many requests"}}]',
        b'data: {"choices":[{"index":0,"error":{"code":429,"message":"Rate limited"}}]}\n\n',
        b"data: Too many requests, please wait\n\n",
    ],
)
def test_providers_put_errors_under_200_in_many_places(body: bytes) -> None:
    assert failure_in(body).type is FailureType.RATE_LIMITED


@pytest.mark.parametrize("body", [b"<html><h1>502 Bad Gateway</h1></html>", b"upstream broke\n"])
def test_a_body_that_is_no_answer_is_an_outage(body: bytes) -> None:
    failure = failure_in(body)

    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, True)


def test_a_content_refusal_under_200_is_no_outage() -> None:
    error = b'data: {"error":{"message":"Flagged","code":"content_filter"}}\n\n'

    assert isinstance(outcome_of(error).failure, RequestRefused)


def test_a_chunk_lost_in_the_middle_is_an_outage_and_not_a_gap() -> None:
    broken = b'data: {"choices":[{"delta":{"content":"lo\n\n'

    assert failure_in(chunk({"content": "a"}), broken, chunk({"content": "b"}, "stop")).retryable


def test_a_json_body_under_200_is_an_answer_even_without_a_stop_value() -> None:
    answer = answer_in(b'{\n "choices": [\n{"message": {"content": "Plain."}}\n]\n}')

    assert (answer.text, answer.stop_reason) == ("Plain.", StopReason.END_TURN)


def test_ollamas_own_protocol_is_understood() -> None:
    answer = answer_in(
        b'{"message":{"role":"assistant","content":"","thinking":"Hm"},"done":false}\n',
        b'{"message":{"tool_calls":[{"function":{"name":"f","arguments":{"a":1}}}]},"done":false}\n',
        b'{"message":{"content":""},"done":true,"done_reason":"stop","eval_count":4,'
        b'"prompt_eval_count":9}\n',
    )

    assert answer.reasoning == "Hm"
    assert [call.arguments for call in answer.tool_calls] == ['{"a":1}']
    assert (answer.usage.input_tokens, answer.usage.output_tokens) == (9, 4)


# --- Bounds and robustness -----------------------------------------------------------------------


def test_an_answer_that_never_ends_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(openai_answer, "MAX_ANSWER_CHARACTERS", 1_000)
    endless = chunk({"content": "0123456789"}) * 101

    failure = failure_in(endless)

    assert (failure.exception_type, failure.retryable) == ("AnswerTooLongError", False)


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("choices", "delta", "message", "content", "tool_calls", "function", "id"),
                    *("index", "usage", "error", "finish_reason", "arguments", "name", "text"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=25,
)


@given(st.lists(_JSON, max_size=5))
def test_any_json_in_the_stream_is_read_without_an_error(values: list[object]) -> None:
    outcome = outcome_of(*(b"data: " + json.dumps(value).encode() + b"\n\n" for value in values))

    assert outcome.answer.text.encode() is not None


@given(st.lists(st.binary(max_size=40), max_size=8))
def test_any_bytes_are_read_without_an_error(pieces: list[bytes]) -> None:
    assert outcome_of(*pieces).answer.stop_reason is not StopReason.OTHER


# --- What is shown -------------------------------------------------------------------------------

_DELTAS = st.builds(TextDelta, text=st.text()) | st.builds(ReasoningDelta, text=st.text())


@given(st.lists(_DELTAS))
def test_neighbours_of_one_kind_are_shown_as_one_in_the_same_order(deltas: list[Delta]) -> None:
    shown = list(joined(deltas))

    kinds = [type(delta) for delta in shown]
    assert all(one is not other for one, other in pairwise(kinds))
    assert _characters(shown) == _characters(deltas)


def _characters(deltas: Sequence[Delta]) -> list[tuple[type[Delta], str]]:
    return [(type(delta), character) for delta in deltas for character in delta.text]


# --- Chunks that bring text alone ----------------------------------------------------------------

_TEXTS = st.lists(st.text(max_size=6) | st.sampled_from(["<think>", "</think>", "\n", ""]))


@given(_TEXTS, st.sampled_from(["stop", "length", None]))
def test_the_short_way_of_plain_text_leads_where_the_long_way_leads(
    texts: list[str], stop: str | None
) -> None:
    deltas_in = [*({"content": text} for text in texts), dict[str, str]()]
    choices = [
        {"index": 0, "delta": delta, "finish_reason": None if delta else stop}
        for delta in deltas_in
    ]

    def read(**more: object) -> tuple[list[object], object]:
        builder = OpenAiAnswer()
        chunks: list[dict[str, object]] = [
            {"id": "c", "choices": [choice], **more} for choice in choices
        ]
        deltas = [delta for each in chunks for delta in builder.add(each)]
        return [*deltas, *builder.flush()], builder.finished(is_broken=False)

    assert read() == read(vendor="whoever says more is read the long way")


@pytest.mark.parametrize(
    "choice",
    [
        {"index": 1, "delta": {"content": "Hi"}},
        {"delta": {"content": "Hi", "reasoning": "Hm"}},
        {"delta": {"content": [{"type": "text", "text": "Hi"}]}},
        {"delta": {"content": "Hi"}, "finish_reason": "stop"},
        {"delta": {"content": "Hi"}, "usage": {"prompt_tokens": 3}},
        {"delta": {"refusal": "No."}},
        {"message": {"content": "Hi"}},
    ],
)
def test_what_brings_more_than_text_is_read_as_a_whole(choice: dict[str, object]) -> None:
    def read(**more: object) -> tuple[list[object], object]:
        builder = OpenAiAnswer()
        deltas = list(builder.add({"choices": [choice], **more}))
        return [*deltas, *builder.flush()], builder.finished(is_broken=False)

    assert read() == read(vendor="whoever says more is read the long way")


def test_behind_its_end_no_plain_text_is_taken_either() -> None:
    builder = OpenAiAnswer()
    _ = list(builder.add({"choices": [{"message": {"content": "All."}}]}))

    assert list(builder.add({"choices": [{"index": 0, "delta": {"content": "More"}}]})) == []
