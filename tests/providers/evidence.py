"""Short ways to put a failure in front of the classifier."""

from app.providers.failures import Evidence, classify, explain
from app.turn.failures import FailureType, ModelFailure, RequestRefused

QUOTA = FailureType.QUOTA_EXCEEDED
RATE = FailureType.RATE_LIMITED
TOKENS = FailureType.TOKEN_LIMIT_EXCEEDED
BUSY = FailureType.OVERLOADED
DOWN = FailureType.UNAVAILABLE


def openai_error(
    status: int, message: str, code: str | None = None, kind: str | None = None, **headers: str
) -> Evidence:
    error = {"message": message, "type": kind, "param": None, "code": code}
    names = {name.replace("_", "-"): value for name, value in headers.items()}
    return Evidence(where="response", status=status, headers=names, body={"error": error})


def failure_from(evidence: Evidence) -> ModelFailure:
    result = classify(evidence)
    assert isinstance(result, ModelFailure), explain(evidence)
    return result


def refusal_from(evidence: Evidence) -> RequestRefused:
    result = classify(evidence)
    assert isinstance(result, RequestRefused), explain(evidence)
    return result
