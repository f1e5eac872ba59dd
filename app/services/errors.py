"""Refusals that concern more than one turn's state. They change nothing.

    Refused
    ├── TurnNotFound             none, or none that the caller may see
    ├── ConversationNotFound     likewise
    ├── NothingQueued            no turn of the conversation has a queue
    ├── Forbidden                the caller's role does not admit it
    ├── PayloadInvalid           the request says something that cannot be
    ├── AgentVersionUnavailable  the turn's agent cannot be loaded here
    └── Contended                it lost every race; the caller may try again

A class's docstring is its sentence in the problem document.
"""

from typing import ClassVar

from app.turn.state import Turn


class Refused(Exception):  # noqa: N818 - a refusal is an answer, not an error of ours
    """The request cannot be carried out."""

    code: ClassVar[str] = "refused"

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


class Forbidden(Refused):
    """Your role does not allow this."""

    code: ClassVar[str] = "forbidden"


class PayloadInvalid(Refused):
    """The request says something that cannot be."""

    code: ClassVar[str] = "payload_invalid"


class AgentVersionUnavailable(Refused):
    """The version of the agent that this turn is bound to cannot be loaded."""

    code: ClassVar[str] = "agent_version_unavailable"


class Contended(Refused):
    """Others changed the turn again and again; try once more."""

    code: ClassVar[str] = "version_conflict"
