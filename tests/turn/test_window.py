"""How much of a history is sent: whole turns, a user's word first, calls with their results."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.turn.agent import HistoryWindow
from app.turn.ids import TurnId
from app.turn.window import Said, estimated_tokens, first_sent

OWN = TurnId("now")


def said(*words: str) -> list[Said]:
    """Messages as `turn:role`, each of ten tokens; a turn `-` is none."""
    pairs = [word.split(":") for word in words]
    return [
        Said(role=role, turn_id=None if turn == "-" else TurnId(turn), tokens=10)
        for turn, role in pairs
    ]


TALK = said(
    *("one:user", "one:assistant"),
    *("two:user", "two:assistant", "two:tool", "two:tool", "two:user", "two:assistant"),
    *("three:user", "three:assistant"),
    *("now:user", "now:assistant", "now:tool"),
)


@pytest.mark.parametrize(
    ("window", "first"),
    [
        (HistoryWindow(), 0),
        (HistoryWindow(turns=3), 0),
        (HistoryWindow(turns=2), 2),
        (HistoryWindow(turns=1), 8),
        (HistoryWindow(turns=0), 10),
        (HistoryWindow(messages=10), 0),
        (HistoryWindow(messages=9), 2),
        (HistoryWindow(messages=8), 2),
        (HistoryWindow(messages=7), 8),
        (HistoryWindow(messages=1), 10),
        (HistoryWindow(tokens=100), 0),
        (HistoryWindow(tokens=80), 2),
        (HistoryWindow(tokens=79), 8),
        (HistoryWindow(tokens=0), 10),
        (HistoryWindow(turns=2, messages=7), 8),
    ],
)
def test_the_oldest_turns_are_left_out_as_a_whole(window: HistoryWindow, first: int) -> None:
    assert first_sent(TALK, OWN, window) == first


def test_a_message_that_came_while_a_turn_waited_begins_no_other_turn() -> None:
    assert first_sent(TALK, OWN, HistoryWindow(messages=5)) == 8


def test_a_turn_without_a_word_of_its_user_goes_with_the_one_before_it() -> None:
    talk = said("one:user", "one:assistant", "two:user", "two:assistant", "now:notice")

    assert first_sent(talk, OWN, HistoryWindow(turns=0)) == 2
    assert first_sent(talk, OWN, HistoryWindow(turns=1)) == 0


def test_a_turn_that_has_said_nothing_yet_goes_with_the_end_of_the_history() -> None:
    talk = said("one:user", "one:assistant", "-:user", "-:assistant", "-:tool")

    assert first_sent(talk, OWN, HistoryWindow(turns=0)) == 2
    assert first_sent(talk, OWN, HistoryWindow(messages=1)) == 2
    assert first_sent(talk, OWN, HistoryWindow(turns=1)) == 0
    assert first_sent([], OWN, HistoryWindow(turns=0)) == 0


def test_a_call_of_another_service_stays_with_the_result_that_this_turn_gave_it() -> None:
    talk = said("-:user", "-:assistant", "-:user", "-:assistant", "now:tool", "now:user")

    assert first_sent(talk, OWN, HistoryWindow(turns=0)) == 2


def test_a_history_that_begins_with_an_answer_is_sent_whole_or_from_a_users_word() -> None:
    talk = said("-:assistant", "-:user", "-:assistant", "now:user")

    assert first_sent(talk, OWN, HistoryWindow(turns=2)) == 0
    assert first_sent(talk, OWN, HistoryWindow(turns=1)) == 1


@given(
    lengths=st.lists(st.integers(0, 3), max_size=8),
    own=st.integers(0, 3),
    window=st.builds(
        HistoryWindow,
        turns=st.none() | st.integers(0, 9),
        messages=st.none() | st.integers(0, 30),
        tokens=st.none() | st.integers(0, 300),
    ),
)
def test_what_is_sent_begins_with_a_user_and_parts_no_call_from_its_result(
    lengths: list[int], own: int, window: HistoryWindow
) -> None:
    names = [*(f"t{n}" for n in range(len(lengths))), OWN]
    talk = said(
        *(
            f"{name}:{role}"
            for name, rounds in zip(names, [*lengths, own], strict=True)
            for role in ("user", *("assistant", "tool") * rounds, "assistant")
        )
    )

    first = first_sent(talk, OWN, window)

    sent = talk[first:]
    assert [each for each in talk if each.turn_id == OWN] == [s for s in sent if s.turn_id == OWN]
    assert sent[0].role == "user"
    assert all(one.role == "assistant" for one, then in pairwise(sent) if then.role == "tool")
    before = [each for each in sent if each.turn_id != OWN]
    assert window.messages is None or len(before) <= window.messages
    assert window.tokens is None or sum(each.tokens for each in before) <= window.tokens
    assert window.turns is None or len({each.turn_id for each in before}) <= window.turns


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("a", 1), ("abcd", 1), ("abcde", 2), ("你好", 2)]
)
def test_tokens_are_a_quarter_of_the_bytes(text: str, tokens: int) -> None:
    assert estimated_tokens(text) == tokens
