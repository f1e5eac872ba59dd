"""Any input in any state: it is taken, or refused with a reason, or nothing new. Never a crash.

A machine plays a shell and its callers: people who ask for anything at any time, workers that die,
reports that come late or twice. An ended turn's queue opens the next one. The rules of
`tests/support/histories.py` hold after every step.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import copy
from dataclasses import replace
from datetime import datetime, timedelta
from itertools import count, zip_longest
from typing import ClassVar, Literal, get_args

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from app.turn import inputs as i
from app.turn.actions import Command, actions
from app.turn.agent import Agent, Limits, RetryPolicy, WaitPolicy
from app.turn.changes import NO_CHANGES, Changes
from app.turn.decide import decide
from app.turn.errors import Rejected
from app.turn.events import Event, ToolInputReceived
from app.turn.failures import FailureType, ModelFailure, RequestRefused, TokenLimitPhase
from app.turn.ids import AttemptId, CallId, FailureId, MessageId
from app.turn.lost_calls import Finding, FoundDone, LookedInto
from app.turn.lost_tools import looked_at
from app.turn.next_step import RecoverLostStep, Rest, next_step
from app.turn.open_calls import OpenCall
from app.turn.state import Turn
from app.turn.states import WaitingForCalls, WaitingForModel, WaitingForUser
from app.turn.transcript import (
    AssistantMessage,
    ModelAnswer,
    Outcome,
    StopReason,
    ToolCall,
    Usage,
    UserMessage,
)
from app.turn.waits import (
    Allowed,
    ApprovalNeeded,
    Denied,
    FormWait,
    InputNeeded,
    JudgedCall,
    Judgement,
    NotJudged,
    Unusable,
)
from tests.support.histories import Watch, check_journal, check_whole
from tests.support.sizes import IS_SOAK, size
from tests.support.transitions import INPUTS, STATES
from tests.support.turns import (
    A_FORM,
    AMY,
    FITS,
    IN_WORDS,
    MISFITS,
    REFUSED,
    Told,
    a_message,
    an_agent,
    an_approval,
)
from tests.support.visited import Visited

WAITING = CallId("waiting")
"""In place of the first call that somebody may answer."""
NOT_FOUND_OUT = "not found out"
"""In place of a judgement that the shell does not have yet."""
OF_THE_FORM = i.FormData(values="{}", schema=A_FORM.schema or "")

EVERY_REQUEST: Sequence[i.Request] = (
    i.PostMessage(message=a_message()),
    i.Withdraw(message_id=MessageId("none")),
    i.RetryModel(failure_id=FailureId("current")),
    i.RetryModel(failure_id=FailureId("current"), changes=Changes(model="other/large")),
    i.RetryModel(failure_id=FailureId("current"), changes=Changes(compact=True, keep_turns=1)),
    i.RetryModel(failure_id=FailureId("current"), changes=Changes(max_output_tokens=9)),
    i.RetryModel(failure_id=FailureId("none")),
    i.Retry(),
    i.ContinueNow(),
    i.Resume(),
    i.Replan(message=a_message()),
    i.Run(),
    i.UserInput(message=a_message()),
    i.UserInput(message=a_message(), call_id=WAITING),
    i.UserInput(message=None, call_id=WAITING, data=OF_THE_FORM),
    i.ApproveTool(call_id=WAITING, actor_id=AMY),
    i.RejectTool(call_id=WAITING, actor_id=AMY, reason="no"),
    i.GiveToolResult(call_id=WAITING, output="{}"),
    i.GiveToolError(call_id=WAITING, code="c", message="m"),
    i.Pause(),
    i.Cancel(),
    i.PostMessage(message=a_message(), is_orphaned=True),
    i.PostMessage(message=a_message(), is_orphaned=True, recover_first=True),
    i.Cancel(is_orphaned=True),
)
waiting_agents = st.builds(
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
    on_crash=st.sampled_from(["continue", "pause"]),
    has_policy=st.booleans(),
    open_waits=st.sampled_from(["sequential", "together"]),
    strict_forms=st.booleans(),
    requester_may_approve=st.booleans(),
    wait=st.builds(
        WaitPolicy,
        timeout=st.none() | st.timedeltas(timedelta(minutes=1), timedelta(hours=2)),
        on_expiry=st.sampled_from(["keep", "answer_expired", "fail", "cancel"]),
    ),
)
agents = st.builds(
    replace,
    waiting_agents,
    fallbacks=st.sampled_from([(), (), ("other/large", "third/small")]),
    fallback_on=st.frozensets(st.sampled_from(FailureType)),
    on_context_full=st.sampled_from(["compact_then_wait", "compact_then_wait", "wait", "fail"]),
    on_invalid_request=st.sampled_from(["fail", "wait"]),
    partial_output=st.sampled_from(["keep", "keep", "drop"]),
    on_truncated=st.sampled_from(["complete", "continue"]),
    max_continuations=st.integers(1, 2),
    never_replay=st.booleans(),
)
TOOLS = [tool.name for tool in an_agent().tools]
found_out: Sequence[Judgement] = (
    an_approval(),
    A_FORM,
    IN_WORDS,
    Denied(code="no", message="no"),
    Unusable(content="what?"),
    NotJudged(),
    Allowed(),
)
judgements = st.sampled_from([None, None, None, None, NOT_FOUND_OUT, *found_out])
"""`None`: what the call's tool declares."""
needs = st.sampled_from([an_approval(), an_approval("{1}"), A_FORM])
call_ids = st.sampled_from(["", "A", "B", "C"]).map(CallId)
named = st.sampled_from(["A", "B", WAITING, WAITING, WAITING]).map(CallId)
calls = st.builds(
    ToolCall,
    call_id=call_ids,
    tool_name=st.sampled_from([*TOOLS, "nonsense"]),
    arguments=st.just("{}"),
    problem=st.sampled_from([None, None, None, "cut off"]),
)
answers = st.builds(
    ModelAnswer,
    text=st.sampled_from(["", " ", "hello", "hello world"]),
    reasoning=st.sampled_from(["", "hm"]),
    tool_calls=st.lists(calls, max_size=4).map(tuple),
    stop_reason=st.sampled_from(StopReason),
    opaque=st.sampled_from(["", "sealed"]),
    usage=st.builds(Usage, input_tokens=st.integers(0, 5), output_tokens=st.none()),
)
failures = st.builds(
    ModelFailure,
    type=st.sampled_from(FailureType),
    message=st.just(""),
    retryable=st.booleans(),
    withheld_tools=st.sampled_from([(), ("look_up",)]),
    token_limit_phase=st.sampled_from([None, *TokenLimitPhase]),
)
findings = st.sampled_from([None, None, "unknown", "not_done", FoundDone(content="done")])
questions = st.sampled_from([None, None, None, "which one?"])
attempts = st.sampled_from(["current", "current", "current", "stale"])
changes = st.just(NO_CHANGES) | st.builds(
    Changes,
    model=st.sampled_from([None, "other/large"]),
    max_output_tokens=st.sampled_from([None, 9]),
    compact=st.booleans(),
    keep_turns=st.sampled_from([None, 0, 2]),
    limits=st.sampled_from([None, Limits(max_iterations=9)]),
)
requests = st.one_of(
    st.builds(i.PostMessage, message=st.builds(a_message)),
    st.builds(
        i.RetryModel,
        failure_id=st.sampled_from(["current", "current", "none"]).map(FailureId),
        changes=changes,
    ),
    st.just(i.Retry()),
    st.just(i.ContinueNow()),
    st.builds(i.Resume, changes=changes),
    st.builds(i.Replan, message=st.builds(a_message)),
    st.just(i.Run()),
    st.builds(
        i.UserInput,
        message=st.none() | st.builds(a_message),
        call_id=st.none() | named,
        data=st.sampled_from([None, OF_THE_FORM, i.FormData(values="{}", schema="{}")]),
    ),
    st.builds(
        i.ApproveTool,
        call_id=named,
        actor_id=st.just(AMY),
        fingerprint=st.sampled_from([None, an_approval().fingerprint]),
    ),
    st.builds(i.RejectTool, call_id=named, actor_id=st.just(AMY), reason=st.just("no")),
    st.builds(i.GiveToolResult, call_id=named, output=st.sampled_from(["{}", "long" * 99])),
    st.builds(i.GiveToolError, call_id=named, code=st.just("c"), message=st.just("m")),
    st.just(i.Pause()),
    st.just(i.Cancel()),
    st.builds(
        i.PostMessage,
        message=st.builds(a_message),
        is_orphaned=st.just(True),
        recover_first=st.booleans(),
        lost=st.sampled_from([i.NOTHING_WRITTEN, i.LostAnswer(text="Once")]),
    ),
    st.just(i.Cancel(is_orphaned=True)),
)


class AnyInputInAnyState(RuleBasedStateMachine):
    """One turn after another, told anything."""

    visited: ClassVar[Visited] = Visited()
    """What was told in which state, over all runs of a class."""

    def __init__(self) -> None:
        super().__init__()
        self.told = self.opened(an_agent(), 0)
        self.watched = self.told
        self.watch = Watch()
        self.offered: tuple[Turn, datetime] | None = None
        self.steps = -1  # the invariants are looked at once before the first step
        self.failures = 0
        self.messages = 0

    def opened(self, agent: Agent, first_position: int, *, held: bool = False) -> Told:
        """A new turn, told of by this machine."""
        return Told(agent, first_position=first_position, held=held)

    def brought_to(self, story: Told) -> Told:
        """A turn to which all has happened that this story tells."""
        return story

    @initialize(state=st.sampled_from(sorted(STATES)))
    def it_begins_somewhere(self, state: str) -> None:
        self.turned_to(self.brought_to(STATES[state]()))

    @rule(state=st.sampled_from(sorted(STATES)))
    def another_turn_stands_somewhere(self, state: str) -> None:
        self.turned_to(self.brought_to(STATES[state]()))

    @rule(agent=agents, first=st.integers(0, 3), held=st.booleans())
    def a_new_turn(self, agent: Agent, first: int, *, held: bool) -> None:
        if self.told.turn.is_terminal or len(self.told.events) == 2:
            self.turned_to(self.opened(agent, first, held=held))

    def turned_to(self, told: Told) -> None:
        """From now on this turn is told, and the one before is left as it is."""
        check_journal(self.told.events, self.told.turn)
        self.told = told

    @rule(request=requests)
    def somebody_asks(self, request: i.Request) -> None:
        self._ask(request)

    @rule()
    def somebody_asks_all_that_does_not_fit(self) -> None:
        for request in EVERY_REQUEST:
            if not self._fits(request):
                self._ask(request)

    @rule(which=st.integers(0, 13))
    def somebody_does_what_is_offered(self, which: int) -> None:
        fitting = [request for request in EVERY_REQUEST if self._fits(request)]
        if fitting:
            self._ask(fitting[which % len(fitting)])

    @rule()
    def anything_might_happen_now(self) -> None:
        """Whatever there is to be told, each in a story of its own that is not gone on with."""
        self.the_rules_hold()
        for given_to in INPUTS.values():
            told, watch = self.told.branched(), copy(self.watch)
            given = given_to(told)
            self.visited.note(told.turn, given)
            try:
                told.tell(given)
            except Rejected:
                continue
            watch.check(told.events, told.turn)

    def _fits(self, request: i.Request) -> bool:
        try:
            decide(self.told.turn, self._named(request), at=self.told.at, agent=self.told.agent)
        except Rejected:
            return False
        return True

    def _ask(self, request: i.Request) -> None:
        before = list(self.told.events)
        try:
            self.tell(self._in_fresh_words(request))
        except Rejected:
            assert self.told.events == before

    @rule(found=st.lists(judgements, max_size=4))
    def a_worker_does_what_is_next(self, found: list[Judgement | str | None]) -> None:
        judged = self._judged(found)
        match next_step(self.told.turn, at=self.told.at):
            case Rest():
                assert self._begun(*judged) == ()
            case RecoverLostStep():
                self._report(self.told.loss())
            case _:
                is_all = len(judged) == len(self.told.judged)
                assert self._begun(*judged) or not is_all
                assert self._is_in_flight_or_rests() or not is_all, "it would be asked for ever"

    def _is_in_flight_or_rests(self) -> bool:
        turn = self.told.turn
        return bool(turn.attempt_in_flight) or isinstance(next_step(turn, at=self.told.at), Rest)

    def _judged(self, found: list[Judgement | str | None]) -> tuple[JudgedCall, ...]:
        """What a shell has found out, call by call; else what is declared."""
        pairs = zip_longest(self.told.judged, found[: len(self.told.judged)])
        return tuple(
            replace(each, judgement=what) if isinstance(what, Judgement) else each
            for each, what in pairs
            if what != NOT_FOUND_OUT
        )

    @rule()
    def somebody_looks_at_the_clock(self) -> None:
        self.tell(i.TimePassed())

    @rule()
    def a_worker_begins_what_is_begun(self) -> None:
        if self.told.turn.attempt_in_flight is not None:
            assert self._begun() == ()

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
        answer = replace(answer, text=self.told.written[0] + answer.text)
        self._report(
            i.ModelAnswered(
                attempt_id=self._attempt(attempt),
                answer=answer,
                next_attempt_id=self._draw(),
                failure_id=self._failure_id(),
                taken_call_ids=self._taken_call_ids(),
                output=output if answer.is_final else None,
                question=question,
            )
        )

    @rule(
        failure=failures,
        text=st.sampled_from(["", "half"]),
        attempt=attempts,
        has_more=st.booleans(),
    )
    def the_model_fails(
        self, failure: ModelFailure, text: str, attempt: str, *, has_more: bool
    ) -> None:
        self._report(
            i.ModelGaveUp(
                attempt_id=self._attempt(attempt),
                failure=failure,
                failure_id=self._failure_id(),
                text=self.told.written[0] + text,
                next_attempt_id=self._draw(),
                can_compact=has_more and self._replaced() is not None,
            )
        )

    @rule(ending=answers | failures | st.just(REFUSED) | st.none(), attempt=attempts)
    def a_summary_ends(
        self, ending: ModelAnswer | ModelFailure | RequestRefused | None, attempt: str
    ) -> None:
        self._report(
            i.CompactionEnded(
                attempt_id=self._attempt(attempt),
                replaced=self._replaced(),
                ending=ending,
                next_attempt_id=self._draw(),
                failure_id=self._failure_id(),
            )
        )

    def _replaced(self) -> i.Replaced | None:
        """All that was said before the turn, where there is something."""
        first = min(self.told.transcript)
        return i.Replaced(first=0, last=first - 1, tokens=3) if first else None

    @rule(more=st.sampled_from([" ", "h", "ello w"]), attempt=attempts)
    def the_model_writes(self, more: str, attempt: str) -> None:
        text = self.told.written[0] + more
        self._report(i.ModelWrote(attempt_id=self._attempt(attempt), text=text, reasoning="h"))

    @rule(
        done=st.lists(st.sampled_from(["A", "B", "C", "a1-0", "other"]), max_size=3),
        outcome=st.sampled_from(
            [Outcome.COMPLETED, Outcome.ERROR, Outcome.NOT_STARTED, Outcome.CANCELLED]
        ),
        attempt=attempts,
        question=questions,
        needed=st.none() | needs,
        found=st.lists(judgements, max_size=4),
    )
    def tools_end(
        self,
        done: list[str],
        outcome: Outcome,
        attempt: str,
        question: str | None,
        needed: ApprovalNeeded | InputNeeded | None,
        found: list[Judgement | str | None],
    ) -> None:
        in_flight = [call.call_id for call in self.told.turn.open_calls][: len(done)]
        self._report(
            i.ToolsFinished(
                attempt_id=self._attempt(attempt),
                finished=tuple(
                    i.FinishedCall(
                        call_id=CallId(c),
                        outcome=outcome,
                        content="",
                        question=question,
                        needs=needed,
                    )
                    for c in (*done, *in_flight)
                ),
                next_attempt_id=self._draw(),
                judged=self._judged(found),
            )
        )

    @rule(
        attempt=attempts,
        hooks=st.booleans(),
        found=st.lists(findings, min_size=4, max_size=4),
        is_cut_off=st.booleans(),
        is_looked_into=st.sampled_from([True, True, True, False]),
    )
    def a_worker_dies(
        self,
        attempt: str,
        found: list[Finding | None],
        *,
        hooks: bool,
        is_cut_off: bool,
        is_looked_into: bool,
    ) -> None:
        lost = looked_at(self.told.turn) if is_looked_into else ()
        text, reasoning = self.told.written
        self._report(
            i.StepLost(
                attempt_id=self._attempt(attempt),
                next_attempt_id=None if hooks else self._draw(),
                looked_into=tuple(
                    LookedInto(call_id=call.call_id, arguments="{}", finding=finding)
                    for call, finding in zip(lost, found, strict=False)
                ),
                is_cut_off=is_cut_off,
                text=text,
                reasoning=reasoning,
            )
        )

    @rule(attempt=attempts, deaths=st.integers(1, 3))
    def a_worker_takes_over(self, attempt: str, *, deaths: int) -> None:
        attempt_id = self._attempt_or_none(attempt)
        self._report(i.WorkerLost(attempt_id=attempt_id, deaths=deaths))

    @rule(attempt=attempts, crash=st.booleans(), more=st.sampled_from(["", "and"]))
    def a_step_ends_badly(self, attempt: str, more: str, *, crash: bool) -> None:
        text = self.told.written[0] + more
        self._report(
            i.StepCrashed(attempt_id=self._attempt_or_none(attempt), text=text)
            if crash
            else i.ModelRefused(
                attempt_id=self._attempt(attempt),
                refusal=REFUSED,
                failure_id=self._failure_id(),
                text=text,
                next_attempt_id=self._draw(),
            )
        )

    @rule(attempt=attempts, more=st.sampled_from(["", "and"]))
    def a_step_is_dropped(self, attempt: str, more: str) -> None:
        text = self.told.written[0] + more
        self._report(i.StepAbandoned(attempt_id=self._attempt(attempt), text=text))

    @rule(minutes=st.integers(-3, 3))
    def time_passes(self, minutes: int) -> None:
        """Or goes back: another process's clock may be behind."""
        self.told.later(minutes=minutes)

    @rule(hours=st.sampled_from([-1, 1, 1000]))
    def the_clock_jumps(self, hours: int) -> None:
        self.told.later(hours=hours)

    @override
    def teardown(self) -> None:
        self.visited.steps += self.steps
        check_journal(self.told.events, self.told.turn)

    @invariant()
    def the_rules_hold(self) -> None:
        if self.watched is not self.told:
            self.watched, self.watch = self.told, Watch()
        self.watch.check(self.told.events, self.told.turn)

    @invariant()
    def actions_say_what_would_be_accepted(self) -> None:
        turn, at = self.told.turn, self.told.at
        if self.offered == (turn, at):
            return  # as before, then
        enabled = {
            (action.command, action.call_id) for action in actions(turn, at=at) if action.enabled
        }
        assert enabled == set(_accepted(self.told))
        self.offered = turn, at

    @invariant()
    def a_turn_that_waits_for_its_model_has_come_back_from_nothing(self) -> None:
        if isinstance(self.told.turn.state, WaitingForModel):
            assert self.told.turn.came_back_from is None

    @invariant()
    def one_call_at_a_time_waits_unless_they_wait_together(self) -> None:
        waiting, agent = self.told.turn.waiting_calls, self.told.agent
        if waiting and agent.open_waits == "sequential":
            assert waiting == self.told.turn.open_calls[:1]
            assert isinstance(self.told.turn.state, WaitingForCalls)

    @invariant()
    def a_step_is_counted(self) -> None:
        self.steps += 1

    @invariant()
    def an_ended_turn_stays_as_it_is(self) -> None:
        if self.told.turn.is_terminal:
            assert isinstance(next_step(self.told.turn, at=self.told.at), Rest)

    def _in_fresh_words(self, request: i.Request) -> i.Request:
        """A message id stands for one message; a repeated one never comes as far as the core."""
        request = self._named(request)
        if not isinstance(request, i.PostMessage | i.Replan):
            return request
        self.messages += 1
        return replace(request, message=a_message("hello", f"n{self.messages}"))

    def _named(self, request: i.Request) -> i.Request:
        """With what is the current one, a failure or a call, where that is asked for."""
        if isinstance(request, i.RetryModel) and request.failure_id == "current":
            return replace(request, failure_id=_current(self.told.turn))
        if isinstance(request, i.UserInput | i.CallCommand) and request.call_id == WAITING:
            waiting = [call.call_id for call in self.told.turn.waiting_calls]
            return replace(request, call_id=next(iter(waiting), CallId("A")))
        return request

    def tell(self, given: i.Input) -> None:
        """Tell the turn, which may refuse, and remember in which state it was told."""
        self.visited.note(self.told.turn, given)
        self.told.tell(given)

    def _begun(self, *judged: JudgedCall) -> Sequence[Event]:
        self.tell(i.BeginStep(attempt_id=self._draw(), judged=judged))
        return self.told.last

    def _draw(self) -> AttemptId:
        return self.told.draw()

    def _report(self, given: i.Report) -> None:
        stale = getattr(given, "attempt_id", None) != self.told.turn.attempt_in_flight
        self.tell(given)
        assert not (stale and self.told.last), "a stale report changed the turn"

    def _attempt(self, which: str) -> AttemptId:
        return self.told.attempt if which == "current" else AttemptId("stale")

    def _attempt_or_none(self, which: str) -> AttemptId | None:
        """As hooks have it, which may run before a step is begun."""
        return self.told.turn.attempt_in_flight if which == "current" else AttemptId("stale")

    def _taken_call_ids(self) -> frozenset[str]:
        said = self.told.transcript.values()
        answers = [message for message in said if isinstance(message, AssistantMessage)]
        return frozenset(call.call_id for answer in answers for call in answer.tool_calls)

    def _failure_id(self) -> FailureId:
        """None that the story has which brought the turn here."""
        self.failures += 1
        return FailureId(f"{self.told.turn.identity.turn_id}-any{self.failures}")


_A_MESSAGE = a_message()
_COMMANDS: Mapping[Command, Callable[[Turn], i.Request]] = {  # none of them is about a call
    "RETRY_MODEL": lambda turn: i.RetryModel(failure_id=_current(turn)),
    "RETRY": lambda _: i.Retry(),
    "CONTINUE": lambda _: i.ContinueNow(),
    "RESUME": lambda _: i.Resume(),
    "USER_INPUT": lambda _: i.UserInput(message=_A_MESSAGE),
    "REPLAN_WITH_MESSAGE": lambda _: i.Replan(message=_A_MESSAGE),
    "RUN": lambda _: i.Run(),
    "PAUSE": lambda _: i.Pause(),
    "MESSAGE": lambda _: i.PostMessage(message=_A_MESSAGE),
    "CANCEL": lambda _: i.Cancel(),
    "QUEUE": lambda _: i.PostMessage(message=_A_MESSAGE, when_running="queue"),
    "STEER": lambda _: i.PostMessage(message=_A_MESSAGE, when_running="steer"),
}


def _current(turn: Turn) -> FailureId:
    failure = turn.current_failure
    return FailureId("none") if failure is None else failure.failure_id


def _answer_to(call: OpenCall) -> i.UserInput:
    schema = call.wait.schema if isinstance(call.wait, FormWait) else None
    if schema is None:
        return i.UserInput(message=_A_MESSAGE, call_id=call.call_id)
    data = i.FormData(values="{}", schema=schema)
    return i.UserInput(message=None, call_id=call.call_id, data=data)


_ON_CALLS: Mapping[Command, Callable[[OpenCall], i.Request]] = {
    "APPROVE_TOOL": lambda call: i.ApproveTool(call_id=call.call_id, actor_id=AMY),
    "REJECT_TOOL": lambda call: i.RejectTool(call_id=call.call_id, actor_id=AMY, reason=""),
    "TOOL_RESULT": lambda call: i.GiveToolResult(call_id=call.call_id, output="{}"),
    "TOOL_ERROR": lambda call: i.GiveToolError(call_id=call.call_id, code="c", message="m"),
    "USER_INPUT": _answer_to,
}


def test_every_action_is_asked_for() -> None:
    assert set(_COMMANDS) | set(_ON_CALLS) == set(get_args(Command))


def _accepted(told: Told) -> Iterator[tuple[Command, CallId | None]]:
    """What `decide` takes now, and for which call; an answer that names none is none for a call."""
    for command, ask in _COMMANDS.items():
        is_for_a_call = command == "USER_INPUT" and not isinstance(told.turn.state, WaitingForUser)
        if not is_for_a_call and _is_accepted(told, command, ask(told.turn)):
            yield command, None
    for command, answer in _ON_CALLS.items():
        for call in told.turn.open_calls:
            if _is_accepted(told, command, answer(call)):
                yield command, call.call_id


def _is_accepted(told: Told, command: Command, given: i.Request) -> bool:
    """Whether `decide` takes the command, with what is current; a no-op is not an action."""
    try:
        events = decide(told.turn, given, at=told.at, agent=told.agent)
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

    @override
    def turned_to(self, told: Told) -> None:
        super().turned_to(told)
        self.before, self.queued, self.withdrawn = [], [], set()

    @rule(mode=st.sampled_from(["queue", "steer"]))
    def somebody_queues(self, mode: Literal["queue", "steer"]) -> None:
        before, message_id = list(self.told.events), f"w{next(self.numbers)}"
        message = a_message("and?", message_id)
        try:
            self.tell(i.PostMessage(message=message, when_running=mode))
        except Rejected:
            assert self.told.events == before
        else:
            if not any(isinstance(event, ToolInputReceived) for event in self.told.last):
                self.queued.append(message_id)  # else it is the result of a call that has asked

    @rule(newest=st.booleans())
    def somebody_takes_it_back(self, *, newest: bool) -> None:
        before = list(self.told.events)
        message_id = self.queued[-1 if newest else 0] if self.queued else "none"
        try:
            self.tell(i.Withdraw(message_id=MessageId(message_id)))
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
            if isinstance(message, UserMessage) and message.message_id.startswith("w")
        ]
        waiting = [
            queued.message.message_id
            for queued in self.told.turn.queue
            if queued.message.message_id.startswith("w")
        ]
        if self.told.turn.is_terminal and self.told.turn.queue:
            return  # the next turn is about to have them
        assert sorted([*said, *waiting, *self.withdrawn]) == sorted(self.queued)

    def _stories_before(self) -> Sequence[Told]:
        """Of the turns that led to the first one, where this one began in the middle of a story."""
        first = (*self.before, self.told)[0]
        return () if first.before is None else (first.before,)

    @invariant()
    def the_conversation_is_whole_when_a_turn_begins_or_ends(self) -> None:
        if self.told.turn.is_terminal or len(self.told.events) == 2:
            stories = (*self._stories_before(), *self.before, self.told)
            check_whole({p: m for told in stories for p, m in told.transcript.items()})


def test_any_input_in_any_state() -> None:
    class Machine(AnyInputAndAQueue):
        visited = Visited()

    run_state_machine_as_test(
        Machine,
        settings=settings(
            max_examples=size(1_900, soak=34_000),
            stateful_step_count=40,
            deadline=None,
            suppress_health_check=[HealthCheck.too_slow],
        ),
    )

    # Thirty-four steps to an example, give or take: a run whose dice fall low is no failure.
    assert Machine.visited.steps >= size(55_000, soak=1_000_000)
    assert Machine.visited.unmet() == [], "add a rule that comes here"
    assert not IS_SOAK or Machine.visited.missing() == "", "add a rule that comes here"
