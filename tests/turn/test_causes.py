"""What an exception came from: everything, outermost first, and a loop ends."""

from itertools import pairwise

from app.turn.causes import causes, innermost


class Wish(Exception):  # noqa: N818 - a kind to look for
    """What the tests look for."""


def raised(*chain: Exception) -> Exception:
    """The last one, raised from the one before it, and so on."""
    for inner, outer in pairwise(chain):
        outer.__cause__ = inner
    return chain[-1]


def test_case_21_what_was_wrapped_twice_is_found() -> None:
    wish = Wish("in")

    assert innermost(raised(wish, ValueError("mid"), RuntimeError("out")), Wish) is wish


def test_case_21_a_cycle_ends() -> None:
    first, second = ValueError("1"), ValueError("2")
    first.__cause__, second.__context__ = second, first

    assert list(causes(first)) == [first, second]
    assert innermost(first, Wish) is None


def test_case_22_of_two_the_inner_one_wins() -> None:
    inner, outer = Wish("inner"), Wish("outer")

    assert innermost(raised(inner, RuntimeError(), outer), Wish) is inner


def test_what_was_being_handled_counts_whatever_it_was_raised_from() -> None:
    handled, raised_from_none = Wish(), RuntimeError()
    raised_from_none.__context__ = handled
    raised_from_none.__suppress_context__ = True

    assert innermost(raised_from_none, Wish) is handled


def test_members_of_a_group_are_looked_through() -> None:
    wish = Wish()
    group = ExceptionGroup("tasks", [ValueError(), raised(wish, RuntimeError())])

    assert innermost(raised(group, RuntimeError()), Wish) is wish
