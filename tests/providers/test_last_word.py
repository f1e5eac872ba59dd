"""Histories that end with an answer: a word is put behind it, and nothing empty is sent."""

import json
from typing import Any

from app.ports import GO_ON
from app.providers.http import new_client
from app.providers.last_word import is_answer, to_be_answered
from app.providers.opaque import sealed
from app.providers.openai_chat import OpenAiChat
from app.providers.pydantic_ai_messages import history
from app.providers.strict_history import check_history
from tests.providers.asking import Message, a_request, assistant, user

SEALED: Message = {**assistant(""), "opaque": sealed({"steps": []}, "somebody else")}


async def _sent(*messages: Message) -> Any:  # noqa: ANN401 - JSON
    async with new_client() as http:
        client = OpenAiChat(http=http, base_url="http://x.test/v1")
        return json.loads(client.request_body(a_request(*messages)))["messages"]


def test_an_answer_at_the_end_gets_a_word_behind_it_and_nothing_else_does() -> None:
    asked, said = json.dumps(user("an assistant?")), json.dumps(assistant("Well"))

    assert to_be_answered([asked, said]) == [asked, said, GO_ON]
    assert to_be_answered([said, asked]) == [said, asked]
    assert to_be_answered([]) == []


def test_a_user_who_speaks_of_an_assistant_is_none() -> None:
    assert not is_answer(json.dumps({"role": "user", "content": "assistant"}))
    assert not is_answer('{"role":"user","content":"\\"assistant\\""}')


async def test_what_only_somebody_else_can_read_is_not_sent_as_an_empty_message() -> None:
    sent = await _sent(user("go"), SEALED)

    assert [message["role"] for message in sent] == ["user", "user"]
    assert check_history(sent) is None


def test_nor_through_the_third_door() -> None:
    asked = history(a_request(user("go"), SEALED), maker="pydantic_ai x m")

    assert [message.kind for message in asked] == ["request"]
