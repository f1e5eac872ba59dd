"""Token counts, wherever an OpenAI-compatible provider puts them.

The last figures on the wire win, field by field; empty ones erase nothing; nothing is ever summed
over chunks.
"""

from dataclasses import dataclass

from app.providers.wire_json import JsonObject, as_count, as_object
from app.turn.transcript import Usage


@dataclass(slots=True)
class UsageFigures:
    """The newest count of each kind."""

    prompt: int | None = None
    cached: int | None = None
    completion: int | None = None
    reasoning: int | None = None
    total: int | None = None

    def take(self, usage: JsonObject) -> None:
        """Overwrite what this usage object states, keep the rest."""
        if not usage:  # nearly every chunk
            return
        prompt_details = as_object(usage.get("prompt_tokens_details"))
        completion_details = as_object(usage.get("completion_tokens_details"))
        self.prompt = _newest(self.prompt, usage.get("prompt_tokens"))
        self.completion = _newest(self.completion, usage.get("completion_tokens"))
        self.total = _newest(self.total, usage.get("total_tokens"))
        self.cached = _newest(
            self.cached,
            usage.get("cached_tokens"),  # Moonshot
            usage.get("prompt_cache_hit_tokens"),  # DeepSeek
            prompt_details.get("cached_tokens"),
        )
        self.reasoning = _newest(
            self.reasoning,
            usage.get("reasoning_tokens"),  # SGLang
            completion_details.get("reasoning_tokens"),
        )

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


def _newest(known: int | None, *stated: object) -> int | None:
    for value in stated:
        count = as_count(value)
        known = known if count is None else count
    return known
