"""From the setting `mycompany.agents:agents` to the agents it names."""

import importlib
import os
import re
import sys
from collections.abc import Iterable
from types import ModuleType
from typing import NoReturn, cast

from app.agents.declaration import Agent
from app.agents.errors import AgentsNotLoadedError

_NAME = r"[^\W\d]\w*"
_SPEC = re.compile(rf"({_NAME}(?:\.{_NAME})*):({_NAME})")


def load_declared(spec: str) -> tuple[Agent, ...]:
    """The agents that `module:attribute` names, in their order.

    The attribute is an `Agent`, a list of them, or a function without parameters that returns one
    of the two. The current directory is importable, before everything installed, from then on.
    What the module itself raises passes through, with a note that says where it came from.

    Raises:
        AgentsNotLoadedError: no such module or attribute, or no agents in it; says which.
        AgentDeclarationError: an agent in it is declared wrongly.
    """
    matched = _SPEC.fullmatch(spec)
    if matched is None:
        _refuse(spec, "is not of the form 'module:attribute', such as 'mycompany.agents:agents'")
    module_name, attribute = matched.groups()
    try:
        return _named(_imported(spec, module_name), attribute, spec)
    except Exception as error:
        error.add_note(f"(while loading the agents named by TURNKEEPER_AGENTS={spec})")
        raise


def _imported(spec: str, module_name: str) -> ModuleType:
    _make_current_directory_importable()
    try:
        return importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        if f"{module_name}.".startswith(f"{error.name}."):
            _refuse(spec, f"names a module that is not there: no module {error.name!r}", error)
        _refuse(spec, f"names a module that needs another: no module {error.name!r}", error)
    except ImportError as error:
        _refuse(spec, f"names a module that cannot be imported: {error}", error)


def _make_current_directory_importable() -> None:
    here = os.getcwd()  # noqa: PTH109 - sys.path holds strings
    if here not in sys.path:
        sys.path.insert(0, here)
    importlib.invalidate_caches()


def _named(module: ModuleType, attribute: str, spec: str) -> tuple[Agent, ...]:
    try:
        value: object = getattr(module, attribute)
    except AttributeError as error:
        _refuse(spec, f"names nothing: module {module.__name__!r} has no {attribute!r}", error)
    if callable(value) and not isinstance(value, type):
        value = value()
    return _agents(value, spec)


def _agents(value: object, spec: str) -> tuple[Agent, ...]:
    if isinstance(value, Agent):
        return (value,)
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        _refuse(spec, f"is {_kind(value)}; make it an Agent, a list of Agents, or a function")
    agents = tuple(_agent(each, spec) for each in cast("Iterable[object]", value))
    if not agents:
        _refuse(spec, "names an empty list; put an Agent in it, or unset TURNKEEPER_AGENTS")
    return agents


def _agent(value: object, spec: str) -> Agent:
    if not isinstance(value, Agent):
        _refuse(spec, f"lists {_kind(value)}; list values of app.agents.Agent only")
    return value


def _kind(value: object) -> str:
    kind = value if isinstance(value, type) else type(value)
    article = "the class" if isinstance(value, type) else "a value of type"
    return f"{article} {kind.__module__}.{kind.__qualname__}"


def _refuse(spec: str, why: str, cause: BaseException | None = None) -> NoReturn:
    msg = f"TURNKEEPER_AGENTS={spec!r} {why}"
    raise AgentsNotLoadedError(msg) from cause
