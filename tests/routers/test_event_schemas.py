"""docs/events.md, and the data of each event: for programs in camelCase, for people redacted."""

import re
from pathlib import Path
from typing import Any, get_args

import orjson
import pytest

from app.routers.event_schemas import envelope, event_data, framed
from app.routers.reader import Reader
from app.services.principal import Principal, Role
from app.services.reading import Cursor, Followed
from app.turn import events as e
from app.turn.ids import ActorId, MessageId
from app.turn.journal import TERMINAL_TYPES
from app.turn.transcript import ClosingMessage, ImagePart, TextPart, UserMessage
from tests.routers.event_samples import AT, ATTEMPT, IDENTITY, RECORD, SAMPLES

PAGE = (Path(__file__).parents[2] / "docs/events.md").read_text()
TYPES = [event.type for event in SAMPLES]


def reader(role: Role) -> Reader:
    principal = Principal(tenant_id=IDENTITY.tenant_id, actor_id=ActorId("x"), role=role)
    return Reader(principal=principal, language="en")


def written(event: e.Event, role: Role = Role.OPERATOR) -> dict[str, Any]:
    """The data as it goes over the wire."""
    data: dict[str, Any] = orjson.loads(
        orjson.dumps(event_data(event, reader(role), IDENTITY.turn_id))
    )
    return data


def section(kind: str) -> str:
    """What the page says of a type."""
    found = re.search(rf"^### {kind}\n(.*?)(?=^##|\Z)", PAGE, re.DOTALL | re.MULTILINE)
    assert found, f"docs/events.md has no {kind}"
    return found[1]


def test_there_is_a_sample_of_every_event() -> None:
    assert [type(event) for event in SAMPLES] == list(get_args(e.Event))


def test_the_page_has_every_type_and_no_other() -> None:
    assert re.findall(r"^### (\w+)$", PAGE, re.MULTILINE) == TYPES


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_the_page_names_the_fields_of_each_event(event: e.Event) -> None:
    fields = re.findall(r"^- `(\w+)`", section(event.type), re.MULTILINE)

    assert fields == list(written(event))


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_the_example_of_each_event_is_what_is_sent(event: e.Event) -> None:
    [example] = re.findall(r"```json\n(.+)\n```", section(event.type))

    assert orjson.loads(example) == written(event)


@pytest.mark.parametrize("event", SAMPLES, ids=lambda event: event.type)
def test_names_are_in_camel_case_at_every_depth(event: e.Event) -> None:
    names = re.findall(rb'"(\w+)":', orjson.dumps(written(event)))

    assert not any(b"_" in name for name in names)


@pytest.mark.parametrize("role", [Role.USER, Role.VIEWER])
def test_only_operators_read_what_the_provider_said(role: Role) -> None:
    failed = e.ModelFailed(attempt_id=ATTEMPT, record=RECORD)

    safe = {"failureId", "type", "message", "retryAfterMillis", "tokenLimitPhase", "occurredAt"}
    assert set(written(failed, role)["modelFailure"]) == safe
    assert RECORD.failure.message not in str(written(failed, role))
    assert written(e.TurnFailed(reason="x", detail="theirs"), role) == {"reason": "x"}


def test_messages_are_as_they_were_sent() -> None:
    parts = (TextPart(text="this?"), ImagePart(url="https://example.com/a.png"))
    added = e.MessageAdded(
        position=4, message=UserMessage(message_id=MessageId("m"), content=parts)
    )
    closing = e.MessageAdded(position=5, message=ClosingMessage(text="It ended."))

    assert written(added)["content"] == [
        {"type": "text", "text": "this?"},
        {"type": "image", "url": "https://example.com/a.png"},
    ]
    assert written(closing) == {"position": 5, "role": "closing", "content": "It ended."}


def test_the_envelope_is_the_one_on_the_page() -> None:
    text = next(event for event in SAMPLES if isinstance(event, e.ModelText))
    followed = Followed(cursor=Cursor(version=6, text=31), event=text, occurred_at=AT, durable=True)

    said = envelope(followed, IDENTITY, written(text))
    sent = framed(said, str(followed.cursor)).decode()

    place, kind, line = sent.removesuffix("\n\n").split("\n")
    assert (place, kind) == ("id: 6:31", "event: MODEL_TEXT")
    assert sent.removesuffix("\n") in PAGE
    fields = list(orjson.loads(line.removeprefix("data: ")))
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.MULTILINE) == fields


def test_whatever_an_event_says_its_frame_has_three_lines() -> None:
    ends = "a\rb\nc\r\nd\x0b\x0c\x1c\x1d\x1e\x85\u2028\u2029\0e"
    text = e.ModelText(attempt_id=ATTEMPT, offset=0, text=ends)
    followed = Followed(cursor=Cursor(version=6), event=text, occurred_at=AT, durable=True)

    sent = framed(envelope(followed, IDENTITY, written(text)), "6")

    assert sent.endswith(b"\n\n")
    assert b"\r" not in sent
    assert sent.count(b"\n") == 4
    line = sent.split(b"\n")[2].removeprefix(b"data: ")
    assert orjson.loads(line)["data"]["text"] == ends


def test_a_type_is_terminal_on_the_page_if_it_is_in_the_code() -> None:
    terminal = {kind for kind in TYPES if "The last event of its turn." in section(kind)}

    assert terminal == set(TERMINAL_TYPES)
