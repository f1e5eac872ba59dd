"""Tools that can be asked whether a call of theirs has taken effect."""

from typing import Protocol, runtime_checkable

from app.turn.lost_calls import Finding


class Done:
    """Said by a probe: the call has taken effect, and this is its result.

    The result is as the tool itself would have returned it.
    """

    def __init__(self, result: object) -> None:
        self.result = result


@runtime_checkable
class Probed(Protocol):
    """A tool with a probe."""

    async def found(self, key: str) -> Finding:
        """What is known of the call with that idempotency key.

        Raises whatever the probe raises; whoever asks takes that for `unknown`.
        """
        ...
