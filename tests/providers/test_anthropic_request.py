"""What the Anthropic wire is sent, for histories of every shape."""

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.providers.anthropic_plan import followed
from app.providers.anthropic_request import request_body
from app.providers.opaque import sealed
from app.providers.strict_history import check_history
from app.turn.agent import ToolSpec
from tests.providers.asking import Message, a_request, assistant, result, user
from tests.support.strict_anthropic import fault

MAKER = "anthropic_messages claude opus"
LOOK = ToolSpec(name="look", description="Looks.", parameters='{"type":"object"}')


def _body(*messages: Message, instructions: str = "", tools: tuple[ToolSpec, ...] = (LOOK,)) -> Any:  # noqa: ANN401
    request = a_request(*messages, instructions=instructions, tools=tools)
    return json.loads(request_body(request, maker=MAKER, extra={}))


def _content(*messages: Message) -> list[Any]:
    return [turn["content"] for turn in _body(*messages)["messages"]]


def test_a_request_has_a_limit_streams_and_names_its_tools() -> None:
    body = _body(instructions="Be kind.")

    assert body["system"] == "Be kind."
    assert (body["max_tokens"], body["stream"]) == (8_192, True)
    assert body["tools"] == [
        {"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}
    ]


def test_all_results_of_a_round_and_the_message_behind_them_are_one_turn() -> None:
    *_, told = _content(
        user("go"), assistant(None, "A", "B"), result("A", "1"), result("B", ""), user("Stop.")
    )

    assert told == [
        {"type": "tool_result", "tool_use_id": "A", "content": "1"},
        {"type": "tool_result", "tool_use_id": "B"},
        {"type": "text", "text": "Stop."},
    ]


def test_blank_text_is_left_out_and_messages_of_one_role_are_one_turn() -> None:
    turns = _content(user("a"), user(" \n"), user("b"), assistant("x"), assistant("y"), user("c"))

    assert [[block["text"] for block in turn] for turn in turns] == [["a", "b"], ["x", "y"], ["c"]]


def test_images_go_by_url_or_in_person() -> None:
    urls = ["https://x.test/a.png", "data:image/png;base64,iVBORw0="]
    parts = [{"type": "image_url", "image_url": {"url": url}} for url in urls]
    (turn,) = _content({"role": "user", "content": parts})

    assert [block["source"] for block in turn] == [
        {"type": "url", "url": urls[0]},
        {"type": "base64", "media_type": "image/png", "data": "iVBORw0="},
    ]


def test_arguments_go_back_as_the_model_wrote_them() -> None:
    number = "123456789012345678901234567890"
    call = {
        "id": "A",
        "type": "function",
        "function": {"name": "look", "arguments": f'{{"n":{number}}}'},
    }
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    request = a_request(user("go"), message, result("A"), tools=[LOOK])

    assert f'"input":{{"n":{number}}}'.encode() in request_body(request, maker=MAKER, extra={})


def test_ids_and_names_no_claude_takes_are_replaced_alike_in_calls_and_results() -> None:
    ids = ("functions.look:0", "functions.look_0", "é" * 80)
    turns = _content(
        user("go"), assistant(None, *ids, tool="lo ok"), *(result(call_id) for call_id in ids)
    )

    sent = [block["id"] for block in turns[1]]
    assert [block["tool_use_id"] for block in turns[2]] == sent
    assert len(set(sent)) == 3
    assert {block["name"] for block in turns[1]} == {"lo_ok"}


def test_a_history_with_calls_declares_their_tools_although_there_are_none_now() -> None:
    history = (user("go"), assistant(None, "A"), result("A"))
    body = _body(*history, tools=())

    assert body["tools"] == [{"name": "look", "input_schema": {"type": "object"}}]
    assert body["tool_choice"] == {"type": "none"}


def _signed(text: str, plan: dict[str, object], *call_ids: str, maker: str = MAKER) -> Message:
    return {**assistant(text, *call_ids), "opaque": sealed(plan, maker)}


THOUGHT = {"type": "thinking", "thinking": "Hm", "signature": "s"}
PLAN: dict[str, object] = {"steps": [{"block": THOUGHT}, {"text": 2}, {"call": True}, {"text": 3}]}


def test_thinking_goes_back_in_its_place() -> None:
    asked = _content(user("go"), _signed("a \nbc", PLAN, "A"), result("A"))[1]

    assert [block.get("text", block["type"]) for block in asked] == [
        "thinking",
        "a ",
        "tool_use",
        "\nbc",
    ]
    assert asked[0] == THOUGHT


@pytest.mark.parametrize(
    "message",
    [
        _signed("a \nbc", PLAN, "A", maker="anthropic_messages claude haiku"),
        _signed("a \nbc", PLAN, "A", maker="openai_chat claude opus"),
        _signed("another text", PLAN, "A"),
        {**assistant("a \nbc", "A"), "opaque": "not JSON"},
    ],
)
def test_thinking_that_is_of_another_or_for_another_message_is_left_out_as_a_whole(
    message: Message,
) -> None:
    asked = _content(user("go"), message, result("A"))[1]

    assert [block["type"] for block in asked] == ["text", "tool_use"]


def test_thinking_whose_calls_were_withheld_is_left_out() -> None:
    assert _content(user("go"), _signed("a \nbc", PLAN), user("and?"))[1] == [
        {"type": "text", "text": "a \nbc"}
    ]


def test_an_empty_plan_is_none() -> None:
    assert followed({}, "", []) is None


_texts = st.text(st.characters(codec="utf-8"), min_size=1, max_size=5).filter(str.strip)
_round = st.tuples(_texts | st.none(), st.integers(1, 3), _texts)


@given(
    st.lists(st.tuples(_texts, st.lists(_round, max_size=3), _texts), min_size=1, max_size=3),
    _texts,
)
def test_any_history_one_provider_takes_is_one_the_other_takes(
    turns: list[tuple[str, list[tuple[str | None, int, str]], str]], last: str
) -> None:
    history: list[Message] = []
    for asked, rounds, answer in turns:
        history.append(user(asked))
        for said, count, told in rounds:
            ids = [f"call.{len(history)}:{n}" for n in range(count)]
            history += [assistant(said, *ids), *(result(call_id, told) for call_id in ids)]
        history.append(assistant(answer))
    history.append(user(last))
    assert check_history(history) is None

    assert fault(_body(*history)) is None


PAUSE: dict[str, object] = {"steps": [{"text": 4}], "paused": True}


def test_a_history_that_ends_with_its_own_pause_is_sent_as_it_is() -> None:
    assert [turn["role"] for turn in _body(user("go"), _signed("Well", PAUSE))["messages"]] == [
        "user",
        "assistant",
    ]


@pytest.mark.parametrize(
    "last", [assistant("Well"), _signed("Well", PAUSE, maker="anthropic_messages claude haiku")]
)
def test_behind_any_other_answer_a_word_is_put(last: Message) -> None:
    body = _body(user("go"), last)

    assert body["messages"][-1] == {
        "role": "user",
        "content": [{"type": "text", "text": "Go on."}],
    }
    assert fault(body) is None


def test_the_length_of_an_answer_is_bounded_whatever_its_provider_is_configured_with() -> None:
    bounded = replace(a_request(user("hello")), max_output_tokens=99)

    body = json.loads(request_body(bounded, maker=MAKER, extra={"max_tokens": 20_000}))

    assert body["max_tokens"] == 99
