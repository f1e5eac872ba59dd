"""A plain question to the user, raised where it comes up."""

from app.turn.causes import innermost

MAX_QUESTION_CHARACTERS = 8_000


class Ask(Exception):  # noqa: N818 - read at the place of raising: "raise Ask"
    """Raised by a tool or a hook to ask the user: the turn waits, and what they say goes on.

    It may be wrapped in other exceptions on its way.

    Raises:
        ValueError: the question says nothing.
    """

    def __init__(self, question: str) -> None:
        if not question.strip():
            message = "a question needs words"
            raise ValueError(message)
        super().__init__(question)
        self.question = question


def question_in(error: BaseException) -> str | None:
    """What an exception asks, by an `Ask` it came from (case 143); at most 8,000 characters."""
    asked = innermost(error, Ask)
    if asked is None:
        return None
    question = asked.question
    if len(question) <= MAX_QUESTION_CHARACTERS:
        return question
    return question[: MAX_QUESTION_CHARACTERS - 1] + "…"
