"""Token counts of the Anthropic wire.

They are cumulative: the last figures win, field by field, and empty ones erase nothing. What was
written to the cache and read from it is not in `input_tokens` there, but is in ours (T26).
"""

from dataclasses import dataclass

from app.providers.wire_json import JsonObject, as_count, as_object
from app.turn.transcript import Usage


@dataclass(slots=True)
class AnthropicFigures:
    """The newest count of each kind."""

    uncached: int | None = None
    written: int | None = None
    read: int | None = None
    output: int | None = None
    reasoning: int | None = None

    def take_from(self, holder: JsonObject) -> None:
        """Take the usage that an object holds, if it does: nearly no event has any."""
        if "usage" in holder:
            self.take(as_object(holder["usage"]))

    def take(self, usage: JsonObject) -> None:
        """Overwrite what this usage object states, keep the rest."""
        details = as_object(usage.get("output_tokens_details"))
        self.uncached = _newest(self.uncached, usage.get("input_tokens"))
        self.written = _newest(self.written, usage.get("cache_creation_input_tokens"))
        self.read = _newest(self.read, usage.get("cache_read_input_tokens"))
        self.output = _newest(self.output, usage.get("output_tokens"))
        self.reasoning = _newest(self.reasoning, details.get("thinking_tokens"))

    def usage(self) -> Usage:
        """The counts as the core knows them."""
        sent = None
        if self.uncached is not None:
            sent = self.uncached + (self.written or 0) + (self.read or 0)
        return Usage(input_tokens=sent, cached_input_tokens=self.read, output_tokens=self.output)


def _newest(known: int | None, stated: object) -> int | None:
    count = as_count(stated)
    return known if count is None else count
