"""OpenAI-compatible chat completions, written on httpx because it is the hot path (ADR 0006).

Messages arrive as the JSON texts they were stored as, in the very form of this wire, and are put
into the request as they are: a long history is never decoded and encoded again.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from http import HTTPStatus

import httpx
import orjson

from app.ports import ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from app.providers.failures import Evidence, classify, classify_exception, interrupted
from app.providers.http import (
    ProviderTimeoutError,
    Reply,
    Timeouts,
    exchange,
    network_timeouts,
)
from app.providers.openai_answer import AnswerTooLongError
from app.providers.openai_reading import OpenAiReading
from app.providers.sse_lines import LineTooLongError
from app.providers.tool_call_parts import TooManyCallsError
from app.turn.agent import ToolSpec
from app.turn.failures import FailureType, ModelFailure
from app.turn.transcript import StopReason

_TOO_LONG = (LineTooLongError, AnswerTooLongError, TooManyCallsError)
_BROKEN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ProviderTimeoutError, OSError)
"""OSError too, which covers ssl.SSLError: httpx does not wrap every one of them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class OpenAiChat:
    """A `ModelClient` for one endpoint and one key; cheap to make, one for each call if need be."""

    http: httpx.AsyncClient
    base_url: str
    """Up to and including `/v1`; a query stays at the end, as Azure wants it."""
    api_key: str = field(default="", repr=False)
    """Empty for a server that asks for none."""
    timeouts: Timeouts = field(default_factory=Timeouts)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer as it comes; what goes wrong comes out as a value."""
        reading, status = OpenAiReading(), 0
        try:
            async with exchange(self.http, self._request(request), self.timeouts) as reply:
                status = reply.status
                if status != HTTPStatus.OK:
                    yield await _refused(reply)
                    return
                async with aclosing(_deltas(reply, reading)) as deltas:
                    async for delta in deltas:
                        yield delta
        except _TOO_LONG as error:
            yield _too_long(error)
            return
        except _BROKEN as error:
            if not reading.is_whole or reading.failure is not None:
                yield reading.failure or classify_exception(error, http_status=status)
                return
        for delta in reading.close():
            yield delta
        yield _ending(reading)

    def _request(self, request: ModelRequest) -> httpx.Request:
        url = httpx.URL(self.base_url)
        headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
        }
        if self.api_key:
            headers["authorization"] = f"Bearer {self.api_key}"
        return self.http.build_request(
            "POST",
            url.copy_with(path=url.path.rstrip("/") + "/chat/completions"),
            headers=headers,
            content=request_body(request),
            timeout=network_timeouts(self.timeouts),
        )


def request_body(request: ModelRequest) -> bytes:
    """The request as JSON: the stored messages are copied into it, not read."""
    parts = [
        b'{"model":' + orjson.dumps(request.model),
        b'"stream":true,"stream_options":{"include_usage":true}',
        b'"messages":[' + b",".join(_messages(request)) + b"]",
    ]
    if request.tools:
        parts.append(b'"tools":[' + b",".join(_tools(request.tools)) + b"]")
    return b",".join(parts) + b"}"


def _messages(request: ModelRequest) -> list[bytes]:
    system = {"role": "system", "content": request.instructions}
    first = [orjson.dumps(system)] if request.instructions.strip() else []
    return [*first, *(message.encode("utf-8", "replace") for message in request.messages)]


def _tools(tools: Sequence[ToolSpec]) -> list[bytes]:
    return [
        b'{"type":"function","function":{"name":%b,"description":%b,"parameters":%b}}'
        % (orjson.dumps(tool.name), orjson.dumps(tool.description), tool.parameters.encode())
        for tool in tools
    ]


async def _refused(reply: Reply) -> ModelEvent:
    body = await reply.start_of_body()
    return classify(
        Evidence(
            where="response", status=reply.status, headers=dict(reply.headers.items()), body=body
        )
    )


async def _deltas(
    reply: Reply, reading: OpenAiReading
) -> AsyncGenerator[TextDelta | ReasoningDelta, None]:
    while (piece := await reply.next_piece()) is not None:
        for delta in reading.feed(piece):
            yield delta
        if reading.failure is not None:
            return
        if reading.is_done:
            reply.expect_the_end()


def _ending(reading: OpenAiReading) -> ModelEvent:
    outcome = reading.outcome()
    if outcome.failure is not None:
        return outcome.failure
    if outcome.answer.stop_reason is StopReason.INTERRUPTED:
        return interrupted(outcome.answer.raw_stop)
    return outcome.answer


def _too_long(error: Exception) -> ModelFailure:
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=type(error).__doc__ or "",
        retryable=False,
        http_status=200,
        exception_type=type(error).__name__,
    )
