"""Every commit, lease action and tool has its fault points, so that no death is left untried.

What writes is told from the source: a method of the store is a read if its name stands here, and
everything else is a write until somebody says otherwise.
"""

import ast
from collections.abc import Iterator

from app.ports.fault_points import POINTS
from tests.house.source import Module, modules

READS = frozenset(
    {
        *("load", "find", "page", "history", "message_at", "final_texts", "failures"),
        *("interruptions", "journal", "look_up", "summary", "has_commanded", "messages"),
        *("versions", "turn_from", "newest", "pruned_through", "to_fold", "whole"),
        *("standing", "up_to", "behind", "by_agent", "waiting", "expired", "approvals"),
    }
)
"""Methods of stores that change nothing."""

STORES = frozenset(
    node.name
    for module in modules()
    for node in module.tree.body
    if module.is_in("app/store/") and isinstance(node, ast.ClassDef)
    if node.name.startswith("Postgres") and node.name != "PostgresWakeups"  # which writes nothing
)

Function = ast.FunctionDef | ast.AsyncFunctionDef


def stores() -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in modules():
        for node in module.tree.body if module.is_in("app/store/") else ():
            if isinstance(node, ast.ClassDef) and node.name in STORES:
                yield module, node


def test_every_write_of_a_store_has_a_fault_point_before_and_after_it() -> None:
    found = [
        f"{module.at(method)} {store.name}.{method.name}"
        for module, store in stores()
        for method in store.body
        if isinstance(method, ast.AsyncFunctionDef) and not method.name.startswith("_")
        if method.name not in READS and not is_around_something(method)
    ]

    assert found == []


def test_what_only_reads_has_none_so_that_the_list_of_reads_is_no_way_out() -> None:
    """A method under a name of a read that writes would be found by its statement."""
    found = [
        f"{module.at(method)} {store.name}.{method.name}"
        for module, store in stores()
        for method in store.body
        if isinstance(method, ast.AsyncFunctionDef) and method.name in READS
        if any("execute" in ast.unparse(call.func) for call in calls(method))
    ]

    assert found == []


def test_a_tool_is_entered_in_one_place_which_has_fault_points() -> None:
    """Whatever else runs a tool runs the guarded one, or is what stands around it."""
    entered = [
        (f"{module.path} {function.name}", is_around_something(function))
        for module in modules()
        if module.is_in("app/runner/", "app/services/", "app/workers/")
        for function in ast.walk(module.tree)
        if isinstance(function, Function)
        if any(is_of_a_tool(call) for call in calls(function))
    ]

    assert [where for where, has_points in entered if has_points] == ["app/runner/guarding.py run"]
    assert sorted(where for where, has_points in entered if not has_points) == BEHIND_THE_GUARD


BEHIND_THE_GUARD = [
    "app/runner/hooks.py go_on",
    "app/runner/hooks.py run",
    "app/runner/tool_calls.py _run",
]


def is_of_a_tool(call: ast.Call) -> bool:
    """`something.run(arguments, context)`, or what else a tool may be asked to do."""
    match call.func:
        case ast.Attribute(attr="run", value=ast.Attribute(attr="tool") | ast.Subscript()):
            return True
        case ast.Attribute(attr="probe"):
            return True
        case _:
            return False


def calls(function: Function) -> Iterator[ast.Call]:
    return (node for node in ast.walk(function) if isinstance(node, ast.Call))


def is_around_something(method: Function) -> bool:
    return any(
        isinstance(each, ast.Call) and ast.unparse(each.func) == "around"
        for each in method.decorator_list
    )


def test_every_label_in_the_source_is_the_name_of_a_place() -> None:
    labels = {
        argument.value
        for module in modules()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "around"
        for argument in node.args
        if isinstance(argument, ast.Constant) and isinstance(argument.value, str)
    }

    assert {f"{label}.{side}" for label in labels for side in ("before", "after")} <= set(POINTS)
    assert labels
