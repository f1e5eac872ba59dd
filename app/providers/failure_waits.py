"""The wait a provider states, and never one that it does not."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from app.providers.failure_evidence import Findings
from app.providers.wire_json import as_text

_LONGEST = timedelta(days=366)
_UNIT_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3_600.0, "d": 86_400.0}
_CHINESE_UNITS = {"毫秒": 0.001, "秒": 1.0, "分": 60.0, "小": 3_600.0, "天": 86_400.0}

_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,20})?")
_SPAN = re.compile(
    r"(\d{1,9}(?:\.\d{1,9})?) ?"
    r"(milliseconds?|msecs?|ms|seconds?|secs?|s|minutes?|mins?|m|hours?|hrs?|h|days?|d)(?![a-z])"
)
_STATED = re.compile(
    r"(?:try again|retry|retrying|wait|reset|resets|available|back)"
    r"(?: (?:in|after|for|again|about|at least))*:? "
    r"((?:\d{1,9}(?:\.\d{1,9})? ?[a-z]{1,12},? ?(?:and )?){1,4})"
)
_STATED_AS_FIELD = re.compile(
    r"retry (?:after|delay)(?: seconds)?(?:[:=]| ?\{ ?seconds:) ?(\d{1,9}(?:\.\d{1,9})?)(?![\w.])"
)
_STATED_IN_CHINESE = re.compile(
    r"(?:请|等待|重试|需要?|在|于) ?(\d{1,9}(?:\.\d{1,9})?) ?(毫秒|秒|分|小|天)(?:钟|时)? ?"
    r"(?:之?后|再试|后再|内|$)?"
)
_KEYS_IN_SECONDS = frozenset(
    {
        *("resets_in_seconds", "retry_after", "retry_after_seconds", "retry_delay"),
        *("estimated_time", "retryafter", "retryafterseconds", "retry-after"),
    }
)
_KEYS_IN_MS = frozenset({"retry_after_ms", "retryafterms", "retry-after-ms", "retryaftermillis"})
_RESET_HEADER = re.compile(r"(?:(?:x|anthropic)-)?rate-?limit-(?:(\w+)-)?reset(?:-(\w+))?")


def stated_wait(found: Findings, *, reads_words: bool = True) -> timedelta | None:
    """How long the provider asks to wait, from its header, its body or its words.

    Words are not read where waiting does not help: "if you recently fixed this, try again after 2
    minutes" is advice to the owner of a key.
    """
    sources = [_from_retry_headers, _from_values, _from_words, _from_reset_headers]
    if not reads_words:
        sources.remove(_from_words)
    waits = (wait for source in sources for wait in source(found))
    return next((wait for wait in waits if timedelta(0) <= wait <= _LONGEST), None)


def _from_retry_headers(found: Findings) -> Iterator[timedelta]:
    yield from _numbers(found.headers.get("retry-after-ms", ""), unit_seconds=0.001)
    stated = found.headers.get("retry-after", "")
    yield from _numbers(stated, unit_seconds=1.0)
    yield from _whole_span(stated)
    yield from _until(_http_date(stated), found.headers)


def _from_values(found: Findings) -> Iterator[timedelta]:
    for key, value in found.values:
        if key == "retrydelay":  # google.rpc.RetryInfo: "44s"
            yield from _span(as_text(value))
        elif key in _KEYS_IN_SECONDS:
            yield from _numbers(str(value), unit_seconds=1.0)
            yield from _whole_span(str(value))
        elif key in _KEYS_IN_MS:
            yield from _numbers(str(value), unit_seconds=0.001)


def _from_words(found: Findings) -> Iterator[timedelta]:
    for text in _STATED.findall(found.with_advice):
        yield from _span(text)
    for text in _STATED_AS_FIELD.findall(found.with_advice):
        yield from _numbers(text, unit_seconds=1.0)
    for number, unit in _STATED_IN_CHINESE.findall(found.with_advice):
        yield from _numbers(number, unit_seconds=_CHINESE_UNITS[unit])


def _from_reset_headers(found: Findings) -> Iterator[timedelta]:
    """The longest reset among the limits that are used up, as the headers say it."""
    waits: list[timedelta] = []
    for name, value in found.headers.items():
        match = _RESET_HEADER.fullmatch(name)
        if match and _is_used_up(found.headers, match.group(1) or match.group(2)):
            waits.extend(_numbers(value, unit_seconds=1.0))
            waits.extend(_span(value))
            waits.extend(_until(_iso_date(value), found.headers))
    yield from sorted((wait for wait in waits if wait), reverse=True)[:1]


def _is_used_up(headers: Mapping[str, str], kind: str | None) -> bool:
    left = [
        value for name, value in headers.items() if "remaining" in name and (kind or "") in name
    ]
    return all(value.strip() == "0" for value in left)


def _numbers(text: str, *, unit_seconds: float) -> Iterator[timedelta]:
    if _NUMBER.fullmatch(text.strip()):
        seconds = float(text) * unit_seconds
        if math.isfinite(seconds) and seconds < _LONGEST.total_seconds():
            yield timedelta(seconds=round(seconds, 6))


def _whole_span(text: str) -> Iterator[timedelta]:
    """`20s` or `1m30s`, and nothing beside it."""
    if text and not _SPAN.sub("", text.lower()).strip():
        yield from _span(text.lower())


def _span(text: str) -> Iterator[timedelta]:
    """`6ms`, `1m30.5s`, `8 hours 24 minutes`, `1.57s`."""
    parts = _SPAN.findall(text[:200])
    seconds = sum(float(number) * _unit_seconds(unit) for number, unit in parts)
    if parts and seconds < _LONGEST.total_seconds():
        yield timedelta(seconds=round(seconds, 6))


def _unit_seconds(unit: str) -> float:
    return _UNIT_SECONDS["ms" if unit.startswith(("ms", "mil")) else unit[0]]


def _until(at: datetime | None, headers: Mapping[str, str]) -> Iterator[timedelta]:
    """From the answer's own date: a provider's clock is compared with nobody else's."""
    answered_at = _http_date(headers.get("date", ""))
    if at and answered_at:
        yield at - answered_at


def _http_date(text: str) -> datetime | None:
    try:
        at = parsedate_to_datetime(text[:64])
    except (ValueError, TypeError, OverflowError, IndexError):
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)


def _iso_date(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text[:40])
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
