"""the numbers of a conversation's turns, and how much of a turn's journal is kept"""

from alembic import op
import sqlalchemy as sa


revision = "0021"
down_revision = "0006"
branch_labels = None
depends_on = None

_TERMINAL = (
    "status IN ('BUDGET_EXCEEDED', 'CANCELLED', 'COMPLETED', 'FAILED', "
    "'MAX_ITERATIONS_REACHED', 'MAX_STEPS_REACHED')"
)


def upgrade() -> None:
    _numbers()
    op.add_column(
        "turns", sa.Column("is_folded", sa.Boolean(), server_default="false", nullable=False)
    )
    op.add_column(
        "turns", sa.Column("pruned_through", sa.Integer(), server_default="0", nullable=False)
    )
    op.create_index(
        "turns_to_fold",
        "turns",
        ["created_at"],
        postgresql_where=sa.text(f"{_TERMINAL} AND NOT is_folded"),
    )
    op.create_index(
        "turns_to_prune",
        "turns",
        ["created_at"],
        postgresql_where=sa.text("is_folded AND pruned_through = 0"),
    )


def _numbers() -> None:
    # By the database, so that a process of an older version may go on opening turns. Two turns that
    # begin at once have one number; then the index lets one through, as the other one does.
    op.add_column("turns", sa.Column("number", sa.Integer(), nullable=True))
    op.execute(
        """
        CREATE FUNCTION number_turn() RETURNS trigger LANGUAGE plpgsql AS $$
        BEGIN
            SELECT coalesce(max(t.number), 0) + 1 INTO NEW.number FROM turns t
            WHERE t.tenant_id = NEW.tenant_id AND t.conversation_id = NEW.conversation_id;
            RETURN NEW;
        END $$
        """
    )
    op.execute(
        """
        CREATE TRIGGER turns_are_numbered BEFORE INSERT ON turns
        FOR EACH ROW WHEN (NEW.number IS NULL) EXECUTE FUNCTION number_turn()
        """
    )
    op.execute(
        """
        UPDATE turns SET number = n.number FROM (
            SELECT turn_id, row_number() OVER (
                PARTITION BY tenant_id, conversation_id ORDER BY created_at, turn_id) AS number
            FROM turns) n
        WHERE turns.turn_id = n.turn_id
        """
    )
    op.alter_column("turns", "number", nullable=False)
    op.create_index(
        "turns_by_number", "turns", ["tenant_id", "conversation_id", "number"], unique=True
    )
