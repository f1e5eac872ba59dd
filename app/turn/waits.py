"""What a tool call waits for when it waits for somebody: an approval, a form, an outside tool.

A wait is part of its open call and goes when the call has its answer, so that no wait outlives its
turn. It holds everything that whoever answers must see, as it was when it was asked: the exact
arguments, the frozen schema, the time it may take and what its expiry does. Later versions of an
agent change nothing about it (case 105).

A wait is *open* once its request event is stored. One that is not open is put aside: others of its
round come first (C28).
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, TypeAlias

from app.turn.agent import WaitPolicy
from app.turn.ids import ActorId, CallId
from app.turn.status import Status, SuspensionType

ApprovalStage: TypeAlias = Literal["policy", "tool", "recovery"]
"""`policy`: asked before the tool is entered. `tool`: asked by the tool itself, for a concrete
request. `recovery`: asked of an attempt whose end nobody knows, which may then be made again. None
takes the place of another (seed rule AF-96)."""
OnOversize: TypeAlias = Literal["refuse", "truncate"]


@dataclass(frozen=True, kw_only=True)
class ApprovalWait:
    """Somebody is to say whether the call may do what it wants to do."""

    stage: ApprovalStage
    content: str
    """What is shown and, once approved, run: the call's arguments exactly as stored, or the tool's
    concrete request as canonical JSON text."""
    fingerprint: str
    """SHA-256 of what is approved, 64 hex digits."""
    message: str | None = None
    """Why it is asked, in the words of the policy or the tool."""
    attempt: int | None = None
    """Of the stage `recovery`: the attempt whose end nobody knows. Else `None`."""
    max_result_bytes: int = 0
    """Of the stage `recovery`: the longest result in UTF-8 that may be said to have come of it."""
    excludes_requester: bool = False
    """Whether whoever began the turn may not approve."""
    policy: WaitPolicy = field(default_factory=WaitPolicy)
    requested_at: datetime | None = None
    """When it was opened; `None`: it is put aside."""
    is_expired: bool = False
    """Its time is over, and its policy keeps it (`keep`)."""
    kind: Literal["approval"] = "approval"


@dataclass(frozen=True, kw_only=True)
class FormWait:
    """The user is to fill in a form, or to answer in words."""

    asked_by: Literal["model", "tool"]
    """`model`: by the built-in `request_user_input`, whose result the answer is. `tool`: by a
    business tool, which is entered again with the values."""
    form_key: str | None
    """`None`: the model asks in words, so any text is an answer."""
    schema: str | None
    """The JSON Schema of the answer as JSON text, frozen; `None` where there is no form."""
    message: str | None = None
    title: str | None = None
    strict: bool = False
    """Whether a message is refused while the form waits, instead of giving it up (C22)."""
    policy: WaitPolicy = field(default_factory=WaitPolicy)
    requested_at: datetime | None = None
    is_expired: bool = False
    kind: Literal["form"] = "form"


@dataclass(frozen=True, kw_only=True)
class ExternalWait:
    """Somebody outside does what the call asks for, and says how it went."""

    arguments: str
    """A JSON object as text, exactly as stored."""
    max_result_bytes: int
    """The longest result in UTF-8."""
    on_oversize: OnOversize = "refuse"
    policy: WaitPolicy = field(default_factory=WaitPolicy)
    requested_at: datetime | None = None
    is_expired: bool = False
    kind: Literal["external"] = "external"


Wait: TypeAlias = ApprovalWait | FormWait | ExternalWait


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A person's yes to one request of a call; it counts for that fingerprint only (case 96)."""

    stage: ApprovalStage
    fingerprint: str
    actor_id: ActorId
    at: datetime


WAITING: Mapping[str, tuple[SuspensionType, Status]] = {
    "approval": ("TOOL_APPROVAL", Status.WAITING_FOR_APPROVAL),
    "form": ("USER_INPUT", Status.WAITING_FOR_USER),
    "external": ("EXTERNAL_TOOL", Status.WAITING_FOR_TOOL),
}
"""What a turn waits for, by the kind of wait."""


def expires_at(wait: Wait) -> datetime | None:
    """When an open wait's time is over; `None`: never, or it is not open."""
    if wait.requested_at is None or wait.policy.timeout is None:
        return None
    return wait.requested_at + wait.policy.timeout


def unheeded_end(wait: Wait) -> datetime | None:
    """`expires_at`, until the expiry has been dealt with."""
    return None if wait.is_expired else expires_at(wait)


def is_over(wait: Wait, *, at: datetime) -> bool:
    """Whether the wait's time is over: reached, as every limit is (seed rule AF-113)."""
    end = expires_at(wait)
    return end is not None and at >= end


def is_late(wait: Wait, *, at: datetime) -> bool:
    """Whether an answer comes too late, be the end of the time dealt with or not."""
    return wait.is_expired or is_over(wait, at=at)


def fingerprint_of(tool_name: str, content: str) -> str:
    """What binds an approval to what was shown: SHA-256 of the tool and the exact text."""
    return hashlib.sha256(f"{tool_name}\n{content}".encode()).hexdigest()


# --- What the shell finds out before a call may begin --------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class Allowed:
    """The call may begin. For an external tool, with the arguments to hand over."""

    arguments: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalNeeded:
    """Somebody has to approve first: the policy says so, or the tool, for a concrete request."""

    content: str
    fingerprint: str
    message: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class InputNeeded:
    """A form is to be filled in, or a question to be answered in words."""

    form_key: str | None
    schema: str | None
    message: str | None = None
    title: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Denied:
    """The policy forbids the call (T39)."""

    code: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Unusable:
    """The call cannot be carried out as it was asked for; its tool is not entered."""

    content: str
    """Why, written for the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotJudged:
    """The policy gave no answer it may give, or raised: the turn fails (T41)."""


Judgement: TypeAlias = Allowed | ApprovalNeeded | InputNeeded | Denied | Unusable | NotJudged


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedCall:
    call_id: CallId
    judgement: Judgement
