"""Every pair of commands that mean something in a state, to be given at one instant.

What a pair may come to is not written down here: it is what the two come to one behind the other,
in the one or the other order.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations_with_replacement
from typing import Any, TypeAlias

import httpx

from tests.support.story import QUOTA

Turn: TypeAlias = dict[str, Any]
Round: TypeAlias = Mapping[str, object]
Request: TypeAlias = tuple[str, str, Mapping[str, object] | None]
"""Method, path and body."""
Command: TypeAlias = Callable[[Turn, str], Request]
"""The request, for a turn; the text makes ids of one's own."""


def _resuming(command: str, **more: object) -> Command:
    def request(turn: Turn, _: str) -> Request:
        said = {name: value(turn) if callable(value) else value for name, value in more.items()}
        return "POST", f"/turns/{turn['turnId']}/resume", {"command": command, **said}

    return request


def _posting(action: str) -> Command:
    return lambda turn, _: ("POST", f"/turns/{turn['turnId']}/{action}", None)


def _message(when: str = "reject") -> Command:
    def request(turn: Turn, own: str) -> Request:
        said = {"content": f"This is {own}.", "messageId": f"m_{own}", "whenRunning": when}
        return "POST", f"/conversations/{turn['conversationId']}/messages", said

    return request


def _replanned(turn: Turn, own: str) -> Request:
    message = {"content": f"Anew: {own}.", "messageId": f"m_{own}"}
    body = {"command": "REPLAN_WITH_MESSAGE", "message": message}
    return "POST", f"/turns/{turn['turnId']}/resume", body


def _resumed(turn: Turn, _: str) -> Request:
    failure = {} if turn["failureId"] is None else {"failureId": turn["failureId"]}
    return "POST", f"/conversations/{turn['conversationId']}/resume", failure


def _withdrawn(turn: Turn, _: str) -> Request:
    return "DELETE", f"/conversations/{turn['conversationId']}/queue/m_2", None


def _failure(turn: Turn) -> str:
    return str(turn["failureId"])


def _of_the_call(turn: Turn) -> str:
    return str(turn["suspension"]["correlationId"])


MESSAGE, REPLAN, CANCEL, PAUSE = _message(), _replanned, _posting("cancel"), _posting("pause")
TO_ANYBODY: Mapping[str, Command] = {"message": MESSAGE, "replan": REPLAN, "cancel": CANCEL}


def _calls(name: str, arguments: str) -> Round:
    return {"calls": [{"id": "A", "name": name, "arguments": arguments}]}


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """A state, how a turn comes into it, and what may be said to it there."""

    name: str
    first: Round
    """What the model answers to the first message."""
    status: str
    commands: Mapping[str, Command]
    begins: Mapping[str, object] | None = None
    """What the first message has besides."""
    then: Sequence[Command] = ()
    """What brings a turn the rest of the way."""
    is_held: bool = False
    """Whether the turn stays a worker's; otherwise nobody has it."""

    @property
    def agent_id(self) -> str:
        return self.name.replace(" ", "_")

    @property
    def pairs(self) -> list[tuple[str, str]]:
        """Each command with each, itself included."""
        return list(combinations_with_replacement(self.commands, 2))


AN_OUTAGE: Round = {"text": "", "faults": [QUOTA | {"times": 1_000_000}]}
OVERLOADED: Round = {"text": "", "faults": [{"status": 503, "times": 1_000_000}]}
SLOWLY = _calls("look_up_slowly", '{"what": "a"}')

STATES = (
    State(
        name="model",
        first=AN_OUTAGE,
        status="WAITING_FOR_MODEL",
        commands={
            **TO_ANYBODY,
            "retry_model": _resuming("RETRY_MODEL", failureId=_failure),
            "resume_conversation": _resumed,
        },
    ),
    State(
        name="retry",
        first=OVERLOADED,
        status="RETRY_SCHEDULED",
        commands={
            **TO_ANYBODY,
            "continue": _resuming("CONTINUE"),
            "retry": _resuming("RETRY"),
            "pause": PAUSE,
        },
    ),
    State(
        name="approval",
        first=_calls("gated_pay", '{"amount": 7}'),
        status="WAITING_FOR_APPROVAL",
        commands={
            **TO_ANYBODY,
            "approve": _resuming("APPROVE_TOOL", callId=_of_the_call),
            "reject": _resuming("REJECT_TOOL", callId=_of_the_call, reason="No."),
        },
    ),
    State(
        name="question",
        first=_calls("ask", "{}"),
        status="WAITING_FOR_USER",
        commands={**TO_ANYBODY, "user_input": _resuming("USER_INPUT", text="Tokyo")},
    ),
    State(
        name="form",
        first=_calls("request_user_input", '{"message": "Where?"}'),
        status="WAITING_FOR_USER",
        commands={
            **TO_ANYBODY,
            "user_input": _resuming("USER_INPUT", callId=_of_the_call, text="Tokyo"),
        },
    ),
    State(
        name="outside",
        first=_calls("scan", '{"parcel": "p"}'),
        status="WAITING_FOR_TOOL",
        commands={
            **TO_ANYBODY,
            "tool_result": _resuming("TOOL_RESULT", callId=_of_the_call, output="scanned"),
            "tool_error": _resuming("TOOL_ERROR", callId=_of_the_call, code="lost", message="Lost"),
        },
    ),
    State(
        name="paused",
        first=OVERLOADED,
        then=[PAUSE],
        status="PAUSED",
        commands={**TO_ANYBODY, "resume": _resuming("RESUME"), "resume_conversation": _resumed},
    ),
    State(
        name="on hold",
        first={"text": "Done."},
        begins={"hold": True},
        status="READY",
        commands={
            "run": _posting("run"),
            "cancel": CANCEL,
            "pause": PAUSE,
            "queue": _message("queue"),
            "steer": _message("steer"),
        },
    ),
    State(
        name="at work",
        first=SLOWLY,
        then=[lambda turn, _: _message("queue")(turn, "2")],
        status="RUNNING",
        is_held=True,
        commands={
            "cancel": CANCEL,
            "pause": PAUSE,
            "queue": _message("queue"),
            "steer": _message("steer"),
            "withdraw": _withdrawn,
        },
    ),
)


async def give(http: httpx.AsyncClient, request: Request) -> httpx.Response:
    method, path, body = request
    return await http.request(method, path, json=body)
