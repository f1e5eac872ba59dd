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
    r"(?:try again|retry|retrying|wait|reset|resets|available|back|allowed|lifted|expires?"
    r"|cooldown)(?: (?:in|after|for|again|about|approximately|another|at least))*:? ~? ?"
    r"((?:\d{1,9}(?:\.\d{1,9})? ?[a-z]{1,12},? ?(?:and )?){1,4})"
)
_STATED_AS_FIELD = re.compile(
    r"retry (?:after|delay)(?: seconds)?(?:[:=]| ?\{ ?seconds:) ?(\d{1,9}(?:\.\d{1,9})?)(?![\w.])"
)
_STATED_IN_CHINESE = re.compile(
    r"(?:请|等待|重试|需要?|在|于|(?:剩余|冷却|等待|恢复)[\w ]{0,6}\W) ?(\d{1,9}(?:\.\d{1,9})?)"
    r" ?(毫秒|秒|分|小|天)|(\d{1,9}) ?(毫秒|秒|分|小|天)(?:钟|时)? ?之?后"
)
_KEYS_IN_SECONDS = frozenset(
    {
        *("resets_in_seconds", "retry_after", "retry_after_seconds", "retry_delay"),
        *("estimated_time", "retryafter", "retryafterseconds", "retry-after", "retry_in"),
        *("reset_seconds", "reset_after", "reset_after_seconds", "reset_in_seconds"),
        *("wait_seconds", "cooldown_seconds", "resets_in", "reset_in"),
    }
)
_KEYS_OF_SPANS = frozenset({"retrydelay", "quotaresetdelay"})
"""Google's: `44s` in a RetryInfo, `373.8ms` in the metadata of an ErrorInfo."""
_KEYS_IN_MS = frozenset({"retry_after_ms", "retryafterms", "retry-after-ms", "retryaftermillis"})
_RESET_HEADER = re.compile(r"(?:[a-z]{1,16}-)?rate-?limit[a-z-]{0,40}-reset[a-z-]{0,40}")
_EPOCH = re.compile(r"(\d{10})(\d{3})?(?:\.\d{1,9})?")
"""Seconds or milliseconds since 1970."""


def stated_wait(found: Findings, *, reads_words: bool = True) -> timedelta | None:
    """How long the provider asks to wait, from its header, its body or its words.

    Words are not read where waiting does not help: "if you recently fixed this, try again after 2
    minutes" is advice to the owner of a key.
    """
    sources = [_from_retry_headers, _from_values, _from_words, _from_reset_headers]
    if not reads_words:
        sources.remove(_from_words)
    waits = (wait for source in sources for wait in source(found))
    return next((wait for wait in waits if timedelta(0) < wait <= _LONGEST), None)


def _from_retry_headers(found: Findings) -> Iterator[timedelta]:
    yield from _numbers(found.headers.get("retry-after-ms", ""), unit_seconds=0.001)
    stated = found.headers.get("retry-after", "")
    yield from _numbers(stated, unit_seconds=1.0)
    yield from _whole_span(stated)
    yield from _until(_http_date(stated), found.headers)


def _from_values(found: Findings) -> Iterator[timedelta]:
    for key, value in found.values:
        if key in _KEYS_OF_SPANS:
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
    for asked, unit, later, its_unit in _STATED_IN_CHINESE.findall(found.with_advice):
        yield from _numbers(asked or later, unit_seconds=_CHINESE_UNITS[unit or its_unit])


def _from_reset_headers(found: Findings) -> Iterator[timedelta]:
    """The longest reset among the limits that are used up, as the headers say it."""
    waits: list[timedelta] = []
    for name, value in found.headers.items():
        if _RESET_HEADER.fullmatch(name) and _is_used_up(found.headers, name):
            waits.extend(_numbers(value, unit_seconds=1.0))
            waits.extend(_span(value))
            waits.extend(_until(_epoch(value) or _iso_date(value), found.headers))
    yield from sorted((wait for wait in waits if wait), reverse=True)[:1]


def _is_used_up(headers: Mapping[str, str], reset: str) -> bool:
    """By what remains of the same limit, or, where that is not said, of every limit."""
    own = headers.get(reset.replace("reset", "remaining"))
    left = [own] if own is not None else [headers[name] for name in headers if "remaining" in name]
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


def _epoch(text: str) -> datetime | None:
    match = _EPOCH.fullmatch(text.strip())
    if match is None:
        return None
    return datetime.fromtimestamp(int(match[1]) + int(match[2] or 0) / 1_000, UTC)


def _iso_date(text: str) -> datetime | None:
    try:
        at = datetime.fromisoformat(text[:40])
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=UTC)
