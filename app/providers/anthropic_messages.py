"""The Anthropic messages wire, written on httpx because it is the hot path (ADR 0021)."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from functools import partial

import httpx

from app.ports import ModelEvent, ModelRequest
from app.providers.answer_call import call
from app.providers.answer_reading import AnswerReading
from app.providers.anthropic_answer import AnthropicAnswer
from app.providers.anthropic_request import request_body
from app.providers.http import Timeouts, network_timeouts

API_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicMessages:
    """A `ModelClient` for one endpoint and one key; cheap to make, one for each call if need be."""

    http: httpx.AsyncClient
    base_url: str
    """With or without `/v1` at its end."""
    api_key: str = field(default="", repr=False)
    """Empty for a server that asks for none."""
    provider: str = "anthropic"
    """Its configured name: what it signs goes back to nobody else."""
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields for every request; `max_tokens` among them goes before the default."""
    timeouts: Timeouts = field(default_factory=Timeouts)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer as it comes; what goes wrong comes out as a value."""
        reading = AnswerReading(AnthropicAnswer())
        request_made = partial(self._request, request)
        maker = self._maker(request)
        return call(self.http, request_made, self.timeouts, reading, maker=maker)

    def _maker(self, request: ModelRequest) -> str:
        return f"anthropic_messages {self.provider} {request.model}"

    def _request(self, request: ModelRequest) -> httpx.Request:
        url = httpx.URL(self.base_url)
        path = url.path.rstrip("/").removesuffix("/v1") + "/v1/messages"
        headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "anthropic-version": API_VERSION,
            "content-type": "application/json",
        }
        if self.api_key:
            headers["x-api-key"] = self.api_key
        return self.http.build_request(
            "POST",
            url.copy_with(path=path),
            headers=headers,
            content=request_body(request, maker=self._maker(request), extra=self.extra_body),
            timeout=network_timeouts(self.timeouts),
        )
