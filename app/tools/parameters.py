"""A function's signature as the arguments a model may give: their JSON Schema and their check.

The model's fields carry names of their own (`p0`, `p1`, ...) and the parameters' names as
aliases, so that a parameter may be called `schema` or `copy` without meeting pydantic's.
"""

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from inspect import Parameter
from typing import Annotated, Any, NoReturn, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import ErrorDetails

from app.ports import ToolContext
from app.ports.json_schema import schema_of
from app.tools.errors import InvalidArgumentsError, ToolDeclarationError, refuse_tool
from app.tools.outputs import said_by
from app.turn.waits import Unusable

_UNUSABLE = {
    Parameter.POSITIONAL_ONLY: "is positional-only; remove the '/' behind it",
    Parameter.VAR_POSITIONAL: "is a star argument; take one parameter annotated as a list instead",
    Parameter.VAR_KEYWORD: "is a double-star argument; name each argument, with its type",
}

_CONFIG = ConfigDict(extra="forbid", allow_inf_nan=False)
_ANNOTATED: Any = Annotated


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameters:
    """What a tool's function takes."""

    model: type[BaseModel]
    names: Mapping[str, str]
    """The function's parameter behind each field of the model."""
    context: str | None
    """The parameter that receives the `ToolContext`, if there is one."""
    schema: str
    """The JSON Schema of the arguments, as JSON text; the same in every process."""

    def read(self, arguments: str, context: ToolContext) -> dict[str, object]:
        """The keyword arguments to call the function with.

        Raises:
            InvalidArgumentsError: they are no JSON object, or do not fit; says what to mend.
        """
        _require_object(arguments)
        values = self._validated(arguments)
        given = {name: getattr(values, field) for field, name in self.names.items()}
        return given if self.context is None else {**given, self.context: context}

    def misfit(self, arguments: str) -> Unusable | None:
        """What is to be mended of arguments that do not fit."""
        try:
            _require_object(arguments)
            self._validated(arguments)
        except InvalidArgumentsError as error:
            return Unusable(content=str(error))
        return None

    def _validated(self, arguments: str) -> BaseModel:
        try:
            return self.model.model_validate_json(arguments)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False, include_input=False)
            _reject("".join(map(_line, problems)))
        except Exception as error:  # noqa: BLE001 - a validator of the tool's own raises anything
            _reject(f" {said_by(error)}")


def parameters_of(function: Callable[..., object], tool_name: str) -> Parameters:
    """Read a function's signature.

    Raises:
        ToolDeclarationError: a parameter that no JSON object can fill.
    """
    hints = _hints(function, tool_name)
    usable = [_usable(each, tool_name) for each in inspect.signature(function).parameters.values()]
    contexts = [each.name for each in usable if _is_context(hints[each.name])]
    if len(contexts) > 1:
        refuse_tool(tool_name, f"takes the context twice, as {contexts!r}; keep one")
    arguments = [each for each in usable if each.name not in contexts]
    names = {f"p{index}": each.name for index, each in enumerate(arguments)}
    model = _model(tool_name, names, arguments, hints)
    return Parameters(
        model=model,
        names=names,
        context=next(iter(contexts), None),
        schema=_schema(tool_name, model),
    )


def _hints(function: Callable[..., object], tool_name: str) -> Mapping[str, object]:
    try:
        return get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        refuse_tool(
            tool_name,
            f"has an annotation that cannot be read ({said_by(error)}); "
            "import its types at run time, at the top of the module",
        )


def _usable(parameter: Parameter, tool_name: str) -> Parameter:
    if parameter.kind in _UNUSABLE:
        refuse_tool(
            tool_name, f"has parameter {parameter.name!r}, which {_UNUSABLE[parameter.kind]}"
        )
    if parameter.annotation is Parameter.empty:
        refuse_tool(tool_name, f"has parameter {parameter.name!r} without a type; annotate it")
    return parameter


def _is_context(hint: object) -> bool:
    if get_origin(hint) is Annotated:
        return _is_context(get_args(hint)[0])
    return hint is ToolContext or ToolContext in get_args(hint)


def _model(
    tool_name: str,
    names: Mapping[str, str],
    arguments: Sequence[Parameter],
    hints: Mapping[str, object],
) -> type[BaseModel]:
    fields: dict[str, Any] = {
        field: (_called(each.name, hints[each.name]), _default(each))
        for field, each in zip(names, arguments, strict=True)
    }
    try:
        return create_model("Arguments", __config__=_CONFIG, **fields)
    except (PydanticUserError, PydanticUndefinedAnnotation) as error:
        _refuse_type(tool_name, error)


def _called(name: str, hint: object) -> object:
    """The type with the parameter's name as alias, where it does not bring an alias of its own."""
    inner, *more = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    return _ANNOTATED[(inner, Field(alias=name), *more)]


def _default(parameter: Parameter) -> object:
    return ... if parameter.default is Parameter.empty else parameter.default


def _schema(tool_name: str, model: type[BaseModel]) -> str:
    try:
        return schema_of(TypeAdapter(model))
    except PydanticUserError as error:
        _refuse_type(tool_name, error)


def _require_object(arguments: str) -> None:
    try:
        value = json.loads(arguments, object_pairs_hook=_unique, parse_constant=_no_constant)
    except (ValueError, RecursionError) as error:
        _reject(f" not JSON: {error}")
    if not isinstance(value, dict):
        _reject(" not a JSON object")


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found = dict(pairs)
    if len(found) < len(pairs):
        msg = "an object names one key twice"
        raise ValueError(msg)
    return found


def _no_constant(name: str) -> NoReturn:
    msg = f"{name} is no JSON"
    raise ValueError(msg)


def _line(problem: ErrorDetails) -> str:
    place = ".".join(map(str, problem["loc"])) or "arguments"
    return f"\n- {place}: {problem['msg']}"


def _reject(problems: str) -> NoReturn:
    msg = f"Invalid arguments, the tool was not run:{problems}"
    raise InvalidArgumentsError(msg)


def _refuse_type(tool_name: str, error: Exception) -> NoReturn:
    reason = str(error).splitlines()[0]
    msg = (
        f"tool {tool_name!r} has a parameter whose type no JSON describes; "
        f"use one that pydantic can validate ({reason})"
    )
    raise ToolDeclarationError(msg) from error
