"""Histories that are too long, of turns that have said nothing yet: brought along and resumed."""

from dataclasses import replace
from typing import Any

from app.agents import HistoryWindow
from tests.e2e.conftest import Stage
from tests.e2e.test_compacting import AGENT, LONG, SUMMARY, Narrow
from tests.support.resuming import brought, resume
from tests.support.service import Service, running_service

HISTORY = [
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": LONG},
    {"role": "assistant", "content": "Yes."},
    {"role": "user", "content": "And now?"},
]


async def resumed(service: Service) -> dict[str, Any]:
    """The turn that goes on with the history, once it rests."""
    answer = await resume(service, await brought(service, HISTORY))
    assert answer.status_code == 202, answer.text
    turn: dict[str, Any] = answer.json()
    return turn


async def test_what_was_brought_along_is_summed_up_but_for_what_is_to_be_answered(
    stage: Stage,
) -> None:
    model = Narrow(1_200)
    async with running_service(stage.dsn, stage.settings, agents=[AGENT], models=model) as service:
        done = await resumed(service)

    assert (done["status"], done["finalOutput"]) == ("COMPLETED", "Yes.")
    assert len(model.summed_up) == 1
    assert SUMMARY in model.asked[-1][0]["content"]
    assert [message["content"] for message in model.asked[-1][1:]] == ["And now?"]


async def test_a_window_leaves_of_what_was_brought_along_what_is_to_be_answered(
    stage: Stage,
) -> None:
    model = Narrow(1_200)
    agent = replace(AGENT, history=HistoryWindow(turns=0))
    async with running_service(stage.dsn, stage.settings, agents=[agent], models=model) as service:
        done = await resumed(service)

    assert done["status"] == "COMPLETED"
    assert [[message["content"] for message in asked] for asked in model.asked] == [["And now?"]]
