"""A text that comes in pieces, whole characters out."""

from dataclasses import dataclass, field

from app.providers.wire_json import has_surrogate, mended


@dataclass(slots=True)
class TextPieces:
    """Collects a text; a surrogate pair may be cut between two pieces."""

    written: list[str] = field(default_factory=list[str])
    _half: str = ""

    def take(self, text: str) -> str:
        """What can be shown now; the first half of a surrogate pair waits for its second."""
        text = self._half + text
        self._half = ""
        if has_surrogate(text):
            if "\ud800" <= text[-1] <= "\udbff":
                text, self._half = text[:-1], text[-1]
            text = mended(text)
        if text:
            self.written.append(text)
        return text

    def whole(self) -> str:
        """All of it; half of a pair that never got its other half is replaced by U+FFFD."""
        return mended("".join((*self.written, self._half)))
