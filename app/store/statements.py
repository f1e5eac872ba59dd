"""Statements with named arguments, for asyncpg, which knows numbered ones only.

sqlparams does the numbering, once for each statement; what runs is plain SQL (ADR 0038).
"""

from collections.abc import Mapping
from typing import Any

from sqlparams import SQLParams

_NUMBERED = SQLParams("named", "numeric_dollar", expand_tuples=False)


class Statement:
    """SQL whose arguments are written `:name`, and cast by `CAST(:name AS type)` where needed."""

    def __init__(self, sql: str) -> None:
        numbered, names = _NUMBERED.format(sql, _Names())
        self.sql: str = numbered
        self._names = tuple(names)

    def arguments(self, values: Mapping[str, object]) -> tuple[object, ...]:
        """The values in the order of their numbers.

        Raises:
            KeyError: an argument of the statement has no value.
        """
        return tuple([values[name] for name in self._names])


class _Names(dict[str | int, Any]):
    """Every name's value is the name itself, so that the arguments come back by name."""

    def __missing__(self, name: str) -> str:
        return name
