"""OpenAI-compatible chat completions, written on httpx because it is the hot path (ADR 0006).

Messages arrive as the JSON texts they were stored as, in the very form of this wire, and are put
into the request as they are: a long history is never decoded and encoded again.
"""

from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial

import httpx
import orjson

from app.ports import ModelEvent, ModelRequest
from app.providers.answer_call import call
from app.providers.answer_reading import AnswerReading
from app.providers.carrying import Sending
from app.providers.http import Address, HttpClient, Timeouts, address_of, post
from app.providers.last_word import to_be_answered
from app.providers.openai_answer import OpenAiAnswer
from app.providers.openai_messages import as_sent
from app.providers.wire_ids import CallIds
from app.turn.agent import ToolSpec

_LONGEST = ("max_completion_tokens", "max_tokens")
_OWN_HOSTS = (".openai.com", ".openai.azure.com")


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiChat:
    """A `ModelClient` for one endpoint and one key; cheap to make, one for each call if need be."""

    http: HttpClient
    base_url: str
    """Up to and including `/v1`; a query stays at the end, as Azure wants it."""
    api_key: str = field(default="", repr=False)
    """Empty for a server that asks for none."""
    provider: str = "openai"
    """Its configured name: what it signs goes back to nobody else."""
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields for every request; `None` leaves one out that is sent otherwise."""
    call_ids: CallIds = "any"
    timeouts: Timeouts = field(default_factory=Timeouts)

    def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer as it comes; what goes wrong comes out as a value."""
        who = f"{self.provider} {self.base_url}"
        reading = AnswerReading(OpenAiAnswer(), provider=who)
        request_made = partial(self._request, request)
        maker = self._maker(request)
        return call(self.http, request_made, self.timeouts, reading, maker=maker)

    def _maker(self, request: ModelRequest) -> str:
        return f"openai_chat {self.provider} {request.model}"

    def _request(self, request: ModelRequest) -> Sending:
        headers = {"authorization": f"Bearer {self.api_key}"} if self.api_key else {}
        return post(_address(self.base_url), headers, self.request_body(request), self.timeouts)

    def request_body(self, request: ModelRequest) -> bytes:
        """The request as JSON: the stored messages are copied into it, not read."""
        fields = {
            "model": request.model,
            "stream": True,
            "stream_options": {"include_usage": True},
            **self.extra_body,
            **self._longest(request),
        }
        stated = {name: value for name, value in fields.items() if value is not None}
        parts = [
            orjson.dumps(stated)[:-1],
            b'"messages":[' + b",".join(self._messages(request)) + b"]",
        ]
        if request.tools:
            parts.append(b'"tools":[' + b",".join(_tools(request.tools)) + b"]")
        return b",".join(parts) + b"}"

    def _longest(self, request: ModelRequest) -> Mapping[str, object]:
        """The bound of the answer under the name that this provider has for it.

        OpenAI's newer models refuse `max_tokens`, most others know nothing else; what the provider
        is configured with says it best.
        """
        if request.max_output_tokens is None:
            return {}
        configured = next((name for name in _LONGEST if name in self.extra_body), None)
        host = httpx.URL(self.base_url).host
        newer = host.endswith(_OWN_HOSTS)
        return {configured or _LONGEST[0 if newer else 1]: request.max_output_tokens}

    def _messages(self, request: ModelRequest) -> list[bytes]:
        system = {"role": "system", "content": request.instructions}
        first = [orjson.dumps(system)] if request.instructions.strip() else []
        maker = self._maker(request)
        messages = to_be_answered(request.messages)
        sent = (as_sent(message, maker, self.call_ids) for message in messages)
        return [*first, *filter(None, sent)]


@lru_cache
def _address(base_url: str) -> Address:
    url = httpx.URL(base_url)
    return address_of(url.copy_with(path=url.path.rstrip("/") + "/chat/completions"))


def _tools(tools: Sequence[ToolSpec]) -> list[bytes]:
    return [
        b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}'
        % (orjson.dumps(tool.name), orjson.dumps(tool.description), tool.parameters.encode())
        for tool in tools
    ]
