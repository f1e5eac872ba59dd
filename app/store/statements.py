"""Statements with named arguments, for asyncpg, which knows numbered ones only.

SQLAlchemy does the numbering, once, when the module is imported; what runs is plain SQL.
"""

from collections.abc import Mapping

from sqlalchemy import text
from sqlalchemy.dialects import registry

_DIALECT = registry.load("postgresql.asyncpg")()


class Statement:
    """SQL whose arguments are written `:name`, and cast by `CAST(:name AS type)` where needed."""

    def __init__(self, sql: str) -> None:
        compiled = text(sql).compile(dialect=_DIALECT)
        self.sql = str(compiled)
        self._names = tuple(compiled.positiontup or ())

    def arguments(self, values: Mapping[str, object]) -> tuple[object, ...]:
        """The values in the order of their numbers.

        Raises:
            KeyError: an argument of the statement has no value.
        """
        return tuple([values[name] for name in self._names])
