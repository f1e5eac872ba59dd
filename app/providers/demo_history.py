"""What the demo model sees of a conversation: the turn it is in, and nothing else."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from app.providers.wire_json import JsonObject, as_array, as_object, as_text
from app.turn.resume_notices import NOTICE_TEXTS


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnSoFar:
    """The messages of the current turn, read."""

    begins_at: int
    """The position of its first message in the request."""
    asked: tuple[str, ...]
    """The user's texts, oldest first."""
    answers: int
    """How often the model has answered in this turn."""
    results: tuple[tuple[str, str], ...]
    """Tool results as (tool name, content), oldest first."""

    @property
    def latest(self) -> str:
        return self.asked[-1] if self.asked else ""

    def has_result_of(self, name: str) -> bool:
        return any(tool == name for tool, _ in self.results)


def turn_so_far(messages: Sequence[JsonObject]) -> TurnSoFar:
    """The turn begins behind the last answer that asks for no tool.

    So a new message to a waiting turn belongs to that turn, as it does in the service. An answer
    that broke off, behind which a notice stands, is none.
    """
    start = next(
        (
            position
            for position in range(len(messages), 0, -1)
            if _ends_a_turn(messages[position - 1]) and not _broke_off(messages, position - 1)
        ),
        0,
    )
    turn = [messages[at] for at in range(start, len(messages)) if not _broke_off(messages, at)]
    answers = [message for message in turn if message.get("role") == "assistant"]
    names = dict(name for message in answers for name in _call_names(message))
    return TurnSoFar(
        begins_at=start,
        asked=tuple(_asked(turn)),
        answers=len(answers),
        results=tuple(
            (names.get(as_text(message.get("tool_call_id")), ""), as_text(message.get("content")))
            for message in turn
            if message.get("role") == "tool"
        ),
    )


def _asked(turn: Sequence[JsonObject]) -> Iterator[str]:
    """What the user has said; a notice of the service comes in the same role and asks nothing."""
    said = (_text(message) for message in turn if message.get("role") == "user")
    return (text for text in said if text not in NOTICE_TEXTS)


def _broke_off(messages: Sequence[JsonObject], position: int) -> bool:
    behind = messages[position + 1 : position + 2]
    is_noticed = any(m.get("role") == "user" and _text(m) in NOTICE_TEXTS for m in behind)
    return is_noticed and _ends_a_turn(messages[position])


def _ends_a_turn(message: JsonObject) -> bool:
    return message.get("role") == "assistant" and not message.get("tool_calls")


def _call_names(message: JsonObject) -> list[tuple[str, str]]:
    calls = [as_object(call) for call in as_array(message.get("tool_calls"))]
    return [
        (as_text(call.get("id")), as_text(as_object(call.get("function")).get("name")))
        for call in calls
    ]


def _text(message: JsonObject) -> str:
    content = message.get("content")
    if isinstance(content, str):
        return content
    return "".join(as_text(as_object(part).get("text")) for part in as_array(content))
