"""messages that were brought along, and messages that a revert hides"""

from alembic import op
import sqlalchemy as sa
from sqlalchemy.dialects import postgresql


revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.alter_column("messages", "turn_id", existing_type=sa.Text(), nullable=True)
    op.add_column(
        "conversations",
        sa.Column("hidden", postgresql.INT4MULTIRANGE(), server_default="{}", nullable=False),
    )
    op.add_column(
        "conversations",
        sa.Column("reverted", postgresql.INT4RANGE(), server_default="empty", nullable=False),
    )
    op.add_column("conversations", sa.Column("reverted_to", sa.Text(), nullable=True))
