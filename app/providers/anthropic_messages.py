"""The Anthropic messages wire, written on httpx because it is the hot path (ADR 0021)."""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass, field
from functools import lru_cache, partial

import httpx

from app.ports import ModelEvent, ModelRequest
from app.providers.answer_call import call
from app.providers.answer_reading import AnswerReading
from app.providers.anthropic_answer import AnthropicAnswer
from app.providers.anthropic_request import request_body
from app.providers.carrying import Sending
from app.providers.http import Address, HttpClient, Timeouts, address_of, post

API_VERSION = "2023-06-01"


@dataclass(frozen=True, slots=True, kw_only=True)
class AnthropicMessages:
    """A `ModelClient` for one endpoint and one key; cheap to make, one for each call if need be."""

    http: HttpClient
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
        who = f"{self.provider} {self.base_url}"
        reading = AnswerReading(AnthropicAnswer(), provider=who)
        request_made = partial(self._request, request)
        maker = self._maker(request)
        return call(self.http, request_made, self.timeouts, reading, maker=maker)

    def _maker(self, request: ModelRequest) -> str:
        return f"anthropic_messages {self.provider} {request.model}"

    def _request(self, request: ModelRequest) -> Sending:
        key = {"x-api-key": self.api_key} if self.api_key else {}
        return post(
            _address(self.base_url),
            {"anthropic-version": API_VERSION, **key},
            request_body(request, maker=self._maker(request), extra=self.extra_body),
            self.timeouts,
        )


@lru_cache
def _address(base_url: str) -> Address:
    url = httpx.URL(base_url)
    path = url.path.rstrip("/").removesuffix("/v1") + "/v1/messages"
    return address_of(url.copy_with(path=path))
