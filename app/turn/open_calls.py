"""A tool call that the model has asked for and that nobody has answered yet."""

from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from app.turn.agent import Effect
from app.turn.ids import CallId
from app.turn.waits import Approval, ApprovalWait, ExternalWait, Wait

Resume: TypeAlias = Literal["NONE", "APPROVAL", "FORM_INPUT", "RETRY"]
"""`RETRY`: an attempt that is known to have failed. `NONE`: neither that nor an answer."""


@dataclass(frozen=True, kw_only=True)
class OpenCall:
    """A tool call that has no result yet."""

    call_id: CallId
    tool_name: str
    effect: Effect
    position: int
    """Where its result belongs in the transcript."""
    attempt: int = 0
    """Times the tool has been entered; 0 means it has certainly not been."""
    in_flight: bool = False
    failures: int = 0
    """Attempts that are known to have failed; each is to be followed by another."""
    retries: int = 0
    """Automatic retries since the last command; one that wants the call now begins anew (T66)."""
    retry_at: datetime | None = None
    """When the next attempt is due, after a failed one."""
    previous_error: str | None = None
    scheduled_at: datetime | None = None
    """When the attempt after a failed one was to begin; kept when it does."""
    wait: Wait | None = None
    """Whom it waits for, if for anybody."""
    asks: int = 0
    """Attempts that ended by asking for an approval or a form: they have done nothing."""
    undone: int = 0
    """Attempts of which a probe or a person has said that they have done nothing."""
    approvals: tuple[Approval, ...] = ()
    data: tuple[str, ...] = ()
    """What was filled in for it so far: a JSON object as text for each time, oldest first. Merged,
    the later values win."""
    resume: Resume = "NONE"
    """What its next attempt, or the one in flight, follows (seed rule AF-77)."""
    resumes: int = 0
    """Times somebody's answer has brought it back."""

    @property
    def is_waiting(self) -> bool:
        """Whether its wait is open: somebody may answer it now."""
        return self.wait is not None and self.wait.requested_at is not None

    @property
    def is_with_others(self) -> bool:
        """Whether an outside tool has been asked to do it."""
        return isinstance(self.wait, ExternalWait) and self.is_waiting

    @property
    def may_have_run(self) -> bool:
        """Whether there is an attempt whose end is not known."""
        return self.attempt > self.failures + self.asks + self.undone

    @property
    def is_parked(self) -> bool:
        """Whether a person is to say what became of an attempt whose end nobody knows."""
        return isinstance(self.wait, ApprovalWait) and self.wait.stage == "recovery"

    @property
    def may_have_had_effect(self) -> bool:
        """Whether nobody can say that nothing was done.

        A tool that writes is tried again only when it said so itself, and one that reads does
        nothing; but the error of an idempotent one does not show how far it came. Nobody knows how
        far somebody outside has come.
        """
        return (
            self.is_with_others
            or self.may_have_run
            or (self.failures > 0 and self.effect is Effect.IDEMPOTENT)
        )
