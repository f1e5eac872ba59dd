"""What is stored comes back as it was: every event, every message, every turn."""

from dataclasses import asdict, replace
from datetime import UTC, datetime, timedelta

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from app.ports import TurnNotReadable
from app.store.message_codec import EncodedMessage, decode, encode
from app.store.turn_codec import decode_events, decode_turn, encode_events, encode_turn
from app.turn.events import Event, ModelCompleted, ModelStopped, ToolCompleted
from app.turn.ids import AttemptId, CallId
from app.turn.journal import added_message
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.transcript import (
    UNFINISHED,
    AssistantMessage,
    Message,
    Outcome,
    StopReason,
    ToolResult,
    UserMessage,
)
from tests.support.turns import QUOTA, Told, a_call, an_answer

# Text as it can come: U+0000 included; halves of a pair are refused at the edge.
st.register_type_strategy(str, st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
st.register_type_strategy(int, st.integers(0, 2**31 - 1))
st.register_type_strategy(float, st.floats(0, 1e9))
st.register_type_strategy(datetime, st.datetimes(timezones=st.just(UTC)))
st.register_type_strategy(timedelta, st.timedeltas(timedelta(0), timedelta(days=400)))

ANY_TURN = TypeAdapter(Turn)
ANY_EVENTS = TypeAdapter(tuple[Event, ...])


def _is_storable(message: Message) -> bool:
    """What the core makes: content that says something, an answer with text or calls."""
    if isinstance(message, UserMessage):
        return bool(message.content)
    if isinstance(message, AssistantMessage):
        # Blank text beside calls becomes null; the calls of one answer have different ids.
        ids = [call.call_id for call in message.tool_calls]
        return bool(message.text.strip()) and len(set(ids)) == len(ids)
    return True


messages: st.SearchStrategy[Message] = st.from_type(Message).filter(_is_storable)  # type: ignore[arg-type]  # a union is a type to Hypothesis


def _is_consistent(event: Event) -> bool:
    added = added_message(event)
    if isinstance(event, ModelCompleted | ModelStopped):
        has_message = event.message is not None
        if has_message != (event.position is not None):
            return False
    return added is None or _is_storable(added[1])


@given(messages)
def test_a_message_comes_back_as_it_was(message: Message) -> None:
    assert decode(encode(message)) == message


events_of_a_commit: st.SearchStrategy[list[Event]] = st.lists(
    st.from_type(Event).filter(_is_consistent),  # type: ignore[arg-type]  # as above
    max_size=4,
)


@given(events_of_a_commit)
def test_the_events_of_a_commit_come_back_as_they_were(events: list[Event]) -> None:
    added = dict(pair for event in events if (pair := added_message(event)) is not None)
    kept = [event for event in events if _is_in(added, event)]

    assert decode_events(encode_events(kept), added) == tuple(kept)


@given(events_of_a_commit)
def test_events_whose_row_says_everything_are_read_as_well(events: list[Event]) -> None:
    added = dict(pair for event in events if (pair := added_message(event)) is not None)
    kept = tuple(event for event in events if _is_in(added, event))
    spelt_out = ANY_EVENTS.dump_json(kept, exclude={"__all__": {"message", "result"}})

    assert decode_events(spelt_out.decode(), added) == kept


def _is_in(messages: dict[int, Message], event: Event) -> bool:
    """Whether the event's message is the one that stands at its position."""
    added = added_message(event)
    return added is None or messages[added[0]] == added[1]


@given(st.from_type(Turn))
def test_a_turn_comes_back_as_it_was(turn: Turn) -> None:
    assert decode_turn(_row(turn, encode_turn(turn))) == turn


@given(st.from_type(Turn))
def test_a_turn_whose_body_says_everything_is_read_as_well(turn: Turn) -> None:
    spelt_out = ANY_TURN.dump_json(turn, exclude={"identity", "version", "created_at"})

    assert decode_turn(_row(turn, spelt_out.decode())) == turn


def _row(turn: Turn, body: str) -> dict[str, object]:
    identity = turn.identity
    return {
        "turn_id": identity.turn_id,
        "tenant_id": identity.tenant_id,
        "conversation_id": identity.conversation_id,
        "agent_id": identity.agent_id,
        "agent_version": identity.agent_version,
        "version": turn.version,
        "created_at": turn.created_at,
        "body": body,
    }


def test_what_a_turn_has_not_met_is_not_written_down_with_every_change() -> None:
    said = orjson.loads(encode_turn(Told().begun().turn))

    assert said.keys() == {"state", "next_position", "counters", "is_taken_up"}
    assert said["counters"] == {"steps": 1, "model_attempts": 1}


def test_what_a_call_has_not_met_is_not_written_down_either() -> None:
    turn = Told().begun().answered(an_answer("", a_call("A"))).turn
    (call,) = orjson.loads(encode_turn(turn))["state"]["calls"]

    assert call == {
        "call_id": "A",
        "tool_name": "look_up",
        "effect": "reads",
        "position": 2,
        "attempt": 1,
        "in_flight": True,
    }


def test_an_event_says_only_what_is_not_so_anyway() -> None:
    result = ToolResult(
        call_id=CallId("A"), tool_name="look", outcome=Outcome.COMPLETED, content="x"
    )
    completed = ToolCompleted(position=3, result=result)

    (plain,) = orjson.loads(encode_events([completed]))
    (told,) = orjson.loads(encode_events([replace(completed, known_by="person")]))

    assert plain == {"type": "TOOL_COMPLETED", "position": 3}
    assert told == {**plain, "known_by": "person"}


def test_a_message_of_a_role_this_code_does_not_know_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="oracle"):
        decode(EncodedMessage(role="oracle", body="{}"))


def test_a_stop_that_was_stored_before_it_could_keep_a_message_is_read_as_one_that_keeps_none() -> (
    None
):
    (stored,) = decode_events(
        '[{"type":"MODEL_STOPPED","attempt_id":"a1","stop_reason":"REFUSAL","raw_stop":null}]', {}
    )

    assert stored == ModelStopped(
        attempt_id=AttemptId("a1"), stop_reason=StopReason.REFUSAL, raw_stop=None
    )


@pytest.mark.parametrize("told", [Told().begun().wrote("Once"), Told().begun().gave_up(QUOTA)])
def test_a_turn_that_was_stored_before_answers_were_kept_in_part_is_read(told: Told) -> None:
    older = told.turn
    body = orjson.loads(encode_turn(older))
    for name in ("partial_at", "parts_from", "pauses", "continuations", "empty_answers"):
        body.pop(name, None)
    body["state"].pop("started_version", None)
    row = {**asdict(older.identity), "version": older.version, "created_at": older.created_at}

    read = decode_turn({**row, "body": orjson.dumps(body).decode()})

    state = read.state
    known = replace(state, started_version=3) if isinstance(state, CallingModel) else state
    assert replace(read, state=known) == replace(older, state=known)


@pytest.mark.parametrize(
    "damaged", ["", "[]", "7", "{}", '{"state": 7}', '{"state": {"kind": "of a newer version"}}']
)
def test_case_56_a_body_that_makes_no_turn_is_refused_without_quoting_it(damaged: str) -> None:
    with pytest.raises(TurnNotReadable, match=r"^t1$"):
        decode_turn(_row(Told().turn, damaged))


@pytest.mark.parametrize("place", ["", "state", "counters", "usage"])
def test_case_56_no_field_of_a_newer_version_is_dropped_wherever_it_stands(place: str) -> None:
    turn = Told().begun().turn
    body = orjson.loads(encode_turn(turn))
    (body.setdefault(place, {}) if place else body)["of_a_newer_version"] = 7

    with pytest.raises(TurnNotReadable):
        decode_turn(_row(turn, orjson.dumps(body).decode()))


def test_answers_that_a_request_may_leave_out_are_told_by_their_roles() -> None:
    stops = {StopReason.INTERRUPTED: "partial", StopReason.REFUSAL: "refused"}
    stops |= {StopReason.PAUSED: "paused", StopReason.END_TURN: "assistant"}

    for stop, role in stops.items():
        error = UNFINISHED if stop is StopReason.INTERRUPTED else None
        message = AssistantMessage(text="Once", stop_reason=stop, error=error)
        assert encode(message).role == role
        assert decode(encode(message)) == message
