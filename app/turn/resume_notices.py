"""What the model is told of its own answer that was cut off (seed rule ZA-9).

Once: as long as it has not answered, the notice at the end of the transcript still says it.
"""

from collections.abc import Mapping

from app.turn import events as e
from app.turn.state import Turn
from app.turn.states import Paused, WaitingForModel
from app.turn.transcript import NoticeCause, NoticeMessage

BEGIN_AGAIN = "Your last answer was cut off before its end. Write it again from the start."
_WORDS: Mapping[str, tuple[NoticeCause, str]] = {
    "RETRY_RESPONSE": ("retry_response", BEGIN_AGAIN),
    "CONTINUE_RESPONSE": (
        "continue_response",
        "Your last answer reached its greatest length. Go on where it ends; repeat nothing of it.",
    ),
}
NOTICE_TEXTS = frozenset(text for _, text in _WORDS.values())


def notices(kind: str) -> tuple[NoticeMessage, ...]:
    """The notice for a kind of resume, where that kind has one."""
    words = _WORDS.get(kind)
    return () if words is None else (NoticeMessage(text=words[1], cause=words[0]),)


def told_to_begin_again(turn: Turn) -> tuple[e.MessageAdded, ...]:
    """Said before a turn asks its model again, when text of its answer is kept (T60, T101)."""
    if not (turn.ends_partial or _text_was_kept(turn)):
        return ()
    if turn.told_at == turn.next_position - 1:
        return ()
    return tuple(
        e.MessageAdded(position=turn.next_position, message=notice)
        for notice in notices("RETRY_RESPONSE")
    )


def _text_was_kept(turn: Turn) -> bool:
    """A turn that stopped before partial messages were kept says it in its state alone."""
    match turn.state:
        case WaitingForModel(text_kept=text_kept) | Paused(text_kept=text_kept):
            return text_kept
        case _:
            return False
