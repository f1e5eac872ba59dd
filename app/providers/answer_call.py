"""One call over HTTP, whatever the wire: the bytes go through a reading, an ending comes out."""

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import replace
from http import HTTPStatus

import httpx

from app.ports import ModelEvent
from app.ports.fault_points import (
    AFTER_STOP,
    BEFORE_STOP,
    FIRST_BYTE,
    MID_ARGUMENTS,
    MID_TEXT,
    reached,
)
from app.providers.answer_reading import AnswerReading, Delta, Outcome, joined
from app.providers.carrying import Sending
from app.providers.failures import (
    Evidence,
    classify,
    classify_exception,
    interrupted,
    withholding,
)
from app.providers.http import HttpClient, ProviderTimeoutError, Reply, Timeouts, exchange
from app.providers.opaque import sealed
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.transcript import StopReason

_BROKEN = (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, ProviderTimeoutError, OSError)
"""OSError too, which covers ssl.SSLError: httpx does not wrap every one of them."""


async def call(
    http: HttpClient,
    request: Callable[[], Sending],
    timeouts: Timeouts,
    reading: AnswerReading,
    *,
    maker: str,
) -> AsyncGenerator[ModelEvent, None]:
    """Yield the answer as it comes; what goes wrong comes out as a value.

    `maker` is whom the answer's opaque parts belong to.
    An answer whose end has come is whole, whatever the connection does next.
    """
    status = 0
    try:
        async with exchange(http, request(), timeouts) as reply:
            status = reply.status
            if status != HTTPStatus.OK:
                yield await _refused(reply, reading.provider)
                return
            async with aclosing(_deltas(reply, reading)) as deltas:
                async for delta in deltas:
                    yield delta
    except _BROKEN as error:
        if not reading.is_whole or reading.failure is not None:
            failure = reading.failure or classify_exception(error, http_status=status)
            yield _broken(failure, reading.outcome())
            return
    for delta in reading.close():
        yield delta
    await reached(AFTER_STOP)
    yield _ending(reading, maker)


async def _refused(reply: Reply, provider: str | None) -> ModelEvent:
    body = await reply.start_of_body()
    return classify(
        Evidence(
            where="response",
            status=reply.status,
            headers=dict(reply.headers.items()),
            body=body,
            provider=provider,
        )
    )


async def _deltas(reply: Reply, reading: AnswerReading) -> AsyncGenerator[Delta, None]:
    is_first = True
    while (piece := await reply.next_piece()) is not None:
        was_whole = reading.is_whole
        if is_first:
            await reached(FIRST_BYTE)
        is_first = False
        for delta in joined(reading.feed(piece)):
            yield delta
            await reached(MID_TEXT)
        if reading.is_whole and not was_whole:
            await reached(BEFORE_STOP)
        elif reading.has_calls and not was_whole:
            await reached(MID_ARGUMENTS)
        if reading.failure is not None:
            return
        if reading.is_ending:
            reply.expect_the_end()


def _broken(failure: ModelFailure | RequestRefused, outcome: Outcome) -> ModelEvent:
    return withholding(failure, (call.tool_name for call in outcome.answer.tool_calls))


def _ending(reading: AnswerReading, maker: str) -> ModelEvent:
    outcome = reading.outcome()
    if outcome.failure is not None:
        return _broken(outcome.failure, outcome)
    if outcome.answer.stop_reason is StopReason.INTERRUPTED:
        return _broken(interrupted(outcome.answer.raw_stop), outcome)
    opaque = sealed(outcome.reading.to_return, maker)
    return replace(outcome.answer, opaque=opaque) if opaque else outcome.answer
