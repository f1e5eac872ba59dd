"""What statements and indexes say of a turn's row, in the same words."""

from typing import Final

from app.turn.status import TERMINAL

NOT_TERMINAL: Final = "status NOT IN (" + ", ".join(sorted(f"'{s.value}'" for s in TERMINAL)) + ")"
"""The statuses of a turn that still holds its conversation."""
TERMINATED: Final = NOT_TERMINAL.replace(" NOT IN ", " IN ")
UNFOLDED: Final = "NOT is_folded"
UNPRUNED: Final = "is_folded AND pruned_through = 0"
