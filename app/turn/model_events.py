"""What has happened to model calls; the part of `app.turn.events` that is about them."""

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from app.turn.failures import FailureRecord
from app.turn.ids import AttemptId
from app.turn.transcript import AssistantMessage, StopReason, Usage


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStarted:
    attempt_id: AttemptId
    model_attempt: int
    remaining_iterations: int
    type: Literal["MODEL_STARTED"] = "MODEL_STARTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelText:
    attempt_id: AttemptId
    offset: int
    """Code points of the answer before this piece."""
    text: str
    type: Literal["MODEL_TEXT"] = "MODEL_TEXT"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelReasoning:
    attempt_id: AttemptId
    offset: int
    text: str
    type: Literal["MODEL_REASONING"] = "MODEL_REASONING"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCompleted:
    attempt_id: AttemptId
    stop_reason: StopReason
    usage: Usage
    remaining_iterations: int
    position: int | None
    message: AssistantMessage | None
    """`None` when the model said nothing that can be stored."""
    asked: str | None = None
    """A mark of the model that was asked, and of where."""
    type: Literal["MODEL_COMPLETED"] = "MODEL_COMPLETED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelFailed:
    attempt_id: AttemptId
    record: FailureRecord
    usage: Usage = field(default_factory=Usage)
    """Of the request, where its answer came and was none."""
    then: Literal["fall_back", "compact"] | None = None
    """What the turn does about it by itself, instead of waiting: ask the next model of its agent,
    or have its history summed up."""
    asked: str | None = None
    """As in `ModelCompleted`."""
    type: Literal["MODEL_FAILED"] = "MODEL_FAILED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStopped:
    """The model ended its answer in another way than by finishing it, or was cut off in it."""

    attempt_id: AttemptId
    stop_reason: StopReason
    raw_stop: str | None
    withheld_tools: tuple[str, ...] = ()
    """Names of the calls that came with the answer and were not run."""
    usage: Usage = field(default_factory=Usage)
    """What an answer has cost that was dropped; what was heard is counted where it completed."""
    position: int | None = None
    message: AssistantMessage | None = None
    """What is kept of an answer that was cut off: a partial message, and no answer (C8)."""
    type: Literal["MODEL_STOPPED"] = "MODEL_STOPPED"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputReady:
    """The final answer is what its agent declares."""

    output: str
    """As JSON text."""
    type: Literal["OUTPUT_READY"] = "OUTPUT_READY"


# --- The history, summed up -----------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionStarted:
    """The model is asked to sum up what was said before the turn."""

    attempt_id: AttemptId
    model_attempt: int
    type: Literal["COMPACTION_STARTED"] = "COMPACTION_STARTED"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextCompacted:
    """From here on a summary stands in requests for the messages of these places."""

    attempt_id: AttemptId
    first: int
    last: int
    summary: str
    replaced_tokens: int
    """Of the messages, by the estimate of `app.turn.window`."""
    summary_tokens: int
    usage: Usage = field(default_factory=Usage)
    type: Literal["CONTEXT_COMPACTED"] = "CONTEXT_COMPACTED"


CompactionProblem: TypeAlias = Literal[
    "model_failed", "malformed", "empty", "not_smaller", "nothing_to_compact", "cancelled"
]
"""Why there is no summary."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CompactionFailed:
    """The history stays as it was."""

    attempt_id: AttemptId
    reason: CompactionProblem
    detail: str = ""
    """For operators: the provider's own words, redacted."""
    usage: Usage = field(default_factory=Usage)
    type: Literal["COMPACTION_FAILED"] = "COMPACTION_FAILED"


CompactionEvent: TypeAlias = CompactionStarted | ContextCompacted | CompactionFailed
