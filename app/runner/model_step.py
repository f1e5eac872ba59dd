"""A model call as a step of a turn: dropped when it is overtaken, reported when it has ended."""

from app.runner.endings import EndedCall
from app.runner.hooks import Crashed
from app.runner.in_hand import TurnInHand, chance
from app.runner.live_text import OpenAnswer
from app.runner.model_call import CallEnding, ModelCaller, asking
from app.runner.tasks import unless
from app.turn import inputs as i
from app.turn.compaction import is_too_long
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.ids import AttemptId, FailureId
from app.turn.transcript import ModelAnswer, StopReason


class ModelStep:
    """Makes the model calls of one drive."""

    def __init__(self, hand: TurnInHand, caller: ModelCaller) -> None:
        self._hand = hand
        self._caller = caller

    async def run(self, attempt_id: AttemptId) -> i.Report | None:
        """How the call ended; `None` when it was dropped: look at the turn anew."""
        hand = self._hand
        answer = OpenAnswer(attempt_id=attempt_id, started_version=hand.turn.version)

        async def store_text() -> None:
            await hand.report(
                i.ModelWrote(attempt_id=attempt_id, text=answer.text, reasoning=answer.reasoning)
            )

        call = self._caller.call(
            hand.turn.identity.turn_id,
            hand.agent,
            asking(hand.turn, hand.agent),
            hand.transcript.bodies(hand.agent.leave_out, hand.turn.window_under(hand.agent)),
            answer=answer,
            store_text=store_text,
            hooks=None if hand.hooked is None else hand.hooked.hooks,
        )
        ended = await unless(call, hand.overtaken(attempt_id))
        if ended is not None:
            return self._ending(attempt_id, answer, ended.result)
        if hand.turn.cancel_requested or hand.turn.pause_requested:
            return i.StepAbandoned(
                attempt_id=attempt_id, text=answer.text, reasoning=answer.reasoning
            )
        if hand.turn.attempt_in_flight == attempt_id:  # this worker stops: others go on from there
            await store_text()
        return None

    def _ending(self, attempt_id: AttemptId, answer: OpenAnswer, ending: CallEnding) -> i.Report:
        hand = self._hand
        match ending:
            case RequestRefused():
                hand.meets(ending)
            case Crashed(error=error):
                hand.meets(error)
            case _:
                pass
        ended = EndedCall(
            attempt_id=attempt_id,
            next_attempt_id=hand.announce(),
            failure_id=FailureId(hand.new_id("fail")),
            taken_call_ids=hand.transcript.call_ids,
            output=hand.loaded.output,
            said_before=hand.transcript.answer_from(hand.turn.parts_from),
            chance=chance(),
            can_compact=_is_for_length(ending) and bool(hand.to_sum_up()),
            received=answer,
        )
        return ended.report(ending)


def _is_for_length(ending: CallEnding) -> bool:
    """Whether the history may have been too long: only then is it looked through."""
    match ending:
        case ModelFailure():
            return is_too_long(ending)
        case ModelAnswer(stop_reason=StopReason.CONTEXT_FULL):
            return True
        case _:
            return False
