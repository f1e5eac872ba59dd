"""A summary, as a request carries it in place of the messages that it stands for."""

from app.turn.ids import MessageId
from app.turn.transcript import TextPart, UserMessage

SUMMARY = "summary"
"""Its role among the messages of a history; a provider sees it as a user's message."""


def in_requests(summary: str) -> UserMessage:
    """What the model is told of what was said before."""
    text = f"What was said before this was summed up, to save room:\n\n{summary}"
    return UserMessage(message_id=MessageId(""), content=(TextPart(text=text),))
