"""A conversation written out as text, for the model that is to sum it up.

As one text nothing of it can be malformed for a provider, and no tool need be declared. It must fit
where the messages themselves did not: so the longest pieces are cut, as short as it takes to come
down to three quarters of what there is. Of a piece that is cut the end stays as well, for results
often say there how it went.
"""

import json
from collections.abc import Iterator, Sequence
from typing import cast

from app.ports import HistoryMessage

LONGEST_PIECES = (4_000, 2_000, 1_000, 500, 250, 120)
"""Characters of one text, one call or one result; the first that makes the whole short enough."""
SHORT = 2_000
"""Characters of a conversation of which nothing is cut."""
_SHARE = 0.75

_ASKED = "Sum up this conversation.\n\n<conversation>\n{conversation}\n</conversation>"
_SPEAKERS = {
    "user": "User",
    "assistant": "Assistant",
    "refused": "Assistant",
    "paused": "Assistant",
    "partial": "Assistant, cut off",
    "tool": "Result of a tool",
    "question": "Assistant asks",
    "closing": "Note",
    "notice": "Note",
    "summary": "Earlier",
}


def to_be_summed_up(messages: Sequence[HistoryMessage]) -> str:
    """The message that asks for a summary of these, in the form of a stored one."""
    pieces = [piece for message in messages for piece in _pieces(message)]
    content = _ASKED.format(conversation=_short_enough(pieces))
    return json.dumps({"role": "user", "content": content}, ensure_ascii=False)


def _short_enough(pieces: Sequence[tuple[str, str]]) -> str:
    room = max(SHORT, int(_SHARE * sum(len(text) for _, text in pieces)))
    for longest in LONGEST_PIECES:
        if sum(min(len(text), longest) for _, text in pieces) <= room:
            break
    else:
        longest = LONGEST_PIECES[-1]
    return "\n\n".join(f"{speaker}: {_cut(text, longest)}" for speaker, text in pieces)


def _pieces(message: HistoryMessage) -> Iterator[tuple[str, str]]:
    """Who says what, in order."""
    body = cast("dict[str, object]", json.loads(message.body))
    text = _text(body.get("content"))
    if text.strip():
        yield _SPEAKERS.get(message.role, message.role), text
    for call in cast("list[dict[str, dict[str, str]]]", body.get("tool_calls") or []):
        yield f"Assistant calls {call['function']['name']}", call["function"]["arguments"]


def _text(content: object) -> str:
    if not isinstance(content, list):
        return str(content or "")
    parts = cast("list[dict[str, object]]", content)
    return "\n".join(str(part.get("text", "[an image]")) for part in parts)


def _cut(text: str, longest: int) -> str:
    if len(text) <= longest:
        return text
    tail = longest // 4
    left_out = len(text) - longest
    return f"{text[: longest - tail]} [… {left_out} characters left out …] {text[-tail:]}"
