"""claims: how many workers a turn has cost, and a queue by tenant, for a fair share"""

from alembic import op
import sqlalchemy as sa


revision = "0022"
down_revision = "0021"
branch_labels = None
depends_on = None

_RUNNABLE = sa.text("runnable_at IS NOT NULL")


def upgrade() -> None:
    op.add_column("turns", sa.Column("deaths", sa.Integer(), server_default="0", nullable=False))
    op.create_index(
        "turns_claimable_by_tenant",
        "turns",
        ["tenant_id", "runnable_at"],
        postgresql_where=_RUNNABLE,
    )
    op.drop_index("turns_claimable", table_name="turns", postgresql_where=_RUNNABLE)
