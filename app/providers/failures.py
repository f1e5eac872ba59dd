"""What a failed call means: the only reader of status codes, headers and error bodies.

`explain` says which rule decided. Words decide before statuses (`failure_rules`), because gateways
relay one provider's 429 as another's 500; a status decides when no word does, and the class of an
exception when there was no answer at all.
"""

import re
from dataclasses import dataclass

import httpx

from app.providers.failure_evidence import Evidence, Findings, findings
from app.providers.failure_rules import (
    BUSY,
    DENIED,
    DOWN,
    QUOTA,
    RATE,
    REFUSED,
    UNKNOWN,
    WORD_RULES,
    Verdict,
)
from app.providers.failure_waits import stated_wait
from app.providers.redaction import redacted
from app.turn.causes import causes
from app.turn.failures import FailureType, ModelFailure, RequestRefused

__all__ = ["Evidence", "Explanation", "classify", "classify_exception", "explain", "interrupted"]

_STATUSES: dict[int, Verdict] = {
    400: REFUSED,
    401: DENIED,
    402: QUOTA,
    403: DENIED,
    404: DENIED,
    405: DENIED,
    407: DENIED,
    408: DOWN,
    409: DOWN,
    410: DENIED,
    413: UNKNOWN,
    422: REFUSED,
    424: DOWN,
    425: DOWN,
    429: RATE,
    529: BUSY,
}
"""A bare status; others by their hundreds: 3xx is a wrong address, 4xx a wrong request."""

_HUNDREDS = {3: DENIED, 4: REFUSED, 5: DOWN}

_HOPELESS_TRANSPORT = re.compile(
    r"certificate|hostname mismatch|proxy ?authentication|unsupported ?protocol|invalid ?url"
    r"|local ?protocol ?error"
)
"""A fault of the address or of trust stays until somebody changes something."""

_WRONG_REQUEST = re.compile(r"invalid ?request|bad ?request")


@dataclass(frozen=True, slots=True)
class Explanation:
    """A classified failure together with the name of the rule that decided."""

    rule: str
    result: ModelFailure | RequestRefused


def classify(evidence: Evidence) -> ModelFailure | RequestRefused:
    """What this failure is; total over any bytes, and free of I/O and clocks."""
    return explain(evidence).result


def explain(evidence: Evidence) -> Explanation:
    """`classify`, saying why."""
    found = findings(evidence)
    rule, verdict = _decide(found)
    return Explanation(rule, _result(found, verdict, status=evidence.status or 0))


def classify_exception(error: BaseException, *, http_status: int = 0) -> ModelFailure:
    """A call that got no answer, or not all of it: transport errors and timeouts.

    Where an exception inside names a kind of failure, it is that kind: code between us and the
    provider may have wrapped it.
    """
    chain = [f"{type(one).__name__}: {one}" for one in causes(error)]
    found = findings(Evidence(where="transport", body=chain))
    verdict = _named_inside(chain) or _transport(found)[1]
    return ModelFailure(
        type=verdict.type or FailureType.UNAVAILABLE,
        message=redacted(_described(error)),
        retryable=verdict.retryable,
        token_limit_phase=verdict.phase,
        http_status=http_status,
        exception_type=type(error).__name__,
    )


def interrupted(raw_stop: str | None = None) -> ModelFailure:
    """An answer that broke off, or that the provider itself broke off with a stop value."""
    said = f"the provider stopped with {raw_stop!r}" if raw_stop else "the answer broke off"
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=redacted(said),
        retryable=True,
        http_status=200,
        error_code=raw_stop[:100] if raw_stop else None,
        exception_type=None if raw_stop else "IncompleteAnswer",
    )


def _decide(found: Findings) -> tuple[str, Verdict]:
    if found.where == "transport" and not found.status:
        return _transport(found)
    for rule in WORD_RULES:
        if rule.pattern.search(found.words):
            return rule.name, rule.verdict
    return _by_status(found)


def _by_status(found: Findings) -> tuple[str, Verdict]:
    status = found.status or 0
    verdict = _STATUSES.get(status) or _HUNDREDS.get(status // 100)
    if verdict is not None:
        return f"status-{status}", verdict
    if _WRONG_REQUEST.search(found.words):
        return "wrong-request", REFUSED
    return "no-answer", DOWN


def _transport(found: Findings) -> tuple[str, Verdict]:
    if _HOPELESS_TRANSPORT.search(found.words):
        return "transport-address", DENIED
    return "transport", DOWN


def _result(found: Findings, verdict: Verdict, *, status: int) -> ModelFailure | RequestRefused:
    message = redacted(found.message) or f"the provider answered {status} without a word"
    if verdict.type is None:
        return RequestRefused(
            message=message,
            http_status=status,
            error_code=found.error_code,
            error_type=found.error_type,
        )
    return ModelFailure(
        type=verdict.type,
        message=message,
        retryable=verdict.retryable,
        retry_after=stated_wait(found),
        token_limit_phase=verdict.phase,
        http_status=status,
        error_code=found.error_code,
        error_type=found.error_type,
    )


def _named_inside(chain: list[str]) -> Verdict | None:
    """What the innermost exception that names a kind of failure names (cases 21, 22)."""
    for text in reversed(chain):
        words = findings(Evidence(where="transport", body=[text])).words
        for rule in WORD_RULES:
            if rule.verdict.type is not None and rule.pattern.search(words):
                return rule.verdict
    return None


def _described(error: BaseException) -> str:
    text = str(error) or type(error).__doc__ or ""
    request = _request_of(error)
    return f"{text} ({request})" if request else text or type(error).__name__


def _request_of(error: BaseException) -> str:
    """The host that was asked, without path, query or credentials."""
    if not isinstance(error, httpx.RequestError):
        return ""
    try:
        return error.request.url.host
    except RuntimeError:  # the error was raised before there was a request
        return ""
