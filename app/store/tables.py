"""The tables, as SQLModel describes them. Alembic compares them with the migrations.

Rules that hold here and nowhere else:

- one turn at work per conversation: a partial unique index, not a check in code;
- a message's place in its conversation, and a message id, are taken once: primary keys;
- ids are opaque text, and every table that a person's request reads carries the tenant;
- what every round or message writes to has no foreign key to its turn: it is written by the
  statement that changes the turn, and goes by the one that deletes it (ADR 0037);
- JSON that is only carried, never searched, is `text`: it may hold U+0000 and is not parsed.
"""

# SQLModel types __tablename__ for declared_attr alone.
# pyright: reportAssignmentType=false

from datetime import datetime
from typing import Any, ClassVar

from sqlalchemy import (
    ARRAY,
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKeyConstraint,
    Identity,
    Index,
    Integer,
    Text,
    text,
)
from sqlalchemy.dialects.postgresql import INT4MULTIRANGE, INT4RANGE
from sqlmodel import Field, SQLModel

from app.store import record_tables as record_tables  # noqa: PLC0414 - to be tables as well
from app.store.columns import instant as _instant
from app.store.columns import text as _text
from app.store.statuses import NOT_TERMINAL, TERMINATED, UNFOLDED, UNPRUNED


class ConversationRow(SQLModel, table=True):
    """A conversation and whose it is."""

    __tablename__ = "conversations"
    __table_args__: ClassVar = (
        Index("conversations_by_activity", "tenant_id", "updated_at", "conversation_id"),
    )

    tenant_id: str = _text(primary_key=True)
    conversation_id: str = _text(primary_key=True)
    owner_id: str = _text()
    agent_id: str = _text()
    title: str = _text()
    created_at: datetime = _instant()
    updated_at: datetime = _instant()
    hidden: Any = Field(sa_column=Column(INT4MULTIRANGE, nullable=False, server_default="{}"))
    """Places of messages that were hidden for good, by a new message behind a revert."""
    reverted: Any = Field(sa_column=Column(INT4RANGE, nullable=False, server_default="empty"))
    """Places of messages that a revert hides, until it is undone or made final."""
    reverted_to: str | None = _text(nullable=True)
    """The id of the message behind which they stand."""


class TurnRow(SQLModel, table=True):
    """A turn as it is now: small, and the only row of it that is ever rewritten."""

    __tablename__ = "turns"
    __table_args__: ClassVar = (
        ForeignKeyConstraint(
            ["tenant_id", "conversation_id"],
            ["conversations.tenant_id", "conversations.conversation_id"],
        ),
        Index(
            "one_active_turn_per_conversation",
            "tenant_id",
            "conversation_id",
            unique=True,
            postgresql_where=text(NOT_TERMINAL),
        ),
        Index(
            "turns_claimable_by_tenant",
            "tenant_id",
            "runnable_at",
            postgresql_where=text("runnable_at IS NOT NULL"),
        ),
        Index(
            "turns_waiting",
            "tenant_id",
            "waiting_since",
            "turn_id",
            postgresql_where=text("waiting_since IS NOT NULL"),
        ),
        Index(
            "turns_expiring",
            "wait_expires_at",
            postgresql_where=text("wait_expires_at IS NOT NULL"),
        ),
        Index("turns_by_creation", "tenant_id", "created_at", "turn_id"),
        Index("turns_of_conversation", "tenant_id", "conversation_id", "created_at"),
        Index("turns_by_number", "tenant_id", "conversation_id", "number", unique=True),
        Index("turns_to_fold", "created_at", postgresql_where=text(f"{TERMINATED} AND {UNFOLDED}")),
        Index("turns_to_prune", "created_at", postgresql_where=text(UNPRUNED)),
        CheckConstraint("version > 0", name="turns_version_positive"),
    )

    turn_id: str = _text(primary_key=True)
    tenant_id: str = _text()
    conversation_id: str = _text()
    agent_id: str = _text()
    agent_version: str = _text()
    status: str = _text()
    version: int
    body: str = _text()
    """The rest of the turn value, as JSON."""
    created_at: datetime = _instant()
    updated_at: datetime = _instant()
    runnable_at: datetime | None = _instant(nullable=True)
    """From when a worker may claim it; null while nothing is to be done."""
    stop_requested: bool = Field(default=False)
    """A cancellation or a pause is asked for: any worker may carry it out, agent or not."""
    claimed_by: str | None = _text(nullable=True)
    claimed_until: datetime | None = _instant(nullable=True)
    claim_epoch: int = Field(default=0)
    deaths: int = Field(sa_column=Column(Integer, nullable=False, server_default="0"))
    """Claims that ran out without being given up, since something new was stored."""
    waiting_since: datetime | None = _instant(nullable=True)
    """When the oldest thing was asked for that the turn waits for; null while there is none."""
    wait_expires_at: datetime | None = _instant(nullable=True)
    """When the first of its waits is over whose expiry has not been dealt with."""
    waits_for: list[str] | None = Field(sa_column=Column(ARRAY(Text), nullable=True))
    """The kinds of what it waits for; null while there is nothing."""
    number: int
    """Its place among the turns of its conversation, from 1; the database gives it."""
    is_folded: bool = Field(sa_column_kwargs={"server_default": "false"}, default=False)
    """Its stored pieces of text are left to the answers that they became."""
    pruned_through: int = Field(sa_column_kwargs={"server_default": "0"}, default=0)
    """Events up to this one are kept no more; 0: nobody has looked, -1: there were none to drop."""


class JournalEntryRow(SQLModel, table=True):
    """The events of one commit. `sequence` is the last one's, the turn's version from then on."""

    __tablename__ = "turn_events"

    turn_id: str = _text(primary_key=True)
    sequence: int = Field(primary_key=True)
    occurred_at: datetime = _instant()
    events: str = _text()


class MessageRow(SQLModel, table=True):
    """The transcript of a conversation; append-only, hidden parts included."""

    __tablename__ = "messages"

    tenant_id: str = _text(primary_key=True)
    conversation_id: str = _text(primary_key=True)
    position: int = Field(primary_key=True)
    turn_id: str | None = _text(nullable=True)
    """Null: brought along, from another service or another conversation."""
    role: str = _text()
    message_id: str | None = _text(nullable=True)
    call_id: str | None = _text(nullable=True)
    body: str = _text()
    """The message as a chat request carries it, JSON."""
    meta: str | None = _text(nullable=True)
    """What a request does not carry, JSON."""
    created_at: datetime = _instant()


class ReceivedRow(SQLModel, table=True):
    """Message ids that are taken, for as long as their conversation lives."""

    __tablename__ = "received"

    tenant_id: str = _text(primary_key=True)
    conversation_id: str = _text(primary_key=True)
    message_id: str = _text(primary_key=True)
    turn_id: str = _text()
    digest: str = _text()
    received_at: datetime = _instant()


class IdempotencyKeyRow(SQLModel, table=True):
    """Replies to requests with an Idempotency-Key; an actor's own, kept for 30 days."""

    __tablename__ = "idempotency_keys"
    __table_args__: ClassVar = (
        Index("idempotency_keys_by_age", "kept_at"),
        Index("idempotency_keys_of_conversation", "tenant_id", "conversation_id"),
    )

    tenant_id: str = _text(primary_key=True)
    actor_id: str = _text(primary_key=True)
    key: str = _text(primary_key=True)
    digest: str = _text()
    reply: str = _text()
    """Status, headers and body, JSON."""
    conversation_id: str | None = _text(nullable=True)
    """Whose content the reply holds; it is forgotten with it."""
    kept_at: datetime = _instant()
    answering_until: datetime = _instant()
    """Until when the first request may still be on its way to another answer."""


class SummaryRow(SQLModel, table=True):
    """What stands in requests for the messages of these places; they stay as they are."""

    __tablename__ = "context_summaries"
    __table_args__: ClassVar = (
        ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),
        Index("summaries_of_conversation", "tenant_id", "conversation_id", "last_position"),
    )

    turn_id: str = _text(primary_key=True)
    model_attempt: int = Field(primary_key=True)
    tenant_id: str = _text()
    conversation_id: str = _text()
    first_position: int
    last_position: int
    hidden: Any = Field(sa_column=Column(INT4MULTIRANGE, nullable=False))
    """Which of the places were hidden when it was made."""
    body: str = _text()
    created_at: datetime = _instant()


class AuditRow(SQLModel, table=True):
    """Who asked for what, accepted or refused; never changed."""

    __tablename__ = "audit"
    __table_args__: ClassVar = (
        Index("audit_of_turn", "tenant_id", "turn_id", "seq"),
        CheckConstraint("outcome IN ('accepted', 'refused')", name="audit_outcome_known"),
    )

    seq: int | None = Field(
        default=None, sa_column=Column(BigInteger, Identity(always=True), primary_key=True)
    )
    tenant_id: str = _text()
    actor_id: str = _text()
    at: datetime = _instant()
    action: str = _text()
    outcome: str = _text()
    code: str | None = _text(nullable=True)
    conversation_id: str | None = _text(nullable=True)
    turn_id: str | None = _text(nullable=True)
    failure_id: str | None = _text(nullable=True)
    call_id: str | None = _text(nullable=True)
    request_id: str = _text()
    version_before: int | None = Field(default=None)
    version_after: int | None = Field(default=None)
    status_before: str | None = _text(nullable=True)
    status_after: str | None = _text(nullable=True)
    changes: str | None = _text(nullable=True)
    """What the command has changed of how the turn goes on, JSON."""


class AgentRow(SQLModel, table=True):
    """Agent versions that have been declared once; a version never changes."""

    __tablename__ = "agents"

    agent_id: str = _text(primary_key=True)
    version: str = _text(primary_key=True)
    declaration_hash: str = _text()
    declared_at: datetime = _instant()
