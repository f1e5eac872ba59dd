"""The tables of records: what events leave behind for those who ask later (ADR 0015).

Each row is written in the statement of the change that it is about. The other tables are in
`app.store.tables`.
"""

# SQLModel types __tablename__ for declared_attr alone.
# pyright: reportAssignmentType=false

from datetime import datetime
from typing import ClassVar

from sqlalchemy import CheckConstraint, ForeignKeyConstraint, Index, text
from sqlmodel import Field, SQLModel

from app.store.columns import instant, tokens
from app.store.columns import text as text_column


class ModelFailureRow(SQLModel, table=True):
    """The failure history: a projection of the MODEL_FAILED events, written with them."""

    __tablename__ = "model_failures"
    __table_args__: ClassVar = (
        ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),
        Index("model_failures_of_turn", "turn_id", "model_attempt"),
    )

    failure_id: str = text_column(primary_key=True)
    turn_id: str = text_column()
    failure_type: str = text_column()
    model_attempt: int
    occurred_at: datetime = instant()
    body: str = text_column()


class InterruptionRow(SQLModel, table=True):
    """Calls that were answered without a result of their tool, written with their events."""

    __tablename__ = "tool_interruptions"
    __table_args__: ClassVar = (ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),)

    turn_id: str = text_column(primary_key=True)
    position: int = Field(primary_key=True)
    """Of the result in the transcript, so calls come in declared order."""
    call_id: str = text_column()
    tool_name: str = text_column()
    outcome: str = text_column()
    reason: str | None = text_column(nullable=True)
    suspension_type: str | None = text_column(nullable=True)
    source_message_id: str | None = text_column(nullable=True)
    interrupted_at: datetime = instant()


class ApprovalRow(SQLModel, table=True):
    """What people have approved and rejected; a projection of the TOOL_APPROVAL_DECIDED events."""

    __tablename__ = "approvals"
    __table_args__: ClassVar = (ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),)

    turn_id: str = text_column(primary_key=True)
    seq: int = Field(primary_key=True)
    """The event's sequence."""
    tenant_id: str = text_column()
    call_id: str = text_column()
    tool_name: str = text_column()
    stage: str = text_column()
    fingerprint: str = text_column()
    is_approved: bool
    actor_id: str = text_column()
    body: str = text_column()
    """What was shown, and what was said, JSON."""
    requested_at: datetime = instant()
    decided_at: datetime = instant()


class ExternalCallRow(SQLModel, table=True):
    """Calls that were handed to outside tools; written with the events that open and close them."""

    __tablename__ = "external_calls"
    __table_args__: ClassVar = (
        ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),
        Index("external_calls_by_age", "tenant_id", "requested_at", "turn_id", "call_id"),
        Index(
            "external_calls_open",
            "tenant_id",
            "requested_at",
            "turn_id",
            "call_id",
            postgresql_where=text("status = 'open'"),
        ),
        CheckConstraint(
            "status IN ('open', 'completed', 'failed', 'cancelled')",
            name="external_calls_status_known",
        ),
    )

    turn_id: str = text_column(primary_key=True)
    call_id: str = text_column(primary_key=True)
    tenant_id: str = text_column()
    conversation_id: str = text_column()
    agent_id: str = text_column()
    tool_name: str = text_column()
    arguments: str = text_column()
    max_result_bytes: int
    requested_at: datetime = instant()
    expires_at: datetime | None = instant(nullable=True)
    status: str = text_column()
    claims: int = Field(default=0)
    """Times that an executor has taken it."""
    claimed_by: str | None = text_column(nullable=True)
    claimed_until: datetime | None = instant(nullable=True)
    closed_at: datetime | None = instant(nullable=True)


class LateResultRow(SQLModel, table=True):
    """Results that came for calls which took none any more; no model ever reads them."""

    __tablename__ = "late_results"
    __table_args__: ClassVar = (ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),)

    turn_id: str = text_column(primary_key=True)
    seq: int = Field(primary_key=True)
    """From 1, in the order they came."""
    tenant_id: str = text_column()
    call_id: str = text_column()
    kind: str = text_column()
    """TOOL_RESULT or TOOL_ERROR."""
    body: str = text_column()
    """What was said, JSON."""
    actor_id: str = text_column()
    received_at: datetime = instant()


class UsageRow(SQLModel, table=True):
    """A model call that has ended, and what it cost as far as its provider said."""

    __tablename__ = "model_usage"
    __table_args__: ClassVar = (Index("model_usage_by_time", "tenant_id", "ended_at"),)

    turn_id: str = text_column(primary_key=True)
    model_attempt: int = Field(primary_key=True)
    tenant_id: str = text_column()
    conversation_id: str = text_column()
    agent_id: str = text_column()
    succeeded: bool
    input_tokens: int | None = tokens()
    cached_input_tokens: int | None = tokens()
    output_tokens: int | None = tokens()
    ended_at: datetime = instant()
