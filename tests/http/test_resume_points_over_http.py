"""The resume point of every state, over HTTP and the real store: what the core alone says of it."""

from typing import Any

import pytest

from app.http.problems import action_json
from app.turn.actions import actions
from app.turn.resume_point import Resumable, ResumePoint, of_active, of_ended
from tests.support.told_over_http import ToldOverHttp
from tests.support.transitions import STATES
from tests.support.turns import Told, an_agent
from tests.support.world import World
from tests.support.world import here as here  # noqa: PLC0414 - a fixture


@pytest.mark.parametrize("state", STATES)
def test_case_81_asking_tells_what_the_core_says_and_changes_nothing(
    here: World, state: str
) -> None:
    told = ToldOverHttp.replayed(STATES[state](), here)
    if told.turn.is_terminal and told.turn.queue:
        told = told.succeeded()  # which is at work in the conversation now
    here.now[0] = told.at
    identity = told.turn.identity
    path = f"/conversations/{identity.conversation_id}/resume-point"

    answer = here.do(here.client.get(path)).json()

    assert _told(answer) == _expected(told, _point_of(told))
    assert here.do(here.services.turns.load(identity.turn_id)) == told.turn


def _point_of(told: Told) -> ResumePoint:
    if not told.turn.is_terminal:
        return of_active(told.turn, an_agent(), is_lost=False)
    return of_ended(told.turn, [told.transcript[place] for place in sorted(told.transcript)])


def _expected(told: Told, point: ResumePoint) -> dict[str, Any]:
    found: dict[str, Any]
    if isinstance(point, Resumable):
        calls = [
            {"callId": call.call_id, "toolName": call.tool_name, "rule": call.rule}
            for call in point.unanswered
        ]
        found = {"kind": point.kind, "unansweredToolCalls": calls, "failureId": point.failure_id}
    else:
        found = {"reason": point.reason}
    is_over = told.turn.is_terminal
    if not is_over and not isinstance(point, Resumable):
        offered = [action_json(action) for action in actions(told.turn, at=told.at)]
        found |= {"status": told.turn.status, "actions": offered}
    return {
        "resumable": isinstance(point, Resumable),
        "stop": point.stop,
        "turnId": told.turn.identity.turn_id,
        **found,
    }


def _told(answer: dict[str, Any]) -> dict[str, Any]:
    """Without the sentence; what is absent where it might be there is none."""
    may_be_absent = {"stop", *(("failureId",) if answer["resumable"] else ())}
    told = dict.fromkeys(may_be_absent) | answer
    return {name: value for name, value in told.items() if name != "description"}
