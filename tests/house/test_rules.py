"""The rules of the house that no linter knows; each says its reason."""

import ast
import re
from collections.abc import Iterator

from tests.house.source import Module, modules, nodes, texts

_SQL = re.compile(
    r"\b(SELECT\s.+\sFROM|INSERT INTO|DELETE FROM|UPDATE \w+ SET|CREATE (TABLE|DATABASE|INDEX)"
    r"|ALTER (TABLE|DATABASE)|DROP (TABLE|DATABASE)|FOR UPDATE|ON CONFLICT|pg_\w+\()",
    re.DOTALL,
)
_STATUSES = range(100, 600)
_SPEAKS_HTTP = ("app/http/", "app/routers/", "app/providers/", "app/console/")
_SERVES_A_PROVIDER = ("app/entrypoints/simulate.py",)
_BANNED_WORDS = re.compile(r"(?:^|_)(?:manager|helper|helpers|util|utils)(?:_|$)")
_BANNED_STARTS = re.compile(r"_*(?:data|info|process|handle)_")
_MOST_LINES = 400
_LONG_IS_FROM = 260
_FROZEN = {"frozen", "kw_only"}
_DOCUMENTED = ("app/turn/", "app/runner/", "app/ports")

Function = ast.FunctionDef | ast.AsyncFunctionDef


def test_sql_lives_in_the_store_so_that_tenants_and_versions_are_checked_in_one_place() -> None:
    found = [
        module.at(node)
        for module, node in nodes()
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        if not module.is_in("app/store/") and _SQL.search(node.value)
    ]

    assert found == []


def test_status_codes_are_chosen_at_the_edge_so_that_the_core_speaks_of_reasons() -> None:
    found = [
        module.at(node)
        for module, node in nodes()
        if not module.is_in(*_SPEAKS_HTTP, *_SERVES_A_PROVIDER) and _chooses_a_status(node)
    ]

    assert found == []


def _chooses_a_status(node: ast.AST) -> bool:
    match node:
        case ast.Name(id="HTTPStatus") | ast.Attribute(attr="status_code"):
            return True
        case ast.keyword(arg="status" | "status_code", value=ast.Constant(value=int(value))):
            return value in _STATUSES
        case ast.Call(func=ast.Name(id="HTTPException")):
            return True
        case _:
            return False


def test_every_instant_knows_its_zone_because_two_clocks_meet_in_the_database() -> None:
    found = [
        module.at(node)
        for module, node in nodes()
        if isinstance(node, ast.Call) and _is_naive(node)
    ]

    assert found == []


def _is_naive(call: ast.Call) -> bool:
    match call.func:
        case ast.Attribute(attr="utcnow" | "utcfromtimestamp" | "today"):
            return True
        case ast.Attribute(attr="now", value=ast.Name(id="datetime" | "dt")):
            return not (call.args or call.keywords)
        case ast.Attribute(attr="fromtimestamp", value=ast.Name(id="datetime" | "dt")):
            return len(call.args) + len(call.keywords) < 2
        case _:
            return False


def test_values_of_the_core_and_of_ports_cannot_change_so_that_nobody_copies_them() -> None:
    found = [
        module.at(node)
        for module, node in nodes()
        if module.is_in("app/turn/", "app/ports") and isinstance(node, ast.ClassDef)
        if _is_dataclass(node) and not _is_a_value(node)
    ]

    assert found == []


def _is_dataclass(node: ast.ClassDef) -> bool:
    return any("dataclass" in ast.unparse(decorator) for decorator in node.decorator_list)


def _is_a_value(node: ast.ClassDef) -> bool:
    return any(
        _FROZEN.issubset(keyword.arg for keyword in decorator.keywords if _is_true(keyword.value))
        for decorator in node.decorator_list
        if isinstance(decorator, ast.Call)
    )


def _is_true(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and node.value is True


def test_functions_others_call_say_what_is_true_afterwards_where_the_thinking_is() -> None:
    """Public functions, and public methods of public classes; a property's name says enough."""
    found = [
        f"{module.at(function)} {function.name}"
        for module in modules()
        if module.is_in(*_DOCUMENTED)
        for function in _public_functions(module.tree)
        if ast.get_docstring(function) is None
    ]

    assert found == []


def _public_functions(tree: ast.Module | ast.ClassDef) -> Iterator[Function]:
    for node in tree.body:
        match node:
            case ast.FunctionDef() | ast.AsyncFunctionDef():
                if not node.name.startswith("_") and not _is_property(node):
                    yield node
            case ast.ClassDef() if not node.name.startswith("_"):
                yield from _public_functions(node)
            case _:
                pass


def _is_property(function: Function) -> bool:
    return any("property" in ast.unparse(each) for each in function.decorator_list)


def test_names_say_what_a_thing_is_and_not_that_it_helps() -> None:
    found = [
        f"{module.at(node)} {name}"
        for module, node in nodes()
        for name in _names_given(node)
        if _BANNED_WORDS.search(_snake(name))
    ]
    found += [
        f"{module.at(node)} {node.name}"
        for module, node in nodes()
        if isinstance(node, Function | ast.ClassDef) and _BANNED_STARTS.match(node.name)
        if node.name not in _ADJECTIVES | _NAMED_BY_OTHERS
    ]
    found += [module.path for module in modules() if _BANNED_WORDS.search(_stem(module))]

    assert found == []


_ADJECTIVES = {"_data_folder", "_data_characters"}
"""Here `data` says which: the folder of the data, the characters of an event's data line."""

_NAMED_BY_OTHERS = {"handle_async_request"}
"""What a library calls is named as it wants."""


def _names_given(node: ast.AST) -> Iterator[str]:
    match node:
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            yield name
        case ast.arg(arg=name) | ast.Name(id=name, ctx=ast.Store()):
            yield name
        case _:
            pass


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()


def _stem(module: Module) -> str:
    return module.path.rpartition("/")[2].removesuffix(".py")


def test_no_file_is_so_long_that_nobody_reads_it_whole() -> None:
    assert [m.path for m in modules() if len(m.lines) > _MOST_LINES] == []


def test_long_files_stay_few() -> None:
    long = [m.path for m in modules() if len(m.lines) > _LONG_IS_FROM]

    assert len(long) <= len(modules()) // 10, long


def test_what_is_still_to_be_done_is_an_issue_and_no_note_in_the_code() -> None:
    notes = re.compile(rf"\b(?:{'TO' + 'DO'}|{'FIX' + 'ME'}|{'XX' + 'X'})\b")

    assert [path for path, text in texts() if notes.search(text)] == []


def test_no_file_knows_the_machine_it_was_written_on_or_how_the_work_was_shared_out() -> None:
    machine = ["/" + "work" + "/", "/" + "root" + "/", ".py" + "env", "/home/" + "user"]
    work = ["shared/" + name for name in ("ARCH", "STYLE", "spec", "design", "RELI", "corpus")]
    work += ["sub" + "agent", "sub-" + "agent", "the brief " + "says", "as the lead " + "asked"]
    private = re.compile("|".join(map(re.escape, machine + work)), re.IGNORECASE)

    assert [path for path, text in texts() if private.search(text)] == []
