"""The oracle of well-formed histories."""

import pytest

from app.providers.strict_history import check_history
from tests.providers.asking import assistant, result, user

SYSTEM = {"role": "system", "content": "Be kind."}
PICTURE = {"type": "image_url", "image_url": {"url": "https://pictures.test/a.png"}}


def _call(call_id: str = "c1", **function: object) -> dict[str, object]:
    return {
        "id": call_id,
        "type": "function",
        "function": {"name": "look", "arguments": "{}", **function},
    }


@pytest.mark.parametrize(
    "messages",
    [
        [user("a")],
        [SYSTEM, user("a"), assistant("b"), user("c")],
        [user("a"), assistant(None, "c1", "c2"), result("c1"), result("c2")],
        [user("a"), assistant("", "c1"), result("c1", "")],
        [user("a"), assistant(None, "c1"), result("c1"), user("go on")],
        [user("a"), {**assistant(None, "c1"), "reasoning_content": "Hm."}, result("c1")],
        [user("a"), user("b")],
        [{"role": "user", "content": [{"type": "text", "text": "a"}, PICTURE]}],
    ],
)
def test_a_well_formed_history_has_no_fault(messages: list[dict[str, object]]) -> None:
    assert check_history(messages) is None


@pytest.mark.parametrize("arguments", ['{"a": 1' + "0" * 9_999 + "}", '{"a": -0.0, "b": 1E+400}'])
def test_a_number_of_any_size_is_json(arguments: str) -> None:
    asked = {**assistant(None), "tool_calls": [_call(arguments=arguments)]}

    assert check_history([user("a"), asked, result("c1")]) is None


MALFORMED: list[tuple[object, str]] = [
    ([], "non-empty"),
    ("hello", "non-empty"),
    (["hello"], "object"),
    ([user("a"), assistant(None, "c1")], "no result for the tool call 'c1'"),
    ([user("a"), assistant(None, "c1"), user("b")], "'c1' has no result directly behind"),
    ([user("a"), assistant(None, "c1", "c2"), result("c1")], "'c2'"),
    ([user("a"), result("c1")], "'c1', which no tool call"),
    ([user("a"), assistant(None, "c1"), result("c1"), result("c1")], "which no tool call"),
    ([user("a"), assistant(None, "c1", "c2"), result("c2"), result("c1")], "order"),
    ([user("a"), assistant(None, "c1", "c1"), result("c1")], "repeated"),
    (
        [
            *(user("a"), assistant(None, "c1"), result("c1"), assistant("b"), user("c")),
            *(assistant(None, "c1"), result("c1")),
        ],
        "repeated",
    ),
    ([user("a"), assistant(None, ""), result("")], "empty or repeated"),
    ([user("")], "empty"),
    ([user(" \n")], "empty"),
    ([user("a"), assistant(" "), user("b")], "empty"),
    ([user("a"), assistant(None), user("b")], "content"),
    ([{"role": "user", "content": []}], "content"),
    ([{"role": "user", "content": [{"type": "text", "text": " "}]}], "empty"),
    ([{"role": "user", "content": [{"type": "audio"}]}], "audio"),
    ([{"role": "user", "content": [{"type": "text", "text": "a", "id": 1}]}], "text"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {}}]}], "image"),
    ([{"role": "user"}], "content is missing"),
    ([{"role": "closing", "content": "a"}], "unknown role 'closing'"),
    ([{"role": "user", "content": "a", "id": "m1"}], "unknown key 'id'"),
    ([SYSTEM, SYSTEM, user("a")], "system"),
    ([user("a"), SYSTEM], "system"),
    ([user("a"), {**assistant("b"), "tool_calls": []}, user("c")], "tool_calls"),
    ([user("a"), {**assistant("b"), "reasoning_content": "Hm."}, user("c")], "tool calls only"),
    ([user("a"), {**assistant(None, "c1"), "reasoning_content": ""}, result("c1")], "empty"),
    ([user("a"), assistant("b")], "must end"),
    ([user("half \ud83d")], "surrogate"),
]


@pytest.mark.parametrize(("messages", "fault"), MALFORMED)
def test_a_malformed_history_is_refused_naming_its_fault(messages: object, fault: str) -> None:
    found = check_history(messages)

    assert found is not None
    assert fault in found


@pytest.mark.parametrize(
    "arguments", ["", "{", "[]", "null", '"{}"', "{'a': 1}", '{"a": NaN}', {"a": 1}]
)
def test_arguments_must_be_the_text_of_a_json_object(arguments: object) -> None:
    answer = {"role": "assistant", "content": None, "tool_calls": [_call(arguments=arguments)]}

    assert "'c1'" in (check_history([user("a"), answer, result("c1")]) or "")


@pytest.mark.parametrize(
    "call",
    [
        {key: value for key, value in _call().items() if key != "id"},
        {key: value for key, value in _call().items() if key != "type"},
        {**_call(), "index": 0},
        _call(name=""),
        _call(extra=1),
    ],
    ids=["no id", "no type", "an index", "no name", "something more"],
)
def test_a_tool_call_has_no_key_too_many_or_too_few(call: dict[str, object]) -> None:
    answer = {"role": "assistant", "content": None, "tool_calls": [call]}

    assert check_history([user("a"), answer, result("c1")]) is not None


def test_a_fault_names_the_message_it_is_in() -> None:
    fault = check_history([user("a"), assistant("b"), user("")])

    assert fault is not None
    assert fault.startswith("messages[2]: ")
