"""the tables that every round writes to refer to their turn without a foreign key"""

from alembic import op


revision = "0027"
down_revision = "0026"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for table in ("turn_events", "messages", "model_usage", "received"):
        op.drop_constraint(f"{table}_turn_id_fkey", table, type_="foreignkey")
