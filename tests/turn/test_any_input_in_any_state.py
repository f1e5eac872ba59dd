"""Any input in any state: it is taken, or refused with a reason, or nothing new. Never a crash.

A machine plays a shell and its callers: people who ask for anything at any time, workers that die,
reports that come late or twice. An ended turn's queue opens the next one. The rules of
`tests/support/histories.py` hold after every step.
"""

from dataclasses import replace
from datetime import timedelta
from itertools import count
from typing import Literal, get_args

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule
from typing_extensions import override

from app.turn import inputs as i
from app.turn.actions import Command, actions
from app.turn.agent import Agent, Limits, RetryPolicy
from app.turn.decide import decide
from app.turn.errors import Rejected
from app.turn.failures import FailureType, ModelFailure
from app.turn.ids import AttemptId, CallId, FailureId
from app.turn.next_step import RecoverLostStep, Rest, next_step
from app.turn.state import Turn
from app.turn.transcript import ModelAnswer, Outcome, StopReason, ToolCall, Usage, UserMessage
from tests.support.histories import check_journal, check_whole
from tests.support.sizes import size
from tests.support.turns import FITS, MISFITS, REFUSED, Told, a_message, an_agent

agents = st.builds(
    an_agent,
    retry=st.builds(RetryPolicy, max_retries=st.integers(0, 2)),
    limits=st.builds(
        Limits,
        max_iterations=st.integers(1, 6),
        max_steps=st.integers(1, 12),
        parallel_tools=st.integers(1, 3),
        max_tool_calls=st.none() | st.integers(1, 4),
        max_total_tokens=st.none() | st.integers(1, 20),
        max_duration=st.none() | st.timedeltas(timedelta(minutes=1), timedelta(minutes=30)),
        count_waiting=st.booleans(),
        is_blocking=st.booleans(),
    ),
    on_model_failure=st.sampled_from(["wait", "wait", "fail"]),
)
call_ids = st.sampled_from(["", "A", "B", "C"]).map(CallId)
named = st.sampled_from(["A", "B", "C"]).map(CallId)
calls = st.builds(
    ToolCall,
    call_id=call_ids,
    tool_name=st.sampled_from(["look_up", "book", "pay", "fetch", "verify", "check", "nonsense"]),
    arguments=st.just("{}"),
    problem=st.sampled_from([None, None, None, "cut off"]),
)
answers = st.builds(
    ModelAnswer,
    text=st.sampled_from(["", " ", "hello", "hello world"]),
    reasoning=st.sampled_from(["", "hm"]),
    tool_calls=st.lists(calls, max_size=4).map(tuple),
    stop_reason=st.sampled_from(StopReason),
    usage=st.builds(Usage, input_tokens=st.integers(0, 5), output_tokens=st.none()),
)
failures = st.builds(
    ModelFailure, type=st.sampled_from(FailureType), message=st.just(""), retryable=st.booleans()
)
questions = st.sampled_from([None, None, None, "which one?"])
attempts = st.sampled_from(["current", "current", "current", "stale"])
requests = st.one_of(
    st.builds(i.PostMessage, message=st.builds(a_message)),
    st.builds(i.RetryModel, failure_id=st.sampled_from(["current", "none"]).map(FailureId)),
    st.just(i.Retry()),
    st.just(i.ContinueNow()),
    st.just(i.Resume()),
    st.builds(i.Replan, message=st.builds(a_message)),
    st.just(i.Run()),
    st.builds(
        i.UserInput,
        message=st.none() | st.builds(a_message),
        call_id=st.none() | named,
        has_data=st.sampled_from([False, False, True]),
    ),
    st.builds(i.ApproveTool, call_id=named),
    st.builds(i.RejectTool, call_id=named, reason=st.just("no")),
    st.builds(i.GiveToolResult, call_id=named, output=st.just("{}")),
    st.builds(i.GiveToolError, call_id=named, code=st.just("c"), message=st.just("m")),
    st.just(i.Pause()),
    st.just(i.Cancel()),
)


class AnyInputInAnyState(RuleBasedStateMachine):
    """One turn after another, told anything."""

    def __init__(self) -> None:
        super().__init__()
        self.told = self.opened(an_agent(), 0)
        self.failures = 0
        self.messages = 0

    def opened(self, agent: Agent, first_position: int, *, held: bool = False) -> Told:
        """A new turn, told of by this machine."""
        return Told(agent, first_position=first_position, held=held)

    @rule(agent=agents, first=st.integers(0, 3), held=st.booleans())
    def a_new_turn(self, agent: Agent, first: int, *, held: bool) -> None:
        if self.told.turn.is_terminal or len(self.told.events) == 2:
            self.told = self.opened(agent, first, held=held)

    @rule(request=requests)
    def somebody_asks(self, request: i.Request) -> None:
        before = list(self.told.events)
        try:
            self.told.tell(self._in_fresh_words(request))
        except Rejected:
            assert self.told.events == before

    @rule()
    def a_worker_does_what_is_next(self) -> None:
        match next_step(self.told.turn, at=self.told.at):
            case Rest():
                assert self.told.begun().last == ()
            case RecoverLostStep():
                self.told.lost()
            case _:
                self.told.begun()
                assert self.told.last

    @rule(attempt=attempts, heard=st.integers(0, 2))
    def a_hook_asks(self, attempt: str, heard: int) -> None:
        attempt_id = self._attempt_or_none(attempt)
        self._report(i.UserAsked(attempt_id=attempt_id, question="where to?", heard=heard))

    @rule(
        answer=answers,
        attempt=attempts,
        output=st.sampled_from([None, FITS, MISFITS]),
        question=questions,
    )
    def the_model_answers(
        self,
        answer: ModelAnswer,
        attempt: str,
        output: i.ValidOutput | i.InvalidOutput | None,
        question: str | None,
    ) -> None:
        self._report(
            i.ModelAnswered(
                attempt_id=self._attempt(attempt),
                answer=answer,
                next_attempt_id=self.told.draw(),
                failure_id=self._failure_id(),
                output=output if answer.is_final else None,
                question=question,
            )
        )

    @rule(failure=failures, text=st.sampled_from(["", "half"]), attempt=attempts)
    def the_model_fails(self, failure: ModelFailure, text: str, attempt: str) -> None:
        self._report(
            i.ModelGaveUp(
                attempt_id=self._attempt(attempt),
                failure=failure,
                failure_id=self._failure_id(),
                text=text,
            )
        )

    @rule(text=st.sampled_from(["h", "hello", "hello w"]), attempt=attempts)
    def the_model_writes(self, text: str, attempt: str) -> None:
        self._report(i.ModelWrote(attempt_id=self._attempt(attempt), text=text, reasoning="h"))

    @rule(
        done=st.lists(st.sampled_from(["A", "B", "C", "a1-0", "other"]), max_size=3),
        outcome=st.sampled_from([Outcome.COMPLETED, Outcome.ERROR, Outcome.NOT_STARTED]),
        attempt=attempts,
        question=questions,
    )
    def tools_end(
        self, done: list[str], outcome: Outcome, attempt: str, question: str | None
    ) -> None:
        in_flight = [call.call_id for call in self.told.turn.open_calls][: len(done)]
        self._report(
            i.ToolsFinished(
                attempt_id=self._attempt(attempt),
                finished=tuple(
                    i.FinishedCall(
                        call_id=CallId(c), outcome=outcome, content="", question=question
                    )
                    for c in (*done, *in_flight)
                ),
                next_attempt_id=self.told.draw(),
            )
        )

    @rule(attempt=attempts, hooks=st.booleans())
    def a_worker_dies(self, attempt: str, *, hooks: bool) -> None:
        attempt_id, fresh = self._attempt(attempt), None if hooks else self.told.draw()
        self._report(i.StepLost(attempt_id=attempt_id, next_attempt_id=fresh))

    @rule(attempt=attempts, crash=st.booleans())
    def a_step_ends_badly(self, attempt: str, *, crash: bool) -> None:
        attempt_id = self._attempt(attempt)
        self._report(
            i.StepCrashed(attempt_id=self._attempt_or_none(attempt))
            if crash
            else i.ModelRefused(attempt_id=attempt_id, refusal=REFUSED)
        )

    @rule(attempt=attempts)
    def a_step_is_dropped(self, attempt: str) -> None:
        self._report(i.StepAbandoned(attempt_id=self._attempt(attempt)))

    @rule(minutes=st.integers(0, 3))
    def time_passes(self, minutes: int) -> None:
        self.told.later(minutes=minutes)

    @invariant()
    def the_rules_hold(self) -> None:
        check_journal(self.told.events, self.told.turn)

    @invariant()
    def actions_say_what_would_be_accepted(self) -> None:
        turn, at = self.told.turn, self.told.at
        offered = {action.command: action for action in actions(turn, at=at)}
        for command in get_args(Command):
            action = offered.get(command)
            enabled = action is not None and action.enabled
            assert enabled == _is_accepted(self.told, command), command

    @invariant()
    def an_ended_turn_stays_as_it_is(self) -> None:
        if self.told.turn.is_terminal:
            assert isinstance(next_step(self.told.turn, at=self.told.at), Rest)

    def _in_fresh_words(self, request: i.Request) -> i.Request:
        """A message id stands for one message; a repeated one never comes as far as the core."""
        current = self.told.turn.current_failure
        if isinstance(request, i.RetryModel) and request.failure_id == "current" and current:
            return replace(request, failure_id=current.failure_id)
        if not isinstance(request, i.PostMessage | i.Replan):
            return request
        self.messages += 1
        return replace(request, message=a_message("hello", f"n{self.messages}"))

    def _report(self, given: i.Report) -> None:
        stale = getattr(given, "attempt_id", None) != self.told.turn.attempt_in_flight
        self.told.tell(given)
        assert not (stale and self.told.last), "a stale report changed the turn"

    def _attempt(self, which: str) -> AttemptId:
        return self.told.attempt if which == "current" else AttemptId("stale")

    def _attempt_or_none(self, which: str) -> AttemptId | None:
        """As hooks have it, which may run before a step is begun."""
        return self.told.turn.attempt_in_flight if which == "current" else AttemptId("stale")

    def _failure_id(self) -> FailureId:
        self.failures += 1
        return FailureId(f"{self.told.turn.identity.turn_id}-f{self.failures}")


def _is_accepted(told: Told, command: Command) -> bool:
    """Whether `decide` takes the command, with what is current; a no-op is not an action."""
    turn: Turn = told.turn
    failure = turn.current_failure
    given: dict[Command, i.Request] = {
        "RETRY_MODEL": i.RetryModel(failure_id=failure.failure_id if failure else FailureId("")),
        "RETRY": i.Retry(),
        "CONTINUE": i.ContinueNow(),
        "RESUME": i.Resume(),
        "USER_INPUT": i.UserInput(message=a_message()),
        "REPLAN_WITH_MESSAGE": i.Replan(message=a_message()),
        "RUN": i.Run(),
        "PAUSE": i.Pause(),
        "MESSAGE": i.PostMessage(message=a_message()),
        "CANCEL": i.Cancel(),
        "QUEUE": i.PostMessage(message=a_message(), when_running="queue"),
        "STEER": i.PostMessage(message=a_message(), when_running="steer"),
    }
    try:
        events = decide(turn, given[command], at=told.at, agent=told.agent)
    except Rejected:
        return False
    if command in {"QUEUE", "STEER"}:  # in a state that takes the message at once it is none
        return [event.type for event in events] == ["INPUT_QUEUED"]
    return bool(events)


class AnyInputAndAQueue(AnyInputInAnyState):
    """One conversation after another, whose turns a queue may follow on one another."""

    def __init__(self) -> None:
        super().__init__()
        self.before: list[Told] = []
        """The turns of this conversation whose queues led to this one."""
        self.queued: list[str] = []
        self.withdrawn: set[str] = set()
        self.numbers = count()

    @rule(agent=agents, first=st.integers(0, 3), held=st.booleans())
    @override
    def a_new_turn(self, agent: Agent, first: int, *, held: bool) -> None:
        told = self.told
        super().a_new_turn(agent, first, held=held)
        if self.told is not told:
            self.before, self.queued, self.withdrawn = [], [], set()

    @rule(mode=st.sampled_from(["queue", "steer"]))
    def somebody_queues(self, mode: Literal["queue", "steer"]) -> None:
        before, message_id = list(self.told.events), f"q{next(self.numbers)}"
        message = a_message("and?", message_id)
        try:
            self.told.tell(i.PostMessage(message=message, when_running=mode))
        except Rejected:
            assert self.told.events == before
        else:
            self.queued.append(message_id)

    @rule(newest=st.booleans())
    def somebody_takes_it_back(self, *, newest: bool) -> None:
        before = list(self.told.events)
        message_id = self.queued[-1 if newest else 0] if self.queued else "none"
        try:
            self.told.withdrawn(message_id)
        except Rejected:
            assert self.told.events == before
        else:
            self.withdrawn.add(message_id)

    @invariant()
    def a_queue_opens_the_next_turn(self) -> None:
        if not (self.told.turn.is_terminal and self.told.turn.queue):
            return
        self.the_rules_hold()
        self.before.append(self.told)
        self.told = self.told.succeeded(f"t{len(self.before) + 1}")
        assert self.told.turn.steering == ()

    @invariant()
    def every_queued_message_is_somewhere_once(self) -> None:
        said = [
            message.message_id
            for told in (*self.before, self.told)
            for message in told.transcript.values()
            if isinstance(message, UserMessage) and message.message_id.startswith("q")
        ]
        waiting = [queued.message.message_id for queued in self.told.turn.queue]
        if self.told.turn.is_terminal and waiting:
            return  # the next turn is about to have them
        assert sorted([*said, *waiting, *self.withdrawn]) == sorted(self.queued)

    @invariant()
    def the_conversation_is_whole_when_a_turn_begins_or_ends(self) -> None:
        if self.told.turn.is_terminal or len(self.told.events) == 2:
            stories = (*self.before, self.told)
            check_whole({p: m for told in stories for p, m in told.transcript.items()})


TestAnyInputInAnyState = AnyInputAndAQueue.TestCase
TestAnyInputInAnyState.settings = settings(
    max_examples=size(500, soak=25_000),
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
)
