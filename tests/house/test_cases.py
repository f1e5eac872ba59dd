"""The numbered cases of the turn's semantics: each is held by a test whose name carries it."""

import ast
from collections import defaultdict
from pathlib import Path

from tests.house.source import ROOT

CASES = frozenset(range(1, 149))
"""Of section 3, all of them."""
OF_NO_CALLER = frozenset({38, 44, 48, 49, 51, 52})
"""Between workers and the store, and of arithmetic: nobody calls."""
_OVER_HTTP = ("e2e", "http", "routers")


def folders_by_case() -> dict[int, set[str]]:
    """Where each case is held: the folders of tests/ by number."""
    found: dict[int, set[str]] = defaultdict(set)
    for path in (ROOT / "tests").rglob("test_*.py"):
        for name in _names(path):
            _, is_of_a_case, rest = name.partition("test_case_")
            number = rest.partition("_")[0]
            if is_of_a_case and number.isdigit():
                found[int(number)].add(path.relative_to(ROOT / "tests").parts[0])
    return found


def _names(path: Path) -> list[str]:
    tree = ast.parse(path.read_text())
    kinds = (ast.FunctionDef, ast.AsyncFunctionDef)
    return [node.name for node in tree.body if isinstance(node, kinds)]


def test_every_case_has_a_test_that_carries_its_number() -> None:
    assert sorted(CASES - folders_by_case().keys()) == []


def test_every_case_that_speaks_of_a_caller_is_held_over_http() -> None:
    found = folders_by_case()
    only_inside = [case for case in CASES if not found[case].intersection(_OVER_HTTP)]

    assert sorted(set(only_inside) - OF_NO_CALLER) == []
    assert OF_NO_CALLER <= CASES
