"""Rules for the end of a model call.

answer with calls         stored with its calls before any tool runs, then the tools begin (T27)
final answer              the turn completes (T26), or what `decide_output` says; cut with usable
                          text it completes (T30)
a hook's question         the text is kept, the calls are withheld, the turn waits (T43a)
while a message steers    a finished one is kept, the message follows it, the model goes on (T9)
refusal                   the calls that came with it are withheld (T32, C23)
nothing usable            a failure like any other: the turn waits (T30, T30a)
recognised failure        tried again by itself (T33) or waits with a fresh failureId (T34); an
                          agent for batches fails instead of waiting (C7)
the request is refused    the turn fails (T36a); a fault of ours likewise (T36)
cancellation asked for    beats all of them; the answer is dropped (T37, case 123)
"""

from datetime import datetime
from typing import Literal

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent, Effect, ToolSpec
from app.turn.blocking import given_up
from app.turn.decide_output import concluded
from app.turn.evolve import advance
from app.turn.failures import FailureRecord, FailureType, ModelFailure, TokenLimitPhase
from app.turn.questions import asking
from app.turn.retry import retry_due_at
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.steering import can_be_steered
from app.turn.steps import cancelled, end_step, failed, remaining_iterations, then_begin
from app.turn.stored_calls import as_stored
from app.turn.transcript import (
    FINISHED,
    AssistantMessage,
    ModelAnswer,
    Outcome,
    StopReason,
    ToolCall,
    ToolResult,
)

_CALLS_NOT_TRUSTED = frozenset({StopReason.REFUSAL, StopReason.INTERRUPTED})


def text_stored(state: CallingModel, given: i.ModelWrote) -> tuple[e.Event, ...]:
    """What is new of the open answer."""
    return _pieces(state, given.text, given.reasoning)


def answered(
    turn: Turn, state: CallingModel, given: i.ModelAnswered, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    """The turn has a final answer, or calls to run, or an answer that is none (T26 to T32b)."""
    if turn.cancel_requested:
        return (_unheard(given), end_step(turn), *cancelled(turn))
    if given.question is not None:
        return _asked(turn, state, given, given.question, agent, at)
    useless = _useless(given.answer)
    if useless is not None:
        gave_up = i.ModelGaveUp(
            attempt_id=given.attempt_id,
            failure=useless,
            failure_id=given.failure_id,
            usage=given.answer.usage,
        )
        return gave_up_on(turn, state, gave_up, at=at, agent=agent)
    if given.answer.tool_calls and given.answer.stop_reason not in _CALLS_NOT_TRUSTED:
        return _with_calls(turn, state, given, agent, at=at)
    return _final(turn, state, given, agent, at=at)


def gave_up_on(
    turn: Turn, state: CallingModel, given: i.ModelGaveUp, *, at: datetime, agent: Agent
) -> tuple[e.Event, ...]:
    """The turn waits, for a scheduled retry or for somebody, or fails (T33, T34, C7)."""
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    record = FailureRecord(
        failure_id=given.failure_id,
        failure=given.failure,
        model_attempt=turn.counters.model_attempts,
        occurred_at=at,
    )
    had_output = bool(state.text_stored or given.text)
    due_at = (
        None
        if had_output  # it may have been read already: C12
        else retry_due_at(
            agent.retry,
            given.failure,
            retries_in_a_row=turn.counters.consecutive_retries,
            chance=given.chance,
            at=at,
        )
    )
    return (
        *_pieces(state, given.text, given.reasoning),
        e.ModelFailed(attempt_id=given.attempt_id, record=record, usage=given.usage),
        end_step(turn),
        *_what_then(turn, record, due_at, agent, at=at),
    )


def refused(turn: Turn, given: i.ModelRefused) -> tuple[e.Event, ...]:
    """The turn fails: the same request would be refused again (T36a)."""
    if turn.cancel_requested:
        return (end_step(turn), *cancelled(turn))
    return (end_step(turn), *failed(turn, "request_refused", given.refusal.message))


def _what_then(
    turn: Turn, record: FailureRecord, due_at: datetime | None, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    if due_at is None and agent.on_model_failure == "fail":
        return failed(turn, "model_failed", record.failure.message)
    return _suspended(turn, record, due_at, at)


def _suspended(
    turn: Turn, record: FailureRecord, due_at: datetime | None, at: datetime
) -> tuple[e.Event, ...]:
    kind: Literal["MODEL", "RETRY"] = "MODEL" if due_at is None else "RETRY"
    suspended = e.TurnSuspended(
        suspension_type=kind, record=record, requested_at=at, next_runnable_at=due_at
    )
    if due_at is None:
        return (suspended,)
    count = turn.counters.consecutive_retries + 1
    return (suspended, e.RetryWasScheduled(retry_count=count, due_at=due_at))


def _useless(answer: ModelAnswer) -> ModelFailure | None:
    """The failure that an answer with neither text nor calls amounts to."""
    if answer.tool_calls or answer.text.strip() or answer.stop_reason is StopReason.REFUSAL:
        return None
    if answer.stop_reason is StopReason.MAX_OUTPUT:
        return _token_limit("the output limit was reached before any text", TokenLimitPhase.OUTPUT)
    if answer.stop_reason is StopReason.CONTEXT_FULL:
        return _token_limit("the context window is full", TokenLimitPhase.TOTAL_CONTEXT)
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=f"the model ended with {answer.stop_reason} and neither text nor calls",
        retryable=True,
    )


def _token_limit(message: str, phase: TokenLimitPhase) -> ModelFailure:
    return ModelFailure(
        type=FailureType.TOKEN_LIMIT_EXCEEDED,
        message=message,
        retryable=False,
        token_limit_phase=phase,
    )


def _final(
    turn: Turn, state: CallingModel, given: i.ModelAnswered, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    pieces = _pieces(state, given.answer.text, given.answer.reasoning)
    completed = _completed(turn, given, agent, calls=())
    said = (*pieces, completed, *_stopped(given, _untrusted_tools(given.answer)))
    ended = (*said, end_step(turn))
    is_finished = given.answer.stop_reason in FINISHED
    if is_finished and can_be_steered(advance(turn, ended), agent, at=at):
        return then_begin(turn, ended, agent, given.next_attempt_id, at=at)
    return concluded(turn, said, completed, given, agent, at=at)


def _asked(
    turn: Turn,
    state: CallingModel,
    given: i.ModelAnswered,
    question: str,
    agent: Agent,
    at: datetime,
) -> tuple[e.Event, ...]:
    """A hook puts a question behind the answer: its text is kept, its calls are not run (C23)."""
    answer = given.answer
    withheld = tuple(call.tool_name for call in answer.tool_calls)
    events: tuple[e.Event, ...] = (
        *_pieces(state, answer.text, answer.reasoning),
        _completed(turn, given, agent, calls=()),
        *_stopped(given, withheld),
        end_step(turn),
    )
    return (*events, *asking(advance(turn, events), agent.wait, question, at=at))


def _with_calls(
    turn: Turn, state: CallingModel, given: i.ModelAnswered, agent: Agent, *, at: datetime
) -> tuple[e.Event, ...]:
    calls = as_stored(given.answer.tool_calls, given.taken_call_ids, given.attempt_id)
    first_result = turn.next_position + 1
    requested = tuple(
        _requested(call, agent.tool(call.tool_name), first_result + n)
        for n, call in enumerate(calls)
    )
    asked: tuple[e.Event, ...] = (
        *_pieces(state, given.answer.text, given.answer.reasoning),
        _completed(turn, given, agent, calls=calls),
        *_stopped(given, ()),
        *requested,
    )
    failed_calls = _unusable(calls, agent, first_result)
    barred = given_up(advance(turn, asked), failed_calls, agent)
    events = (*asked, *failed_calls, *barred, end_step(turn))
    return then_begin(turn, events, agent, given.next_attempt_id, at=at)


def _requested(call: ToolCall, spec: ToolSpec | None, position: int) -> e.ToolRequested:
    return e.ToolRequested(
        call_id=call.call_id,
        tool_name=call.tool_name,
        effect=Effect.WRITES if spec is None else spec.effect,
        position=position,
    )


def _unusable(
    calls: tuple[ToolCall, ...], agent: Agent, first_result: int
) -> tuple[e.ToolFailed, ...]:
    """Error results for calls whose tool cannot be entered at all (ZA-21)."""
    return tuple(
        e.ToolFailed(position=first_result + n, result=_error_result(call, problem))
        for n, call in enumerate(calls)
        if (problem := _problem(call, agent)) is not None
    )


def _problem(call: ToolCall, agent: Agent) -> str | None:
    if call.problem is None and agent.tool(call.tool_name) is None:
        return f"There is no tool named {call.tool_name!r}."
    return call.problem


def _error_result(call: ToolCall, problem: str) -> ToolResult:
    return ToolResult(
        call_id=call.call_id, tool_name=call.tool_name, outcome=Outcome.ERROR, content=problem
    )


def _completed(
    turn: Turn, given: i.ModelAnswered, agent: Agent, *, calls: tuple[ToolCall, ...]
) -> e.ModelCompleted:
    answer = given.answer
    message = AssistantMessage(
        # A blank text beside calls says nothing, and strict providers refuse it in a history.
        text=answer.text if answer.text.strip() else "",
        tool_calls=calls,
        stop_reason=answer.stop_reason,
        reasoning=answer.reasoning,
        opaque=answer.opaque,
    )
    stored = message if answer.text.strip() or calls else None
    return e.ModelCompleted(
        attempt_id=given.attempt_id,
        stop_reason=answer.stop_reason,
        usage=answer.usage,
        remaining_iterations=remaining_iterations(turn, turn.limits_under(agent)) - 1,
        position=None if stored is None else turn.next_position,
        message=stored,
    )


def _unheard(given: i.ModelAnswered) -> e.ModelStopped:
    """What the model said is dropped; what it has cost is not (case 123)."""
    return e.ModelStopped(
        attempt_id=given.attempt_id,
        stop_reason=StopReason.INTERRUPTED,
        raw_stop=given.answer.raw_stop,
        withheld_tools=tuple(call.tool_name for call in given.answer.tool_calls),
        usage=given.answer.usage,
    )


def _untrusted_tools(answer: ModelAnswer) -> tuple[str, ...]:
    is_trusted = answer.stop_reason not in _CALLS_NOT_TRUSTED
    return () if is_trusted else tuple(call.tool_name for call in answer.tool_calls)


def _stopped(given: i.ModelAnswered, withheld: tuple[str, ...]) -> tuple[e.ModelStopped, ...]:
    answer = given.answer
    if answer.stop_reason in FINISHED and not withheld:
        return ()
    return (
        e.ModelStopped(
            attempt_id=given.attempt_id,
            stop_reason=answer.stop_reason,
            raw_stop=answer.raw_stop,
            withheld_tools=withheld,
        ),
    )


def _pieces(state: CallingModel, text: str, reasoning: str) -> tuple[e.Event, ...]:
    """Events for what of text and reasoning is not stored yet; nothing new, no event."""
    pieces: list[e.Event] = []
    if new := reasoning[state.reasoning_stored :]:
        offset = state.reasoning_stored
        pieces.append(e.ModelReasoning(attempt_id=state.attempt_id, offset=offset, text=new))
    if new := text[state.text_stored :]:
        offset = state.text_stored
        pieces.append(e.ModelText(attempt_id=state.attempt_id, offset=offset, text=new))
    return tuple(pieces)
