"""The third door, with the models Pydantic AI itself offers for tests in place of a provider."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from typing import TypeAlias

import pytest
from pydantic_ai.exceptions import (
    ContentFilterError,
    ModelConnectionError,
    ModelHTTPError,
    UnexpectedModelBehavior,
)
from pydantic_ai.messages import (
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ThinkingPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaThinkingPart, DeltaToolCall, FunctionModel

from app.ports import ModelAnswer, ReasoningDelta, TextDelta
from app.providers.directory import ProviderDirectory, ProviderEndpoint
from app.providers.http import Timeouts, new_client
from app.providers.pydantic_ai_client import PydanticAi
from app.store.message_codec import encode
from app.turn.failures import FailureType
from app.turn.transcript import AssistantMessage, StopReason
from tests.providers.asking import (
    DEMO_TOOLS,
    Message,
    a_request,
    answer_of,
    assistant,
    events_of,
    failure_of,
    refusal_of,
    result,
    user,
)

Said: TypeAlias = str | dict[int, DeltaToolCall] | dict[int, DeltaThinkingPart]
THOUGHT = "  Hm 🤔\u2028 "


class Provider:
    """A fake provider that says the same at every request and keeps what it was asked."""

    def __init__(self, *said: Said, fault: Exception | None = None, hangs: bool = False) -> None:
        self.said, self.fault, self.hangs = said, fault, hangs
        self.asked: list[ModelMessage] = []
        self.info: AgentInfo | None = None

    async def answer(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Said]:
        self.asked, self.info = messages, info
        for said in self.said:
            yield said
        if self.fault is not None:
            raise self.fault
        if self.hangs:
            await asyncio.Event().wait()

    def client(self, *, provider: str = "vertex", **timeouts: float) -> PydanticAi:
        model = FunctionModel(stream_function=self.answer)
        return PydanticAi(model=model, provider=provider, timeouts=Timeouts(**timeouts))


THINKS_AND_ASKS: tuple[Said, ...] = (
    {0: DeltaThinkingPart(content=THOUGHT, signature="c2ln")},
    "I look. ",
    {1: DeltaToolCall(name="look", json_args='{"q":', tool_call_id="A")},
    {1: DeltaToolCall(json_args='"x"}')},
)


async def test_an_answer_streams_with_reasoning_text_and_calls() -> None:
    events = await events_of(Provider(*THINKS_AND_ASKS).client(), a_request())

    answer = events[-1]
    assert events[:2] == [ReasoningDelta(text=THOUGHT), TextDelta(text="I look. ")]
    assert isinstance(answer, ModelAnswer)
    assert (answer.text, answer.reasoning) == ("I look. ", THOUGHT)
    assert [(c.call_id, c.tool_name, c.arguments) for c in answer.tool_calls] == [
        ("A", "look", '{"q":"x"}')
    ]
    assert answer.stop_reason is StopReason.TOOL_USE
    assert answer.usage.output_tokens


async def test_a_history_instructions_and_tools_go_out() -> None:
    provider = Provider("Done.")
    picture = {"type": "image_url", "image_url": {"url": "https://x.test/a.png"}}
    history: list[Message] = [
        user("go"),
        assistant("I look.", "A", "B"),
        result("A", "1"),
        result("B", "2"),
        {"role": "user", "content": [{"type": "text", "text": "and this?"}, picture]},
    ]
    request = a_request(*history, instructions="Be kind.", tools=DEMO_TOOLS)

    answer = await answer_of(provider.client(), request)

    assert answer.text == "Done."
    first, said, told = provider.asked
    assert isinstance(first, ModelRequest)
    assert isinstance(said, ModelResponse)
    assert [type(part) for part in said.parts] == [TextPart, ToolCallPart, ToolCallPart]
    assert [type(part) for part in told.parts] == [ToolReturnPart, ToolReturnPart, UserPromptPart]
    assert [p.tool_name for p in told.parts if isinstance(p, ToolReturnPart)] == ["look", "look"]
    assert provider.info is not None
    assert provider.info.instructions == "Be kind."
    assert [tool.name for tool in provider.info.function_tools] == [t.name for t in DEMO_TOOLS]


def _stored(answer: ModelAnswer, **changes: str) -> Message:
    message = AssistantMessage(
        text=changes.get("text", answer.text), tool_calls=answer.tool_calls, opaque=answer.opaque
    )
    stored: Message = json.loads(encode(message).body)
    return stored


async def _sent_back(change: Callable[[ModelAnswer], Message], provider: str) -> list[object]:
    """The types of the parts that come back, and of the thinking its words and signature."""
    answer = await answer_of(Provider(*THINKS_AND_ASKS).client(), a_request())
    second = Provider("Done.")
    await answer_of(
        second.client(provider=provider), a_request(user("go"), change(answer), result("A"))
    )
    return [
        (part.content, part.signature) if isinstance(part, ThinkingPart) else type(part)
        for part in second.asked[1].parts
    ]


async def test_signed_thinking_goes_back_to_its_maker_as_it_was() -> None:
    sent = await _sent_back(_stored, "vertex")

    assert sent == [(THOUGHT, "c2ln"), TextPart, ToolCallPart]


async def test_nobody_else_gets_thinking_and_no_other_message_does() -> None:
    plain = [TextPart, ToolCallPart]

    assert await _sent_back(_stored, "bedrock") == plain
    assert await _sent_back(lambda answer: _stored(answer, text="Another."), "vertex") == plain


def _http_error(status: int, body: object, **headers: str) -> ModelHTTPError:
    return ModelHTTPError(status, "m", body, headers=headers)


GOOGLE_QUOTA = {
    "error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
    }
}
OVERLOADED = {
    "error": {"code": 503, "message": "The model is overloaded.", "status": "UNAVAILABLE"}
}
FAULTS: Mapping[str, tuple[Exception, FailureType, bool]] = {
    "quota": (_http_error(429, GOOGLE_QUOTA), FailureType.QUOTA_EXCEEDED, False),
    "overloaded": (_http_error(503, OVERLOADED), FailureType.OVERLOADED, True),
    "no connection": (ModelConnectionError("m", "refused"), FailureType.UNAVAILABLE, True),
    "nonsense": (UnexpectedModelBehavior("no content"), FailureType.UNAVAILABLE, True),
    "foreign": (ConnectionResetError("peer"), FailureType.UNAVAILABLE, True),
}


@pytest.mark.parametrize("name", FAULTS)
async def test_what_a_library_raises_is_a_failure_told_apart_like_any_other(name: str) -> None:
    fault, kind, retryable = FAULTS[name]

    failure = await failure_of(Provider("Ha", fault=fault).client(), a_request())

    assert (failure.type, failure.retryable) == (kind, retryable)


async def test_calls_of_an_answer_that_breaks_are_named() -> None:
    fault = ConnectionResetError("peer")

    failure = await failure_of(Provider(*THINKS_AND_ASKS, fault=fault).client(), a_request())

    assert failure.withheld_tools == ("look",)


async def test_a_stated_wait_is_read_from_the_headers() -> None:
    fault = _http_error(429, {"message": "slow down"}, **{"retry-after": "7"})

    failure = await failure_of(Provider(fault=fault).client(), a_request())

    assert failure.retry_after is not None
    assert failure.retry_after.total_seconds() == 7


@pytest.mark.parametrize(
    "fault", [_http_error(400, {"message": "tools.0 is invalid"}), ContentFilterError("blocked")]
)
async def test_a_request_that_is_refused_is_no_outage(fault: Exception) -> None:
    refusal = await refusal_of(Provider(fault=fault).client(), a_request())

    assert refusal.message


async def test_silence_is_bounded() -> None:
    client = Provider("Ha", hangs=True).client(idle_seconds=0.01)

    failure = await failure_of(client, a_request())

    assert failure.exception_type == "IdleTimeout"


async def test_a_provider_of_this_kind_is_found_and_a_model_nobody_knows_is_told() -> None:
    async with new_client() as http:
        directory = ProviderDirectory(
            http=http,
            environment=dict,
            providers={"more": ProviderEndpoint(kind="pydantic-ai", base_url="", api_key_env=None)},
        )
        found, unknown = directory.resolve("more/test"), directory.resolve("more/nobody:x")

    assert isinstance(getattr(found, "client", None), PydanticAi)
    assert getattr(unknown, "error_code", None) == "misconfigured_provider"
