"""Which rows of an ended turn's journal its answers make superfluous."""

from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from app.ports import JournalRow
from app.services.reading import Cursor, Reading
from app.turn import events as e
from app.turn.folding import superfluous
from app.turn.ids import AttemptId
from app.turn.transcript import AssistantMessage, StopReason, Usage
from tests.support.turns import NOON

Rows = list[tuple[int, Sequence[e.Event]]]
ATTEMPT = AttemptId("a1")


def text(offset: int, said: str) -> e.ModelText:
    return e.ModelText(attempt_id=ATTEMPT, offset=offset, text=said)


def thought(offset: int, said: str) -> e.ModelReasoning:
    return e.ModelReasoning(attempt_id=ATTEMPT, offset=offset, text=said)


def answered(said: str, reasoning: str = "") -> e.ModelCompleted:
    return e.ModelCompleted(
        attempt_id=ATTEMPT,
        position=1,
        message=AssistantMessage(text=said, reasoning=reasoning),
        stop_reason=StopReason.END_TURN,
        usage=Usage(),
        remaining_iterations=1,
    )


def journal(*commits: Sequence[e.Event]) -> Rows:
    """The commits with the sequences of their last events, behind the begin of the attempt."""
    rows: Rows = [
        (1, [e.ModelStarted(attempt_id=ATTEMPT, model_attempt=1, remaining_iterations=9)])
    ]
    for events in commits:
        rows.append((rows[-1][0] + len(events), events))
    return rows


def test_pieces_that_are_the_answer_may_go() -> None:
    rows = journal([text(0, "one ")], [text(4, "two")], [answered("one two")])

    assert superfluous(rows) == [2, 3]


def test_what_comes_with_the_answer_stays() -> None:
    rows = journal([text(0, "one ")], [text(4, "two"), answered("one two")])

    assert superfluous(rows) == [2]


def test_pieces_of_an_answer_that_was_replaced_stay() -> None:
    rows = journal([text(0, "one ")], [text(4, "two")], [answered("something else")])

    assert superfluous(rows) == []


def test_pieces_whose_reasoning_is_not_kept_with_the_answer_stay() -> None:
    rows = journal([thought(0, "hm"), text(0, "one")], [answered("one")])

    assert superfluous(rows) == []
    assert superfluous(journal([thought(0, "hm"), text(0, "one")], [answered("one", "hm")])) == [3]


def test_pieces_of_an_attempt_that_was_lost_stay() -> None:
    lost = e.StepRecovered(recovery="RETRY_RESPONSE", attempt_id=ATTEMPT, discard_from=0, calls=())
    again = e.ModelStarted(attempt_id=ATTEMPT, model_attempt=2, remaining_iterations=9)
    rows = journal([text(0, "one")], [lost, again], [text(0, "one")], [answered("one")])

    assert superfluous(rows) == [5]


def test_pieces_in_front_of_something_else_stay() -> None:
    between = e.CancellationRequested()
    rows = journal([text(0, "one ")], [between], [text(4, "two")], [answered("one two")])

    assert superfluous(rows) == [4]


PIECES = st.lists(
    st.tuples(st.text("añ漢🙂", max_size=4), st.text("hm", max_size=3)).filter(any), max_size=6
)


@given(pieces=PIECES, with_last=st.booleans(), place=st.integers(0, 12), more=st.integers(0, 8))
def test_a_reader_of_a_folded_journal_puts_the_same_text_together(
    *, pieces: list[tuple[str, str]], with_last: bool, place: int, more: int
) -> None:
    """From any place, also inside a piece that is gone."""
    commits = commits_of(pieces)
    said, reasoning = ("".join(part) for part in zip(*pieces, strict=True)) if pieces else ("", "")
    end: list[e.Event] = [*(commits.pop() if with_last and commits else ())]
    rows = journal(*commits, [*end, answered(said, reasoning), e.StepCompleted(step=1)])
    gone = superfluous(rows)
    kept = [JournalRow(sequence=n, occurred_at=NOON, events=ev) for n, ev in rows if n not in gone]
    cursor = place_in(rows, place, more, said)

    reading, got, ids = Reading(cursor, ATTEMPT), said[: cursor.text], list[tuple[int, int]]()
    before = [event for _, events in rows for event in events][: cursor.version]
    thoughts = "".join(event.text for event in before if isinstance(event, e.ModelReasoning))
    for row in kept:
        if row.sequence <= cursor.version:
            continue
        for followed in reading.stored(row):
            match followed.event:
                case e.ModelText(offset=offset, text=new):
                    assert offset == len(got)
                    got += new
                case e.ModelReasoning(offset=offset, text=new):
                    assert offset <= len(thoughts)
                    thoughts = thoughts[:offset] + new
                    continue
                case _:
                    pass
            ids.append((followed.cursor.version, followed.cursor.text))

    assert len(gone) == len(commits)
    assert ids == sorted(set(ids))
    if cursor.version < rows[-1][0] - 1:
        assert (got, thoughts) == (said, reasoning)


def commits_of(pieces: list[tuple[str, str]]) -> list[list[e.Event]]:
    """The pieces as they are stored, a commit each."""
    commits: list[list[e.Event]] = []
    said = thoughts = 0
    for new, new_thought in pieces:
        commits.append(
            [
                *([thought(thoughts, new_thought)] if new_thought else []),
                *([text(said, new)] if new else []),
            ]
        )
        said, thoughts = said + len(new), thoughts + len(new_thought)
    return commits


def place_in(rows: Rows, place: int, more: int, said: str) -> Cursor:
    """Where a reader stands that was there: some event, and perhaps live text beyond it."""
    events = [event for _, events in rows for event in events]
    version = min(place, len(events) - 2)
    stored = sum(len(event.text) for event in events[:version] if isinstance(event, e.ModelText))
    is_open = version >= 1 and not any(isinstance(x, e.ModelCompleted) for x in events[:version])
    return Cursor(version=version, text=min(stored + more, len(said)) if is_open else 0)
