"""What a declaration must keep to about its models, and what goes into their requests."""

from collections.abc import Iterable
from dataclasses import fields, replace
from typing import cast, get_args

from app.agents.rules import check_model, check_whole, is_model, refuse
from app.turn.agent import Changeable, HistoryWindow, OnContextFull, Who
from app.turn.failures import FailureType

FALL_BACK_ON = frozenset(FailureType) - {FailureType.TOKEN_LIMIT_EXCEEDED}
"""Unless an agent says it: all that another model may not have."""
_MOST_MODELS = 10
_MOST = 10**9
_LEAST = {"turns": 0, "messages": 1, "tokens": 1}
_NONE_IS_WRONG = object()
_TYPES = ", ".join(FailureType)


def checked_models(model: object, models: object, where: str) -> tuple[str, ...]:
    """The agent's models in their order; empty where the settings name one."""
    check_model(model, where)
    named = _names("models", models, where)
    if not named:
        return () if model is None else (cast("str", model),)
    if model is not None:
        refuse(where, "model and models exclude each other; name all of them in models", model)
    return named


def checked_fallback_on(
    value: object, models: tuple[str, ...], where: str
) -> frozenset[FailureType] | None:
    """The types for which the next model is asked, as they are declared."""
    if value is None:
        return None
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        refuse(where, f"fallback_on must be a set of {_TYPES}", value)
    given = tuple(cast("Iterable[object]", value))
    unknown = next((each for each in given if each not in tuple(FailureType)), None)
    if unknown is not None:
        refuse(where, f"fallback_on has a type that is none of {_TYPES}", unknown)
    if len(models) < 2:
        refuse(where, "fallback_on needs more than one of models")
    return frozenset(FailureType(str(each)) for each in given)


def check_on_context_full(value: object, where: str) -> None:
    if value not in get_args(OnContextFull):
        known = ", ".join(repr(each) for each in get_args(OnContextFull))
        refuse(where, f"on_context_full must be one of {known}", value)


def check_history(value: object, where: str) -> None:
    if not isinstance(value, HistoryWindow):
        refuse(where, "history must be a HistoryWindow", value)
    for name, least in _LEAST.items():
        number: object = getattr(value, name)
        if number is not None:
            check_whole(f"history.{name}", number, least, _MOST, where)


def checked_changes(value: object, where: str) -> Changeable:
    """Who may change what, its models as a tuple."""
    if not isinstance(value, Changeable):
        refuse(where, "changes must be a Changeable", value)
    for each in fields(value):
        who: object = getattr(value, each.name)
        known = ("operator", "nobody") if each.name == "limits" else get_args(Who)
        if each.name != "models" and who not in known:
            named = ", ".join(repr(one) for one in known)
            refuse(where, f"changes.{each.name} must be one of {named}", who)
    if value.models is None:
        return value
    return replace(value, models=_names("changes.models", value.models, where))


def _names(part: str, value: object, where: str) -> tuple[str, ...]:
    if isinstance(value, (str, bytes)) or not isinstance(value, Iterable):
        refuse(where, f"{part} must be a list of 'provider/model'", value)
    names = tuple(cast("Iterable[object]", value))
    if len(names) > _MOST_MODELS:
        refuse(where, f"{part} must name at most {_MOST_MODELS} models")
    wrong = next((name for name in names if not is_model(name)), _NONE_IS_WRONG)
    if wrong is not _NONE_IS_WRONG:
        refuse(where, f"{part} must name models as 'provider/model', without spaces", wrong)
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        refuse(where, f"{part} names a model twice", twice)
    return cast("tuple[str, ...]", names)
