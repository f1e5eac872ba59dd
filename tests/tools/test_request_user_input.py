"""The built-in tool with which a model asks the user, in words or by a form."""

import json

import pytest

from app.ports import FrozenForm, NotLocalError, TakesForms, Tool
from app.tools import request_user_input
from app.turn.waits import InputNeeded, Unusable
from tests.tools.calls import a_context
from tests.tools.test_asking_for_a_form import ADDRESS, CARD


def having(*forms: FrozenForm) -> Tool:
    assert isinstance(request_user_input, TakesForms)
    return request_user_input.with_forms(forms)


def test_the_model_is_shown_the_forms_there_are_and_their_titles() -> None:
    schema = json.loads(having(ADDRESS, CARD).spec.parameters)

    assert schema["required"] == ["message"]
    assert schema["properties"]["form"]["enum"] == ["address", "card"]
    assert "card (Your card)" in schema["properties"]["form"]["description"]


def test_without_forms_it_is_shown_none() -> None:
    schema = json.loads(having().spec.parameters)

    assert list(schema["properties"]) == ["message"]
    assert having().spec == request_user_input.spec


def test_it_is_answered_by_the_user_and_not_a_tool_to_enter() -> None:
    assert having().spec.kind == "input"
    assert not having().spec.needs_approval


async def test_it_is_never_run_here() -> None:
    with pytest.raises(NotLocalError, match="answered by the user"):
        await having().run('{"message":"Where to?"}', a_context())


def test_a_question_in_words_may_be_answered_by_any_text() -> None:
    for arguments in ('{"message":"Where to?"}', '{"message":"Where to?","form":null}'):
        assert having(ADDRESS).look_at(arguments) == InputNeeded(
            form_key=None, schema=None, message="Where to?"
        )


def test_a_form_comes_with_its_schema_and_title() -> None:
    asked = having(ADDRESS).look_at('{"message":"Where to?","form":"address"}')

    assert asked == InputNeeded(
        form_key="address", schema=ADDRESS.schema, title="Your address", message="Where to?"
    )


@pytest.mark.parametrize(
    "arguments",
    [
        "",
        "[]",
        "{}",
        '{"message":""}',
        '{"message":" \\n"}',
        '{"message":5}',
        json.dumps({"message": "x" * 8_001}),
        '{"message":"Where to?","form":"passport"}',
        '{"message":"Where to?","form":5}',
        '{"message":"Where to?","form":"Address"}',
        '{"message":"Where to?","forms":"address"}',
    ],
)
def test_what_it_cannot_ask_is_told_to_the_model(arguments: str) -> None:
    assert isinstance(having(ADDRESS).look_at(arguments), Unusable)


def test_a_form_that_is_not_there_is_told_with_those_that_are() -> None:
    refused = having(ADDRESS, CARD).look_at('{"message":"Where to?","form":"passport"}')

    assert isinstance(refused, Unusable)
    assert "there is no form 'passport'; forms: address, card" in refused.content
