"""What a tool knows of the call it serves, and how it asks for an approval or a form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from app.ports.forms import FrozenForm
from app.ports.schema_check import problems_in
from app.ports.suspensions import NeedsApproval, NeedsInput, canonical_json
from app.turn.ids import CallId, TurnId
from app.turn.open_calls import Resume
from app.turn.waits import Approval, fingerprint_of


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """What a tool may know of the call it serves."""

    turn_id: TurnId
    call_id: CallId
    idempotency_key: str
    """The same over all attempts of this call."""
    attempt: int
    """From 1; raised each time the tool is entered."""
    is_replay: bool
    """Whether the tool has been entered before for this call (AF-78); after an approval or a form
    that the tool itself asked for, those attempts have done nothing."""
    previous_error: str | None = None
    """What the attempt before this one failed with, if it is known to have failed."""
    scheduled_at: datetime | None = None
    """When this attempt was due, if it follows one that failed; it may begin earlier or later."""
    tool_name: str = ""
    approvals: tuple[Approval, ...] = ()
    """What has been approved for this call, the oldest first; each counts for one request."""
    submissions: tuple[Mapping[str, Any], ...] = ()
    """What the user has filled in for this call, each time, the oldest first."""
    resume: Resume = "NONE"
    """What brought this attempt about: an approval, a form, or a retry after an error."""
    resume_count: int = 0
    """How often somebody's answer has brought the call back."""
    forms: Mapping[str, FrozenForm] = field(default_factory=dict[str, FrozenForm])
    """Of the agent, by key."""

    @property
    def data(self) -> dict[str, Any]:
        """All that the user has filled in for this call; of two values for a field the later."""
        return {name: value for each in self.submissions for name, value in each.items()}

    def is_approved(self, content: object) -> bool:
        """Whether this very content is approved for this call; the order of keys is no matter.

        The approval of the call as a whole, by the agent's policy, is another one (AF-96).

        Raises:
            ValueError: the content is no JSON, or has more than 64 KiB.
        """
        wanted = fingerprint_of(self.tool_name, canonical_json(content))
        return any(each.stage == "tool" and each.fingerprint == wanted for each in self.approvals)

    def require_approval(self, content: object, *, message: str | None = None) -> None:
        """Go on only if this very content is approved for this call (AF-92).

        Raises:
            NeedsApproval: it is not; let it pass, and the tool is entered again once it is.
            ValueError: the content is no JSON, or has more than 64 KiB.
        """
        if not self.is_approved(content):
            raise NeedsApproval(content, message=message)

    def require_input(self, form_key: str, *, message: str | None = None) -> dict[str, Any]:
        """All that the user has filled in for this call, once the form has what it needs.

        A form that needs nothing is shown if the user has filled in none for this call.

        Raises:
            NeedsInput: it has not; let it pass, and the tool is entered again with the values.
        """
        form = self.forms.get(form_key)
        if form is None or not self.submissions or self._is_missing_some(form):
            raise NeedsInput(form_key, message=message)
        return self.data

    def _is_missing_some(self, form: FrozenForm) -> bool:
        """Other forms of the same call may have brought fields that this one does not know."""
        surplus = {
            each.path[0]
            for each in problems_in(form.schema, self.data)
            if each.is_surplus and len(each.path) == 1
        }
        own = {name: value for name, value in self.data.items() if name not in surplus}
        return bool(problems_in(form.schema, own))
