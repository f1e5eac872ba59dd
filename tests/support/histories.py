"""What must be true of every turn, whatever happened to it; quoted by number in the tests.

1. The fold of the journal is the turn.
2. Sequences have no gap: the version is the number of events.
3. At most one terminal event, and it is the last.
4. Every call has at most one result, in its place behind the message that asked for it.
5. Whenever the model is called the history is whole: every call answered, in order, no hole.
6. The counters and the tokens agree with the events.
7. One notice at most says that an answer does not fit, and the model is called behind it; the value
   of an answer that fits comes once, in the commit that completes the turn. A notice to begin again
   comes when a turn goes on, and not twice without a word of the model between.
   It is the last word of the transcript until then, but for what the user says.
8. A call that is answered as not started without having been entered was never begun.
9. A turn that was opened on hold begins nothing before somebody says so.
10. Whoever waits for the user has just asked, in the transcript, what the turn says it asks.
11. A queued message is waiting, said or withdrawn, and one of them only.
12. Nothing begins while a message waits to be heard at a boundary.

20. A partial message is what its attempt has written, all of it and nothing else; it has an error,
    is no turn's answer, and something is said behind it before the model is called.
21. In a row at most five answers that paused are gone on with, and two that were empty.
22. The history is summed up once between two answers or commands, by a summary that says something
    and is smaller than what it stands for, and never the turn itself.

Of calls that wait for somebody (`tests.support.call_histories`):

13. No wait is open on an ended turn, and whoever waits waits for somebody.
14. A call has one wait at a time, an answer of its kind ends it, and its time is over once.
15. A tool is entered only when nothing is open for its call, and never after a no.
16. What was approved is not asked for again.
17. A tool that writes is entered again only after it has asked, or somebody has said that nothing
    was done: the tool, its probe or a person. Any tool only where the recovery says so.
18. A call is asked for outside once, and a request to stop it follows exactly where it got its
    result from somebody else.
19. A tool that asks gives its entry back; what is asked for outside counts as entered.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from app.turn import events as e
from app.turn.events import Event
from app.turn.evolve import advance, fold
from app.turn.going_on import MOST_EMPTY_ANSWERS, MOST_PAUSES
from app.turn.journal import TERMINAL_TYPES, added_message
from app.turn.partial import written
from app.turn.state import Turn
from app.turn.states import Completed, WaitingForUser
from app.turn.transcript import (
    FINISHED,
    AssistantMessage,
    Message,
    NoticeCause,
    NoticeMessage,
    Outcome,
    QuestionMessage,
    StopReason,
    ToolResult,
    UserMessage,
)
from tests.support.call_histories import check_calls


@dataclass(slots=True)
class Watch:
    """Rules 1 to 20 over a journal that grows: what has been looked at is not looked at again."""

    folded: Turn | None = None
    seen: int = 0
    """How many events have been folded."""

    def check(self, events: Sequence[Event], turn: Turn) -> None:
        """All that holds of the journal as it is now."""
        new, before = events[self.seen :], self.folded
        if before is not None and not new:
            assert turn == before, "a turn changed without an event"
            return
        self.folded = fold(new) if before is None else advance(before, new)
        self.seen = len(events)
        assert self.folded == turn
        _check_rules(events, turn)


def check_journal(events: Sequence[Event], turn: Turn) -> None:
    """Rules 1 to 20 over a whole journal."""
    Watch().check(events, turn)


def _check_rules(events: Sequence[Event], turn: Turn) -> None:
    assert turn.version == len(events)
    terminal = [n for n, event in enumerate(events) if event.type in TERMINAL_TYPES]
    assert terminal in ([], [len(events) - 1])
    assert bool(terminal) == turn.is_terminal
    _check_transcripts(events)
    _check_counters(events, turn)
    _check_not_started(events)
    _check_output(events, turn)
    _check_hold(events)
    _check_compactions(events)
    _check_questions(events, turn)
    _check_queue(events, turn)
    _check_partial(events, turn)
    _check_once_more(events)
    check_calls(events, turn)


def _check_questions(events: Sequence[Event], turn: Turn) -> None:
    added = [x.message for x in events if isinstance(x, e.MessageAdded)]
    asked = [message.text for message in added if isinstance(message, QuestionMessage)]
    suspended = [x.question for x in events if isinstance(x, e.TurnSuspended) and x.question]
    assert asked == suspended
    if isinstance(turn.state, WaitingForUser):
        assert turn.state.question == asked[-1]
        last = max(n for n, event in enumerate(events) if isinstance(event, e.TurnSuspended))
        assert events[last] == next(x for x in reversed(events) if _asks(x))
        assert not {event.type for event in events[last:]} & {"TURN_RESUMED", "STEP_STARTED"}
        assert not turn.questions


def _asks(event: Event) -> bool:
    return isinstance(event, e.TurnSuspended) and event.question is not None


def _check_transcripts(events: Sequence[Event]) -> None:
    transcript: dict[int, Message] = {}
    for event in events:
        added = added_message(event)
        if added is not None:
            position, message = added
            assert position not in transcript, f"two messages at {position}"
            transcript[position] = message
        if isinstance(event, e.ModelStarted) or event.type in TERMINAL_TYPES:
            check_whole(transcript)


def check_whole(transcript: dict[int, Message]) -> None:
    """Rule 5: positions without a hole, calls answered right behind the message that asked."""
    places = sorted(transcript)
    assert places == list(range(places[0], places[0] + len(places))), "a hole in the transcript"
    messages = [transcript[place] for place in places]
    expected: list[str] = []
    for message in messages:
        if isinstance(message, ToolResult):
            assert expected, f"a result without a call: {message.call_id}"
            assert message.call_id == expected.pop(0), "results out of order"
            continue
        assert not expected, f"calls without a result: {expected}"
        if isinstance(message, AssistantMessage):
            is_sent_back = message.stop_reason is StopReason.PAUSED and message.opaque
            assert message.text.strip() or message.tool_calls or is_sent_back, "an empty message"
            expected = [call.call_id for call in message.tool_calls]
    assert not expected, f"calls without a result: {expected}"


def _check_output(events: Sequence[Event], turn: Turn) -> None:
    notices = [n for n, event in enumerate(events) if _is_notice(event)]
    ready = [n for n, event in enumerate(events) if isinstance(event, e.OutputReady)]
    assert len(notices) == int(turn.is_repaired)
    _check_told_once(events)
    for n in notices:
        assert events[n + 1].type in {"STEP_STARTED", "TURN_PAUSED", "MESSAGE_ADDED"}
    assert (turn.output is not None) == bool(ready)
    assert ready in ([], [len(events) - 3]), "OUTPUT_READY, STEP_COMPLETED, TURN_COMPLETED"
    if ready:
        assert events[-1].type == "TURN_COMPLETED"


def _is_notice(event: Event, cause: NoticeCause = "output_invalid") -> bool:
    match event:
        case e.MessageAdded(message=NoticeMessage(cause=found)):
            return found == cause
        case _:
            return False


def _check_told_once(events: Sequence[Event]) -> None:
    """The model is told to begin again when a turn goes on, and not twice without an answer."""
    said = [event for event in events if added_message(event) is not None]
    told = [_is_notice(event, "retry_response") for event in said]
    assert not any(one and then for one, then in pairwise(told))
    for (before, event), (_, then) in pairwise(pairwise(events)):
        is_recovered = isinstance(before, e.ModelStopped) and before.message is not None
        if _is_notice(event, "retry_response"):
            assert is_recovered or then.type == "TURN_RESUMED"


def _check_partial(events: Sequence[Event], turn: Turn) -> None:
    partial: set[int] = set()
    last: tuple[int, Message] | None = None
    for event in events:
        if isinstance(event, e.ModelStarted) and last is not None:
            assert last[0] not in partial, "the model is called behind half of its own answer"
        last = added_message(event) or last
        if isinstance(event, e.ModelStopped) and event.message is not None:
            assert event.position is not None
            partial.add(event.position)
            text, _ = written(events, event.attempt_id)
            assert event.message.text == text
            assert event.message.is_partial
            assert event.message.error is not None
            assert event.message.tool_calls == ()
    if isinstance(turn.state, Completed):
        assert turn.state.position not in partial


def _check_once_more(events: Sequence[Event]) -> None:
    pauses = empties = 0
    for event, then in pairwise(events):
        match event:
            case e.ModelCompleted(stop_reason=stop):
                pauses, empties = (pauses + 1 if stop is StopReason.PAUSED else 0), 0
                assert pauses <= MOST_PAUSES + 1
            case e.ModelFailed():
                empties = 0
            case e.ModelStopped(stop_reason=stop) if stop in FINISHED:
                is_behind = then.type not in {"STEP_COMPLETED", "MODEL_TEXT"}
                empties += not is_behind
                assert empties <= MOST_EMPTY_ANSWERS
            case _:
                pass


def _check_not_started(events: Sequence[Event]) -> None:
    begun: set[str] = set()
    for event in events:
        match event:
            case e.ToolRequested(call_id=call_id):
                begun.discard(call_id)  # an id may come back where nobody says which are taken
            case e.ToolStarted(call_id=call_id):
                begun.add(call_id)
            case e.ToolInterrupted(result=result) if result.outcome is Outcome.NOT_STARTED:
                assert result.call_id not in begun
            case _:
                pass


def _check_queue(events: Sequence[Event], turn: Turn) -> None:
    waiting: dict[str, str] = {}
    said: list[str] = []
    for event in events:
        match event:
            case e.TurnStarted(queue=queue):
                waiting |= {queued.message.message_id: queued.mode for queued in queue}
            case e.InputQueued(queued=queued):
                assert queued.message.message_id not in waiting
                waiting[queued.message.message_id] = queued.mode
            case e.InputWithdrawn(message_id=message_id):
                del waiting[message_id]
            case e.InputPromoted(message_id=message_id):
                del waiting[message_id]
                said.append(message_id)
            case e.MessageAdded(message=UserMessage(message_id=message_id)) if said:
                assert message_id == said.pop(), "another message was said than was promoted"
            case e.ModelStarted() | e.ToolStarted():
                assert "steer" not in waiting.values(), "begun over a message that steers"
            case _:
                pass
    assert not said, "promoted and not said"
    assert list(waiting) == [queued.message.message_id for queued in turn.queue]


_SPENDS = (
    e.ModelCompleted | e.ModelFailed | e.ModelStopped | e.ContextCompacted | e.CompactionFailed
)


def _check_compactions(events: Sequence[Event]) -> None:
    is_spent = False
    first = events[0].first_position if isinstance(events[0], e.TurnStarted) else 0
    for event, then in pairwise(events):
        match event:
            case e.CompactionStarted():
                assert not is_spent, "summed up again, and nothing has changed"
            case e.ContextCompacted(first=begin, last=end):
                assert 0 <= begin <= end < first, "the running turn was summed up"
                assert event.summary_tokens < event.replaced_tokens
                assert event.summary.strip()
                assert then.type == "STEP_COMPLETED"
                is_spent = True
            case e.CompactionFailed():
                is_spent = True
            case e.ModelCompleted():
                is_spent = False
            case e.TurnResumed(command_type=command) if command != "RETRY":
                is_spent = False
            case _:
                pass


def _check_counters(events: Sequence[Event], turn: Turn) -> None:
    def count(*kinds: type[Event]) -> int:
        return sum(isinstance(event, kinds) for event in events)

    counters = turn.counters
    assert counters.model_attempts == count(e.ModelStarted, e.CompactionStarted)
    assert counters.model_successes == count(e.ModelCompleted)
    assert counters.model_failures == count(e.ModelFailed)
    of_the_model = [
        one
        for one, then in pairwise(events)
        if isinstance(one, e.TurnSuspended) and isinstance(then, e.RetryWasScheduled) and one.record
    ]
    assert counters.retries == len(of_the_model) + count(e.ToolAttemptFailed)
    assert counters.steps == count(e.StepStarted)
    spent = [x.usage for x in events if isinstance(x, _SPENDS)]
    assert (turn.usage.input_tokens or 0) == sum(usage.input_tokens or 0 for usage in spent)
    assert (turn.usage.output_tokens or 0) == sum(usage.output_tokens or 0 for usage in spent)


def _check_hold(events: Sequence[Event]) -> None:
    match events[0]:
        case e.TurnStarted(held=True):
            told = [isinstance(event, e.TurnResumed) for event in events]
            begun = [isinstance(event, e.StepStarted) for event in events]
            assert not any(begun[: told.index(True) if any(told) else None])
        case _:
            pass
