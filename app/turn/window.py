"""How much of a history goes into a request, and what of it a summary may stand for.

A history is cut where a user begins to speak to a new turn, and nowhere else: so a request leads
with what a user has said, and no call is parted from its result. What belongs to the running turn
is always sent, and with it what its first message answers, where that is a call of another service.

Tokens are estimated: a quarter of the bytes that a message has as UTF-8 in its stored form,
upwards. That needs no model's tokenizer, and no more of it than the order of size is relied on.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from app.turn.agent import HistoryWindow
from app.turn.ids import TurnId

_BYTES_PER_TOKEN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What of a stored message decides on where a history is cut."""

    role: str
    turn_id: TurnId | None
    """`None`: it was brought along, or is a summary."""
    tokens: int


def estimated_tokens(text: str) -> int:
    """A quarter of its bytes, upwards."""
    return -(-len(text.encode()) // _BYTES_PER_TOKEN)


def first_sent(history: Sequence[Said], own: TurnId, window: HistoryWindow) -> int:
    """The index of the first message that is sent; what stands before it is left out.

    Args:
        history: all that could be sent, in order.
        own: the running turn.
        window: how much of what was said before it is wanted.
    """
    running = _opened_at(history, own)
    earlier = [n for n in range(running) if n == 0 or _is_opened(history, n)][::-1]
    tokens = list(accumulate((said.tokens for said in reversed(history[:running])), initial=0))
    kept = [
        start
        for turns, start in enumerate(earlier, start=1)
        if (window.turns is None or turns <= window.turns)
        and (window.messages is None or running - start <= window.messages)
        and (window.tokens is None or tokens[running - start] <= window.tokens)
    ]
    return min(kept, default=running)


def _opened_at(history: Sequence[Said], own: TurnId) -> int:
    """Where what the running turn belongs to begins: with its own first message, mostly.

    A turn that has said nothing yet, since it was resumed, forked or brought along, belongs to the
    end of the history: that is what it is to answer.
    """
    first = next((n for n, said in enumerate(history) if said.turn_id == own), len(history) - 1)
    return next((n for n in range(first, 0, -1) if _is_opened(history, n)), 0)


def _is_opened(history: Sequence[Said], place: int) -> bool:
    """Whether a user opens a turn there, or speaks in a history that was brought along."""
    said = history[place]
    if said.role != "user":
        return False
    return place == 0 or said.turn_id is None or said.turn_id != history[place - 1].turn_id
