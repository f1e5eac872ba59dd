"""How much is tried: a share of it in every run of the tests, all of it by `scripts/soak`."""

import os

IS_SOAK = os.environ.get("TURNKEEPER_SOAK") == "1"


def size(every_run: int, *, soak: int) -> int:
    """The number of repetitions of this run; the kinds of cases are always the same."""
    return soak if IS_SOAK else every_run
