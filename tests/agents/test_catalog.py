from dataclasses import replace

import pytest

from app.agents import (
    Agent,
    AgentDeclarationError,
    AgentDeclaredTwice,
    AgentError,
    AgentVersionChanged,
    Catalog,
)
from app.ports import AgentCatalog
from app.turn.ids import AgentId, AgentVersion
from tests.agents.tools import a_tool

SUPPORT, OTHER, UNKNOWN = AgentId("support"), AgentId("other"), AgentId("unknown")
ONE, TWO = AgentVersion("1"), AgentVersion("2")

first = Agent(id="support", version="1", instructions="Help.", tools=[a_tool()])
second = Agent(id="support", version="2", instructions="Help well.")
other = Agent(id="other", instructions="Do something else.")


def instructions(catalog: AgentCatalog, agent_id: AgentId | None) -> str | None:
    loaded = catalog.current(agent_id)
    return None if loaded is None else loaded.agent.instructions


def test_the_version_listed_last_is_the_current_one() -> None:
    catalog = Catalog([first, other, second])

    assert instructions(catalog, SUPPORT) == "Help well."
    assert instructions(Catalog([second, first]), SUPPORT) == "Help."


def test_the_agent_listed_first_is_the_default_one() -> None:
    assert instructions(Catalog([first, other, second]), None) == "Help well."
    assert instructions(Catalog([other, first]), None) == "Do something else."


def test_all_shows_the_current_version_of_each_agent_the_default_one_first() -> None:
    shown = Catalog([other, first, second]).all()

    assert [(each.agent_id, each.version) for each in shown] == [
        ("other", other.exact_version),
        ("support", "2"),
    ]


def test_the_versions_are_all_that_can_be_loaded() -> None:
    catalog = Catalog([other, first, second])

    assert set(catalog.versions()) == set(catalog.declarations())
    assert all(catalog.load(*each) is not None for each in catalog.versions())


def test_an_old_version_is_loaded_with_its_own_tools() -> None:
    loaded = Catalog([first, second]).load(SUPPORT, ONE)

    assert loaded is not None
    assert loaded.agent.instructions == "Help."
    assert list(loaded.tools) == ["search"]


def test_a_version_that_is_not_listed_is_not_replaced_by_another() -> None:
    catalog = Catalog([second, other])

    assert catalog.load(SUPPORT, ONE) is None
    assert catalog.load(UNKNOWN, TWO) is None
    assert catalog.current(UNKNOWN) is None


def test_one_version_with_two_declarations_is_refused_naming_both() -> None:
    changed = replace(first, instructions="Help otherwise.")

    with pytest.raises(AgentDeclaredTwice) as refused:
        Catalog([first, changed])

    said = str(refused.value)
    assert "agent 'support' is declared twice as version '1'" in said
    assert first.declaration_hash in said
    assert changed.declaration_hash in said


def test_the_same_declaration_listed_twice_is_harmless() -> None:
    assert len(Catalog([first, replace(first)]).all()) == 1


def test_a_catalog_without_agents_is_refused() -> None:
    with pytest.raises(AgentDeclarationError, match="at least one agent"):
        Catalog([])


def test_the_declarations_are_the_hashes_of_all_versions() -> None:
    assert Catalog([first, second, other]).declarations() == {
        ("support", "1"): first.declaration_hash,
        ("support", "2"): second.declaration_hash,
        ("other", other.exact_version): other.declaration_hash,
    }


def test_a_version_whose_declaration_changed_since_an_earlier_start_is_refused() -> None:
    known = Catalog([first, other]).declarations()
    changed = Catalog([replace(first, instructions="Help otherwise.")])

    with pytest.raises(AgentVersionChanged) as refused:
        changed.require_unchanged(known)

    error = refused.value
    assert isinstance(error, AgentError)
    assert (error.agent_id, error.version) == ("support", "1")
    assert error.old_hash == first.declaration_hash
    assert error.new_hash == changed.declarations()[SUPPORT, ONE]
    assert "agent 'support' version '1' is already known with another declaration" in str(error)
    assert error.old_hash in str(error)
    assert error.new_hash in str(error)


def test_versions_new_gone_or_unchanged_are_no_reason_to_refuse() -> None:
    known = Catalog([first, other]).declarations()

    Catalog([first, second]).require_unchanged(known)
