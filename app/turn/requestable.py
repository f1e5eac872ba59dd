"""What of a transcript goes into a model request.

What this service has said itself is whole: every call has its results behind it, in order, under
ids that nobody else has. A history that was brought along may be anything, and one bad message
would make a provider refuse every later request of its conversation. So what is damaged in it is
left out of requests; the transcript keeps it (seed rule ZA-12, case 79).

Left out are: system messages of another service; messages that say nothing; results that no call
directly before them has asked for; an answer with a call that has no result, and the results it
has. Results stand in the order of their calls, whatever order they came in. An id that an earlier
call has is replaced, and so are names and arguments that no provider takes.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace

from app.turn.ids import CallId
from app.turn.stored_calls import well_named
from app.turn.transcript import (
    AssistantMessage,
    ImagePart,
    Message,
    StopReason,
    SystemMessage,
    ToolCall,
    ToolResult,
    UserMessage,
)

_FOR_THE_NEXT = frozenset({"closing", "question"})


def requestable(messages: Sequence[Message]) -> tuple[Message, ...]:
    """The messages of a brought-along history that a provider takes, in a form that it takes."""
    said = [message for message in messages if not isinstance(message, SystemMessage)]
    taken = {call.call_id for m in said if isinstance(m, AssistantMessage) for call in m.tool_calls}
    renaming = _Renaming(taken)
    found: list[Message] = []
    place = 0
    while place < len(said):
        message = said[place]
        place += 1
        match message:
            case AssistantMessage(tool_calls=calls) if calls:
                results = _results_from(said, place)
                place += len(results)
                found += _round(message, results, renaming)
            case ToolResult():
                pass
            case _:
                found += _with_words(message)
    return tuple(found)


def heard(roles: Sequence[str]) -> list[int]:
    """Which messages of a transcript a request carries, told from their roles.

    What the service wrote at a turn's end, and a question, are for whoever speaks next. Where
    nobody has, they are left out: a request ends with what the model is to answer.
    """
    places: list[int] = []
    for place in reversed(range(len(roles))):
        follows = roles[places[-1]] if places else None
        if roles[place] in _FOR_THE_NEXT and follows not in {"user", "notice", *_FOR_THE_NEXT}:
            continue
        places.append(place)
    return places[::-1]


def _results_from(said: Sequence[Message], place: int) -> list[ToolResult]:
    results: list[ToolResult] = []
    for at in range(place, len(said)):
        message = said[at]
        if not isinstance(message, ToolResult):
            break
        results.append(message)
    return results


def _round(
    asked: AssistantMessage, results: Sequence[ToolResult], renaming: "_Renaming"
) -> list[Message]:
    """An answer with its calls and their results; nothing when one of the calls has none."""
    calls: dict[CallId, ToolCall] = {}
    for call in asked.tool_calls:
        calls.setdefault(call.call_id, call)
    first: dict[CallId, ToolResult] = {}
    for result in results:
        first.setdefault(result.call_id, result)
    if calls.keys() - first.keys():
        return []
    names = {call_id: renaming.unused(call_id) for call_id in calls}
    sendable = tuple(
        replace(_sendable(call), call_id=names[call_id]) for call_id, call in calls.items()
    )
    answers = [replace(first[call_id], call_id=names[call_id]) for call_id in calls]
    # What only its maker can read is signed together with the calls as they were.
    opaque = asked.opaque if sendable == asked.tool_calls else ""
    return [replace(asked, tool_calls=sendable, opaque=opaque), *answers]


def _sendable(call: ToolCall) -> ToolCall:
    named = well_named(call)
    return named if call.problem is None else replace(named, arguments="{}")


def _with_words(message: Message) -> Iterator[Message]:
    match message:
        case UserMessage(content=content):
            kept = tuple(
                part for part in content if isinstance(part, ImagePart) or part.text.strip()
            )
            if kept:
                yield replace(message, content=kept)
        case ToolResult():
            pass
        case AssistantMessage(stop_reason=StopReason.PAUSED, opaque=opaque) if opaque:
            yield message  # its own provider may have said all of it in a way of its own
        case _:
            if message.text.strip():
                yield message


class _Renaming:
    """Ids for calls, each given once."""

    def __init__(self, taken: set[CallId]) -> None:
        self._taken = taken
        self._given: set[CallId] = set()
        self._made = 0

    def unused(self, call_id: CallId) -> CallId:
        """The id itself the first time, another one when it is empty or was given before."""
        if not call_id or call_id in self._given:
            call_id = self._fresh()
        self._given.add(call_id)
        return call_id

    def _fresh(self) -> CallId:
        while True:
            self._made += 1
            call_id = CallId(f"call-{self._made}")
            if call_id not in self._taken:
                return call_id
