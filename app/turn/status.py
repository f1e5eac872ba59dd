"""The words for where a turn stands, as the API and the store spell them."""

from enum import StrEnum
from typing import Literal, TypeAlias


class Status(StrEnum):
    """A turn's status, as the API and the store spell it."""

    READY = "READY"
    RUNNING = "RUNNING"
    RETRY_SCHEDULED = "RETRY_SCHEDULED"
    WAITING_FOR_MODEL = "WAITING_FOR_MODEL"
    WAITING_FOR_USER = "WAITING_FOR_USER"
    WAITING_FOR_APPROVAL = "WAITING_FOR_APPROVAL"
    WAITING_FOR_TOOL = "WAITING_FOR_TOOL"
    PAUSED = "PAUSED"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    CANCELLED = "CANCELLED"
    MAX_ITERATIONS_REACHED = "MAX_ITERATIONS_REACHED"
    MAX_STEPS_REACHED = "MAX_STEPS_REACHED"
    BUDGET_EXCEEDED = "BUDGET_EXCEEDED"


TERMINAL = frozenset(
    {
        Status.COMPLETED,
        Status.FAILED,
        Status.CANCELLED,
        Status.MAX_ITERATIONS_REACHED,
        Status.MAX_STEPS_REACHED,
        Status.BUDGET_EXCEEDED,
    }
)
BLOCKED = frozenset(
    {
        Status.RETRY_SCHEDULED,
        Status.WAITING_FOR_MODEL,
        Status.WAITING_FOR_USER,
        Status.WAITING_FOR_APPROVAL,
        Status.WAITING_FOR_TOOL,
        Status.PAUSED,
    }
)


class PauseCause(StrEnum):
    """Why a turn is paused."""

    PERSON = "person"
    LIMIT = "limit"
    CRASH = "crash"
    """Its worker died, and its agent wants a person to decide (C25)."""
    CRASH_LOOP = "crash_loop"
    """Worker after worker died of it without anything new stored (T116)."""


LostTo: TypeAlias = Literal["crash", "shutdown"]
"""What a step was lost to: its worker died, or it stopped in order and left the step behind."""


RoundFailure: TypeAlias = Literal["tool_failed", "approval_loop", "wait_expired"]
"""Why a turn fails with calls of a round: a tool's error, a tool that asks for an approval which it
has, a wait that nobody has ended in time."""


class LimitName(StrEnum):
    """The limits of a turn, as `Limits` of its agent names them."""

    ITERATIONS = "max_iterations"
    STEPS = "max_steps"
    DURATION = "max_duration"
    INPUT_TOKENS = "max_input_tokens"
    OUTPUT_TOKENS = "max_output_tokens"
    TOTAL_TOKENS = "max_total_tokens"
    TOOL_CALLS = "max_tool_calls"


SuspensionType: TypeAlias = Literal[
    "MODEL", "RETRY", "USER_INPUT", "TOOL_APPROVAL", "EXTERNAL_TOOL"
]
"""What a suspended turn waits for."""


class Cursor(StrEnum):
    """Where the turn goes on."""

    INVOKE_MODEL = "INVOKE_MODEL"
    PROCESS_TOOLS = "PROCESS_TOOLS"
    FINISHED = "FINISHED"


ResumedBy: TypeAlias = Literal[
    "RETRY_MODEL",
    "RETRY",
    "CONTINUE",
    "RESUME",
    "USER_MESSAGE",
    "USER_INPUT",
    "APPROVE_TOOL",
    "REJECT_TOOL",
    "TOOL_RESULT",
    "TOOL_ERROR",
    "EXPIRY",
    "REPLAN_WITH_MESSAGE",
    "RUN",
]
"""What brings a turn back that waits or is on hold; `EXPIRY`: the end of a wait's time."""
