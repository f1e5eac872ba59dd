"""The content blocks of an Anthropic answer: each begins somehow, grows by deltas, and ends.

Only `text`, `thinking` and `tool_use` are ours. `redacted_thinking`, tools that the provider runs
itself and their results are kept as they came, to go back with the answer; whatever else a provider
invents is skipped.
"""

from dataclasses import dataclass, field

from app.providers.text_pieces import TextPieces
from app.providers.wire_json import JsonObject, as_text, json_text, parsed_object

TEXT, THINKING, TOOL_USE = "text", "thinking", "tool_use"

KIND_OF_DELTA = {"text_delta": TEXT, "thinking_delta": THINKING, "signature_delta": THINKING}
"""The block a delta opens where a relay has lost the beginning of its block."""

_FIELD_OF_KIND = {TEXT: "text", THINKING: "thinking"}


@dataclass(slots=True)
class Block:
    """One block, as far as it has come."""

    start: JsonObject
    """The block as it began."""
    index: int | None = None
    is_closed: bool = False
    pieces: TextPieces = field(default_factory=TextPieces)
    """Of its text or thinking."""
    signature: str = ""
    held: str = ""
    """Text the block began with: some providers repeat it in the deltas."""
    _input: list[str] = field(default_factory=list[str])

    @property
    def kind(self) -> str:
        return as_text(self.start.get("type"))

    @property
    def opaque(self) -> str:
        """What of the block nobody but its provider can read."""
        if self.kind == "redacted_thinking":
            return as_text(self.start.get("data"))
        return self.signature if self.kind == THINKING else ""

    def take(self, delta: JsonObject) -> str:
        """What this delta adds to the text or the thinking of the block."""
        match delta.get("type"):
            case "text_delta" if self.kind == TEXT:
                return self._grown(as_text(delta.get("text")))
            case "thinking_delta" if self.kind == THINKING:
                return self._grown(as_text(delta.get("thinking")))
            case "signature_delta" if self.kind == THINKING:
                self.signature = as_text(delta.get("signature")) or self.signature
            case "input_json_delta":
                self._input.append(as_text(delta.get("partial_json")))
            case _:
                pass
        return ""

    def release(self) -> str:
        """The text the block began with, when no delta has repeated it."""
        held, self.held = self.held, ""
        return self.pieces.take(held) if held else ""

    def arguments(self) -> str:
        """The input of a tool call as text: what the deltas said, else what it began with."""
        said = "".join(self._input)
        began_with = self.start.get("input")
        if said.strip() or not began_with:
            return said
        return began_with if isinstance(began_with, str) else json_text(began_with)

    def as_sent(self) -> JsonObject | None:
        """The finished block for its provider, byte for byte what it was; `None` without one."""
        match self.kind:
            case "thinking":
                signed = {"signature": self.signature} if self.signature else {}
                return {**self.start, "thinking": self.pieces.whole(), **signed}
            case "redacted_thinking":
                return self.start
            case "server_tool_use" | "mcp_tool_use":
                given = parsed_object(self.arguments() or "{}")
                return None if given is None else {**self.start, "input": given}
            case kind if kind.endswith("_tool_result"):
                return self.start
            case _:
                return None

    def weight_of(self, delta: JsonObject) -> int:
        """How many characters a delta brings, whatever it is."""
        return sum(len(value) for value in delta.values() if isinstance(value, str))

    def _grown(self, text: str) -> str:
        if not text:
            return ""
        began_with, self.held = self.held, ""
        is_repeated = began_with.startswith(text) or text.startswith(began_with)
        return self.pieces.take(text if is_repeated else began_with + text)


def opened(start: JsonObject, index: int | None) -> Block:
    """A block as it begins; it may bring all of its content at once."""
    block = Block(start, index, signature=as_text(start.get("signature")))
    block.held = as_text(start.get(_FIELD_OF_KIND.get(block.kind, "")))
    return block
