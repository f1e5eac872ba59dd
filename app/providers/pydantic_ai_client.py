"""The third door: providers that speak neither wire, through Pydantic AI (ADR 0021).

An optional extra. Its libraries make their own connections, and they are told not to retry: when
to ask again is decided by the turn's rules. Everything they raise comes out as a value.
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import lru_cache
from typing import cast

from pydantic_ai.direct import model_request_stream
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelAPIError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelResponse,
    ModelResponseStreamEvent,
    PartDeltaEvent,
    PartStartEvent,
    TextPart,
    TextPartDelta,
    ThinkingPart,
    ThinkingPartDelta,
    ToolCallPart,
)
from pydantic_ai.models import Model, infer_model
from pydantic_ai.providers import Provider, infer_provider_class
from pydantic_ai.settings import ModelSettings

from app.ports import ModelEvent, ModelRequest, ReasoningDelta, TextDelta
from app.providers.answer_reading import Delta, Failure
from app.providers.failures import Evidence, classify, classify_exception, interrupted, withholding
from app.providers.http import Clock, Timeouts
from app.providers.opaque import sealed
from app.providers.pydantic_ai_messages import history, kept, parameters
from app.providers.redaction import redacted
from app.providers.stop_values import stop_reason
from app.providers.tool_call_parts import tool_call
from app.turn.failures import FailureType, ModelFailure, RequestRefused
from app.turn.transcript import ModelAnswer, StopReason, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class PydanticAi:
    """A `ModelClient` for one model of Pydantic AI."""

    model: Model
    provider: str
    """Its configured name: what it signs goes back to nobody else."""
    settings: Mapping[str, object] = field(default_factory=dict[str, object])
    """Pydantic AI's model settings, for every request."""
    timeouts: Timeouts = field(default_factory=Timeouts)

    async def stream(self, request: ModelRequest) -> AsyncGenerator[ModelEvent, None]:
        """Yield the answer as it comes; what goes wrong comes out as a value."""
        maker = f"pydantic_ai {self.provider} {request.model}"
        messages, clock = history(request, maker=maker), Clock.started(self.timeouts)
        shown = _Shown()
        try:
            async with AsyncExitStack() as stack:
                opening = model_request_stream(
                    self.model,
                    messages,
                    model_settings=self._settings(request),
                    model_request_parameters=parameters(request),
                )
                stream = await clock.bounded(stack.enter_async_context(opening))
                events = aiter(stream)
                while (event := await clock.bounded(anext(events, None))) is not None:
                    clock.has_begun = True
                    if (delta := shown.take(event)) is not None:
                        yield delta
                response = stream.get()
        except Exception as error:  # noqa: BLE001 - foreign code: what it raises is news
            yield withholding(_failure(error), shown.calls)
            return
        yield _ending(response, shown, maker)

    def _settings(self, request: ModelRequest) -> ModelSettings:
        settings = dict(self.settings)
        if request.max_output_tokens is not None:
            settings["max_tokens"] = request.max_output_tokens
        if "max_retries" not in self.model.unsupported_settings:
            settings["max_retries"] = 0
        return cast("ModelSettings", settings)


@lru_cache(maxsize=64)
def model_named(name: str, key: str, base_url: str) -> Model:
    """Pydantic AI's model of this name (`google:gemini-3-pro`); made once for name, key and URL.

    Without a key the provider looks for its customary one in the environment.

    Raises:
        Exception: whatever the libraries say of a name, key or URL that they cannot use.
    """
    given = {"api_key": key, "base_url": base_url}
    stated = {name: value for name, value in given.items() if value}

    def provider(system: str) -> Provider[object]:
        return infer_provider_class(system)(**stated)

    return infer_model(name, provider)


def client_for(
    name: str,
    *,
    provider: str,
    key: str,
    base_url: str,
    settings: Mapping[str, object],
    timeouts: Timeouts,
) -> PydanticAi | ModelFailure:
    """The client for a model, or why there is none."""
    try:
        model = model_named(name, key, base_url)
    except Exception as error:  # noqa: BLE001 - foreign code: what it raises is news
        return _misconfigured(error)
    return PydanticAi(model=model, provider=provider, settings=settings, timeouts=timeouts)


@dataclass(slots=True)
class _Shown:
    """What was shown of an answer, which is what the answer then says."""

    text: str = ""
    reasoning: str = ""
    calls: list[str] = field(default_factory=list[str])
    """Names of the calls that have begun to come."""

    def take(self, event: ModelResponseStreamEvent) -> Delta | None:
        match event:
            case PartStartEvent(part=ToolCallPart(tool_name=name)):
                self.calls.append(name)
                return None
            case (
                PartStartEvent(part=TextPart(content=said))
                | PartDeltaEvent(delta=TextPartDelta(content_delta=said))
            ) if said:
                self.text += said
                return TextDelta(text=said)
            case (
                PartStartEvent(part=ThinkingPart(content=thought))
                | PartDeltaEvent(delta=ThinkingPartDelta(content_delta=thought))
            ) if thought:
                self.reasoning += thought
                return ReasoningDelta(text=thought)
            case _:
                return None


def _ending(response: ModelResponse, shown: _Shown, maker: str) -> ModelEvent:
    calls = response.tool_calls
    details = response.provider_details or {}
    said = details.get("finish_reason")
    raw = said if isinstance(said, str) else response.finish_reason
    reason = stop_reason(response.finish_reason or raw or "stop", has_calls=bool(calls))
    if reason is StopReason.INTERRUPTED:
        return withholding(interrupted(raw), (call.tool_name for call in calls))
    was_cut = reason is StopReason.MAX_OUTPUT
    return ModelAnswer(
        text=shown.text,
        reasoning=shown.reasoning,
        tool_calls=tuple(
            tool_call(
                call.tool_call_id,
                call.tool_name,
                call.args if isinstance(call.args, str) else call.args_as_json_str(),
                was_cut=was_cut,
            )
            for call in calls
        ),
        stop_reason=reason,
        raw_stop=raw,
        usage=_usage(response),
        opaque=sealed(kept(response), maker),
    )


def _usage(response: ModelResponse) -> Usage:
    usage = response.usage
    if not usage.has_values():
        return Usage()
    return Usage(
        input_tokens=usage.input_tokens,
        cached_input_tokens=usage.cache_read_tokens,
        output_tokens=usage.output_tokens,
    )


def _failure(error: Exception) -> Failure:
    match error:
        case ModelHTTPError():
            return classify(
                Evidence(
                    where="stream" if error.in_stream else "response",
                    status=error.status_code,
                    headers=error.headers or {},
                    body=error.body if error.body is not None else error.message,
                )
            )
        case ModelAPIError(body=body) if body is not None:
            return classify(Evidence(where="stream", status=200, body=body))
        case ContentFilterError():
            return RequestRefused(message=error.message, error_code="content_filter")
        case UnexpectedModelBehavior():
            return interrupted("unexpected_model_behavior")
        case _:
            return classify_exception(error)


def _misconfigured(error: Exception) -> ModelFailure:
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=redacted(f"the model cannot be reached as configured: {error}"),
        retryable=False,
        error_code="misconfigured_provider",
        exception_type=type(error).__name__,
    )
