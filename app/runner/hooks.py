"""An agent's hooks, called where they belong, and what comes of them as values.

A hook is foreign code: whatever it raises is caught here. An `Ask` becomes a question, wherever in
a chain of exceptions it is found (case 143); anything else becomes a fault of the agent's own.
"""

import json
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, TypeAlias, TypeVar, cast

import structlog

from app.ports import (
    Hooks,
    ModelAnswer,
    ModelRequest,
    Run,
    RunError,
    Tool,
    ToolContext,
    ToolOutput,
)
from app.ports.outputs import failed, output, refused, storable, suspension_of
from app.ports.suspensions import question_in
from app.runner.guarding import NotApprovedError
from app.runner.tasks import is_for_us
from app.turn.agent import ToolSpec
from app.turn.transcript import Outcome, ToolCall, UserMessage
from app.turn.waits import InputNeeded, Unusable

T = TypeVar("T")

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A hook asks the user."""

    question: str
    heard: int = 0
    """Messages it has been shown, the one it asks about included."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AskedBehind:
    """A hook asks the user behind an answer of the model."""

    question: str
    answer: ModelAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class Crashed:
    """A fault of our code or of a hook; it is in the log."""

    error: BaseException
    reason: Literal["internal_error", "hook_failed"]


Objection: TypeAlias = Asked | Crashed
"""Why a step does not simply go on."""


class RunHooks:
    """The hooks of one run; `run` says how the turn stands whenever one is called."""

    def __init__(self, hooks: Hooks, run: Callable[[], Run]) -> None:
        self._hooks = hooks
        self._run = run
        self.is_open = False
        """Whether `before_run` has been through."""

    @property
    def holds_answers_back(self) -> bool:
        """Whether no text may be seen before a hook has seen all of it."""
        return type(self._hooks).after_model is not Hooks.after_model

    async def open(self, unread: Sequence[UserMessage]) -> Objection | None:
        """The run begins, where it has not, and goes on with these messages."""
        if not self.is_open:
            begun = await self._caught("before_run", self._hooks.before_run(self._run()))
            if isinstance(begun, Asked | Crashed):
                return begun
            self.is_open = True
        for heard, message in enumerate(unread, start=1):
            said = await self._caught("on_message", self._hooks.on_message(self._run(), message))
            if isinstance(said, Asked):
                return replace(said, heard=heard)
            if isinstance(said, Crashed):
                return said
        return None

    async def before_model(self, request: ModelRequest) -> ModelRequest | ModelAnswer | Objection:
        """The request to send, or what takes the place of its answer."""
        said = await self._caught("before_model", self._hooks.before_model(self._run(), request))
        match said:
            case None:
                return request
            case ModelRequest() | Asked() | Crashed():
                return said
            case str():
                return ModelAnswer(text=storable(said))
            case _:
                return _checked(said, "before_model")

    async def after_model(self, answer: ModelAnswer) -> ModelAnswer | AskedBehind | Crashed:
        """The answer to take."""
        said = await self._caught("after_model", self._hooks.after_model(self._run(), answer))
        match said:
            case None:
                return answer
            case Asked(question=question):
                return AskedBehind(question=question, answer=answer)
            case Crashed():
                return said
            case _:
                return _checked(said, "after_model")

    def around(self, tool: Tool) -> Tool:
        """The tool with the hooks around it."""
        return _HookedTool(tool, self._hooks, self._run)

    async def after_run(self) -> None:
        """The run rests; what the hook raises is logged."""
        await _logged(self._hooks.after_run(self._run()), self._run(), "after_run")

    async def on_error(self, error: RunError) -> None:
        """The run met an error; what the hook raises is logged."""
        await _logged(self._hooks.on_error(self._run(), error), self._run(), "on_error")

    async def _caught(self, name: str, hook: Coroutine[Any, Any, T]) -> T | Objection:
        try:
            return await hook
        except BaseException as error:
            if is_for_us(error):
                raise
            question = question_in(error)
            if question is not None:
                return Asked(question=storable(question))
            _log.exception("hook_failed", turn_id=self._run().turn_id, hook=name)
            return Crashed(error=error, reason="hook_failed")


@dataclass(frozen=True, slots=True)
class _HookedTool:
    tool: Tool
    hooks: Hooks
    run_now: Callable[[], Run]

    @property
    def spec(self) -> ToolSpec:
        return self.tool.spec

    def look_at(self, arguments: str) -> InputNeeded | Unusable | None:
        return self.tool.look_at(arguments)

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        has_run = False

        async def go_on(call: ToolCall) -> ToolOutput:
            nonlocal has_run
            said = await self.tool.run(call.arguments, context)
            suspension = suspension_of(said)
            if suspension is not None:
                raise suspension  # for the hook to see, or to let pass
            has_run = said.outcome is not Outcome.NOT_STARTED
            return said

        call = ToolCall(call_id=context.call_id, tool_name=self.tool.spec.name, arguments=arguments)
        try:
            around = self.hooks.around_tool(self.run_now(), call, go_on)
            said = cast("object", await around)  # what a hook returns is not checked for it
        except BaseException as error:
            if is_for_us(error) or isinstance(error, NotApprovedError):
                raise
            said = failed(error, context)
        if not isinstance(said, ToolOutput):
            return failed(_wrong("around_tool", "a ToolOutput", said), context)
        if said.needs is not None and has_run:  # or what is done would be done again
            return refused("around_tool asks for an approval or a form behind the tool's end")
        if said.question is not None or said.needs is not None:
            return said
        return output(said.outcome, said.content)


async def _logged(hook: Coroutine[Any, Any, None], run: Run, name: str) -> None:
    try:
        await hook
    except BaseException as error:
        if is_for_us(error):
            raise
        _log.exception("hook_failed", turn_id=run.turn_id, hook=name)


def _checked(said: object, hook: str) -> ModelAnswer | Crashed:
    """An answer that a hook has made, as it can be stored and sent."""
    if not isinstance(said, ModelAnswer):
        wanted = "a ModelRequest, a ModelAnswer, a text" if hook == "before_model" else "an answer"
        return _crashed(_wrong(hook, wanted, said))
    if not all(_is_object(call.arguments) for call in said.tool_calls):
        return _crashed(_wrong(hook, "calls whose arguments are a JSON object", said.tool_calls))
    return replace(said, text=storable(said.text), reasoning=storable(said.reasoning))


def _is_object(text: str) -> bool:
    try:
        text.encode()
        return isinstance(json.loads(text), dict)
    except ValueError:  # Unicode errors are of that kind
        return False


def _wrong(hook: str, wanted: str, said: object) -> TypeError:
    return TypeError(f"{hook} returns {wanted} or None, not {type(said).__qualname__}")


def _crashed(error: TypeError) -> Crashed:
    _log.error("hook_failed", reason=str(error))
    return Crashed(error=error, reason="hook_failed")
