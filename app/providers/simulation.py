"""A provider made of scripts, without HTTP: which request gets which answer or fault.

A script is a list of rounds. The round of a request is the number of assistant messages in it, but
for those that are to be written again, so that a request repeated after a crash gets the same round
again. Faults are used up in order, each as often as its `times`, before the round is answered. A
model without a script behaves as the demo model.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from hashlib import sha256

import orjson

from app.providers.demo_history import turn_so_far
from app.providers.demo_script import Fail, Say, scene
from app.providers.scripted import WORDS_PER_SECOND, spoken, tool_calls, words
from app.providers.simulation_script import (
    AnswerReply,
    ErrorReply,
    Reply,
    answer_reply,
    check_script,
    error_reply,
    invalid_request,
    nth_fault,
)
from app.providers.strict_history import check_history
from app.providers.wire_json import JsonObject, as_array, as_object, as_text
from app.turn.resume_notices import BEGIN_AGAIN

DEMO_MODEL = "demo"


@dataclass(slots=True)
class Received:
    """A request as it came, and what became of it."""

    body: JsonObject
    status: int

    def as_json(self) -> dict[str, object]:
        return {"status": self.status, "body": self.body}


@dataclass(slots=True)
class _Script:
    rounds: Sequence[JsonObject]
    is_strict: bool
    faults_used: dict[int, int] = field(default_factory=dict[int, int])
    """How many faults of each round have happened."""


@dataclass(slots=True)
class Simulation:
    """The scripts, and everything that was asked."""

    words_per_second: float = WORDS_PER_SECOND
    """How fast the demo model speaks; more than 0."""
    _scripts: dict[str, _Script] = field(default_factory=dict[str, _Script])
    _received: dict[str, list[Received]] = field(default_factory=dict[str, list[Received]])
    _demo_attempts: dict[str, int] = field(default_factory=dict[str, int])

    def put_script(self, model: str, script: JsonObject) -> None:
        """Replace a model's script, with all its faults ahead again.

        Raises:
            InvalidScriptError: The script is not of the documented shape.
        """
        rounds = check_script(script)
        self._scripts[model] = _Script(rounds, is_strict=script.get("strict", True) is True)

    def reset(self, model: str) -> None:
        """Forget a model's script and requests, and how often the demo was asked."""
        self._demo_attempts.clear()
        self._scripts.pop(model, None)
        self._received.pop(model, None)

    def received(self, model: str) -> list[dict[str, object]]:
        """All requests to a model, oldest first, each with the status of its answer."""
        return [request.as_json() for request in self._received.get(model, [])]

    def models(self) -> list[str]:
        """The demo model, and every model that has a script."""
        return [DEMO_MODEL, *sorted(self._scripts)]

    def reply(self, request: JsonObject) -> Reply:
        """What this chat completions request gets; it is written down first."""
        model = as_text(request.get("model"))
        reply = self._reply(model, request)
        status = reply.status if isinstance(reply, ErrorReply) else 200
        self._received.setdefault(model, []).append(Received(request, status))
        return reply

    def _reply(self, model: str, request: JsonObject) -> Reply:
        script = self._scripts.get(model)
        is_strict = script is None or script.is_strict
        fault = check_history(request.get("messages")) if is_strict else None
        if fault is not None:
            return invalid_request(fault)
        if script is None:
            return self._demo(request)
        return _scripted(script, request)

    def _demo(self, request: JsonObject) -> Reply:
        """The demo model; the attempt, which the wire does not carry, is counted here."""
        messages = [as_object(message) for message in as_array(request.get("messages"))]
        messages = [message for message in messages if message.get("role") != "system"]
        turn = turn_so_far(messages)
        beginning = orjson.dumps(messages[: turn.begins_at + 1], option=orjson.OPT_SORT_KEYS)
        key = sha256(beginning).hexdigest()
        attempt = self._demo_attempts.get(key, 0) + 1
        self._demo_attempts[key] = attempt
        what = scene(messages, _tool_names(request), max(attempt, turn.answers + 1))
        if isinstance(what, Say):
            return _said(what, len(messages), self.words_per_second)
        return _failed(what)


def _scripted(script: _Script, request: JsonObject) -> Reply:
    messages = [as_object(message) for message in as_array(request.get("messages"))]
    number = _round_of(messages)
    if number >= len(script.rounds):
        return invalid_request(f"the script has {len(script.rounds)} rounds, not {number + 1}")
    this = script.rounds[number]
    used = script.faults_used.get(number, 0)
    fault = nth_fault(this, used)
    if fault is None:
        return answer_reply(this, number)
    script.faults_used[number] = used + 1
    if "status" in fault:
        return error_reply(fault)
    return answer_reply(this, number, fault)


def _round_of(messages: Sequence[JsonObject]) -> int:
    """An answer that is to be written again has not been given."""
    followed = zip(messages, [*messages[1:], {}], strict=True)
    return sum(
        message.get("role") == "assistant" and then.get("content") != BEGIN_AGAIN
        for message, then in followed
    )


def _tool_names(request: JsonObject) -> set[str]:
    tools = [as_object(tool) for tool in as_array(request.get("tools"))]
    return {as_text(as_object(tool.get("function")).get("name")) for tool in tools}


def _said(what: Say, position: int, words_per_second: float) -> AnswerReply:
    calls = tool_calls(what, position)
    text = tuple(spoken(what))
    return AnswerReply(
        reasoning=tuple(words(what.reasoning)),
        text=text,
        calls=tuple(
            {"id": call.call_id, "name": call.tool_name, "arguments": call.arguments}
            for call in calls
        ),
        stop="tool_calls" if calls else "stop",
        usage={"prompt_tokens": 10, "completion_tokens": max(1, len(text))},
        delay_seconds=1 / words_per_second,
        breaks_off=what.is_cut,
    )


def _failed(what: Fail) -> ErrorReply:
    evidence = what.evidence
    return ErrorReply(status=evidence.status or 500, headers=evidence.headers, body=evidence.body)
