"""Tools that somebody outside carries out: declared here, done elsewhere.

A call of one is listed (`GET /external-calls`) until its result is given to its turn, under the
idempotency key `turnId:callId`. The function that declares it is a signature and a docstring; its
body is never run.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias, get_args, overload

from app.ports import NotLocalError, ToolContext
from app.tools.errors import refuse_tool
from app.tools.options import described, flag, name_of, require_plain, wait_policy
from app.tools.parameters import Parameters, parameters_of
from app.turn.agent import ToolSpec, WaitPolicy
from app.turn.waits import Unusable

OversizeName: TypeAlias = Literal["refuse", "truncate"]

MAX_RESULT_BYTES = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ExternalTool:
    """Something that a model may ask for and somebody outside does; implements `app.ports.Tool`."""

    spec: ToolSpec
    parameters: Parameters

    def look_at(self, arguments: str) -> Unusable | None:
        """Whether the JSON arguments fit; what is to be mended, if they do not."""
        return self.parameters.misfit(arguments)

    async def run(self, arguments: str, context: ToolContext) -> NoReturn:
        """It is not run here.

        Raises:
            NotLocalError: always.
        """
        del arguments, context
        wrong = f"tool {self.spec.name!r} is carried out by somebody outside"
        raise NotLocalError(wrong)


@overload
def external_tool(function: Callable[..., Any], /) -> ExternalTool: ...
@overload
def external_tool(
    *,
    name: str | None = ...,
    description: str | None = ...,
    block_following: bool = ...,
    needs_approval: bool = ...,
    wait: WaitPolicy | None = ...,
    max_result_bytes: int = ...,
    on_oversize: OversizeName = ...,
) -> Callable[[Callable[..., Any]], ExternalTool]: ...
def external_tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    block_following: bool = False,
    needs_approval: bool = False,
    wait: WaitPolicy | None = None,
    max_result_bytes: int = 64 * 1024,
    on_oversize: OversizeName = "refuse",
) -> object:
    """Declare a tool that is carried out outside: `@external_tool`, or with options.

    Name, description, `block_following` and `needs_approval` are as for `@tool`; `wait` says how
    long a call waits for an approval, and then for its result. A result longer than
    `max_result_bytes` (1 to 4 MiB, in UTF-8) is refused, so that a shorter one can be sent, or cut
    with a mark (`truncate`).

    Raises:
        ToolDeclarationError: the function cannot be a tool as it stands; says what to change.
    """

    def declare(declared: Callable[..., Any]) -> ExternalTool:
        called = name or name_of(declared)
        require_plain(called, declared)
        parameters = parameters_of(declared, called)
        if parameters.context is not None:
            refuse_tool(called, "takes a ToolContext, which nobody outside can be given; drop it")
        spec = ToolSpec(
            name=called,
            description=described(declared, description),
            parameters=parameters.schema,
            block_following=flag(called, "block_following", block_following),
            kind="external",
            needs_approval=flag(called, "needs_approval", needs_approval),
            wait=wait_policy(called, wait),
            max_result_bytes=_bytes(called, max_result_bytes),
            on_oversize=_oversize(called, on_oversize),
        )
        return ExternalTool(spec=spec, parameters=parameters)

    return declare if function is None else declare(function)


def _bytes(name: str, value: int) -> int:
    is_whole = isinstance(value, int) and not isinstance(value, bool)  # type: ignore[redundant-expr]
    if not (is_whole and 1 <= value <= MAX_RESULT_BYTES):
        most = f"{MAX_RESULT_BYTES:,}"
        refuse_tool(name, f"max_result_bytes is a number from 1 to {most}, not {value!r:.100}")
    return value


def _oversize(name: str, value: OversizeName) -> OversizeName:
    if value not in get_args(OversizeName):
        refuse_tool(name, f"on_oversize is 'refuse' or 'truncate', not {value!r:.100}")
    return value
