"""Exchanges with a real llama.cpp server, replayed byte for byte over a socket.

`scripts/record-llamacpp` makes them anew.
"""

import json
from pathlib import Path

import pytest

from app.ports import ModelEvent
from app.providers.answer_reading import AnswerReading
from app.providers.http import HttpClient
from app.providers.openai_answer import OpenAiAnswer
from app.providers.openai_chat import OpenAiChat
from app.providers.wire_json import JsonObject, as_array, as_object, as_text
from app.turn.failures import FailureType, ModelFailure, TokenLimitPhase
from app.turn.transcript import StopReason, Usage
from tests.providers.asking import a_request, answer_of, events_of, text_of
from tests.providers.raw_server import sending

_FOLDER = Path(__file__).parent.parent / "data" / "llamacpp"


def _recorded(name: str) -> bytes:
    return (_FOLDER / f"{name}.http").read_bytes()


def _chunks(name: str) -> list[JsonObject]:
    """The recorded chunks, read in the simplest way there is."""
    lines = _recorded(name).split(b"\n")
    return [json.loads(line[6:]) for line in lines if line.startswith(b'data: {"choices"')]


def _written(name: str) -> str:
    choices = [
        as_object(choice) for chunk in _chunks(name) for choice in as_array(chunk["choices"])
    ]
    return "".join(as_text(as_object(choice["delta"]).get("content")) for choice in choices)


def _usage(name: str) -> Usage:
    usage = json.loads(json.dumps(_chunks(name)[-1]["usage"]))
    return Usage(
        input_tokens=usage["prompt_tokens"],
        cached_input_tokens=usage["prompt_tokens_details"]["cached_tokens"],
        output_tokens=usage["completion_tokens"],
    )


async def _replayed(http: HttpClient, name: str) -> list[ModelEvent]:
    async with sending(_recorded(name)) as server:
        return await events_of(OpenAiChat(http=http, base_url=server.base_url), a_request())


@pytest.mark.parametrize(
    ("name", "stop"),
    [
        ("answer", StopReason.END_TURN),
        ("with-tools", StopReason.END_TURN),
        ("cut-answer", StopReason.MAX_OUTPUT),
    ],
)
async def test_a_streamed_answer_is_read_as_it_was_written(
    http: HttpClient, name: str, stop: StopReason
) -> None:
    async with sending(_recorded(name)) as server:
        answer = await answer_of(OpenAiChat(http=http, base_url=server.base_url), a_request())

    assert (answer.text, answer.stop_reason) == (_written(name), stop)
    assert answer.text
    assert answer.usage == _usage(name)


def test_each_word_is_shown_as_soon_as_its_line_has_come() -> None:
    reading = AnswerReading(OpenAiAnswer())
    lines = [line for line in _recorded("answer").splitlines() if line.startswith(b"data: ")]

    shown = [text_of(list(reading.feed(line + b"\n\n"))) for line in lines]

    assert sum(bool(text) for text in shown) > 5
    assert "".join(shown) == _written("answer")


async def test_a_prompt_longer_than_the_window_is_a_token_limit(http: HttpClient) -> None:
    (failure,) = await _replayed(http, "too-long")

    assert isinstance(failure, ModelFailure)
    assert failure.type is FailureType.TOKEN_LIMIT_EXCEEDED
    assert failure.token_limit_phase is TokenLimitPhase.INPUT_CONTEXT
    assert not failure.retryable
    assert failure.error_type == "exceed_context_size_error"
