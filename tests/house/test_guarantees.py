"""docs/guarantees.md names what there is: tests that show a promise, and options."""

import re
from dataclasses import fields
from inspect import signature

from app.agents import Agent
from app.tools import tool
from tests.house.source import ROOT

PAGE = (ROOT / "docs/guarantees.md").read_text()


def test_every_file_that_is_said_to_show_a_promise_is_there() -> None:
    named = re.findall(r"`((?:tests|docs|app)/[\w./-]+)`", PAGE)

    assert named
    assert [path for path in named if not (ROOT / path).exists()] == []


def test_every_option_of_the_table_is_one_of_an_agent_or_a_tool() -> None:
    known = {field.name for field in fields(Agent)} | set(signature(tool).parameters)
    named = set(re.findall(r"`([a-z_]+)=", PAGE))

    assert named
    assert named - known == set()
