"""What the core and the runner must know of an agent: a frozen value, one per version."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import timedelta
from enum import StrEnum
from typing import Literal, TypeAlias

from app.turn.failures import FailureType
from app.turn.ids import AgentId, AgentVersion
from app.turn.transcript import Outcome


class Effect(StrEnum):
    """What running a tool twice would do; it decides what happens after a crash.

    `READS` may be run again. `IDEMPOTENT` may be run again with the same idempotency key.
    `WRITES` (the default of a tool that says nothing) is never run again by itself.
    """

    READS = "reads"
    IDEMPOTENT = "idempotent"
    WRITES = "writes"


ToolKind: TypeAlias = Literal["local", "external", "input"]
"""`local`: a function of this process. `external`: somebody outside does it and says how it went.
`input`: the built-in `request_user_input`, answered by the user."""


class OnError(StrEnum):
    """What a tool's error does (turn semantics C10).

    Retries need a tool that may run again: one that reads, is idempotent, or says itself that
    nothing was done.
    """

    TO_MODEL = "to_model"
    FAIL_TURN = "fail_turn"
    RETRY_THEN_FAIL = "retry_then_fail"
    RETRY_THEN_MODEL = "retry_then_model"


class OnUnknown(StrEnum):
    """What becomes of a call whose end nobody knows (turn semantics C1).

    `REPORT`: the model is told so. `RERUN` and `RERUN_IDEMPOTENT`: the tool is entered again under
    the same key. `INTERRUPT`: as `REPORT`, and the calls behind it are given up. `PARK`: a person
    is asked.
    """

    REPORT = "report"
    RERUN = "rerun"
    RERUN_IDEMPOTENT = "rerun_idempotent"
    INTERRUPT = "interrupt"
    PARK = "park"


UNKNOWN_BY_EFFECT: Mapping[Effect, OnUnknown] = {
    Effect.READS: OnUnknown.RERUN,
    Effect.IDEMPOTENT: OnUnknown.RERUN_IDEMPOTENT,
    Effect.WRITES: OnUnknown.REPORT,
}
"""The rule of a tool that names none."""
RERUNS = frozenset({OnUnknown.RERUN, OnUnknown.RERUN_IDEMPOTENT})
AfterInterrupt: TypeAlias = Literal["cascade", "independent"]
"""Whether the calls behind one that is not run to its end are given up with it (C2)."""

OnExpiry: TypeAlias = Literal["keep", "answer_expired", "fail", "cancel"]
"""What a wait's end of time does (turn semantics T89). `keep`: late answers are refused, the turn
waits on. `answer_expired`: the call gets a result that says so. `fail`, `cancel`: the turn ends."""
OpenWaits: TypeAlias = Literal["sequential", "together"]
"""Whether calls that wait for somebody open one by one or all at once (C28)."""
PartialOutput: TypeAlias = Literal["keep", "drop"]
"""What becomes of the text of an answer that was cut off (C8): a partial message, or nothing."""
OnTruncated: TypeAlias = Literal["complete", "continue"]
"""What an answer does that its output limit has cut (T30): it is the answer, or it is continued."""
OnInvalidRequest: TypeAlias = Literal["fail", "wait"]
"""What a request does that a provider says is wrong, or refuses (T36a)."""
LeftOut: TypeAlias = Literal["partial", "refused"]
"""Messages that an agent may want left out of requests; the transcript keeps them (ZA-35)."""
OnCrash: TypeAlias = Literal["continue", "pause"]
"""Who goes on with a turn whose worker has died: another worker, or a person (C25)."""
OnModelFailure: TypeAlias = Literal["wait", "fail"]
"""What a recognised failure of the model does when no retry is left (turn semantics C7)."""


OnContextFull: TypeAlias = Literal["compact_then_wait", "wait", "fail"]
"""What a request does that is longer than its model's window (turn semantics T38, C9)."""
Who: TypeAlias = Literal["user", "operator", "nobody"]
"""Who may change something: users and operators, operators alone, or nobody."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changeable:
    """Who may change what when a turn is retried or resumed (turn semantics T60, C15 to C17)."""

    model: Who = "user"
    max_output_tokens: Who = "user"
    compact: Who = "user"
    keep_turns: Who = "user"
    limits: Literal["operator", "nobody"] = "operator"
    models: tuple[str, ...] | None = None
    """The models that may be named, as `provider/model`; `None`: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryWindow:
    """How much of what was said before a turn goes into its requests; `None`: all of it.

    Whole turns are left out, the oldest first. The running turn is always whole, on top of these.
    """

    turns: int | None = None
    messages: int | None = None
    tokens: int | None = None
    """By the estimate of `app.turn.window`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryPolicy:
    """When a failed model call is tried again by itself (turn semantics, "Defaults")."""

    max_retries: int = 0
    """Automatic retries in a row; 0 parks the turn at the first recognised failure."""
    initial_delay: timedelta = timedelta(seconds=1)
    multiplier: float = 2.0
    max_delay: timedelta = timedelta(seconds=60)
    jitter: Literal["full", "none"] = "full"
    max_retry_after: timedelta = timedelta(minutes=5)
    """A longer stated wait parks the turn at once, showing the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WaitPolicy:
    """How long a person or an outside tool may take, and what happens then."""

    timeout: timedelta | None = None
    """From the moment the wait opens; `None`: as long as it takes."""
    on_expiry: OnExpiry = "keep"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as the model and the core see it; the function behind it is the toolbox's affair."""

    name: str
    description: str
    parameters: str
    """The JSON Schema of the arguments, as JSON text."""
    effect: Effect = Effect.WRITES
    on_error: OnError = OnError.TO_MODEL
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    """For the two kinds of `on_error` that retry."""
    on_unknown: OnUnknown | None = None
    """Of a call that was begun and whose end nobody knows; `None`: as its effect says."""
    after_interrupt: AfterInterrupt | None = None
    """`None`: `cascade` where `on_unknown` is `interrupt`, else `independent`."""
    has_probe: bool = False
    """Whether the tool can be asked first if such a call has taken effect."""
    block_following: bool = False
    """Whether the calls behind it in an answer wait for its end, and are given up at its error."""
    kind: ToolKind = "local"
    needs_approval: bool = False
    """Whether every call needs somebody's approval before the tool is entered or called outside."""
    wait: WaitPolicy | None = None
    """For what its calls wait for; `None`: as the agent says."""
    max_result_bytes: int = 64 * 1024
    """Of a result from outside, in UTF-8; 1 to 4 MiB."""
    on_oversize: Literal["refuse", "truncate"] = "refuse"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Bounds of one turn."""

    max_iterations: int = 100
    """Successful model calls per turn; at least 1."""
    max_steps: int = 1_000
    """Steps (model calls and rounds of tools) per turn; at least 1."""
    parallel_tools: int = 8
    """Tool calls in flight at once within a turn; at least 1."""
    max_duration: timedelta | None = None
    """From the turn's start; reached at this time."""
    count_waiting: bool = True
    """Whether time in which the turn waits counts against `max_duration`."""
    max_input_tokens: int | None = None
    """Over all model calls of the turn; broken above it, like the next two."""
    max_output_tokens: int | None = None
    max_total_tokens: int | None = None
    max_tool_calls: int | None = None
    """Tools entered, second attempts included; at least 1."""
    is_blocking: bool = False
    """Whether a limit pauses the turn instead of ending it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Agent:
    """One immutable version of an agent. A turn is bound to it until the turn ends."""

    agent_id: AgentId
    version: AgentVersion
    instructions: str
    model: str | None
    """`provider/model`, or `None` for whatever the settings name at the time of each call."""
    fallbacks: tuple[str, ...] = ()
    """Models that are asked in this order when the one before them fails in such a way."""
    fallback_on: frozenset[FailureType] = frozenset()
    tools: tuple[ToolSpec, ...] = ()
    retry: RetryPolicy = field(default_factory=RetryPolicy)
    on_model_failure: OnModelFailure = "wait"
    on_invalid_request: OnInvalidRequest = "fail"
    partial_output: PartialOutput = "keep"
    on_truncated: OnTruncated = "complete"
    max_continuations: int = 3
    """How often in a row an answer that was cut is continued; at least 1."""
    leave_out: tuple[LeftOut, ...] = ()
    on_crash: OnCrash = "continue"
    output_schema: str | None = None
    """The JSON Schema that final answers must fit, as JSON text."""
    limits: Limits = field(default_factory=Limits)
    interruption_text: Mapping[Outcome, str] = field(default_factory=dict[Outcome, str])
    """Templates of what the model reads of a call that was interrupted, by its outcome."""
    has_policy: bool = False
    """Whether a policy of its own is asked about every call before its tool is entered."""
    open_waits: OpenWaits = "sequential"
    strict_forms: bool = False
    """Whether a message to a form that waits is refused instead of giving the form up (C22)."""
    requester_may_approve: bool = True
    """Whether whoever began a turn may approve its calls."""
    wait: WaitPolicy = field(default_factory=WaitPolicy)
    """For every wait for a person or an outside tool that no tool has a policy of its own for."""
    never_replay: bool = False
    """Whether no call is run again by itself whose end nobody knows, whatever its tool says."""
    on_context_full: OnContextFull = "compact_then_wait"
    history: HistoryWindow = field(default_factory=HistoryWindow)
    changeable: Changeable = field(default_factory=Changeable)
    has_hooks: bool = False
    """Whether hooks are to hear of a user's message before a step follows it."""

    def tool(self, name: str) -> ToolSpec | None:
        """The tool of that name, or `None` when this version has no such tool."""
        return next((tool for tool in self.tools if tool.name == name), None)
