"""The options that kinds of tools have in common, checked where a tool is declared."""

import inspect
import re
from collections.abc import Callable

from app.ports.wait_policy import fault_of
from app.tools.errors import refuse_tool
from app.turn.agent import WaitPolicy

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}", re.ASCII)


def name_of(function: Callable[..., object]) -> str:
    """The function's own name."""
    return str(getattr(function, "__name__", repr(function)))


def require_plain(name: str, function: Callable[..., object]) -> None:
    """Refuse what is no function that a tool can be made of, and a name it cannot have."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        refuse_tool(name, "is not made of a plain function; define it with 'def' or 'async def'")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        refuse_tool(name, "yields; return one value, such as a list, instead")
    if not _NAME.fullmatch(name):
        refuse_tool(name, "needs a name of 1 to 64 letters, digits, '_' and '-'; give it name=...")


def described(function: Callable[..., object], description: str | None) -> str:
    """The description given, or the first paragraph of the docstring."""
    if description is not None:
        return description
    text = inspect.getdoc(function) or ""
    return " ".join(text.split("\n\n")[0].split())


def flag(name: str, option: str, value: object) -> bool:
    """True or False, and nothing that is merely like one of them."""
    if not isinstance(value, bool):
        refuse_tool(name, f"{option} is True or False, not {value!r}")
    return value


def wait_policy(name: str, wait: WaitPolicy | None) -> WaitPolicy | None:
    """How long the tool's calls wait for somebody; `None`: as the agent says."""
    fault = None if wait is None else fault_of(wait)
    if fault is not None:
        refuse_tool(name, f"cannot wait so: {fault}")
    return wait
