"""How the end of a model call is told to the core."""

from collections.abc import Set as AbstractSet
from dataclasses import dataclass, replace

from app.ports import OutputReader
from app.runner.hooks import Asked, AskedBehind, Crashed
from app.runner.live_text import OpenAnswer
from app.runner.model_call import CallEnding
from app.turn import inputs as i
from app.turn.failures import ModelFailure, RequestRefused
from app.turn.ids import AttemptId, FailureId
from app.turn.transcript import ModelAnswer


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedCall:
    """A model call that has ended, and what the core needs to go on from there."""

    attempt_id: AttemptId
    next_attempt_id: AttemptId
    failure_id: FailureId
    taken_call_ids: AbstractSet[str]
    output: OutputReader | None
    """For final answers, where the agent declares an output type."""
    said_before: str
    """The parts of the answer that came before, where it comes in several."""
    chance: float
    can_compact: bool
    """Whether something was said before the turn that a summary could stand for."""
    received: OpenAnswer
    """As far as the answer has come."""

    def report(self, ending: CallEnding) -> i.Report:
        """The report of how it ended."""
        match ending:
            case ModelAnswer():
                return self._answered(ending)
            case Asked(question=question):
                return i.UserAsked(attempt_id=self.attempt_id, question=question)
            case AskedBehind(question=question, answer=said):
                return replace(self._answered(said), question=question)
            case ModelFailure():
                return i.ModelGaveUp(
                    attempt_id=self.attempt_id,
                    failure=ending,
                    failure_id=self.failure_id,
                    text=self.received.text,
                    reasoning=self.received.reasoning,
                    chance=self.chance,
                    next_attempt_id=self.next_attempt_id,
                    can_compact=self.can_compact,
                    asked=self.received.asked,
                )
            case RequestRefused():
                return i.ModelRefused(
                    attempt_id=self.attempt_id,
                    refusal=ending,
                    failure_id=self.failure_id,
                    text=self.received.text,
                    reasoning=self.received.reasoning,
                    next_attempt_id=self.next_attempt_id,
                    asked=self.received.asked,
                )
            case Crashed(reason=reason):
                return i.StepCrashed(
                    attempt_id=self.attempt_id,
                    reason=reason,
                    text=self.received.text,
                    reasoning=self.received.reasoning,
                )

    def _answered(self, answer: ModelAnswer) -> i.ModelAnswered:
        return i.ModelAnswered(
            attempt_id=self.attempt_id,
            answer=answer,
            next_attempt_id=self.next_attempt_id,
            failure_id=self.failure_id,
            can_compact=self.can_compact,
            asked=self.received.asked,
            taken_call_ids=self.taken_call_ids,
            output=self._value_of(answer),
        )

    def _value_of(self, answer: ModelAnswer) -> i.ValidOutput | i.InvalidOutput | None:
        if self.output is None or not (answer.is_final and answer.text.strip()):
            return None
        return self.output.read(self.said_before + answer.text)
