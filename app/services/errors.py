"""Refusals that concern more than one turn's state. They change nothing.

    Refused
    ├── TurnNotFound             none, or none that the caller may see
    ├── ConversationNotFound     likewise
    ├── NothingQueued            no turn of the conversation has a queue
    ├── MessageNotFound          the conversation has no such message of a user
    ├── NothingToResume          the history asks for no next step, or for none we can take
    ├── NoFailure                a failure is named, and nothing waits for one
    ├── Forbidden                the caller's role does not admit it
    ├── RequesterMayNotApprove   it is for somebody else to approve
    ├── PayloadInvalid           the request says something that cannot be
    │   └── FormInvalid          what was filled in does not fit the form
    ├── AgentVersionUnavailable  the turn's agent cannot be loaded here
    └── Contended                it lost every race; the caller may try again

A class's docstring is its sentence in the problem document.
"""

from collections.abc import Sequence
from typing import ClassVar

from app.ports.schema_check import FieldProblem
from app.turn.resume_point import Reason
from app.turn.state import Turn

_MOST_FIELDS = 50
_MOST_IN_DETAIL = 5
_LONGEST_POINTER = 200


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """The request cannot be carried out."""

    code: ClassVar[str] = "refused"
    reason: str | None = None
    """More than the code says, for programs; where there is more."""

    def __init__(self, detail: str, turn: Turn | None = None) -> None:
        super().__init__(detail)
        self.detail = detail
        self.turn = turn
        """As it is, where the refusal is about one that the caller may see."""


class TurnNotFound(Refused):
    """There is no such turn."""

    code: ClassVar[str] = "turn_not_found"


class ConversationNotFound(Refused):
    """There is no such conversation."""

    code: ClassVar[str] = "conversation_not_found"


class NothingQueued(Refused):
    """The queue holds no such message, or no longer."""

    code: ClassVar[str] = "queued_input_not_found"


class MessageNotFound(Refused):
    """There is no such message."""

    code: ClassVar[str] = "message_not_found"


class NothingToResume(Refused):
    """There is nothing to resume."""

    code: ClassVar[str] = "not_resumable"

    def __init__(self, reason: Reason, turn: Turn | None) -> None:
        super().__init__(f"it cannot be resumed, or need not be: {reason}", turn)
        self.reason = reason


class NoFailure(Refused):
    """The command names a failure that is not, or no longer, current."""

    code: ClassVar[str] = "correlation_mismatch"


class Forbidden(Refused):
    """Your role does not allow this."""

    code: ClassVar[str] = "forbidden"


class RequesterMayNotApprove(Refused):
    """Whoever asked for the turn may not approve its calls."""

    code: ClassVar[str] = "requester_may_not_approve"


class PayloadInvalid(Refused):
    """The request says something that cannot be."""

    code: ClassVar[str] = "payload_invalid"


class FormInvalid(PayloadInvalid):
    """What was filled in does not fit the form."""

    def __init__(self, turn: Turn, problems: Sequence[FieldProblem]) -> None:
        self.fields = [
            (f"/data{each.pointer}"[:_LONGEST_POINTER], each.problem)
            for each in problems[:_MOST_FIELDS]
        ]
        """Which fields do not fit, as JSON Pointers into the body, and why."""
        said = (f"{pointer}: {problem}" for pointer, problem in self.fields[:_MOST_IN_DETAIL])
        super().__init__("; ".join(said), turn)


class AgentVersionUnavailable(Refused):
    """The version of the agent that this turn is bound to cannot be loaded."""

    code: ClassVar[str] = "agent_version_unavailable"


class Contended(Refused):
    """Others changed the turn again and again; try once more."""

    code: ClassVar[str] = "version_conflict"
