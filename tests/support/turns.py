"""Builders for turns in any state, made the only honest way: by telling the core what happened."""

from collections.abc import Mapping
from copy import copy, deepcopy
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Self

from app.turn import inputs as i
from app.turn.agent import (
    Agent,
    Effect,
    Limits,
    OnCrash,
    OnError,
    OnModelFailure,
    OnUnknown,
    OpenWaits,
    RetryPolicy,
    ToolSpec,
    WaitPolicy,
)
from app.turn.changes import NO_CHANGES, Changes
from app.turn.decide import decide
from app.turn.events import Event
from app.turn.evolve import advance, fold
from app.turn.failures import FailureType, ModelFailure, RequestRefused, TokenLimitPhase
from app.turn.ids import (
    ActorId,
    AgentId,
    AgentVersion,
    AttemptId,
    CallId,
    ConversationId,
    FailureId,
    Identity,
    MessageId,
    TenantId,
    TurnId,
)
from app.turn.journal import added_message
from app.turn.judging import needs_judging
from app.turn.lost_calls import Finding, LookedInto
from app.turn.lost_tools import looked_at
from app.turn.open_calls import OpenCall
from app.turn.partial import written
from app.turn.start import start, succeed
from app.turn.state import Turn
from app.turn.states import CallingModel, Paused
from app.turn.transcript import (
    AssistantMessage,
    Message,
    ModelAnswer,
    Outcome,
    StopReason,
    TextPart,
    ToolCall,
    Usage,
    UserMessage,
)
from app.turn.waits import (
    Allowed,
    ApprovalNeeded,
    InputNeeded,
    JudgedCall,
    Judgement,
    fingerprint_of,
)

AMY = ActorId("amy")
NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
TOO_LONG = ModelFailure(
    type=FailureType.TOKEN_LIMIT_EXCEEDED,
    message="too long",
    retryable=False,
    token_limit_phase=TokenLimitPhase.INPUT_CONTEXT,
)
QUOTA = ModelFailure(type=FailureType.QUOTA_EXCEEDED, message="no credit", retryable=False)
OVERLOADED = ModelFailure(type=FailureType.OVERLOADED, message="busy", retryable=True)
FITS = i.ValidOutput(value='{"total":3}')
MISFITS = i.InvalidOutput(problem="- total: Field required")
REFUSED = RequestRefused(message="not this", http_status=400)

LONG_AGO = i.Replaced(first=0, last=9, tokens=1_000)
"""What was said before a turn whose first place is 10."""
TWICE = RetryPolicy(max_retries=2)
READS = ToolSpec(name="look_up", description="", parameters="{}", effect=Effect.READS)
IDEMPOTENT = ToolSpec(name="book", description="", parameters="{}", effect=Effect.IDEMPOTENT)
WRITES = ToolSpec(name="pay", description="", parameters="{}", effect=Effect.WRITES)
FLAKY = ToolSpec(
    name="fetch",
    description="",
    parameters="{}",
    effect=Effect.READS,
    on_error=OnError.RETRY_THEN_MODEL,
    retry=TWICE,
)
VITAL = ToolSpec(
    name="verify", description="", parameters="{}", on_error=OnError.RETRY_THEN_FAIL, retry=TWICE
)


WIRE = ToolSpec(name="wire", description="", parameters="{}", on_unknown=OnUnknown.PARK)
MAIL = ToolSpec(name="mail", description="", parameters="{}", on_unknown=OnUnknown.INTERRUPT)
COUNT = ToolSpec(
    name="count",
    description="",
    parameters="{}",
    effect=Effect.READS,
    on_unknown=OnUnknown.INTERRUPT,
    after_interrupt="independent",
)
CHARGE = ToolSpec(name="charge", description="", parameters="{}", has_probe=True)
SHIP = ToolSpec(name="ship", description="", parameters="{}", kind="external", max_result_bytes=99)
REFUND = ToolSpec(name="refund", description="", parameters="{}", needs_approval=True)
QUESTION = ToolSpec(name="request_user_input", description="", parameters="{}", kind="input")
BARRING = ToolSpec(
    name="check",
    description="",
    parameters="{}",
    effect=Effect.READS,
    on_error=OnError.RETRY_THEN_MODEL,
    retry=RetryPolicy(max_retries=1),
    block_following=True,
)


def an_agent(  # noqa: PLR0913 - an agent has many options
    *,
    retry: RetryPolicy | None = None,
    limits: Limits | None = None,
    on_model_failure: OnModelFailure = "wait",
    on_crash: OnCrash = "continue",
    has_policy: bool = False,
    open_waits: OpenWaits = "sequential",
    strict_forms: bool = False,
    requester_may_approve: bool = True,
    wait: WaitPolicy | None = None,
) -> Agent:
    return Agent(
        agent_id=AgentId("clerk"),
        version=AgentVersion("1"),
        instructions="",
        model=None,
        tools=(
            *(READS, IDEMPOTENT, WRITES, FLAKY, VITAL, BARRING),
            *(WIRE, MAIL, COUNT, CHARGE),
            *(SHIP, REFUND, QUESTION),
        ),
        retry=retry or RetryPolicy(),
        limits=limits or Limits(),
        on_model_failure=on_model_failure,
        on_crash=on_crash,
        has_policy=has_policy,
        open_waits=open_waits,
        strict_forms=strict_forms,
        requester_may_approve=requester_may_approve,
        wait=wait or WaitPolicy(),
    )


def a_message(text: str = "hello", message_id: str = "m1") -> UserMessage:
    return UserMessage(message_id=MessageId(message_id), content=(TextPart(text=text),))


def a_call(call_id: str, tool: ToolSpec = READS, *, problem: str | None = None) -> ToolCall:
    return ToolCall(call_id=CallId(call_id), tool_name=tool.name, arguments="{}", problem=problem)


def an_approval(content: str = "{}", tool: ToolSpec = REFUND) -> ApprovalNeeded:
    """That a call needs an approval of this content."""
    return ApprovalNeeded(content=content, fingerprint=fingerprint_of(tool.name, content))


A_FORM = InputNeeded(form_key="address", schema='{"type":"object"}', title="Where to?")
IN_WORDS = InputNeeded(form_key=None, schema=None, message="Where to?")


def an_answer(
    text: str = "",
    *calls: ToolCall,
    stop: StopReason = StopReason.END_TURN,
    reasoning: str = "",
    usage: Usage | None = None,
    opaque: str = "",
) -> ModelAnswer:
    return ModelAnswer(
        text=text,
        tool_calls=calls,
        stop_reason=stop,
        reasoning=reasoning,
        usage=usage or Usage(),
        opaque=opaque,
    )


@dataclass(slots=True)
class Told:
    """A turn and everything that has happened to it; each method tells it one more thing."""

    agent: Agent = field(default_factory=an_agent)
    at: datetime = NOON
    first_position: int = 0
    held: bool = False
    never_replay: bool = False
    events: list[Event] = field(default_factory=list)
    last: tuple[Event, ...] = ()
    """What the last thing brought."""
    heard: list[tuple[datetime, i.Input]] = field(default_factory=list[tuple[datetime, i.Input]])
    """All that it was told and took, and when."""
    before: "Told | None" = None
    """The story of the turn whose queue opened this one."""
    turn: Turn = field(init=False)
    says: dict[str, Judgement | None] = field(default_factory=dict[str, Judgement | None])
    """What the shell finds out about a call, where it is not what its tool declares; `None`: it has
    not found out yet."""
    _drawn: int = 0

    def __post_init__(self) -> None:
        identity = Identity(
            turn_id=TurnId("t1"),
            tenant_id=TenantId("default"),
            conversation_id=ConversationId("c1"),
            agent_id=self.agent.agent_id,
            agent_version=self.agent.version,
        )
        opened = start(
            identity,
            a_message(),
            first_position=self.first_position,
            at=self.at,
            held=self.held,
            never_replay=self.never_replay,
        )
        self.events.extend(opened)
        self.turn = fold(opened)

    @property
    def transcript(self) -> dict[int, Message]:
        return dict(pair for event in self.events if (pair := added_message(event)) is not None)

    @property
    def partial(self) -> list[AssistantMessage]:
        """What is kept of answers that were not completed."""
        said = self.transcript.values()
        return [m for m in said if isinstance(m, AssistantMessage) and m.is_partial]

    @property
    def types(self) -> list[str]:
        """The types of the events that the last thing brought."""
        return [event.type for event in self.last]

    def tell(self, given: i.Input) -> Self:
        """Raises `Rejected` as the core does; then nothing has happened."""
        self.last = decide(self.turn, given, at=self.at, agent=self.agent)
        self.events.extend(self.last)
        self.turn = advance(self.turn, self.last)
        self.heard.append((self.at, given))
        return self

    def later(self, **span: float) -> Self:
        self.at += timedelta(**span)
        return self

    def begun(self) -> Self:
        return self.tell(i.BeginStep(attempt_id=self.draw(), judged=self.judged))

    @property
    def judged(self) -> tuple[JudgedCall, ...]:
        """What a faithful shell has found out about the calls that may not begin without it."""
        found = [
            (call.call_id, self.says.get(call.call_id, self._declared(call)))
            for call in self.turn.open_calls
            if needs_judging(call, self.agent)
        ]
        return tuple(JudgedCall(call_id=c, judgement=what) for c, what in found if what is not None)

    def _declared(self, call: OpenCall) -> Judgement:
        spec = self.agent.tool(call.tool_name)
        if spec is None or spec.kind == "local":
            needs = spec is not None and spec.needs_approval
            return an_approval() if needs else Allowed()
        return Allowed(arguments="{}") if spec.kind == "external" else IN_WORDS

    def answered(
        self,
        answer: ModelAnswer,
        *,
        taken: frozenset[str] = frozenset(),
        output: i.ValidOutput | i.InvalidOutput | None = None,
    ) -> Self:
        return self.tell(
            i.ModelAnswered(
                attempt_id=self.attempt,
                answer=answer,
                next_attempt_id=self.draw(),
                failure_id=FailureId(f"f{self._drawn}"),
                taken_call_ids=taken,
                output=output,
            )
        )

    def wrote(self, text: str, reasoning: str = "") -> Self:
        return self.tell(i.ModelWrote(attempt_id=self.attempt, text=text, reasoning=reasoning))

    def gave_up(
        self,
        failure: ModelFailure,
        *,
        failure_id: str = "f1",
        text: str = "",
        chance: float = 1,
        can_compact: bool = False,
    ) -> Self:
        return self.tell(
            i.ModelGaveUp(
                attempt_id=self.attempt,
                failure=failure,
                failure_id=FailureId(failure_id),
                text=text,
                chance=chance,
                next_attempt_id=self.draw(),
                can_compact=can_compact,
            )
        )

    def refused(self, *, failure_id: str = "f1", text: str = "") -> Self:
        """The provider says that the request is wrong, behind so much of an answer."""
        return self.tell(
            i.ModelRefused(
                attempt_id=self.attempt,
                refusal=REFUSED,
                failure_id=FailureId(failure_id),
                text=text,
                next_attempt_id=self.draw(),
            )
        )

    def summed_up(
        self,
        ending: ModelAnswer | ModelFailure | RequestRefused | None,
        *,
        replaced: i.Replaced | None = LONG_AGO,
        failure_id: str = "f8",
    ) -> Self:
        """The request for a summary has ended."""
        return self.tell(
            i.CompactionEnded(
                attempt_id=self.attempt,
                replaced=replaced,
                ending=ending,
                next_attempt_id=self.draw(),
                failure_id=FailureId(failure_id),
            )
        )

    def finished(
        self,
        *call_ids: str,
        outcome: Outcome = Outcome.COMPLETED,
        question: str | None = None,
        needs: ApprovalNeeded | InputNeeded | None = None,
    ) -> Self:
        return self.tell(
            i.ToolsFinished(
                attempt_id=self.attempt,
                finished=tuple(
                    i.FinishedCall(
                        call_id=CallId(c),
                        outcome=outcome,
                        content=f"result {c}",
                        question=question,
                        needs=needs,
                    )
                    for c in call_ids
                ),
                next_attempt_id=self.draw(),
                judged=self.judged,
            )
        )

    def approved(self, call_id: str, fingerprint: str | None = None) -> Self:
        return self.tell(
            i.ApproveTool(call_id=CallId(call_id), actor_id=AMY, fingerprint=fingerprint)
        )

    def rejected(self, call_id: str, reason: str = "too dear") -> Self:
        return self.tell(i.RejectTool(call_id=CallId(call_id), actor_id=AMY, reason=reason))

    def gave(self, call_id: str, output: str = '"done"') -> Self:
        """Somebody outside says what was done."""
        return self.tell(i.GiveToolResult(call_id=CallId(call_id), output=output))

    def gave_error(self, call_id: str, message: str = "not there") -> Self:
        return self.tell(i.GiveToolError(call_id=CallId(call_id), code="gone", message=message))

    def said(self, text: str, call_id: str | None = None, message_id: str = "m2") -> Self:
        """`USER_INPUT` in words."""
        return self.tell(
            i.UserInput(
                message=a_message(text, message_id),
                call_id=None if call_id is None else CallId(call_id),
            )
        )

    def filled_in(self, call_id: str, values: str, schema: str | None = A_FORM.schema) -> Self:
        """`USER_INPUT` with values."""
        data = i.FormData(values=values, schema=schema or "")
        return self.tell(i.UserInput(message=None, call_id=CallId(call_id), data=data))

    def time_passed(self, **span: float) -> Self:
        """Somebody looks at the clock, so much later."""
        return self.later(**span).tell(i.TimePassed())

    def asked(self, question: str = "where to?", *, heard: int = 0) -> Self:
        """By a hook, wherever the turn is."""
        return self.tell(
            i.UserAsked(attempt_id=self.turn.attempt_in_flight, question=question, heard=heard)
        )

    @property
    def written(self) -> tuple[str, str]:
        """What is stored of the answer in flight."""
        return written(self.events, self.attempt)

    def lost(self, **findings: Finding | None) -> Self:
        """Its worker is gone; what probes of calls have found, by call."""
        return self.tell(self.loss(findings))

    def loss(
        self, findings: Mapping[str, Finding | None] | None = None, *, hooks_first: bool = False
    ) -> i.StepLost:
        """The report of a faithful shell that it has found the step lost."""
        text, reasoning = self.written
        return i.StepLost(
            attempt_id=self.attempt,
            next_attempt_id=None if hooks_first else self.draw(),
            text=text,
            reasoning=reasoning,
            looked_into=tuple(
                LookedInto(
                    call_id=call.call_id, arguments="{}", finding=(findings or {}).get(call.call_id)
                )
                for call in looked_at(self.turn)
            ),
        )

    def cut_off(self) -> Self:
        """What is in flight has outlasted its grace, and nobody knows how it ended."""
        return self.tell(replace(self.loss(), is_cut_off=True))

    def crashed(self, *, deaths: int = 1) -> Self:
        """The worker has died, and another one has taken the turn over."""
        return self.tell(i.WorkerLost(attempt_id=self.turn.attempt_in_flight, deaths=deaths))

    def orphan_told(self, text: str = "no, this", message_id: str = "m2") -> Self:
        """A message, while the turn's worker is gone."""
        message = a_message(text, message_id)
        return self.tell(i.PostMessage(message=message, is_orphaned=True, lost=self.left_behind))

    @property
    def left_behind(self) -> i.LostAnswer:
        """What a faithful shell finds stored of the answer that a dead worker has left."""
        match self.turn.state:
            case CallingModel(attempt_id=left) | Paused(lost=CallingModel(attempt_id=left)):
                text, reasoning = written(self.events, left)
                return i.LostAnswer(text=text, reasoning=reasoning)
            case _:
                return i.NOTHING_WRITTEN

    def cancelled(self) -> Self:
        return self.tell(i.Cancel())

    def paused(self, unseen: str = "") -> Self:
        """Somebody pauses it; its worker drops a model call in flight.

        It has `unseen` of the answer that is not stored yet.
        """
        self.tell(i.Pause())
        if not isinstance(self.turn.state, CallingModel):
            return self
        asked, (text, reasoning) = self.last, self.written
        self.tell(i.StepAbandoned(attempt_id=self.attempt, text=text + unseen, reasoning=reasoning))
        self.last = (*asked, *self.last)
        return self

    def resumed(self, limits: Limits | None = None) -> Self:
        return self.tell(i.Resume(changes=Changes(limits=limits)))

    def run(self) -> Self:
        return self.tell(i.Run())

    def posted(self, text: str = "and then?", message_id: str = "m2") -> Self:
        message = a_message(text, message_id)
        return self.tell(i.PostMessage(message=message, lost=self.left_behind))

    def queued(self, text: str = "and then?", message_id: str = "m2") -> Self:
        message = a_message(text, message_id)
        return self.tell(i.PostMessage(message=message, when_running="queue"))

    def steered(self, text: str = "no, this", message_id: str = "m2") -> Self:
        message = a_message(text, message_id)
        return self.tell(i.PostMessage(message=message, when_running="steer"))

    def withdrawn(self, message_id: str = "m2") -> Self:
        return self.tell(i.Withdraw(message_id=MessageId(message_id)))

    def succeeded(self, turn_id: str = "t2") -> "Told":
        """The story of the turn that this one's queue opens."""
        told = Told(self.agent, at=self.at, before=self)
        identity = replace(self.turn.identity, turn_id=TurnId(turn_id))
        told.last = succeed(self.turn, identity, at=self.at)
        told.events = list(told.last)
        told.turn = fold(told.last)
        return told

    def retried(self, failure_id: str = "f1", changes: Changes = NO_CHANGES) -> Self:
        return self.tell(i.RetryModel(failure_id=FailureId(failure_id), changes=changes))

    def branched(self) -> "Told":
        """The same story, to be told on in another way; this one stays as it is."""
        told = copy(self)
        told.events, told.heard, told.says = list(self.events), list(self.heard), dict(self.says)
        return told

    def copy(self) -> "Told":
        """The same story, told on separately."""
        return deepcopy(self)

    @property
    def attempt(self) -> AttemptId:
        return self.turn.attempt_in_flight or AttemptId("none")

    def draw(self) -> AttemptId:
        self._drawn += 1
        return AttemptId(f"a{self._drawn}")
