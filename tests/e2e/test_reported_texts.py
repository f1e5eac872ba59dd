"""What was reported of texts and numbers elsewhere that could not be stored, sent or read exactly.

The numbers are those of the public reports that these stories were made from.
"""

from dataclasses import replace
from typing import Annotated, Any

import orjson
import pytest
from pydantic import Field

from app.agents import Agent, Limits
from app.ports import ToolContext
from app.tools import tool
from tests.e2e.conftest import Stage
from tests.http.rig import assert_problem
from tests.providers.raw_server import event_stream, sending
from tests.support.oracles import check_everything
from tests.support.service import Service, running_service
from tests.support.sse_reader import TurnReader, check_reading
from tests.support.story import MODEL, QUOTA, Ledger, clerk

NUL = "a\0b"
HALF = "a\ud83db"
WHOLE_SMILE = "\N{GRINNING FACE}"
JSON = {"Content-Type": "application/json"}


async def read_all(service: Service, turn_id: str) -> dict[str, Any]:
    """The turn, its transcript and its events, by every way there is to read them."""
    conversation = (await service.turn(turn_id))["conversationId"]
    paths = {
        "turn": f"/turns/{turn_id}",
        "turns": "/turns",
        "conversation": f"/conversations/{conversation}",
        "messages": f"/conversations/{conversation}/messages",
        "failures": f"/turns/{turn_id}/failures",
        "interruptions": f"/turns/{turn_id}/interruptions",
    }
    found: dict[str, Any] = {}
    for name, path in paths.items():
        answer = await service.client.get(path)
        assert answer.status_code == 200, answer.text
        found[name] = answer.json()
    reader = TurnReader(service.client, turn_id)
    await reader.read(until=lambda event: event["sequence"] == found["turn"]["version"])
    found["events"] = [(e["sequence"], e["type"], e["data"]) for e in reader.received]
    return found


def reading_clerk(ledger: Ledger, result: object) -> Agent:
    """An agent whose tools bring `result`, as a result or as the words of an error."""

    @tool(effect="reads")
    def read(what: str, call: ToolContext) -> object:
        """Read it."""
        ledger.note(f"read {what!r}", call)
        return result

    @tool(effect="reads")
    def fail(call: ToolContext) -> str:
        """Fail."""
        ledger.note("fail", call)
        raise OSError(str(result))

    return Agent(id="clerk", instructions="", model=MODEL, tools=[read, fail])


# --- 085: the NUL character -----------------------------------------------------------------------


async def test_scenario_085_a_nul_is_kept_wherever_it_comes_from_and_read_alike_after_a_restart(
    stage: Stage,
) -> None:
    calls = [
        {"id": "A", "name": "read", "arguments": '{"what": "a\\u0000b"}'},
        {"id": "B", "name": "fail", "arguments": "{}"},
        {"id": "C", "name": "fail", "arguments": '{"a\\u0000b": 1}'},
    ]
    stage.provider.script(MODEL, [{"calls": calls}, {"text": NUL, "faults": [QUOTA]}])
    agent = reading_clerk(stage.ledger, {NUL: NUL})
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        waiting = await service.send("ses_1", NUL, agentId="clerk")
        before = await read_all(service, waiting["turnId"])
    async with running_service(stage.dsn, stage.settings, agents=[agent]) as service:
        after = await read_all(service, waiting["turnId"])
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        said = (await read_all(service, waiting["turnId"]))["messages"]["items"]

    assert waiting["status"] == "WAITING_FOR_MODEL"
    assert after == before
    assert (done.json()["status"], done.json()["finalOutput"]) == ("COMPLETED", NUL)
    assert said[0]["content"] == said[-1]["content"] == NUL
    assert orjson.loads(said[2]["content"]) == {NUL: NUL}
    assert [m["outcome"] for m in said if m["role"] == "tool"] == ["completed", "error", "error"]
    await check_everything(stage.dsn, stage.ledger)


@pytest.mark.parametrize(
    "said",
    [
        {"content": "x", "messageId": NUL},
        {"content": "x", "agentId": NUL},
        {"content": "x", NUL: "y"},
        {"content": [{"type": "image", "url": f"https://x/{NUL}"}]},
    ],
)
async def test_scenario_085_a_nul_in_what_is_no_text_is_refused(
    stage: Stage, said: dict[str, object]
) -> None:
    agents = [clerk(stage.ledger)]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        answer = await service.client.post("/conversations/ses_1/messages", json=said)
        turns = await service.client.get("/turns")

    assert_problem(answer, 422, "payload_invalid")
    assert turns.json()["items"] == []


# --- 086: halves of characters --------------------------------------------------------------------


@pytest.mark.parametrize(
    "body",
    [
        b'{"content": "\\ud83d"}',
        b'{"content": "\\udc00\\ud83d"}',
        b'{"content": "\xc0\xaf"}',
        b'{"content": "\xf0\x9f\x98"}',
        b'{"content": "\xed\xa0\xbd"}',
        b'\xef\xbb\xbf{"content": "x"}',
        '{"content": "x"}'.encode("utf-16"),
    ],
    ids=["half", "swapped", "overlong", "truncated", "encoded half", "BOM", "UTF-16"],
)
async def test_scenario_086_a_body_that_is_no_unicode_is_refused_and_nothing_is_stored(
    stage: Stage, body: bytes
) -> None:
    agents = [clerk(stage.ledger)]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        for kind in ("application/json", "application/json; charset=utf-16"):
            answer = await service.client.post(
                "/conversations/ses_1/messages", content=body, headers={"Content-Type": kind}
            )
            assert answer.status_code in {400, 415, 422}, answer.text
        turns = await service.client.get("/turns")

    assert turns.json()["items"] == []


async def test_scenario_086_a_character_whose_halves_come_in_two_pieces_is_joined(
    stage: Stage,
) -> None:
    pieces = [
        b'data: {"choices":[{"index":0,"delta":{"content":"a \\ud83d"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{"content":"\\ude00 b \\udc00"}}]}\n\n',
        b'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n',
    ]
    async with sending(event_stream(*pieces)) as provider:
        settings = stage.settings.model_copy(update={"openai_base_url": provider.base_url})
        agents = [clerk(stage.ledger)]
        async with running_service(stage.dsn, settings, agents=agents) as service:
            sent = await service.send("ses_1", "Smile.", wait=0, agentId="clerk")
            reader = TurnReader(service.client, sent["turnId"])
            await reader.read_to_the_end()
            done = await service.turn(sent["turnId"])

    assert done["finalOutput"] == f"a {WHOLE_SMILE} b \N{REPLACEMENT CHARACTER}"
    (record,) = await check_everything(stage.dsn, stage.ledger)
    check_reading(reader.received, record.journal)


@pytest.mark.parametrize("result", [HALF, {"key": HALF}, {HALF: "value"}, [HALF]])
async def test_scenario_086_what_a_tool_brings_is_mended_before_it_is_stored(
    stage: Stage, result: object
) -> None:
    calls = [
        {"id": "A", "name": "read", "arguments": '{"what": "\\ud83d"}'},
        {"id": "B", "name": "fail", "arguments": "{}"},
    ]
    stage.provider.script(MODEL, [{"calls": calls}, {"text": "Done."}])
    agents = [reading_clerk(stage.ledger, result)]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        done = await service.send("ses_1", "Read it.", agentId="clerk")
        one = await read_all(service, done["turnId"])
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        two = await read_all(service, done["turnId"])

    assert done["status"] == "COMPLETED"
    assert one == two
    assert {request["status"] for request in stage.provider.requests(MODEL)} == {200}
    await check_everything(stage.dsn, stage.ledger)


# --- 088: numbers ---------------------------------------------------------------------------------

EXACT = 9_007_199_254_740_993_123
ARGUMENTS = f'{{"id": {EXACT},"amount": 0.1, "v": 1E+2, "neg": -0.0}}'
LARGER = '{"grams": 1' + "0" * 400 + "}"
"""Than what most readers of JSON have a number for."""


def counting_clerk(seen: list[tuple[object, ...]]) -> Agent:
    """Its tools take numbers, and leave in `seen` what they were given."""

    @tool(effect="reads")
    def note(serial: Annotated[int, Field(alias="id")], amount: float, v: float, neg: float) -> int:
        """Note it."""
        seen.append((serial, amount, v, str(neg)))
        return serial

    @tool(effect="reads")
    def weigh(grams: int) -> int:
        """Weigh it."""
        seen.append((grams,))
        return grams

    return Agent(id="clerk", instructions="", model=MODEL, tools=[note, weigh])


async def test_scenario_088_a_tool_is_given_the_very_number_and_everybody_reads_its_digits(
    stage: Stage,
) -> None:
    seen: list[tuple[object, ...]] = []
    arguments = [ARGUMENTS, LARGER, '{"grams": 1e400}', '{"grams": 0.5}']
    names = ["note", "weigh", "weigh", "weigh"]
    calls = [
        {"id": f"c{n}", "name": name, "arguments": text}
        for n, (name, text) in enumerate(zip(names, arguments, strict=True))
    ]
    stage.provider.script(MODEL, [{"calls": calls}, {"text": "Done.", "faults": [QUOTA]}])
    agents = [replace(counting_clerk(seen), limits=Limits(parallel_tools=1))]
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        waiting = await service.send("ses_1", "Note it.", agentId="clerk")
    async with running_service(stage.dsn, stage.settings, agents=agents) as service:
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})
        read = await read_all(service, waiting["turnId"])

    assert done.json()["status"] == "COMPLETED"
    assert seen == [(EXACT, 0.1, 100.0, "-0.0"), (10**400,)]
    said = read["messages"]["items"]
    shown = [call["arguments"] for call in said[1]["toolCalls"]]
    asked = next(about for _, kind, about in read["events"] if kind == "MODEL_COMPLETED")
    body: Any = stage.provider.requests(MODEL)[-1]["body"]
    sent = [call["function"]["arguments"] for call in body["messages"][1]["tool_calls"]]
    assert shown[:2] == arguments[:2]
    assert shown == sent == [call["arguments"] for call in asked["toolCalls"]]
    results = [(m["outcome"], m["content"]) for m in said if m["role"] == "tool"]
    assert results[:2] == [("completed", str(EXACT)), ("completed", str(10**400))]
    assert [outcome for outcome, _ in results[2:]] == ["error", "error"]
