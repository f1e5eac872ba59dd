"""summaries that stand for the older part of a conversation, and what a command has changed"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql


revision = "0026"
down_revision = "0022"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "context_summaries",
        sa.Column("turn_id", sa.Text(), nullable=False),
        sa.Column("model_attempt", sa.Integer(), nullable=False),
        sa.Column("tenant_id", sa.Text(), nullable=False),
        sa.Column("conversation_id", sa.Text(), nullable=False),
        sa.Column("first_position", sa.Integer(), nullable=False),
        sa.Column("last_position", sa.Integer(), nullable=False),
        sa.Column("hidden", postgresql.INT4MULTIRANGE(), nullable=False),
        sa.Column("body", sa.Text(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(["turn_id"], ["turns.turn_id"]),
        sa.PrimaryKeyConstraint("turn_id", "model_attempt"),
    )
    op.create_index(
        "summaries_of_conversation",
        "context_summaries",
        ["tenant_id", "conversation_id", "last_position"],
    )
    op.add_column("audit", sa.Column("changes", sa.Text(), nullable=True))
