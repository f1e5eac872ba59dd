"""Plain questions to the user: how a turn comes to wait for an answer (T43a).

A tool that asks has its result at once, so that the history stays whole and the rest of its round
goes on; the question is put when the round has ended. A hook's question is put where it asks.
"""

from datetime import datetime

from app.turn import events as e
from app.turn.agent import WaitPolicy
from app.turn.state import Turn
from app.turn.states import WaitingForUser
from app.turn.transcript import QuestionMessage


def asking(
    turn: Turn, policy: WaitPolicy, *more: str, at: datetime, heard: int = 0
) -> tuple[e.Event, ...]:
    """The turn waits for the user, who is asked everything that is to be asked, in one message.

    They may take as long as `policy` says. `heard` is how many of the unread messages the hook that
    asks has seen.
    """
    question = "\n".join((*turn.questions, *more))
    message = QuestionMessage(text=question)
    suspended = e.TurnSuspended(
        suspension_type="USER_INPUT",
        record=None,
        requested_at=at,
        next_runnable_at=None,
        question=question,
        heard=heard,
        policy=policy,
    )
    return (e.MessageAdded(position=turn.next_position, message=message), suspended)


def is_late(state: WaitingForUser, *, at: datetime) -> bool:
    """Whether an answer to the question comes too late."""
    return state.is_expired or (state.expires_at is not None and at >= state.expires_at)


def told_to_the_model(question: str) -> str:
    """The result of a call whose tool has asked."""
    return f"The user has been asked: {question} Their answer follows as a message."
