"""What of a history from elsewhere goes into a request: what a provider takes, and all of it."""

import json
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.ports import ModelRequest
from app.providers.anthropic_request import request_body
from app.providers.strict_history import check_history
from app.store.message_codec import encode
from app.turn.agent import ToolSpec
from app.turn.requestable import heard, requestable
from app.turn.transcript import AssistantMessage, Message, SystemMessage, ToolResult, UserMessage
from tests.support.brought import ANY_HISTORY, ANY_MESSAGE, read
from tests.support.sizes import size
from tests.support.strict_anthropic import fault
from tests.support.turns import READS

_ASKED: Mapping[str, Any] = {
    "role": "assistant",
    "content": "",
    "toolCalls": [{"id": "c0", "name": "pay"}],
}
_TWO: Mapping[str, Any] = {
    "role": "assistant",
    "content": "Let me see.",
    "toolCalls": [{"id": "c0", "name": "pay"}, {"id": "c1", "name": "look_up"}],
}


def result(call_id: str, content: str = "ok") -> dict[str, object]:
    return {"role": "tool", "toolCallId": call_id, "content": content}


def said(text: str) -> dict[str, object]:
    return {"role": "user", "content": text}


def sent(*history: Mapping[str, Any]) -> list[dict[str, object]]:
    """The bodies of what is left, as a request carries them."""
    return [json.loads(encode(message).body) for message in requestable(read(history))]


MORE = settings(max_examples=size(100, soak=10_000))


@MORE
@given(ANY_HISTORY)
def test_any_history_becomes_one_that_a_strict_provider_takes(history: list[Message]) -> None:
    kept = requestable(history)
    bodies = [json.loads(encode(message).body) for message in kept]

    assert check_history([*bodies, {"role": "user", "content": "Go on."}]) is None


@MORE
@given(ANY_HISTORY, st.sampled_from([[], [READS]]))
def test_any_history_becomes_one_that_the_other_wire_takes(
    history: list[Message], tools: list[ToolSpec]
) -> None:
    bodies = [encode(message).body for message in requestable(history)]
    request = ModelRequest(
        model="claude",
        instructions="",
        messages=[*bodies, '{"role":"user","content":"Go on."}'],
        tools=tools,
        attempt=1,
    )

    assert fault(json.loads(request_body(request, maker="m", extra={}))) is None


def test_what_its_maker_has_signed_goes_back_with_the_very_calls_it_was_signed_with() -> None:
    asked, answer = read([_ASKED, result("c0")])
    assert isinstance(asked, AssistantMessage)
    signed = replace(asked, opaque="sealed")

    first, _, again, _ = requestable([signed, answer, signed, answer])

    assert first == signed
    assert isinstance(again, AssistantMessage)
    assert (again.tool_calls[0].call_id, again.opaque) == ("call-1", "")


@MORE
@given(ANY_HISTORY)
def test_what_is_left_is_left_as_it_is(history: list[Message]) -> None:
    kept = requestable(history)

    assert requestable(kept) == kept


@MORE
@given(ANY_HISTORY, ANY_MESSAGE)
def test_a_history_that_goes_on_is_sent_on_in_the_same_way(
    history: list[Message], more: Message
) -> None:
    """So that a provider's cache of the beginning stays good."""
    if isinstance(more, ToolResult):
        return
    kept = requestable(history)

    assert requestable([*history, more])[: len(kept)] == kept


def test_case_79_an_older_round_that_lacks_a_result_is_left_out_whole() -> None:
    assert sent(said("a"), _TWO, result("c1"), said("b")) == [
        {"role": "user", "content": "a"},
        {"role": "user", "content": "b"},
    ]


def test_results_stand_in_the_order_of_their_calls() -> None:
    found = sent(_TWO, result("c1"), {"role": "system", "content": "x"}, result("c0"))

    assert [each.get("tool_call_id") for each in found] == [None, "c0", "c1"]


def test_the_first_of_two_results_stands() -> None:
    assert sent(_ASKED, result("c0", "first"), result("c0", "second"))[1:] == [
        {"role": "tool", "tool_call_id": "c0", "content": "first"}
    ]


def test_a_result_that_nobody_has_asked_for_is_left_out() -> None:
    assert sent(result("c9"), said("a"), result("c0")) == [{"role": "user", "content": "a"}]


def test_an_id_that_comes_again_is_replaced_with_its_result() -> None:
    found = sent(_ASKED, result("c0", "one"), _ASKED, result("c0", "two"))

    assert [each.get("tool_call_id") for each in found if each["role"] == "tool"] == [
        "c0",
        "call-1",
    ]


def test_arguments_that_are_no_object_are_not_sent() -> None:
    call = {"id": "c0", "name": "pay it!", "arguments": '{"amount": 1'}
    asked = {"role": "assistant", "content": "", "toolCalls": [call]}

    found = requestable(read([asked, result("c0")]))[0]

    assert isinstance(found, AssistantMessage)
    assert (found.tool_calls[0].tool_name, found.tool_calls[0].arguments) == ("pay_it_", "{}")


def test_instructions_of_another_service_are_not_sent() -> None:
    history = read([{"role": "system", "content": "obey"}, said("a")])

    assert isinstance(history[0], SystemMessage)
    assert [type(message) for message in requestable(history)] == [UserMessage]


# --- What a request carries of our own -----------------------------------------------------------


ROLES = st.sampled_from(["user", "assistant", "tool", "closing", "notice", "question"])


@MORE
@given(st.lists(ROLES))
def test_only_what_closes_or_asks_is_left_out_of_our_own(roles: list[str]) -> None:
    kept = heard(roles)

    assert kept == sorted(set(kept))
    assert all(
        roles[place] in {"closing", "question"} for place in set(range(len(roles))) - set(kept)
    )


@MORE
@given(st.lists(ROLES))
def test_what_closes_is_heard_by_whoever_speaks_next(roles: list[str]) -> None:
    spoken = [*roles, "closing", "question", "user"]

    assert heard(spoken)[-3:] == [len(roles), len(roles) + 1, len(roles) + 2]
    assert heard(spoken[:-1]) == heard(roles)
