"""What is stored comes back as it was: every event, every message, every turn."""

from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.store.message_codec import EncodedMessage, decode, encode
from app.store.turn_codec import decode_events, decode_turn, encode_events, encode_turn
from app.turn.events import Event, ModelCompleted
from app.turn.journal import added_message
from app.turn.state import Turn
from app.turn.transcript import AssistantMessage, Message, UserMessage

# Text as it can come: U+0000 included; halves of a pair are refused at the edge.
st.register_type_strategy(str, st.text(st.characters(exclude_categories=["Cs"]), max_size=12))
st.register_type_strategy(int, st.integers(0, 2**31 - 1))
st.register_type_strategy(float, st.floats(0, 1e9))
st.register_type_strategy(datetime, st.datetimes(timezones=st.just(UTC)))
st.register_type_strategy(timedelta, st.timedeltas(timedelta(0), timedelta(days=400)))


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
    if isinstance(event, ModelCompleted) and (event.position is None) != (event.message is None):
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


def _is_in(messages: dict[int, Message], event: Event) -> bool:
    """Whether the event's message is the one that stands at its position."""
    added = added_message(event)
    return added is None or messages[added[0]] == added[1]


@given(st.from_type(Turn))
def test_a_turn_comes_back_as_it_was(turn: Turn) -> None:
    identity = turn.identity
    row = {
        "turn_id": identity.turn_id,
        "tenant_id": identity.tenant_id,
        "conversation_id": identity.conversation_id,
        "agent_id": identity.agent_id,
        "agent_version": identity.agent_version,
        "version": turn.version,
        "created_at": turn.created_at,
        "body": encode_turn(turn),
    }

    assert decode_turn(row) == turn


def test_a_message_of_a_role_this_code_does_not_know_is_not_guessed_at() -> None:
    with pytest.raises(ValueError, match="oracle"):
        decode(EncodedMessage(role="oracle", body="{}"))
