"""`dryRun=true`: what a message would do, compared with what the same message then does."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, get_args

import httpx
import pytest
from sqlmodel import SQLModel

from app.routers.message_schemas import MessageBody
from app.turn import events as e
from tests.http.rig import assert_problem, fresh_id
from tests.routers.stage import OPENING, Stage
from tests.support.transitions import STATES

MODES = get_args(MessageBody.model_fields["when_running"].annotation)


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """A message, and where it is sent to."""

    body: Mapping[str, object]
    route: str = "messages"


SAYINGS: Mapping[str, Said] = {
    **{f"whenRunning {mode}": Said(body={"content": "x", "whenRunning": mode}) for mode in MODES},
    "for another agent": Said(body={"content": "x", "agentId": "patient"}),
    "for an unknown agent": Said(body={"content": "x", "agentId": "nobody"}),
    "on hold": Said(body={"content": "x", "hold": True}),
    "a known one": Said(body=OPENING),
    "a known id, another content": Said(body=OPENING | {"content": "bye"}),
    "a start": Said(body={"content": "x"}, route="turns"),
    "a start on hold": Said(body={"content": "x", "hold": True}, route="turns"),
    "a start with a known one": Said(body=OPENING, route="turns"),
}

_EVERYTHING = " UNION ALL ".join(
    f"SELECT '{table}', md5(string_agg(t::text, ' ' ORDER BY t::text)) FROM {table} t"  # noqa: S608
    for table in SQLModel.metadata.tables
)


async def everything(stage: Stage) -> list[tuple[object, ...]]:
    """What the whole database holds, in short."""
    return [tuple(row.values()) for row in await stage.database.rows(_EVERYTHING)]


async def say(stage: Stage, said: Said, conversation: str, *, dry: bool = False) -> httpx.Response:
    path = f"/conversations/{conversation}/{said.route}"
    return await stage.rig.post(f"{path}?dryRun=true" if dry else path, said.body)


async def brought(stage: Stage, turn: dict[str, Any], answer: httpx.Response) -> Sequence[e.Event]:
    """The events that an accepted message has brought."""
    body = answer.json()
    after = turn["version"] if body["turnId"] == turn["turnId"] else 0
    return await stage.events_behind(body["turnId"], after)


@pytest.mark.parametrize("state", STATES)
async def test_a_dry_run_says_what_then_happens_and_changes_nothing(
    stage: Stage, state: str
) -> None:
    turns = {name: await stage.in_state(STATES[state]()) for name in SAYINGS}
    before = await everything(stage)

    foreseen = {
        name: await say(stage, said, turns[name]["conversationId"], dry=True)
        for name, said in SAYINGS.items()
    }

    assert await everything(stage) == before
    for name, said in SAYINGS.items():
        assert foreseen[name].status_code == 200, (name, foreseen[name].text)
        answer = await say(stage, said, turns[name]["conversationId"])
        assert foreseen[name].json() == await what_happened(stage, turns[name], answer), name


async def what_happened(
    stage: Stage, turn: dict[str, Any], answer: httpx.Response
) -> dict[str, Any]:
    """What a dry run should have said, told from the answer and the events alone."""
    body = answer.json()
    told: dict[str, Any] = {
        "turnId": None,
        "conversationId": turn["conversationId"],
        "closes": [],
        "problem": None,
    }
    if answer.status_code != 202:
        return told | {"effect": "REFUSE", "turnId": body.get("turnId"), "problem": body}
    if body["turnId"] != turn["turnId"]:
        return told | {"effect": "OPEN"}
    told |= {"turnId": turn["turnId"]}
    events = await brought(stage, turn, answer)
    closes = [_closed(event) for event in events if isinstance(event, e.ToolInterrupted)]
    return told | {"effect": _effect(turn, events, closes), "closes": closes}


def _closed(event: e.ToolInterrupted) -> dict[str, str]:
    result = event.result
    return {
        "callId": result.call_id,
        "toolName": result.tool_name,
        "outcome": result.outcome.value,
    }


def _effect(
    turn: dict[str, Any], events: Sequence[e.Event], closes: Sequence[dict[str, str]]
) -> str:
    by_type: dict[str, e.Event] = {event.type: event for event in events}
    if not events:
        return "KNOWN"
    if "INPUT_QUEUED" in by_type:
        queued = getattr(by_type["INPUT_QUEUED"], "queued", None)
        return str(getattr(queued, "mode", None)).upper()
    assert "TURN_RESUMED" in by_type
    is_answer = turn["status"] == "WAITING_FOR_USER" and not closes
    return "ANSWER" if is_answer else "REPLAN"


async def test_a_replan_names_the_calls_it_would_close_in_their_order(stage: Stage) -> None:
    turn = await stage.in_state(STATES["PAUSED, a tool is next"]())

    foreseen = await say(stage, Said(body={"content": "x"}), turn["conversationId"], dry=True)

    assert foreseen.json() == {
        "effect": "REPLAN",
        "turnId": turn["turnId"],
        "conversationId": turn["conversationId"],
        "closes": [{"callId": "B", "toolName": "pay", "outcome": "superseded"}],
        "problem": None,
    }


async def test_a_refusal_is_the_problem_word_for_word(stage: Stage) -> None:
    turn = await stage.in_state(STATES["RUNNING, a model call is begun"]())
    said = Said(body={"content": "x"})

    foreseen = (await say(stage, said, turn["conversationId"], dry=True)).json()
    refused = await say(stage, said, turn["conversationId"])

    assert (foreseen["effect"], foreseen["turnId"]) == ("REFUSE", turn["turnId"])
    assert foreseen["problem"] == assert_problem(refused, 409, "conversation_busy")
    assert foreseen["problem"]["currentStatus"] == "RUNNING"


@pytest.mark.parametrize("route", ["messages", "turns"])
async def test_a_dry_run_makes_no_conversation_and_takes_no_id(stage: Stage, route: str) -> None:
    conversation, before = fresh_id(), await everything(stage)
    path = f"/conversations/{conversation}/{route}?dryRun=true"

    for content in ("one", "another"):
        foreseen = await stage.rig.post(path, {"content": content, "messageId": "m1"})

        assert foreseen.json() == {
            "effect": "OPEN",
            "turnId": None,
            "conversationId": conversation,
            "closes": [],
            "problem": None,
        }
    assert await everything(stage) == before


async def test_a_dry_run_without_a_conversation_knows_a_known_message(stage: Stage) -> None:
    said = {"content": "hello", "messageId": fresh_id(), "agentId": "clerk"}

    new = (await stage.rig.post("/turns?dryRun=true", said)).json()
    refused = (await stage.rig.post("/turns?dryRun=true", said | {"agentId": "nobody"})).json()
    turn = (await stage.rig.post("/turns", said)).json()
    known = (await stage.rig.post("/turns?dryRun=true", said)).json()

    assert (new["effect"], new["turnId"], new["conversationId"]) == ("OPEN", None, None)
    assert (refused["effect"], refused["conversationId"]) == ("REFUSE", None)
    assert refused["problem"]["code"] == "payload_invalid"
    assert (known["effect"], known["turnId"], known["conversationId"]) == (
        "KNOWN",
        turn["turnId"],
        turn["conversationId"],
    )


async def test_a_dry_run_leaves_its_key_unused(stage: Stage) -> None:
    said, key = {"content": "hello", "agentId": "clerk"}, fresh_id()
    before = await everything(stage)

    dry = [await stage.rig.post("/turns?dryRun=true", said, Idempotency_Key=key) for _ in range(2)]
    assert await everything(stage) == before
    taken = await stage.rig.post("/turns", said, Idempotency_Key=key)

    assert [answer.json()["effect"] for answer in dry] == ["OPEN", "OPEN"]
    assert taken.status_code == 202
    assert not any("Idempotency-Replayed" in answer.headers for answer in (*dry, taken))


async def test_how_an_answer_is_wanted_is_of_no_matter_to_a_dry_run(stage: Stage) -> None:
    answer = await stage.rig.post(
        "/turns?dryRun=true", {"content": "x"}, Accept="text/event-stream", Prefer="wait=20"
    )

    assert answer.headers["Content-Type"] == "application/json"
    assert answer.json()["effect"] == "OPEN"


@pytest.mark.parametrize(
    "path", ["/turns", "/conversations/c-dry/turns", "/conversations/c-dry/messages"]
)
async def test_a_dry_run_that_is_neither_true_nor_false_is_none(stage: Stage, path: str) -> None:
    before = await stage.rig.rows("SELECT count(*) FROM turns")

    for odd in ("maybe", "", "2", "null"):
        answer = await stage.rig.post(f"{path}?dryRun={odd}", {"content": "x"})
        assert_problem(answer, 422, "payload_invalid")

    assert await stage.rig.rows("SELECT count(*) FROM turns") == before


async def test_what_is_no_message_is_refused_in_a_dry_run_as_well(stage: Stage) -> None:
    assert_problem(await stage.rig.post("/turns?dryRun=true", {}), 422, "messages_required")
