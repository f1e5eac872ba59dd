"""An agent as its user writes it down."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from app.agents import answer_rules, fingerprint, model_rules, rules, wait_rules
from app.agents.forms import Form
from app.agents.structured import OutputType
from app.ports import FrozenForm, Hooks, LoadedAgent, Policy, TakesForms, Tool
from app.turn.agent import Agent as CoreAgent
from app.turn.agent import (
    Changeable,
    HistoryWindow,
    LeftOut,
    Limits,
    OnContextFull,
    OnCrash,
    OnInvalidRequest,
    OnModelFailure,
    OnTruncated,
    OpenWaits,
    PartialOutput,
    RetryPolicy,
    WaitPolicy,
)
from app.turn.failures import FailureType
from app.turn.ids import AgentId, AgentVersion
from app.turn.transcript import Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One version of an agent: what it is told, what it may do, and within which bounds.

    Raises:
        AgentDeclarationError: a part is missing, of the wrong kind or out of its range.
    """

    id: str
    """1 to 128 of A-Z, a-z, 0-9, `_`, `.`, `:` and `-`."""
    instructions: str
    version: str | None = None
    """As `id`; without one it follows from the declaration and changes with it."""
    model: str | None = None
    """`provider/model`, or `None` for whatever the settings name at the time of each call."""
    models: Sequence[str] = ()
    """Instead of `model`: the first is asked, and each next one when that fails; at most 10."""
    fallback_on: Iterable[FailureType | str] | None = None
    """For which failures the next model is asked; `None`: for all but token limits."""
    tools: Sequence[Tool] = ()
    """In the order in which the model sees them; kept as a tuple."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """Retries 0 to 1,000, delays 0 to 30 days, multiplier 1 to 100."""
    on_model_failure: OnModelFailure = "wait"
    """`fail` ends a turn as FAILED where it would wait for its model; for batches, say."""
    on_invalid_request: OnInvalidRequest = "fail"
    """`wait` parks a turn whose request its provider says is wrong or refuses, to be changed."""
    partial_output: PartialOutput = "keep"
    """`drop` keeps nothing of an answer that broke off, that a pause cut off or a crash lost."""
    on_truncated: OnTruncated = "complete"
    """`continue` has the model go on with an answer that its output limit has cut."""
    max_continuations: int = 3
    """How often in a row it does; 1 to 100. Then the answer stands as it is."""
    leave_out: Sequence[LeftOut] = ()
    """`partial` and `refused` messages that model requests are not to carry; kept as a tuple."""
    on_crash: OnCrash = "continue"
    """`pause` leaves a turn whose worker has died to a person, who resumes it."""
    on_context_full: OnContextFull = "compact_then_wait"
    """What a request does that is longer than its model's window: `wait` for somebody, `fail`, or
    first have the model sum up what was said before the turn."""
    history: HistoryWindow = field(default_factory=HistoryWindow)
    """How much of what was said before a turn goes into its requests; turns from 0, the others
    from 1."""
    changes: Changeable = field(default_factory=Changeable)
    """Who may change what when a turn is retried or resumed."""
    output: object = None
    """What the final answer must be: a model, a dataclass, any type that pydantic validates."""
    limits: Limits = field(default_factory=Limits)
    """Iterations and steps 1 to 1,000,000, tools in parallel 1 to 256."""
    interruption_text: Mapping[str, str] = field(default_factory=dict[str, str])
    """What the model reads of a call that was interrupted, in place of our words.

    By outcome (`not_started`, `unknown`, `cancelled`, `superseded`) a template of 1 to 2,000
    characters, in which `{toolName}`, `{reason}`, `{callId}` and `{turnId}` are filled in.
    """
    hooks: Hooks | None = None
    """Steps of your own around the turn, its model and its tools; known by its class's name."""
    forms: Sequence[Form] = ()
    """What users may be asked to fill in, by `request_user_input` and by tools."""
    policy: Policy | None = None
    """Asked about each call before its tool is entered; an async function, known by its name."""
    open_waits: OpenWaits = "sequential"
    """`together` opens all that calls of one answer wait for at once, not one after the other."""
    strict_forms: bool = False
    """Whether a message is refused while a form waits, instead of giving the form up."""
    requester_may_approve: bool = True
    """Whether whoever owns the conversation, or has said something in it, may approve its calls."""
    never_replay: bool = False
    """Whether no tool is run again by itself after a crash in its midst, whatever it declares."""
    wait: WaitPolicy = field(default_factory=WaitPolicy)
    """How long people and outside tools may take, where a tool does not say it; up to 365 days."""

    def __post_init__(self) -> None:
        rules.check_name("id", self.id, f"agent {self.id!r}")
        where = f"agent {self.id!r}"
        if self.version is not None:
            rules.check_name("version", self.version, where)
        rules.check_instructions(self.instructions, where)
        named = model_rules.checked_models(self.model, self.models, where)
        object.__setattr__(self, "models", named if self.models else ())
        types = model_rules.checked_fallback_on(self.fallback_on, named, where)
        object.__setattr__(self, "fallback_on", types)
        model_rules.check_on_context_full(self.on_context_full, where)
        model_rules.check_history(self.history, where)
        object.__setattr__(self, "changes", model_rules.checked_changes(self.changes, where))
        object.__setattr__(self, "tools", rules.checked_tools(self.tools, where))
        rules.check_retry(self.retry, where)
        rules.check_on_model_failure(self.on_model_failure, where)
        for part in ("on_invalid_request", "partial_output", "on_truncated"):
            answer_rules.check_choice(part, getattr(self, part), where)
        answer_rules.check_max_continuations(self.max_continuations, where)
        object.__setattr__(self, "leave_out", answer_rules.checked_leave_out(self.leave_out, where))
        rules.check_on_crash(self.on_crash, where)
        rules.checked_output(self.output, where)
        rules.check_limits(self.limits, where)
        rules.check_interruption_text(self.interruption_text, where)
        object.__setattr__(self, "interruption_text", MappingProxyType({**self.interruption_text}))
        rules.check_hooks(self.hooks, where)
        object.__setattr__(self, "forms", wait_rules.checked_forms(self.forms, where))
        wait_rules.check_policy(self.policy, where)
        wait_rules.check_open_waits(self.open_waits, where)
        wait_rules.check_flag("strict_forms", self.strict_forms, where)
        wait_rules.check_flag("requester_may_approve", self.requester_may_approve, where)
        wait_rules.check_wait(self.wait, where)
        wait_rules.check_flag("never_replay", self.never_replay, where)

    @property
    def declaration_hash(self) -> str:
        """SHA-256, 64 hex digits, of the declaration as written; the version is no part of it."""
        return fingerprint.declaration_hash(
            self._core(AgentVersion("")), self.hooks, self.policy, self._frozen_forms()
        )

    @property
    def exact_version(self) -> AgentVersion:
        """The version declared, or else `h-` and the first 12 digits of the hash."""
        return AgentVersion(self.version or f"h-{self.declaration_hash[:12]}")

    def loaded(self) -> LoadedAgent:
        """The agent as the core knows it, together with its tools by name."""
        return LoadedAgent(
            agent=self._core(self.exact_version),
            tools=MappingProxyType({tool.spec.name: tool for tool in self._tools()}),
            output=self._output_type(),
            hooks=self.hooks,
            policy=self.policy,
            forms=MappingProxyType({form.key: form for form in self._frozen_forms()}),
        )

    def _core(self, version: AgentVersion) -> CoreAgent:
        output = self._output_type()
        named = self.models or (self.model,)
        return CoreAgent(
            agent_id=AgentId(self.id),
            version=version,
            instructions=self.instructions,
            model=named[0],
            fallbacks=tuple(self.models[1:]),
            fallback_on=self._fallback_on(),
            on_context_full=self.on_context_full,
            history=self.history,
            changeable=self.changes,
            tools=tuple(tool.spec for tool in self._tools()),
            retry=self.retry,
            limits=self.limits,
            on_model_failure=self.on_model_failure,
            on_invalid_request=self.on_invalid_request,
            partial_output=self.partial_output,
            on_truncated=self.on_truncated,
            max_continuations=self.max_continuations,
            leave_out=tuple(self.leave_out),
            on_crash=self.on_crash,
            output_schema=None if output is None else output.schema,
            interruption_text=MappingProxyType(
                {Outcome(outcome): text for outcome, text in self.interruption_text.items()}
            ),
            has_policy=self.policy is not None,
            open_waits=self.open_waits,
            strict_forms=self.strict_forms,
            requester_may_approve=self.requester_may_approve,
            wait=self.wait,
            never_replay=self.never_replay,
            has_hooks=self.hooks is not None,
        )

    def _fallback_on(self) -> frozenset[FailureType]:
        if len(self.models) < 2:
            return frozenset()
        declared = self.fallback_on
        if declared is None:
            return model_rules.FALL_BACK_ON
        return frozenset(FailureType(each) for each in declared)

    def _tools(self) -> tuple[Tool, ...]:
        """The tools, those that show forms with the forms there are."""
        forms = self._frozen_forms()
        return tuple(
            tool.with_forms(forms) if isinstance(tool, TakesForms) else tool for tool in self.tools
        )

    def _frozen_forms(self) -> tuple[FrozenForm, ...]:
        return tuple(form.frozen for form in self.forms)

    def _output_type(self) -> OutputType | None:
        return rules.checked_output(self.output, f"agent {self.id!r}")
