"""The events that say what a model has written, and how its answer ended."""

from app.turn import events as e
from app.turn import inputs as i
from app.turn.agent import Agent
from app.turn.state import Turn
from app.turn.states import CallingModel
from app.turn.steps import remaining_iterations
from app.turn.transcript import FINISHED, AssistantMessage, ModelAnswer, StopReason, ToolCall

CALLS_NOT_TRUSTED = frozenset({StopReason.REFUSAL, StopReason.INTERRUPTED})


def pieces(state: CallingModel, text: str, reasoning: str) -> tuple[e.Event, ...]:
    """Events for what of text and reasoning is not stored yet; nothing new, no event."""
    pieces: list[e.Event] = []
    if new := reasoning[state.reasoning_stored :]:
        offset = state.reasoning_stored
        pieces.append(e.ModelReasoning(attempt_id=state.attempt_id, offset=offset, text=new))
    if new := text[state.text_stored :]:
        offset = state.text_stored
        pieces.append(e.ModelText(attempt_id=state.attempt_id, offset=offset, text=new))
    return tuple(pieces)


def completed(
    turn: Turn, given: i.ModelAnswered, agent: Agent, *, calls: tuple[ToolCall, ...]
) -> e.ModelCompleted:
    """What the model said, with the calls that are stored of it."""
    answer = given.answer
    message = AssistantMessage(
        # A blank text beside calls says nothing, and strict providers refuse it in a history.
        text=answer.text if answer.text.strip() else "",
        tool_calls=calls,
        stop_reason=answer.stop_reason,
        reasoning=answer.reasoning,
        opaque=answer.opaque,
    )
    is_sent_back = answer.stop_reason is StopReason.PAUSED and bool(answer.opaque)
    stored = message if answer.text.strip() or calls or is_sent_back else None
    return e.ModelCompleted(
        attempt_id=given.attempt_id,
        stop_reason=answer.stop_reason,
        usage=answer.usage,
        remaining_iterations=remaining_iterations(turn, turn.limits_under(agent)) - 1,
        position=None if stored is None else turn.next_position,
        message=stored,
        asked=given.asked,
    )


def stopped(given: i.ModelAnswered, withheld: tuple[str, ...]) -> tuple[e.ModelStopped, ...]:
    """That the answer ended in another way than by finishing, if it did."""
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


def untrusted_tools(answer: ModelAnswer) -> tuple[str, ...]:
    """Names of the calls that may not run, since the answer as a whole is not trusted (C23)."""
    is_trusted = answer.stop_reason not in CALLS_NOT_TRUSTED
    return () if is_trusted else tuple(call.tool_name for call in answer.tool_calls)


def unheard(given: i.ModelAnswered) -> e.ModelStopped:
    """What the model said is dropped; what it has cost is not (case 123)."""
    return e.ModelStopped(
        attempt_id=given.attempt_id,
        stop_reason=StopReason.INTERRUPTED,
        raw_stop=given.answer.raw_stop,
        withheld_tools=tuple(call.tool_name for call in given.answer.tool_calls),
        usage=given.answer.usage,
    )
