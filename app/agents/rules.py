"""What a declaration must keep to; each refusal names the agent, the part and its range.

Values come in as `object`: a declaration is written by hand and may hold anything.
"""

import inspect
import json
import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import NoReturn, cast

from app.agents.errors import AgentDeclarationError
from app.agents.structured import NoOutputTypeError, OutputType, output_type
from app.ports import Hooks, Tool
from app.turn.agent import Limits, RetryPolicy, ToolSpec
from app.turn.interruption import PLACEHOLDERS, WORDS, unknown_placeholders

_NAME = re.compile(r"[A-Za-z0-9_.:-]{1,128}")
_MODEL = re.compile(r"[^\s\x00-\x1f\x7f\ud800-\udfff]{1,256}")
_LONGEST = timedelta(days=30)

_LONGEST_TEMPLATE = 2_000
_LONGEST_TITLE = 200
_INTERRUPTED = tuple(outcome.value for outcome in WORDS)

_MOST = {
    "max_iterations": 1_000_000,
    "max_steps": 1_000_000,
    "parallel_tools": 256,
}


_METHODS = ("run", "look_at")
_HOOKS = tuple(name for name in vars(Hooks) if not name.startswith("_"))


def check_name(part: str, value: object, where: str) -> None:
    if not (isinstance(value, str) and _NAME.fullmatch(value)):
        refuse(where, f"{part} must be 1 to 128 of A-Z, a-z, 0-9, '_', '.', ':', '-'", value)


def check_title(value: object, where: str) -> None:
    if value is None:
        return
    if not (isinstance(value, str) and value.strip() and len(value) <= _LONGEST_TITLE):
        refuse(where, f"title must be a text of 1 to {_LONGEST_TITLE} characters, or None", value)
    _check_storable("title", value, where)


def check_instructions(value: object, where: str) -> None:
    if not isinstance(value, str):
        refuse(where, "instructions must be a string", value)
    _check_storable("instructions", value, where)


def check_model(value: object, where: str) -> None:
    if value is not None and not is_model(value):
        refuse(where, "model must be 'provider/model' without spaces, or None", value)


def is_model(value: object) -> bool:
    """Whether it may be the name of a model."""
    return isinstance(value, str) and _MODEL.fullmatch(value) is not None


def checked_tools(value: object, where: str) -> tuple[Tool, ...]:
    """The tools as a tuple, each a tool and each name once."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        refuse(where, "tools must be a list of tools", value)
    tools = tuple(_tool(each, where) for each in cast("Iterable[object]", value))
    names = [each.spec.name for each in tools]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        refuse(where, f"two of its tools are named {twice!r}; give one another name")
    return tools


def check_retry(value: object, where: str) -> None:
    if not isinstance(value, RetryPolicy):
        refuse(where, "retry must be a RetryPolicy", value)
    check_whole("retry.max_retries", value.max_retries, 0, 1_000, where)
    _check_span("retry.initial_delay", value.initial_delay, where)
    _check_span("retry.max_delay", value.max_delay, where)
    _check_span("retry.max_retry_after", value.max_retry_after, where)
    _check_multiplier(value.multiplier, where)
    _check_jitter(value.jitter, where)
    if value.max_delay < value.initial_delay:
        refuse(where, "retry.max_delay must not be shorter than retry.initial_delay")


def checked_output(value: object, where: str) -> OutputType | None:
    """The output type, ready for use; `None` when none is declared."""
    if value is None:
        return None
    try:
        declared = output_type(value)
    except NoOutputTypeError as error:
        refuse(where, f"output must be a type that pydantic can validate ({error})", value)
    _check_storable("output", declared.schema, where)
    return declared


def check_on_model_failure(value: object, where: str) -> None:
    if value not in ("wait", "fail"):
        refuse(where, "on_model_failure must be 'wait' or 'fail'", value)


def check_on_crash(value: object, where: str) -> None:
    if value not in ("continue", "pause"):
        refuse(where, "on_crash must be 'continue' or 'pause'", value)


def check_limits(value: object, where: str) -> None:
    if not isinstance(value, Limits):
        refuse(where, "limits must be a Limits", value)
    for name, most in _MOST.items():
        check_whole(f"limits.{name}", getattr(value, name), 1, most, where)


def check_interruption_text(value: object, where: str) -> None:
    if not isinstance(value, Mapping):
        refuse(where, "interruption_text must map outcomes to templates", value)
    for outcome, template in cast("Mapping[object, object]", value).items():
        if outcome not in _INTERRUPTED:
            known = ", ".join(_INTERRUPTED)
            refuse(where, f"interruption_text has an outcome that is none of {known}", outcome)
        _check_template(f"interruption_text[{outcome!r}]", template, where)


def _check_template(part: str, value: object, where: str) -> None:
    if not (isinstance(value, str) and value.strip() and len(value) <= _LONGEST_TEMPLATE):
        refuse(where, f"{part} must be a text of 1 to {_LONGEST_TEMPLATE:,} characters", value)
    _check_storable(part, value, where)
    unknown = unknown_placeholders(value)
    if unknown:
        known = ", ".join(f"{{{name}}}" for name in sorted(PLACEHOLDERS))
        refuse(where, f"{part} may name {known}, not {{{unknown[0]}}}")


def check_hooks(value: object, where: str) -> None:
    if value is None:
        return
    if not isinstance(value, Hooks):
        refuse(where, "hooks must be an instance of a class made from Hooks", value)
    for name in _HOOKS:
        if not inspect.iscoroutinefunction(getattr(value, name)):
            refuse(where, f"hooks.{name} must be defined with 'async def'")


def _tool(value: object, where: str) -> Tool:
    spec = getattr(value, "spec", None)
    if not (
        isinstance(spec, ToolSpec) and all(callable(getattr(value, m, None)) for m in _METHODS)
    ):
        refuse(where, "tools must be made with @tool or @external_tool", value)
    try:
        json.loads(spec.parameters)
    except ValueError as error:
        refuse(where, f"the parameters of tool {spec.name!r} must be a JSON Schema ({error})")
    _check_storable(f"tool {spec.name!r}", spec.description + spec.parameters, where)
    return cast("Tool", value)


def _check_storable(part: str, text: str, where: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError as error:
        refuse(where, f"{part} must be text that UTF-8 can hold ({error.reason})")


def check_whole(part: str, value: object, least: int, most: int, where: str) -> None:
    if not (isinstance(value, int) and not isinstance(value, bool) and least <= value <= most):
        refuse(where, f"{part} must be a whole number from {least} to {most}", value)


def _check_span(part: str, value: object, where: str) -> None:
    if not (isinstance(value, timedelta) and timedelta(0) <= value <= _LONGEST):
        refuse(where, f"{part} must be a timedelta from 0 to {_LONGEST.days} days", value)


def _check_multiplier(value: object, where: str) -> None:
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not (number and 1 <= cast("float", value) <= 100):
        refuse(where, "retry.multiplier must be a number from 1 to 100", value)


def _check_jitter(value: object, where: str) -> None:
    if value not in ("full", "none"):
        refuse(where, "retry.jitter must be 'full' or 'none'", value)


_NOTHING = object()


def refuse(where: str, rule: str, value: object = _NOTHING) -> NoReturn:
    """Say of the declaration at `where` which rule it breaks.

    Raises:
        AgentDeclarationError: always.
    """
    msg = f"{where}: {rule}" + ("" if value is _NOTHING else f", not {value!r:.200}")
    raise AgentDeclarationError(msg)
