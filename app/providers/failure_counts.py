"""The numbers beside the words of a limit: they say more than the words do.

A prompt larger than the window by itself is too long however the sentence counts, and so is one
beside which no answer was asked for; a request for more than a minute's bucket waits in vain.
"""

import re

from app.providers.failure_verdicts import INPUT, RATE, RATE_TOO_BIG, TOTAL, Verdict

_OF = r" (?:tokens )?(?:in|of|from|for) (?:the |your )?"
_WINDOW = re.compile(
    r"(?:context length (?:is|of)|limit(?: of)?|window \(|上下文|<=|\+ \d{1,9} >) ?(\d{1,9})"
)
_PROMPT_PARTS = re.compile(
    rf"(\d{{1,9}})(?:{_OF}(?:messages|prompt|functions|tools|(?:\w+ )?input)\b"
    r"|(?: inputs?| prompt) tokens| \+ \d{1,9} >)"
    r"|(?:prompt|input) (?:tokens|length):? \(?(\d{1,9})"
)
_ANSWER_PART = re.compile(
    rf"(?:requested )?(\d{{1,9}})(?:{_OF}(?:completion|output)\b| output tokens)"
)
_ALLOWED_AND_ASKED = re.compile(
    r"\blimit:? (?P<allowed>\d{1,12})\b[^|]{0,60}\brequested:? (?P<asked>\d{1,12})"
)
_ASKED_AND_ALLOWED = re.compile(
    r"\b(?:needs|requires|requested|asks for|tier:|large:)(?: for)? (?P<asked>\d{1,12}) "
    r"(?:input |output |total )?tokens\b[^|]{0,60}"
    r"\b(?:limit(?:ed)?|allows?|allowed|maximum|at most)(?: is| of| to)?:? (?P<allowed>\d{1,12})"
)


def by_counts(verdict: Verdict, words: str) -> Verdict:
    """The verdict, corrected where the numbers beside the words say more than they do."""
    if verdict is TOTAL and _fills_the_window_alone(words):
        return INPUT
    if verdict is RATE:
        found = _ALLOWED_AND_ASKED.search(words) or _ASKED_AND_ALLOWED.search(words)
        if found and int(found["asked"]) > int(found["allowed"]):
            return RATE_TOO_BIG
    return verdict


def _fills_the_window_alone(words: str) -> bool:
    answer = _ANSWER_PART.search(words)
    if answer and int(answer[1]) == 0:
        return True
    window = _WINDOW.search(words)
    parts = dict.fromkeys(_PROMPT_PARTS.findall(words))  # a text and its copy inside a gateway's
    prompt = sum(int(before or after) for before, after in parts)
    return window is not None and prompt > int(window[1]) > 0
