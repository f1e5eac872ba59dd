"""Pieces of an OpenAI-compatible body, and what is read from them."""

import json
from collections.abc import Mapping

from app.providers.answer_reading import AnswerReading, Outcome
from app.providers.openai_answer import OpenAiAnswer
from app.turn.failures import ModelFailure
from app.turn.transcript import ModelAnswer

DONE = b"data: [DONE]\n\n"


def chunk(
    delta: Mapping[str, object] | None = None, stop: str | None = None, **more: object
) -> bytes:
    choice = {"index": 0, "delta": delta or {}, "finish_reason": stop}
    return b"data: " + json.dumps({"choices": [choice], **more}).encode() + b"\n\n"


def outcome_of(*pieces: bytes) -> Outcome:
    reading = AnswerReading(OpenAiAnswer())
    for piece in pieces:
        list(reading.feed(piece))
    list(reading.close())
    return reading.outcome()


def answer_in(*pieces: bytes) -> ModelAnswer:
    outcome = outcome_of(*pieces)
    assert outcome.failure is None, outcome.failure
    return outcome.answer


def failure_in(*pieces: bytes) -> ModelFailure:
    failure = outcome_of(*pieces).failure
    assert isinstance(failure, ModelFailure), failure
    return failure
