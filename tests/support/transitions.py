"""The whole machine as a table: what every input does in every state, found by asking the core."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import TypeAlias

from app.turn import inputs as i
from app.turn.agent import Limits, RetryPolicy
from app.turn.changes import Changes
from app.turn.decide import decide
from app.turn.decide_queue import MOST_QUEUED
from app.turn.errors import Rejected
from app.turn.evolve import advance
from app.turn.failures import FailureType, ModelFailure
from app.turn.ids import ActorId, CallId, FailureId, MessageId
from app.turn.lost_calls import FoundDone
from app.turn.state import Turn
from app.turn.transcript import (
    ImagePart,
    ModelAnswer,
    Outcome,
    StopReason,
    UserMessage,
)
from app.turn.waits import ApprovalNeeded, Denied, InputNeeded, Judgement, NotJudged, Unusable
from tests.support.calls_that_wait import WAITS_OF_CALLS
from tests.support.turns import (
    A_FORM,
    BARRING,
    FITS,
    FLAKY,
    LONG_AGO,
    MAIL,
    MISFITS,
    OVERLOADED,
    QUOTA,
    REFUSED,
    TOO_LONG,
    WIRE,
    WRITES,
    Told,
    a_call,
    a_message,
    an_agent,
    an_answer,
    an_approval,
)

Given: TypeAlias = Callable[[Told], i.Input]


def _retrying() -> Told:
    return Told(an_agent(retry=RetryPolicy(max_retries=1)))


def _falling_back() -> Told:
    every = frozenset(FailureType)
    agent = replace(an_agent(), fallbacks=("other/large",), fallback_on=every)
    return Told(agent, first_position=10)


def _lost(told: Told) -> Told:
    return told.tell(i.StepLost(attempt_id=told.attempt, next_attempt_id=None))


def _flaky() -> Told:
    told = Told().begun().answered(an_answer("", a_call("A", FLAKY)))
    return told.finished("A", outcome=Outcome.ERROR)


def _one_at_a_time() -> Told:
    told = Told(an_agent(limits=Limits(parallel_tools=1))).begun()
    return told.answered(an_answer("", a_call("A"), a_call("B", WRITES)))


def _crashed_tools() -> Told:
    told = Told(an_agent(on_crash="pause")).begun()
    return told.answered(an_answer("", a_call("A"), a_call("B", WRITES))).crashed()


def _full() -> Told:
    told = Told().begun()
    for n in range(MOST_QUEUED):
        told.queued("q", "m9" if n == 0 else f"q{n}")
    return told


def _limited(limits: Limits) -> Told:
    return Told(an_agent(limits=limits)).begun().answered(an_answer("", a_call("A"))).finished("A")


STATES: Mapping[str, Callable[[], Told]] = {
    "READY": Told,
    "READY, on hold": lambda: Told(held=True),
    "RUNNING, a model call is due": lambda: Told().begun().gave_up(QUOTA).retried(),
    "RUNNING, a model call is begun": lambda: Told().begun(),
    "RUNNING, a model call is begun, text stored": lambda: Told().begun().wrote("Once"),
    "RUNNING, a model call is begun, text stored, a pause asked for": lambda: (
        Told().begun().wrote("Once").tell(i.Pause())
    ),
    "RUNNING, the last tool is begun": lambda: Told().begun().answered(an_answer("", a_call("A"))),
    "RUNNING, a tool is begun, a writing one follows": _one_at_a_time,
    "RUNNING, a model call is begun, a message is queued": lambda: Told().begun().queued("q", "m9"),
    "RUNNING, a model call is begun, a message steers": lambda: Told().begun().steered("s", "m9"),
    "RUNNING, a tool is begun, a writing one follows, a message steers": lambda: (
        _one_at_a_time().steered("s", "m9")
    ),
    "RUNNING, a model call is begun, the queue is full": _full,
    "RUNNING, a model call is begun, cancellation asked for": lambda: Told().begun().cancelled(),
    "RUNNING, the last tool is begun, cancellation asked for": lambda: (
        Told().begun().answered(an_answer("", a_call("A"))).cancelled()
    ),
    "RETRY_SCHEDULED": lambda: _retrying().begun().gave_up(OVERLOADED),
    "RETRY_SCHEDULED, due": lambda: _retrying().begun().gave_up(OVERLOADED).later(minutes=2),
    "RETRY_SCHEDULED, of a tool": _flaky,
    "RETRY_SCHEDULED, of a tool, due": lambda: _flaky().later(minutes=2),
    "RUNNING, a tool is begun whose error is tried again": lambda: (
        Told().begun().answered(an_answer("", a_call("A", FLAKY)))
    ),
    "RUNNING, a tool is begun that a person is asked about": lambda: (
        Told().begun().answered(an_answer("", a_call("A", WIRE), a_call("B")))
    ),
    "RUNNING, tools are begun that are given up together": lambda: (
        Told().begun().answered(an_answer("", a_call("A", MAIL), a_call("B"), a_call("C", WRITES)))
    ),
    "RUNNING, the last tool is begun, of an agent that replays nothing": lambda: (
        Told(replace(an_agent(), never_replay=True)).begun().answered(an_answer("", a_call("A")))
    ),
    "RUNNING, a tool is begun that bars the one behind it": lambda: (
        Told().begun().answered(an_answer("", a_call("A", BARRING), a_call("B", WRITES)))
    ),
    "RUNNING, a model call is begun, of an agent that does not wait": lambda: Told(
        an_agent(on_model_failure="fail")
    ).begun(),
    "RUNNING, a model call is begun, of an agent whose crashes people look at": lambda: Told(
        an_agent(on_crash="pause")
    ).begun(),
    "PAUSED, a model call was lost": lambda: (
        Told(an_agent(on_crash="pause")).begun().wrote("Once").crashed()
    ),
    "PAUSED, tools were lost": _crashed_tools,
    "RUNNING, tools were lost before a pause": lambda: _crashed_tools().resumed(),
    "RUNNING, a model call is begun to repair an answer": lambda: (
        Told().begun().answered(an_answer("{}"), output=MISFITS)
    ),
    "RUNNING, a model call is begun, of an agent that has cut answers continued": lambda: Told(
        replace(
            an_agent(), on_truncated="continue", on_invalid_request="wait", partial_output="drop"
        )
    ).begun(),
    "WAITING_FOR_MODEL": lambda: Told().begun().gave_up(QUOTA),
    "WAITING_FOR_MODEL, text of the answer is kept": lambda: (
        Told().begun().gave_up(OVERLOADED, text="Once")
    ),
    "WAITING_FOR_MODEL, of a token limit": lambda: Told().begun().gave_up(TOO_LONG),
    "RUNNING, a model call is begun, of a model with a fallback": lambda: _falling_back().begun(),
    "RUNNING, a model call is begun, of the last fallback": lambda: (
        _falling_back().begun().gave_up(OVERLOADED)
    ),
    "RUNNING, a summary is due": lambda: (
        Told(first_position=10).begun().gave_up(TOO_LONG).retried(changes=Changes(compact=True))
    ),
    "RUNNING, a summary is due, cancellation asked for": lambda: (
        Told(first_position=10)
        .begun()
        .gave_up(TOO_LONG)
        .retried(changes=Changes(compact=True))
        .cancelled()
    ),
    "RUNNING, a summary was lost": lambda: _lost(
        Told(first_position=10).begun().gave_up(TOO_LONG, can_compact=True)
    ),
    "RUNNING, a summary is begun": lambda: (
        Told(first_position=10).begun().gave_up(TOO_LONG, can_compact=True)
    ),
    "RUNNING, a summary is begun that was asked for": lambda: (
        Told(first_position=10)
        .begun()
        .gave_up(TOO_LONG)
        .retried(changes=Changes(compact=True))
        .begun()
    ),
    "WAITING_FOR_USER": lambda: (
        Told().begun().answered(an_answer("", a_call("A"))).finished("A", question="where to?")
    ),
    "WAITING_FOR_USER, a tool is next": lambda: _flaky().later(minutes=2).asked(),
    "RUNNING, a tool is due": lambda: _flaky().later(minutes=2).asked().posted("Tokyo"),
    "RUNNING, a writing tool is begun, a question is to be asked": lambda: (
        _one_at_a_time().finished("A", question="where to?")
    ),
    "WAITING_FOR_MODEL, a message steers": lambda: Told().begun().steered("s", "m9").gave_up(QUOTA),
    "PAUSED, a model call is next": lambda: Told().begun().paused(),
    "PAUSED, a tool is next": lambda: _one_at_a_time().paused().finished("A"),
    "RUNNING, the last tool is begun, a pause asked for": lambda: (
        Told().begun().answered(an_answer("", a_call("A"))).paused()
    ),
    "COMPLETED": lambda: Told().begun().answered(an_answer("done")),
    "COMPLETED, a message was queued": lambda: (
        Told().begun().queued("q", "m9").answered(an_answer("done"))
    ),
    "READY, opened by a queue": lambda: (
        Told().begun().queued("q", "m8").queued("q", "m9").answered(an_answer("done")).succeeded()
    ),
    "FAILED": lambda: _told(Told().begun(), i.StepCrashed),
    "CANCELLED": lambda: Told().cancelled(),
    "MAX_ITERATIONS_REACHED": lambda: _limited(Limits(max_iterations=1)),
    "MAX_STEPS_REACHED": lambda: _limited(Limits(max_steps=2)),
    "BUDGET_EXCEEDED": lambda: (
        Told(an_agent(limits=Limits(max_tool_calls=1)))
        .begun()
        .answered(an_answer("", a_call("A"), a_call("B")))
        .finished("A")
    ),
    **WAITS_OF_CALLS,
}


def _told(told: Told, report: type[i.StepCrashed]) -> Told:
    return told.tell(report(attempt_id=told.attempt))


def _answered(answer: ModelAnswer, output: i.ValidOutput | i.InvalidOutput | None = None) -> Given:
    return lambda told: i.ModelAnswered(
        attempt_id=told.attempt,
        answer=answer,
        next_attempt_id=told.draw(),
        failure_id=FailureId("f9"),
        output=output,
    )


def _gave_up(told: Told) -> i.Input:
    return i.ModelGaveUp(
        attempt_id=told.attempt,
        failure=OVERLOADED,
        failure_id=FailureId("f9"),
        text=told.written[0],
        next_attempt_id=told.draw(),
    )


def _summed_up(ending: ModelAnswer | ModelFailure) -> Given:
    return lambda told: i.CompactionEnded(
        attempt_id=told.attempt,
        replaced=LONG_AGO if min(told.transcript) > LONG_AGO.last else None,
        ending=ending,
        next_attempt_id=told.draw(),
        failure_id=FailureId("f9"),
    )


def _finished(outcome: Outcome) -> Given:
    return lambda told: i.ToolsFinished(
        attempt_id=told.attempt,
        finished=(i.FinishedCall(call_id=CallId("A"), outcome=outcome, content=""),),
        next_attempt_id=told.draw(),
        judged=told.judged,
    )


def _needs(what: ApprovalNeeded | InputNeeded) -> Given:
    return lambda told: i.ToolsFinished(
        attempt_id=told.attempt,
        finished=(
            i.FinishedCall(call_id=CallId("A"), outcome=Outcome.COMPLETED, content="", needs=what),
        ),
        next_attempt_id=told.draw(),
        judged=told.judged,
    )


def _begins(judgement: Judgement) -> Given:
    """With that judgement on the first call that needs one."""
    return lambda told: i.BeginStep(
        attempt_id=told.draw(),
        judged=tuple(replace(each, judgement=judgement) for each in told.judged[:1]),
    )


INPUTS: Mapping[str, Given] = {
    "message": lambda _: i.PostMessage(message=a_message("and?", "m2")),
    "message, to be queued": lambda _: i.PostMessage(
        message=a_message("and?", "m2"), when_running="queue"
    ),
    "message, to steer": lambda _: i.PostMessage(
        message=a_message("no, this", "m2"), when_running="steer"
    ),
    "message, an image": lambda _: i.PostMessage(
        message=UserMessage(message_id=MessageId("m2"), content=(ImagePart(url="https://x/y.png"),))
    ),
    "message, the worker is gone": lambda _: i.PostMessage(
        message=a_message("and?", "m2"), is_orphaned=True
    ),
    "message, the worker is gone, recovery first": lambda _: i.PostMessage(
        message=a_message("and?", "m2"), is_orphaned=True, recover_first=True
    ),
    "withdraw": lambda _: i.Withdraw(message_id=MessageId("m9")),
    "RETRY_MODEL, current failure": lambda told: i.RetryModel(failure_id=_current(told.turn)),
    "RETRY_MODEL, of another model": lambda told: i.RetryModel(
        failure_id=_current(told.turn), changes=Changes(model="other/large")
    ),
    "RETRY_MODEL, behind a summary": lambda told: i.RetryModel(
        failure_id=_current(told.turn), changes=Changes(compact=True)
    ),
    "RETRY_MODEL, another failure": lambda _: i.RetryModel(failure_id=FailureId("other")),
    "RETRY": lambda _: i.Retry(),
    "CONTINUE": lambda _: i.ContinueNow(),
    "RESUME": lambda _: i.Resume(),
    "REPLAN_WITH_MESSAGE": lambda _: i.Replan(message=a_message("no, this", "m3")),
    "RUN": lambda _: i.Run(),
    "USER_INPUT": lambda _: i.UserInput(message=a_message("Tokyo", "m4")),
    "USER_INPUT, blank": lambda _: i.UserInput(message=None),
    "USER_INPUT, of a call": lambda _: i.UserInput(
        message=a_message("Tokyo", "m4"), call_id=CallId("A")
    ),
    "USER_INPUT, values for a form": lambda _: i.UserInput(
        message=None,
        call_id=CallId("A"),
        data=i.FormData(values='{"city":"Tokyo"}', schema=A_FORM.schema or ""),
    ),
    "APPROVE_TOOL": lambda _: i.ApproveTool(call_id=CallId("A"), actor_id=ActorId("amy")),
    "REJECT_TOOL": lambda _: i.RejectTool(
        call_id=CallId("A"), actor_id=ActorId("amy"), reason="no"
    ),
    "APPROVE_TOOL, of an older request": lambda _: i.ApproveTool(
        call_id=CallId("A"), actor_id=ActorId("amy"), fingerprint="older"
    ),
    "APPROVE_TOOL, of another call": lambda _: i.ApproveTool(
        call_id=CallId("Z"), actor_id=ActorId("amy")
    ),
    "TOOL_RESULT, too long": lambda _: i.GiveToolResult(call_id=CallId("A"), output="x" * 100),
    "TOOL_RESULT": lambda _: i.GiveToolResult(call_id=CallId("A"), output="{}"),
    "TOOL_ERROR": lambda _: i.GiveToolError(call_id=CallId("A"), code="gone", message="no"),
    "pause": lambda _: i.Pause(),
    "cancel": lambda _: i.Cancel(),
    "cancel, the worker is gone": lambda _: i.Cancel(is_orphaned=True),
    "time passes": lambda _: i.TimePassed(),
    "worker: begins": lambda told: i.BeginStep(attempt_id=told.draw(), judged=told.judged),
    "worker: begins, nothing is judged": lambda told: i.BeginStep(attempt_id=told.draw()),
    "worker: begins, a call may not run": _begins(Denied(code="no", message="not today")),
    "worker: begins, a call makes no sense": _begins(Unusable(content="no such form")),
    "worker: begins, the policy fails": _begins(NotJudged()),
    "worker: text": lambda told: i.ModelWrote(
        attempt_id=told.attempt, text="Once upon", reasoning=""
    ),
    "worker: final answer": _answered(an_answer("done")),
    "worker: final answer that fits its type": _answered(an_answer("{}"), FITS),
    "worker: final answer that does not": _answered(an_answer("{}"), MISFITS),
    "worker: answer with a call": _answered(an_answer("", a_call("N"))),
    "worker: refused answer": _answered(an_answer("no", stop=StopReason.REFUSAL)),
    "worker: empty answer": _answered(an_answer("")),
    "worker: answer that paused": _answered(an_answer("Once", stop=StopReason.PAUSED)),
    "worker: answer that was cut": _answered(an_answer("Once", stop=StopReason.MAX_OUTPUT)),
    "worker: model failure": _gave_up,
    "worker: request too long, there is a history": lambda told: i.ModelGaveUp(
        attempt_id=told.attempt,
        failure=TOO_LONG,
        failure_id=FailureId("f9"),
        next_attempt_id=told.draw(),
        can_compact=True,
    ),
    "worker: request refused": lambda told: i.ModelRefused(
        attempt_id=told.attempt,
        refusal=REFUSED,
        failure_id=FailureId("f9"),
        text=told.written[0],
        next_attempt_id=told.draw(),
    ),
    "worker: summary": _summed_up(an_answer("They spoke.")),
    "worker: summary, blank": _summed_up(an_answer(" ")),
    "worker: summary failed": _summed_up(OVERLOADED),
    "worker: nothing to sum up": lambda told: i.CompactionEnded(
        attempt_id=told.attempt,
        replaced=None,
        ending=None,
        next_attempt_id=told.draw(),
        failure_id=FailureId("f9"),
    ),
    "worker: tool ended": _finished(Outcome.COMPLETED),
    "worker: tool failed": _finished(Outcome.ERROR),
    "worker: tool asks for an approval": _needs(an_approval()),
    "worker: tool asks for a form": _needs(A_FORM),
    "worker: tool asks the user": lambda told: i.ToolsFinished(
        attempt_id=told.attempt,
        finished=(
            i.FinishedCall(
                call_id=CallId("A"), outcome=Outcome.COMPLETED, content="", question="which?"
            ),
        ),
        next_attempt_id=told.draw(),
    ),
    "worker: answer, a hook asks the user": lambda told: i.ModelAnswered(
        attempt_id=told.attempt,
        answer=an_answer("done", a_call("N")),
        next_attempt_id=told.draw(),
        failure_id=FailureId("f9"),
        question="sure?",
    ),
    "worker: hook asks the user": lambda told: i.UserAsked(
        attempt_id=told.turn.attempt_in_flight, question="sure?"
    ),
    "worker: hook failed": lambda told: i.StepCrashed(
        attempt_id=told.turn.attempt_in_flight, reason="hook_failed", text=told.written[0]
    ),
    "worker: fault of ours": lambda told: i.StepCrashed(
        attempt_id=told.attempt, text=told.written[0]
    ),
    "worker: step dropped": lambda told: i.StepAbandoned(
        attempt_id=told.attempt, text=told.written[0]
    ),
    "worker: tool stopped": _finished(Outcome.CANCELLED),
    "worker: step found lost": lambda told: told.loss(),
    "worker: step found lost, hooks come first": lambda told: told.loss(hooks_first=True),
    "worker: step found lost, a probe says it is done": lambda told: told.loss(
        {"A": FoundDone(content="done")}
    ),
    "worker: step found lost, a probe says it is not done": lambda told: told.loss(
        {"A": "not_done"}
    ),
    "worker: taken over": lambda told: i.WorkerLost(attempt_id=told.turn.attempt_in_flight),
    "worker: taken over for the third time": lambda told: i.WorkerLost(
        attempt_id=told.turn.attempt_in_flight, deaths=3
    ),
}


def _current(turn: Turn) -> FailureId:
    return FailureId("none") if turn.current_failure is None else turn.current_failure.failure_id


def transitions_page() -> str:
    """The page `docs/transitions.md`."""
    sections = [_section(name, make) for name, make in STATES.items()]
    return _HEAD + "\n".join(sections)


def _section(name: str, make: Callable[[], Told]) -> str:
    lines = [f"## {name}", "", "| input | events | then |", "|---|---|---|"]
    lines += [_row(label, make(), given) for label, given in INPUTS.items()]
    return "\n".join(lines) + "\n"


def _row(label: str, told: Told, given: Given) -> str:
    try:
        events = decide(told.turn, given(told), at=told.at, agent=told.agent)
    except Rejected as refusal:
        return f"| {label} | refused: `{refusal.code}` | unchanged |"
    if not events:
        return f"| {label} | nothing new | unchanged |"
    after = advance(told.turn, events)
    types = " ".join(f"`{event.type}`" for event in events)
    then = "; its queue opens the next turn" if after.is_terminal and after.queue else ""
    return f"| {label} | {types} | {after.status}, {after.state.kind}{then} |"


_HEAD = """# What every input does in every state

Made by asking `decide` (`scripts/transitions`); a test fails when the core says something else.
A request that does not fit is refused and changes nothing; a report that is stale is nothing new.

"""
