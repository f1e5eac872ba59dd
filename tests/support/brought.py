"""Histories from elsewhere: any at all, and the recorded ones, as requests and as values."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from app.routers.import_schemas import NewConversationBody
from app.turn.ids import CallId, MessageId
from app.turn.resume_point import Resumable, ResumePoint
from app.turn.transcript import (
    AssistantMessage,
    ClosingMessage,
    Message,
    NoticeMessage,
    Outcome,
    QuestionMessage,
    StopReason,
    SystemMessage,
    TextPart,
    ToolCall,
    ToolResult,
    UserMessage,
)

_FILE = Path(__file__).parents[1] / "data" / "resume-points.jsonl"
RECORDED: Sequence[Mapping[str, Any]] = [
    json.loads(line) for line in _FILE.read_text().splitlines()
]
"""Short histories, each with what is to be said of it: `id`, `messages`, `expected`."""

_IDS = st.sampled_from(["a", "b", "c", ""]).map(CallId)
_NAMES = st.sampled_from(["look_up", "pay", "not a name", "", "x" * 80])
_TEXTS = st.sampled_from(["", " \n", "words", "more words"])
_CALLS = st.builds(
    ToolCall,
    call_id=_IDS,
    tool_name=_NAMES,
    arguments=st.sampled_from(["{}", "[1"]),
).map(lambda call: call if call.arguments == "{}" else _with_a_problem(call))
_PARTS = st.lists(st.builds(TextPart, text=_TEXTS), max_size=2).map(tuple)


def _with_a_problem(call: ToolCall) -> ToolCall:
    return ToolCall(
        call_id=call.call_id,
        tool_name=call.tool_name,
        arguments=call.arguments,
        problem="no object",
    )


ANY_MESSAGE: st.SearchStrategy[Message] = st.one_of(
    st.builds(UserMessage, message_id=st.just(MessageId("m")), content=_PARTS),
    st.builds(
        AssistantMessage,
        text=_TEXTS,
        tool_calls=st.lists(_CALLS, max_size=3).map(tuple),
        stop_reason=st.sampled_from(StopReason),
    ),
    st.builds(
        ToolResult,
        call_id=_IDS,
        tool_name=st.just(""),
        outcome=st.just(Outcome.COMPLETED),
        content=_TEXTS,
    ),
    st.builds(SystemMessage, text=_TEXTS),
    st.builds(NoticeMessage, text=_TEXTS, cause=st.just("imported")),
    st.builds(ClosingMessage, text=_TEXTS),
    st.builds(QuestionMessage, text=_TEXTS),
)
ANY_HISTORY = st.lists(ANY_MESSAGE, max_size=9)
PASSED_OVER: st.SearchStrategy[Message] = st.one_of(
    st.builds(SystemMessage, text=_TEXTS),
    st.builds(ClosingMessage, text=_TEXTS),
)


def read(messages: Sequence[Mapping[str, Any]]) -> list[Message]:
    """A recorded history as the import reads it."""
    body = NewConversationBody.model_validate({"history": messages})
    return [message for given in body.history or () for message in given.messages()]


def as_recorded(point: ResumePoint) -> dict[str, object]:
    """A resume point in the form of `expected`."""
    if isinstance(point, Resumable):
        return {
            "kind": point.kind,
            "unansweredToolCalls": [call.call_id for call in point.unanswered],
        }
    return {"reason": point.reason}
