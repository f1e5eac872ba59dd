"""Token counts, wherever an OpenAI-compatible provider puts them.

The last figures on the wire win, field by field; empty ones erase nothing; nothing is ever summed
over chunks.
"""

from dataclasses import dataclass

from app.providers.wire_json import JsonObject, as_count, as_object
from app.turn.transcript import Usage

_CACHED = (
    "cached_tokens",  # Moonshot
    "prompt_cache_hit_tokens",  # DeepSeek
    "cache_read_input_tokens",  # Claude behind a gateway
)
_MOST_DIGITS = 15


@dataclass(slots=True)
class UsageFigures:
    """The newest count of each kind."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    total: int | None = None

    def take_from(self, holder: JsonObject) -> None:
        """Take the usage that an object holds, if it does: nearly no chunk has any."""
        if "usage" in holder:
            self.take(as_object(holder["usage"]))

    def take(self, usage: JsonObject) -> None:
        """Overwrite what this usage object states, keep the rest."""
        if not usage:
            return
        self.prompt = _newest(self.prompt, usage, "prompt_tokens", "input_tokens")
        self.completion = _newest(self.completion, usage, "completion_tokens", "output_tokens")
        self.total = _newest(self.total, usage, "total_tokens")
        self.cached = _newest(self.cached, usage, *_CACHED)
        self.reasoning = _newest(self.reasoning, usage, "reasoning_tokens")  # SGLang
        for name in ("prompt_tokens_details", "input_tokens_details"):
            self.cached = _newest(self.cached, as_object(usage.get(name)), "cached_tokens")
        for name in ("completion_tokens_details", "output_tokens_details"):
            self.reasoning = _newest(self.reasoning, as_object(usage.get(name)), "reasoning_tokens")

    def usage(self) -> Usage:
        """The counts as the core knows them."""
        return Usage(
            input_tokens=self.prompt,
            cached_input_tokens=self.cached,
            output_tokens=self._output(),
        )

    def _output(self) -> int | None:
        if self.completion is None or self.prompt is None or not self.reasoning:
            return self.completion
        with_reasoning = self.completion + self.reasoning
        leaves_reasoning_out = self.total == self.prompt + with_reasoning  # xAI
        return with_reasoning if leaves_reasoning_out else self.completion


def _newest(known: int | None, usage: JsonObject, *names: str) -> int | None:
    """The count under the last of these names that states one; a gateway may write it as text."""
    for name in names:
        stated = usage.get(name)
        if isinstance(stated, str) and stated.isascii() and stated.isdigit():
            stated = int(stated[:_MOST_DIGITS])
        count = as_count(stated)
        known = known if count is None else count
    return known
