"""What a failed call means: the only reader of status codes, headers and error bodies.

`explain` says which rule decided. The order of evidence: the number an error has in its provider's
own table, the stop value of an answer, the words (`failure_rules`), a telling status, broader
words, any status, and that there was no answer at all. Words decide before statuses, because
gateways relay one provider's 429 as another's 500.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from http import HTTPStatus

import httpx

from app.providers.failure_counts import by_counts
from app.providers.failure_evidence import Evidence, Findings, findings
from app.providers.failure_numbers import by_number
from app.providers.failure_rules import BROAD_RULES, LAST_RULES, WORD_RULES
from app.providers.failure_stops import by_answer, by_stop
from app.providers.failure_verdicts import (
    BUSY,
    DENIED,
    DOWN,
    INPUT,
    QUOTA,
    RATE,
    REFUSED,
    UNKNOWN,
    Rule,
    Verdict,
)
from app.providers.failure_waits import stated_wait
from app.providers.redaction import redacted
from app.providers.wire_json import as_array
from app.turn.causes import causes
from app.turn.failures import FailureType, ModelFailure, RequestRefused

__all__ = [
    "Evidence",
    "Explanation",
    "classify",
    "classify_exception",
    "explain",
    "interrupted",
    "withholding",
]

_TELLING_STATUSES: dict[int, Verdict] = {
    401: DENIED,
    402: QUOTA,
    403: DENIED,
    404: DENIED,
    405: DENIED,
    407: DENIED,
    408: DOWN,
    410: DENIED,
    413: UNKNOWN,
    424: DOWN,
    425: DOWN,
    429: RATE,
    498: BUSY,
    499: DOWN,
    529: BUSY,
}
"""Statuses that say what happened; 498 is Groq's, 499 nginx's and Google's, 529 Anthropic's."""

_OTHER_STATUSES: dict[int, Verdict] = {409: DOWN, 421: DOWN, 451: REFUSED}
_HUNDREDS = {3: DENIED, 4: REFUSED, 5: DOWN}
"""Others by their hundreds: 3xx is a wrong address, 4xx a wrong request, 5xx an outage."""

_SHORTEN = re.compile(r"reduce the (?:length|size)|shorter (?:input|prompt|message)")
_PAY = re.compile(
    r"\b(?:upgrade|purchase|buy|add|renew|extend)\b[^|.;,]{0,40}"
    r"\b(?:plan|account|tier|credits?|funds|payment method|subscription|billing|capacity)\b"
)
_LATER = re.compile(r"try again|retry|later|\bwait\b|moment|slow")
_MAY_BE_MONEY = (None, 400, 402, 403, 429)
_MAY_BE_SIZE = (None, 400, 413, 422)

_Decision = tuple[str, Verdict]


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
    name, verdict = _named_inside(evidence) or _decide(found)
    return Explanation(name, _result(found, verdict, status=evidence.status or 0))


def classify_exception(error: BaseException, *, http_status: int = 0) -> ModelFailure:
    """A call that got no answer, or not all of it: transport errors and timeouts.

    Where an exception inside names a kind of failure, it is that kind: code between us and the
    provider may have wrapped it. A wrong request is never found here, only in an answer.
    """
    chain = [f"{type(one).__name__}: {one}" for one in causes(error)]
    evidence = Evidence(where="transport", body=chain)
    _, verdict = _named_inside(evidence) or _transport(findings(evidence))
    if verdict is REFUSED:
        verdict = DOWN
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


def withholding(
    failure: ModelFailure | RequestRefused, tool_names: Iterable[str]
) -> ModelFailure | RequestRefused:
    """The failure of an answer that broke, with the names of the calls that had come of it."""
    names = tuple(name for name in tool_names if name)
    if isinstance(failure, RequestRefused) or not names:
        return failure
    return replace(failure, withheld_tools=names)


def _decide(found: Findings) -> _Decision:
    if found.where == "transport" and not found.status:
        return _transport(found)
    return (
        by_number(found)
        or by_answer(found)
        or _unpaid(found, _by_words(WORD_RULES, found.words))
        or by_stop(found)
        or _by_advice_to_pay(found)
        or _by_status(found, _TELLING_STATUSES)
        or _by_advice(found)
        or _by_words(BROAD_RULES, found.words)
        or _by_any_status(found)
        or _by_words(LAST_RULES, found.words)
        or ("no-answer", DOWN)
    )


def _transport(found: Findings) -> _Decision:
    return _by_words(WORD_RULES, found.words) or ("transport", DOWN)


def _named_inside(evidence: Evidence) -> _Decision | None:
    """What the innermost exception that names a kind of failure names (cases 21, 22).

    An exhausted quota counts wherever it is named: clients raise it over the bare 429 of a library
    below them, which would be tried again.
    """
    if evidence.where != "transport":
        return None
    named: list[_Decision] = []
    for text in reversed(as_array(evidence.body)):
        words = findings(Evidence(where="transport", body=text)).words
        decision = _by_words(WORD_RULES, words)
        if decision and decision[1] is not REFUSED and decision[0] != "network":
            named.append(decision)
    exhausted = (decision for decision in named if decision[1] is QUOTA)
    return next(exhausted, named[0] if named else None)


def _by_words(rules: Iterable[Rule], words: str) -> _Decision | None:
    for rule in rules:
        if rule.pattern.search(words):
            return rule.name, by_counts(rule.verdict, words)
    return None


def _unpaid(found: Findings, decision: _Decision | None) -> _Decision | None:
    """Words of rates do not make a 402 one: whoever has to pay first would be asked in vain.

    Credits that running requests hold are the exception, which has its own rule.
    """
    if decision is None or found.status != HTTPStatus.PAYMENT_REQUIRED:
        return decision
    name, verdict = decision
    is_rate = verdict.type is FailureType.RATE_LIMITED and name != "credits-in-flight"
    return ("status-402", QUOTA) if is_rate else decision


def _by_status(found: Findings, statuses: dict[int, Verdict]) -> _Decision | None:
    verdict = statuses.get(found.status or 0)
    return (f"status-{found.status}", verdict) if verdict else None


def _by_any_status(found: Findings) -> _Decision | None:
    status = found.status or 0
    verdict = _OTHER_STATUSES.get(status) or _HUNDREDS.get(status // 100)
    return (f"status-{status}", verdict) if verdict else None


def _by_advice(found: Findings) -> _Decision | None:
    """Where nothing else is said, the advice to shorten the prompt says what is wrong with it."""
    if found.status in _MAY_BE_SIZE and _SHORTEN.search(found.with_advice):
        return "advice-to-shorten", INPUT
    return None


def _by_advice_to_pay(found: Findings) -> _Decision | None:
    """Where nothing else is said, not even to wait, the advice to pay says what is wrong."""
    said = found.with_advice
    if found.status in _MAY_BE_MONEY and _PAY.search(said) and not _LATER.search(said):
        return "advice-to-pay", QUOTA
    return None


def _result(found: Findings, verdict: Verdict, *, status: int) -> ModelFailure | RequestRefused:
    message = redacted(found.message) or f"the provider answered {status} without a word"
    if verdict.type is None:
        return RequestRefused(
            message=message,
            http_status=status,
            error_code=found.error_code,
            error_type=found.error_type,
        )
    is_waited_for = verdict.retryable or verdict is QUOTA
    return ModelFailure(
        type=verdict.type,
        message=message,
        retryable=verdict.retryable,
        retry_after=stated_wait(found, reads_words=is_waited_for),
        token_limit_phase=verdict.phase,
        http_status=status,
        error_code=found.error_code,
        error_type=found.error_type,
    )


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
