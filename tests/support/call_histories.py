"""What must be true of every turn's calls that wait for somebody: rules 13 to 19 of `histories`.

The journal is read again here in the simplest way there is, call by call, so that a fault of the
core's own reading of it shows.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal

from app.turn import events as e
from app.turn.agent import Effect
from app.turn.events import Event
from app.turn.journal import TERMINAL_TYPES
from app.turn.state import Turn
from app.turn.states import WaitingForCalls


@dataclass(slots=True)
class _Call:
    effect: Effect
    waits_for: Literal["approval", "form", "external"] | None = None
    is_aside: bool = False
    is_expired: bool = False
    in_flight: bool = False
    may_be_entered: bool = True
    is_refused: bool = False
    was_outside: bool = False
    is_to_be_asked_about: bool = False
    """Whether a person is to say what became of it."""
    approved: set[tuple[str, str]] = field(default_factory=set[tuple[str, str]])

    @property
    def is_outside(self) -> bool:
        return self.waits_for == "external"

    def opened(self, kind: Literal["approval", "form", "external"]) -> None:
        assert self.waits_for is None, "it waits already"
        assert not self.is_refused, "asked for again after a no"
        self.waits_for, self.is_aside, self.in_flight, self.is_expired = kind, False, False, False

    def answered(self, kind: Literal["approval", "form", "external"]) -> None:
        assert self.waits_for == kind, f"an answer for {kind} to a call that waits otherwise"
        self.waits_for = None


@dataclass(slots=True)
class _Round:
    """The open calls, as the journal tells of them."""

    calls: dict[str, _Call] = field(default_factory=dict[str, _Call])
    entered: int = 0
    to_be_told: list[str] = field(default_factory=list[str])
    """Calls that were outside and got another answer: whoever does them is to be told."""

    def read(self, event: Event) -> None:
        match event:
            case e.ToolRequested():
                self.calls[event.call_id] = _Call(event.effect)
            case e.ToolStarted(call_id=call_id):
                self._entered(self.calls[call_id])
            case e.ToolAttemptFailed(call_id=call_id):
                self.calls[call_id].in_flight, self.calls[call_id].may_be_entered = False, True
            case e.StepRecovered() | e.ExternalToolCancelRequested():
                self._recovered(event)
            case (
                e.ToolCompleted()
                | e.ToolFailed()
                | e.ToolRejected()
                | e.ExternalToolCompleted()
                | e.ExternalToolFailed()
                | e.ToolInterrupted()
                | e.ToolSkipped()
            ):
                self._closed(event)
            case _:
                self._read_of_waits(event)

    def _recovered(self, event: e.StepRecovered | e.ExternalToolCancelRequested) -> None:
        if isinstance(event, e.ExternalToolCancelRequested):
            self.to_be_told.remove(event.call_id)
            return
        told: dict[str, e.RecoveredCall] = {each.call_id: each for each in event.calls}
        for call_id, call in self.calls.items():
            if call.in_flight:
                self._lost(call, told[call_id])

    def _lost(self, call: _Call, told: e.RecoveredCall) -> None:
        """Nobody knows how it has ended, unless somebody has looked."""
        call.in_flight = False
        is_known = told.probed == "not_done"
        may_be_run_again = told.rule in {"rerun", "rerun_idempotent"}
        assert not (may_be_run_again and call.effect is Effect.WRITES), "what writes is run again"
        assert told.rule != "run" or is_known, "run, as if it had never begun"
        assert (told.rule == "keep") == (told.probed == "done")
        call.may_be_entered = is_known or may_be_run_again
        call.is_to_be_asked_about = told.rule == "park"

    def _entered(self, call: _Call) -> None:
        assert call.waits_for is None, "entered while it waits"
        assert not call.is_aside, "entered while it is put aside"
        assert not call.is_refused, "entered after a no"
        assert call.may_be_entered, "what writes was entered twice"
        call.in_flight, call.may_be_entered = True, call.effect is not Effect.WRITES
        self.entered += 1

    def _asked(self, call: _Call) -> None:
        """A tool that asks has done nothing, so that it may be entered again (case 103)."""
        if call.in_flight:
            self.entered -= 1
            call.in_flight, call.may_be_entered = False, True

    def _closed(self, event: Event) -> None:
        match event:
            case e.ToolInterrupted(result=result) | e.ToolSkipped(result=result):
                call = self.calls.pop(result.call_id)
                self.to_be_told += [result.call_id] if call.is_outside else []
            case e.ExternalToolCompleted(result=result) | e.ExternalToolFailed(result=result):
                self.calls.pop(result.call_id).answered("external")
            case e.ToolCompleted(result=result, known_by="person"):
                self.calls.pop(result.call_id).answered("approval")
            case e.ToolCompleted(result=result) | e.ToolFailed(result=result):
                assert self.calls.pop(result.call_id).waits_for is None
            case e.ToolRejected(result=result):
                call = self.calls.pop(result.call_id)
                assert call.waits_for is None
                assert not call.in_flight, "rejected while it runs"
            case _:
                raise AssertionError(event)

    def _read_of_waits(self, event: Event) -> None:
        match event:
            case e.ToolApprovalRequested(call_id=call_id, wait=wait):
                call = self.calls[call_id]
                assert call.is_to_be_asked_about == (wait.stage == "recovery")
                assert (wait.stage, wait.fingerprint) not in call.approved, "asked for twice"
                self._asked(call)
                call.opened("approval")
            case e.ToolInputRequested(call_id=call_id):
                self._asked(self.calls[call_id])
                self.calls[call_id].opened("form")
            case e.ExternalToolRequested(call_id=call_id):
                call = self.calls[call_id]
                assert not call.was_outside, "asked for outside twice"
                call.opened("external")
                call.was_outside = True
                self.entered += 1
            case e.ToolPutAside(call_id=call_id):
                call = self.calls[call_id]
                assert call.in_flight or call.is_to_be_asked_about, "only what has begun can ask"
                self._asked(call)
                call.is_aside = True
            case e.ToolApprovalDecided(call_id=call_id):
                self._decided(self.calls[call_id], event)
            case e.ToolInputReceived(call_id=call_id):
                self.calls[call_id].answered("form")
            case e.WaitExpired(call_id=str(call_id)):
                call = self.calls[call_id]
                assert call.waits_for is not None
                assert not call.is_expired, "expired twice"
                call.is_expired = True
            case _:
                self._check_told(event)

    def _decided(self, call: _Call, event: e.ToolApprovalDecided) -> None:
        call.answered("approval")
        call.approved |= {(event.stage, event.fingerprint)} if event.is_approved else set()
        call.is_refused = not event.is_approved
        if event.stage == "recovery":  # somebody knows that it is not done
            call.is_to_be_asked_about = False
            call.may_be_entered = event.is_approved

    def _check_told(self, event: Event) -> None:
        if isinstance(event, e.TurnSuspended) and event.call_id is not None:
            assert self.calls[event.call_id].waits_for is not None
            assert not any(call.in_flight for call in self.calls.values())
        if isinstance(event, e.TurnResumed) or event.type in TERMINAL_TYPES:
            assert not self.to_be_told, "nobody told whoever does it that it is not wanted any more"


def check_calls(events: Sequence[Event], turn: Turn) -> None:
    """Rules 13 to 19 over a journal, and that the turn holds what the journal tells."""
    told = _Round()
    for event in events:
        told.read(event)
    assert not told.to_be_told
    assert turn.counters.tool_calls == told.entered
    assert [call.call_id for call in turn.open_calls] == list(told.calls)
    waiting = [call_id for call_id, call in told.calls.items() if call.waits_for]
    assert [call.call_id for call in turn.waiting_calls] == waiting
    assert not turn.is_terminal or not told.calls
    assert not any(call.is_refused for call in told.calls.values()), "a no is a result"
    if isinstance(turn.state, WaitingForCalls):
        assert waiting, "it waits for nobody"
