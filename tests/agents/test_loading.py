import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from app.agents import AgentDeclarationError, AgentError, AgentsNotLoadedError, load_declared
from app.tools import ToolDeclarationError

ONE = "from app.agents import Agent\none = Agent(id='one', instructions='')\n"


@pytest.fixture(autouse=True)
def in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    known = set(sys.modules)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    yield
    for name in set(sys.modules) - known:
        if name.partition(".")[0] in {"mycompany", "broken"}:
            del sys.modules[name]


def write(source: str, name: str = "agents") -> None:
    package = Path("mycompany")
    package.mkdir(exist_ok=True)
    (package / "__init__.py").touch()
    (package / f"{name}.py").write_text(source)


def ids(spec: str) -> list[str]:
    return [each.id for each in load_declared(spec)]


def refusal_of(spec: str) -> str:
    with pytest.raises(AgentsNotLoadedError) as refused:
        load_declared(spec)
    return str(refused.value)


def test_an_agent_a_list_of_agents_or_a_function_that_returns_one_is_loaded() -> None:
    write(ONE + "many = [one, Agent(id='two', instructions='')]\ndef made(): return many\n")

    assert ids("mycompany.agents:one") == ["one"]
    assert ids("mycompany.agents:many") == ["one", "two"]
    assert ids("mycompany.agents:made") == ["one", "two"]


def test_the_current_directory_comes_before_what_is_installed() -> None:
    write(ONE)

    load_declared("mycompany.agents:one")
    load_declared("mycompany.agents:one")

    assert sys.path[0] == str(Path.cwd())
    assert sys.path.count(str(Path.cwd())) == 1


@pytest.mark.parametrize("spec", ["", "mycompany.agents", "a:b:c", "a-b:c", ".a:b", "a:", ":b"])
def test_a_setting_of_another_form_is_refused_showing_the_form(spec: str) -> None:
    assert refusal_of(spec) == (
        f"TURNKEEPER_AGENTS={spec!r} is not of the form 'module:attribute', "
        "such as 'mycompany.agents:agents'"
    )


def test_a_module_that_is_not_there_is_named() -> None:
    assert "a module that is not there: no module 'mycompany'" in refusal_of("mycompany.agents:one")

    write(ONE)

    assert "not there: no module 'mycompany.other'" in refusal_of("mycompany.other:one")


def test_a_module_that_misses_another_is_not_taken_for_a_missing_one() -> None:
    write("import no_such_library\n")

    assert refusal_of("mycompany.agents:one").endswith(
        "names a module that needs another: no module 'no_such_library'"
    )


def test_a_name_that_cannot_be_imported_is_named() -> None:
    write("from app.agents import NoSuchThing\n")

    assert "cannot be imported: cannot import name 'NoSuchThing'" in refusal_of(
        "mycompany.agents:one"
    )


def test_an_attribute_that_is_not_there_is_named() -> None:
    write(ONE)

    assert "module 'mycompany.agents' has no 'agents'" in refusal_of("mycompany.agents:agents")


@pytest.mark.parametrize(
    ("value", "why"),
    [
        ("None", "is a value of type builtins.NoneType; make it an Agent, a list"),
        ("'one'", "is a value of type builtins.str"),
        ("Agent", "is the class app.agents.declaration.Agent"),
        ("[one, 'two']", "lists a value of type builtins.str; list values of app.agents.Agent"),
        ("[[one]]", "lists a value of type builtins.list"),
        ("[]", "names an empty list"),
        ("(lambda: None)", "is a value of type builtins.NoneType"),
    ],
)
def test_a_value_of_another_kind_is_refused_naming_its_kind(value: str, why: str) -> None:
    write(f"{ONE}agents = {value}\n")

    assert why in refusal_of("mycompany.agents:agents")


@pytest.mark.parametrize(
    ("source", "raised"),
    [
        ("from app.agents import Agent\nagents = Agent(id='', instructions='')\n", AgentError),
        ("from app.agents import Agent\nAgent(id='', instructions='')\n", AgentDeclarationError),
        ("from app.tools import tool\n@tool\ndef f(*a: int): ...\n", ToolDeclarationError),
        ("1 / 0\n", ZeroDivisionError),
        ("def agents(): raise LookupError\n", LookupError),
        ("def agents(:\n", SyntaxError),
    ],
)
def test_what_the_module_raises_passes_through_with_a_note_where_it_came_from(
    source: str, raised: type[Exception]
) -> None:
    write(source)

    with pytest.raises(raised) as passed:
        load_declared("mycompany.agents:agents")

    assert passed.value.__notes__ == [
        "(while loading the agents named by TURNKEEPER_AGENTS=mycompany.agents:agents)"
    ]
