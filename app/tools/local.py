"""Tools made from plain functions, async or not."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast, overload

from app.ports import ToolContext, ToolOutput
from app.tools.errors import InvalidArgumentsError, NotDone, refuse_tool
from app.tools.lost import OnUnknownName, Probe, after, asked, require_probe, unknown_rule
from app.tools.options import described, flag, name_of, require_plain, wait_policy
from app.tools.outputs import completed, failed, refused
from app.tools.parameters import Parameters, parameters_of
from app.tools.threads import Threads
from app.turn.agent import AfterInterrupt, Effect, OnError, RetryPolicy, ToolSpec, WaitPolicy
from app.turn.lost_calls import Finding
from app.turn.waits import Unusable

P = ParamSpec("P")
R = TypeVar("R")
EffectName: TypeAlias = Effect | Literal["reads", "idempotent", "writes"]
OnErrorName: TypeAlias = (
    OnError | Literal["to_model", "fail_turn", "retry_then_fail", "retry_then_model"]
)

MAX_THREADS = 64
"""Calls of tools that are not async in flight at once in this process; more wait."""

_THREADS = Threads(MAX_THREADS)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class LocalTool(Generic[P, R]):
    """A function that a model may ask for; implements `app.ports.Tool`."""

    spec: ToolSpec
    function: Callable[P, R]
    parameters: Parameters
    probe: Probe | None = None

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Call the function itself, as if it were no tool."""
        return self.function(*args, **kwargs)

    def look_at(self, arguments: str) -> Unusable | None:
        """Whether the JSON arguments fit; what is to be mended, if they do not."""
        return self.parameters.misfit(arguments)

    @property
    def is_stoppable(self) -> bool:
        """Whether a call that is cancelled has ended; a thread goes on to its own end."""
        return inspect.iscoroutinefunction(self.function)

    async def found(self, key: str) -> Finding:
        """What the probe says of the call with that key.

        Raises:
            TypeError: it is nothing that a probe may say.
        """
        return "unknown" if self.probe is None else await asked(self.probe, key)

    async def run(self, arguments: str, context: ToolContext) -> ToolOutput:
        """Validate the JSON arguments and do the work; only cancellation is raised."""
        try:
            given = self.parameters.read(arguments, context)
        except InvalidArgumentsError as error:
            return refused(str(error))
        call = partial(cast("Callable[..., Any]", self.function), **given)
        if inspect.iscoroutinefunction(self.function):
            return await _awaited(call, context)
        return await _in_a_thread(call, context)


@overload
def tool(function: Callable[P, R], /) -> LocalTool[P, R]: ...
@overload
def tool(
    *,
    effect: EffectName = ...,
    name: str | None = ...,
    description: str | None = ...,
    on_error: OnErrorName = ...,
    retry: RetryPolicy | None = ...,
    block_following: bool = ...,
    needs_approval: bool = ...,
    wait: WaitPolicy | None = ...,
    on_unknown: OnUnknownName | None = ...,
    after_interrupt: AfterInterrupt | None = ...,
    probe: Probe | None = ...,
) -> Callable[[Callable[P, R]], LocalTool[P, R]]: ...
def tool(  # noqa: PLR0913 - one for each option
    function: Callable[..., Any] | None = None,
    /,
    *,
    effect: EffectName = "writes",
    name: str | None = None,
    description: str | None = None,
    on_error: OnErrorName = "to_model",
    retry: RetryPolicy | None = None,
    block_following: bool = False,
    needs_approval: bool = False,
    wait: WaitPolicy | None = None,
    on_unknown: OnUnknownName | None = None,
    after_interrupt: AfterInterrupt | None = None,
    probe: Probe | None = None,
) -> object:
    """Make a function a tool: `@tool`, or `@tool(effect="reads")`.

    The name is the function's unless given: 1 to 64 of A-Z, a-z, 0-9, `_` and `-`. The description
    is the first paragraph of its docstring unless given. Without an effect it counts as `writes`.

    `on_error` says what an error of the tool does: it is told to the model, fails the turn, or the
    tool is tried again as `retry` says and only then does one of the two. A tool that writes is
    tried again only when it raised `NotDone`.

    With `block_following` the calls that the model asked for behind it begin when it has ended, and
    not at all when it ended with an error.

    With `needs_approval` somebody has to approve every call before the function is entered. `wait`
    says how long its calls wait, for that and for what the function asks for itself.

    `on_unknown` says what becomes of a call that was begun and whose end nobody knows, because its
    process died: `report`, `rerun`, `rerun_idempotent`, `interrupt` or `park`; without it the
    effect decides. `after_interrupt` says whether the calls behind it are given up with it. `probe`
    is asked first whether the call has taken effect: an async function of its idempotency key that
    returns `Done(result)`, raises or returns `NotDone`, or returns `None` where it does not know.

    Raises:
        ToolDeclarationError: the function cannot be a tool as it stands; says what to change.
    """

    def declare(declared: Callable[P, R]) -> LocalTool[P, R]:
        called = name or name_of(declared)
        require_plain(called, declared)
        parameters = parameters_of(declared, called)
        known_effect = _effect(called, effect)
        rule = unknown_rule(called, known_effect, on_unknown)
        spec = ToolSpec(
            name=called,
            description=described(declared, description),
            parameters=parameters.schema,
            effect=known_effect,
            on_error=_on_error(called, on_error, retry),
            retry=retry or RetryPolicy(),
            block_following=flag(called, "block_following", block_following),
            needs_approval=flag(called, "needs_approval", needs_approval),
            wait=wait_policy(called, wait),
            on_unknown=rule,
            after_interrupt=after(called, known_effect, rule, after_interrupt),
            has_probe=probe is not None,
        )
        require_probe(called, probe)
        return LocalTool(spec=spec, function=declared, parameters=parameters, probe=probe)

    return declare if function is None else declare(function)


async def _awaited(call: Callable[[], Awaitable[object]], context: ToolContext) -> ToolOutput:
    try:
        return completed(await call())
    except (KeyboardInterrupt, GeneratorExit):
        raise  # the process or the event loop ends; it is not the tool's doing
    except BaseException as error:
        if isinstance(error, asyncio.CancelledError) and _we_are_cancelled():
            raise
        return failed(error, context)


def _we_are_cancelled() -> bool:
    """Whether it is this call that was cancelled, not something within the tool."""
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


async def _in_a_thread(call: Callable[[], object], context: ToolContext) -> ToolOutput:
    try:
        return await _THREADS.run(partial(_called, call, context))
    except RuntimeError as error:
        return failed(NotDone(f"the service has no thread to run it in ({error})"), context)


def _called(call: Callable[[], object], context: ToolContext) -> ToolOutput:
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - nobody cancels or interrupts a thread
        return failed(error, context)
    if not inspect.isawaitable(result):
        return completed(result)
    if inspect.iscoroutine(result):
        result.close()
    to_await = "the tool returned something to await; declare it with 'async def'"
    return failed(NotDone(to_await), context)


def _effect(name: str, effect: str) -> Effect:
    try:
        return Effect(effect)
    except ValueError:
        known = ", ".join(repr(each.value) for each in Effect)
        refuse_tool(name, f"has the unknown effect {effect!r}; use one of {known}")


def _on_error(name: str, on_error: str, retry: RetryPolicy | None) -> OnError:
    try:
        known = OnError(on_error)
    except ValueError:
        kinds = ", ".join(repr(kind.value) for kind in OnError)
        refuse_tool(name, f"on_error is one of {kinds}, not {on_error!r}")
    retries = known in {OnError.RETRY_THEN_FAIL, OnError.RETRY_THEN_MODEL}
    if retries and (retry is None or retry.max_retries < 1):
        refuse_tool(name, f"on_error={known.value!r} needs retry=RetryPolicy(max_retries=...)")
    if retry is not None and not retries:
        refuse_tool(name, f"retry is of no use with on_error={known.value!r}")
    return known
