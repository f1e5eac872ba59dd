"""An answer that was recorded, read by the code that reads live ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from types import MappingProxyType

from app.providers.answer_reading import AnswerBuilder, AnswerReading, Outcome
from app.providers.anthropic_answer import AnthropicAnswer
from app.providers.failures import Evidence, classify
from app.providers.openai_answer import OpenAiAnswer

BUILDERS: Mapping[str, Callable[[], AnswerBuilder]] = MappingProxyType(
    {"openai_chat": OpenAiAnswer, "anthropic_messages": AnthropicAnswer}
)
"""A fresh reader for each wire."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedAnswer:
    """What came back of one call."""

    wire: str
    """A key of `BUILDERS`."""
    body: bytes
    status: int | None = None
    """`None` is taken for 200."""
    content_type: str = ""


def read_again(recorded: RecordedAnswer) -> Outcome:
    """What a client would make of it: only under 200 is the body an answer."""
    reading = AnswerReading(BUILDERS[recorded.wire]())
    if recorded.status not in (None, HTTPStatus.OK):
        headers = {"content-type": recorded.content_type}
        reading.failure = classify(
            Evidence(where="response", status=recorded.status, headers=headers, body=recorded.body)
        )
        return reading.outcome()
    for _ in (*reading.feed(recorded.body), *reading.close()):
        pass  # the outcome holds everything the deltas said
    return reading.outcome()
