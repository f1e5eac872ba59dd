"""An agent as its user writes it down."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from app.agents import fingerprint, rules
from app.agents.structured import OutputType
from app.ports import Hooks, LoadedAgent, Tool
from app.turn.agent import Agent as CoreAgent
from app.turn.agent import Limits, OnModelFailure, RetryPolicy
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
    tools: Sequence[Tool] = ()
    """In the order in which the model sees them; kept as a tuple."""
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """Retries 0 to 1,000, delays 0 to 30 days, multiplier 1 to 100."""
    on_model_failure: OnModelFailure = "wait"
    """`fail` ends a turn as FAILED where it would wait for its model; for batches, say."""
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

    def __post_init__(self) -> None:
        rules.check_name("id", self.id, f"agent {self.id!r}")
        where = f"agent {self.id!r}"
        if self.version is not None:
            rules.check_name("version", self.version, where)
        rules.check_instructions(self.instructions, where)
        rules.check_model(self.model, where)
        object.__setattr__(self, "tools", rules.checked_tools(self.tools, where))
        rules.check_retry(self.retry, where)
        rules.check_on_model_failure(self.on_model_failure, where)
        rules.checked_output(self.output, where)
        rules.check_limits(self.limits, where)
        rules.check_interruption_text(self.interruption_text, where)
        object.__setattr__(self, "interruption_text", MappingProxyType({**self.interruption_text}))
        rules.check_hooks(self.hooks, where)

    @property
    def declaration_hash(self) -> str:
        """SHA-256, 64 hex digits, of the declaration as written; the version is no part of it."""
        output = self._output_type()
        return fingerprint.declaration_hash(
            agent_id=self.id,
            instructions=self.instructions,
            model=self.model,
            tools=[tool.spec for tool in self.tools],
            retry=self.retry,
            limits=self.limits,
            on_model_failure=self.on_model_failure,
            output_schema=None if output is None else output.schema,
            interruption_text=self.interruption_text,
            hooks=self.hooks,
        )

    @property
    def exact_version(self) -> AgentVersion:
        """The version declared, or else `h-` and the first 12 digits of the hash."""
        return AgentVersion(self.version or f"h-{self.declaration_hash[:12]}")

    def loaded(self) -> LoadedAgent:
        """The agent as the core knows it, together with its tools by name."""
        output = self._output_type()
        core = CoreAgent(
            agent_id=AgentId(self.id),
            version=self.exact_version,
            instructions=self.instructions,
            model=self.model,
            tools=tuple(tool.spec for tool in self.tools),
            retry=self.retry,
            limits=self.limits,
            on_model_failure=self.on_model_failure,
            output_schema=None if output is None else output.schema,
            interruption_text=MappingProxyType(
                {Outcome(outcome): text for outcome, text in self.interruption_text.items()}
            ),
            has_hooks=self.hooks is not None,
        )
        by_name = {tool.spec.name: tool for tool in self.tools}
        return LoadedAgent(
            agent=core, tools=MappingProxyType(by_name), output=output, hooks=self.hooks
        )

    def _output_type(self) -> OutputType | None:
        return rules.checked_output(self.output, f"agent {self.id!r}")
