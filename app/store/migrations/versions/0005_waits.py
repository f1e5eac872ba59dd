"""what turns wait for: approvals, calls with outside tools, results that came too late"""

from alembic import op
import sqlalchemy as sa


revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _waits_of_turns()
    _approvals()
    _external_calls()
    _late_results()
    op.add_column("audit", sa.Column("call_id", sa.Text(), nullable=True))
    op.add_column("idempotency_keys", sa.Column("conversation_id", sa.Text(), nullable=True))
    op.create_index(
        "idempotency_keys_of_conversation", "idempotency_keys", ["tenant_id", "conversation_id"]
    )


def _waits_of_turns() -> None:
    op.add_column("turns", sa.Column("waiting_since", sa.DateTime(timezone=True), nullable=True))
    op.add_column("turns", sa.Column("wait_expires_at", sa.DateTime(timezone=True), nullable=True))
    op.add_column("turns", sa.Column("waits_for", sa.ARRAY(sa.Text()), nullable=True))
    # Turns that wait already: no wait of theirs expires, and their last change began it.
    op.execute(
        """
        UPDATE turns SET waiting_since = updated_at, waits_for = ARRAY[
            CASE status WHEN 'WAITING_FOR_MODEL' THEN 'MODEL' WHEN 'RETRY_SCHEDULED' THEN 'RETRY'
                        WHEN 'WAITING_FOR_USER' THEN 'USER_INPUT' ELSE 'PAUSED' END]
        WHERE status IN ('WAITING_FOR_MODEL', 'RETRY_SCHEDULED', 'WAITING_FOR_USER', 'PAUSED')
        """
    )
    op.create_index(
        "turns_waiting",
        "turns",
        ["tenant_id", "waiting_since", "turn_id"],
        postgresql_where=sa.text("waiting_since IS NOT NULL"),
    )
    op.create_index(
        "turns_expiring",
        "turns",
        ["wait_expires_at"],
        postgresql_where=sa.text("wait_expires_at IS NOT NULL"),
    )


def _approvals() -> None:
    op.create_table(
        "approvals",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("stage", sa.Text(), nullable=False),
        sa.Column("fingerprint", sa.Text(), nullable=False),
        sa.Column("is_approved", sa.Boolean(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("decided_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),
        sa.PrimaryKeyConstraint("turn_id", "seq"),
    )


def _external_calls() -> None:
    op.create_table(
        "external_calls",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("agent_id", sa.Text(), nullable=False),
        sa.Column("tool_name", sa.Text(), nullable=False),
        sa.Column("arguments", sa.Text(), nullable=False),
        sa.Column("max_result_bytes", sa.Integer(), nullable=False),
        sa.Column("requested_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("claims", sa.Integer(), nullable=False),
        sa.Column("claimed_by", sa.Text(), nullable=True),
        sa.Column("claimed_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("closed_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "status IN ('open', 'completed', 'failed', 'cancelled')",
            name="external_calls_status_known",
        ),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),
        sa.PrimaryKeyConstraint("turn_id", "call_id"),
    )
    places = ["tenant_id", "requested_at", "turn_id", "call_id"]
    op.create_index("external_calls_by_age", "external_calls", places)
    op.create_index(
        "external_calls_open",
        "external_calls",
        places,
        postgresql_where=sa.text("status = 'open'"),
    )


def _late_results() -> None:
    op.create_table(
        "late_results",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("seq", sa.Integer(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("call_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("actor_id", sa.Text(), nullable=False),
        sa.Column("received_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),
        sa.PrimaryKeyConstraint("turn_id", "seq"),
    )
