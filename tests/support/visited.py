"""Which inputs were told in which states: every cell of the table, taken from the types."""

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import TypeAlias, get_args

from app.turn import inputs as i
from app.turn.state import Turn
from app.turn.states import State

Cell: TypeAlias = tuple[str, str]
"""A row and a column."""


def members(union: object) -> tuple[type, ...]:
    """The classes of a union."""
    return get_args(union)


STATES: Sequence[str] = [each.__name__ for each in members(State)]
REQUESTS: Sequence[str] = [each.__name__ for each in members(i.Request)]
REPORTS: Sequence[str] = [each.__name__ for each in members(i.Report)]


class Visited:
    """Counts what was told in which state."""

    def __init__(self) -> None:
        self.steps = 0
        """Of all runs that have ended."""
        self.cells: Counter[Cell] = Counter()

    def note(self, turn: Turn, given: i.Input) -> None:
        self.cells[type(turn.state).__name__, type(given).__name__] += 1

    def unmet(self) -> Sequence[str]:
        """The states in which nothing was told, and the inputs that were never told."""
        met = {name for cell in self.cells for name in cell}
        return [name for name in (*STATES, *REQUESTS, *REPORTS) if name not in met]

    def missing(self) -> str:
        """The table of what was never told where, as text; empty when nothing is missing."""
        return missing(self.cells, STATES, [*REQUESTS, *REPORTS])


def missing(cells: Counter[Cell], rows: Iterable[str], columns: Sequence[str]) -> str:
    """The rows in which a cell is empty, each with its empty columns; as text for a failure."""
    lines: list[str] = []
    for row in rows:
        empty = [column for column in columns if not cells[row, column]]
        lines += [f"{row}: {', '.join(empty)}"] if empty else []
    return "\n".join(lines)
