"""What an exception came from.

Code around ours wraps exceptions: once, twice, in a group of tasks. What was raised inside says
more than what it was wrapped in, so whoever looks for a kind looks through all of it, and the inner
one wins (cases 21, 22, 143).
"""

from collections.abc import Iterator
from typing import TypeVar, cast

E = TypeVar("E", bound=BaseException)


def causes(error: BaseException) -> Iterator[BaseException]:
    """The exception and all it came from, outermost first, each once: a loop among them ends.

    That is its cause, what was being handled when it was raised (even when it was raised `from`
    something else), and the members of a group.
    """
    seen: set[int] = set()
    level = [error]
    while level:
        fresh = {id(one): one for one in level if id(one) not in seen}
        seen.update(fresh)
        yield from fresh.values()
        level = [inner for one in fresh.values() for inner in _directly_inside(one)]


def innermost(error: BaseException, kind: type[E]) -> E | None:
    """Of the exceptions of that kind that `error` came from, itself included, the deepest."""
    found: E | None = None
    for one in causes(error):
        if isinstance(one, kind):
            found = one
    return found


def _directly_inside(error: BaseException) -> Iterator[BaseException]:
    if error.__cause__ is not None:
        yield error.__cause__
    if error.__context__ is not None:
        yield error.__context__
    if isinstance(error, BaseExceptionGroup):
        yield from cast("BaseExceptionGroup[BaseException]", error).exceptions
