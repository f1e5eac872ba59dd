"""Steps of the user's own around a turn, its model and its tools.

One `Hooks` is shared by all turns of its agent, so it keeps nothing of one turn in itself. Hooks
run in the worker's event loop. After a crash they may be run again: a hook is at least once, except
`after_run` and `on_error`, which tell of what is stored already and are at most once. These two run
when the turn has been let go, and are dropped when it is taken up again.
"""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TypeAlias

from app.ports.model import ModelRequest
from app.ports.tool_output import ToolOutput
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.ids import AgentId, AgentVersion, ConversationId, TenantId, TurnId
from app.turn.status import Status
from app.turn.transcript import ModelAnswer, ToolCall, UserMessage

GoOn: TypeAlias = Callable[[ToolCall], Awaitable[ToolOutput]]
"""Runs the tool with the call's arguments; raises `Ask`, `NeedsApproval` or `NeedsInput` when the
tool needs somebody, for the hook to see or to let pass."""
RunError: TypeAlias = ModelFailure | RequestRefused | BaseException
"""A failure of the model, its refusal of the request, or what our code or a hook raised."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One stretch of a turn: from where a worker takes it up to where it rests."""

    turn_id: TurnId
    conversation_id: ConversationId
    tenant_id: TenantId
    agent_id: AgentId
    agent_version: AgentVersion
    is_resume: bool
    """Whether the turn had been taken up before: it goes on, it does not begin."""
    status: Status
    """The turn's, when the hook is called."""


class Hooks:
    """What an agent does around its steps; override what you need.

    A hook may raise `Ask` to ask the user, however wrapped; the turn then waits where it stands.
    Any other exception fails the turn (`hook_failed`), except in `around_tool`, where it is the
    tool's error, and in `after_run` and `on_error`, where it is logged and nothing else.
    """

    async def before_run(self, run: Run) -> None:
        """A run begins; nothing of it is begun yet."""

    async def on_message(self, run: Run, message: UserMessage) -> None:
        """The run goes on with a user's message that no run has seen: behind `before_run`."""

    async def after_run(self, run: Run) -> None:
        """The run has come to rest, and that is stored."""

    async def on_error(self, run: Run, error: RunError) -> None:
        """The model failed or refused, or code of ours or a hook raised, and that is stored."""

    async def before_model(
        self, run: Run, request: ModelRequest
    ) -> ModelRequest | ModelAnswer | str | None:
        """The request to send instead, or an answer that takes the model's place, or `None`."""

    async def after_model(self, run: Run, answer: ModelAnswer) -> ModelAnswer | None:
        """The answer to take instead of the model's, or `None`.

        An agent that overrides this shows no text before this hook has seen all of it.
        """

    async def around_tool(self, run: Run, call: ToolCall, go_on: GoOn) -> ToolOutput:
        """The output of the call: `go_on`'s, another one, or one without going on."""
        del run
        return await go_on(call)
