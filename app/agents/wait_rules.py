"""What a declaration must keep to where people and outside tools come in."""

import inspect
from collections.abc import Callable, Iterable
from functools import partial
from typing import cast, get_args

from app.agents.forms import Form
from app.agents.rules import refuse
from app.ports.wait_policy import fault_of
from app.turn.agent import OpenWaits


def checked_forms(value: object, where: str) -> tuple[Form, ...]:
    """The forms as a tuple, each key once."""
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        refuse(where, "forms must be a list of forms", value)
    forms = tuple(_form(each, where) for each in cast("Iterable[object]", value))
    keys = [each.key for each in forms]
    twice = next((key for key in keys if keys.count(key) > 1), None)
    if twice is not None:
        refuse(where, f"two of its forms have the key {twice!r}; give one another key")
    return forms


def check_policy(value: object, where: str) -> None:
    if value is not None and not _is_async(value):
        refuse(where, "policy must be a function defined with 'async def'", value)


def check_open_waits(value: object, where: str) -> None:
    if value not in get_args(OpenWaits):
        refuse(where, "open_waits must be 'sequential' or 'together'", value)


def check_flag(part: str, value: object, where: str) -> None:
    if not isinstance(value, bool):
        refuse(where, f"{part} must be True or False", value)


def check_wait(value: object, where: str) -> None:
    fault = fault_of(value)
    if fault is not None:
        refuse(where, fault)


def name_of_policy(policy: Callable[..., object]) -> str:
    """By which a version knows its policy: what it does is code, as what is inside a tool."""
    if isinstance(policy, partial):
        return name_of_policy(policy.func)
    named = policy if inspect.isroutine(policy) else type(policy)
    return f"{named.__module__}.{named.__qualname__}"


def _is_async(value: object) -> bool:
    """Whether calling it gives something to await: it is such a function, or an object like one."""
    called = getattr(type(value), "__call__", None)  # noqa: B004 - it is looked at, not for
    return inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(called)


def _form(value: object, where: str) -> Form:
    if not isinstance(value, Form):
        refuse(where, "forms must be values of app.agents.Form", value)
    return value
