"""What the rules of the classifier decide on, and what a rule is."""

import re
from dataclasses import dataclass

from app.turn.failures import FailureType, TokenLimitPhase


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a failure is. `type` is `None` for a request that is wrong or refused itself."""

    type: FailureType | None
    retryable: bool
    phase: TokenLimitPhase | None = None


@dataclass(frozen=True, slots=True)
class Rule:
    """One line of a table."""

    name: str
    verdict: Verdict
    pattern: re.Pattern[str]
    why: str
    """The reason, and where it was seen or is documented."""


QUOTA = Verdict(type=FailureType.QUOTA_EXCEEDED, retryable=False)
RATE = Verdict(type=FailureType.RATE_LIMITED, retryable=True)
RATE_TOO_BIG = Verdict(type=FailureType.RATE_LIMITED, retryable=False)
BUSY = Verdict(type=FailureType.OVERLOADED, retryable=True)
DOWN = Verdict(type=FailureType.UNAVAILABLE, retryable=True)
DENIED = Verdict(type=FailureType.UNAVAILABLE, retryable=False)
REFUSED = Verdict(type=None, retryable=False)
INPUT, OUTPUT, TOTAL, UNKNOWN = (
    Verdict(type=FailureType.TOKEN_LIMIT_EXCEEDED, retryable=False, phase=phase)
    for phase in (
        TokenLimitPhase.INPUT_CONTEXT,
        TokenLimitPhase.OUTPUT,
        TokenLimitPhase.TOTAL_CONTEXT,
        TokenLimitPhase.UNKNOWN,
    )
)


def rule(name: str, verdict: Verdict, why: str, *alternatives: str) -> Rule:
    """A rule that holds where one of the alternatives is found in a failure's words."""
    return Rule(name, verdict, re.compile("|".join(alternatives)), why)
