"""Reasoning that a model's template left inside the answer, between tags such as `<think>`."""

from dataclasses import dataclass
from typing import Literal, TypeAlias

_NAMES = ("think", "thinking", "thought", "reasoning", "seed:think")
_CLOSING_OF = {
    **{f"<{name}>": f"</{name}>" for name in _NAMES},
    "[THINK]": "[/THINK]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi
}

Kind: TypeAlias = Literal["text", "reasoning"]
Part: TypeAlias = tuple[Kind, str]


@dataclass(slots=True)
class ThinkTags:
    """Tells reasoning from text while both stream; only a tag at the very start counts.

    The line ends with which templates pad the tags belong to neither.
    """

    _state: Literal["start", "opened", "thinking", "closed", "text"] = "start"
    _held: str = ""
    _closing: str = ""

    def feed(self, text: str) -> list[Part]:
        """What is known to be text or reasoning now; a possible half of a tag is held back."""
        if self._state == "text" and not self._held:  # as at nearly every call
            return [("text", text)] if text else []
        self._held += text
        if self._state == "start":
            self._look_for_opening()
        if self._state == "opened":
            self._skip_padding("thinking")
        thought = self._thought() if self._state == "thinking" else ""
        if self._state == "closed":
            self._skip_padding("text")
        answered = self._release() if self._state == "text" else ""
        return _parts(("reasoning", thought), ("text", answered))

    def close(self) -> list[Part]:
        """What was held back when the stream ended."""
        is_text = self._state in {"start", "text"}
        return _parts(("text" if is_text else "reasoning", self._release()))

    def _release(self) -> str:
        held, self._held = self._held, ""
        return held

    def _look_for_opening(self) -> None:
        start = self._held.lstrip()
        for opening, closing in _CLOSING_OF.items():
            if start.startswith(opening):
                self._state, self._closing = "opened", closing
                self._held = start.removeprefix(opening)
                return
        if not any(opening.startswith(start) for opening in _CLOSING_OF):
            self._state = "text"

    def _skip_padding(self, then: Literal["thinking", "text"]) -> None:
        self._held = self._held.lstrip("\n")
        if self._held:
            self._state = then

    def _thought(self) -> str:
        """The reasoning that is sure to be reasoning, taken out of what is held."""
        thought, closing, rest = self._held.partition(self._closing)
        if closing:
            self._state, self._held = "closed", rest
            return thought
        sure = len(thought) - _possible_tag_length(thought, self._closing)
        self._held = thought[sure:]
        return thought[:sure]


def _parts(*parts: Part) -> list[Part]:
    return [part for part in parts if part[1]]


def _possible_tag_length(text: str, tag: str) -> int:
    """How many of the last characters could be the beginning of this tag."""
    longest = min(len(text), len(tag) - 1)
    return next((n for n in range(longest, 0, -1) if tag.startswith(text[-n:])), 0)
