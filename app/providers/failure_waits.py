"""The wait a provider states, and never one that it does not."""

import math
import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime, timedelta
from email.utils import parsedate_to_datetime

from app.providers.failure_evidence import Findings
from app.providers.failure_wait_words import is_span, seconds_of, waits_in
from app.providers.wire_json import JsonObject, as_object, as_text

_LONGEST = timedelta(days=366)

_NUMBER = re.compile(r"\d{1,12}(?:\.\d{1,20})?")
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
_KEYS_OF_DURATIONS = ("retryDelay", "retry_delay", "quotaResetDelay")
"""The same as an object of seconds and nanos, where protobuf's own printing was not used."""
_KEY_WITH_UNIT = re.compile(
    r"(?:re)?(?:try|set|sume|set[sd]?|tries|wait|backoff|cool_?down|next|available)"
    r"(?:[_-]?(?:after|in|delay|time|available|at|until|attempt|request|for))*"
    r"[_-]?(?:(ms|millis|milliseconds)|s|secs?|seconds)"
)
"""`retry_after_ms`, `nextAvailableInMs`, `wait_seconds`: a wait by whatever name, with its unit."""
_RETRY_AFTER = re.compile(r"retry-after(?:-seconds)?(?:-\d{1,9}-[^|]{1,60})?$")
"""Kong adds the window and the provider: `X-AI-RateLimit-Retry-After-60-openai`."""
_RESET_HEADER = re.compile(r"(?:[a-z]{1,16}-)?rate-?limit[a-z-]{0,40}-reset[a-z-]{0,40}")
_NOTHING_LEFT = re.compile(r"\b(?:r|remaining)=0\b")
_UNTIL_MORE = re.compile(r"\b(?:t|reset)=(\d{1,9})\b")
_ISO_SPAN = re.compile(r"^pt(?=\d)|(?<=\d[dhm])t?(?=\d)")
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
    for name, value in found.headers.items():
        if name.endswith("retry-after-ms"):
            yield from _longest_of(value, unit_seconds=0.001)
    for name, stated in found.headers.items():
        if _RETRY_AFTER.search(name):
            yield from _longest_of(stated, unit_seconds=1.0)
            yield from _whole_span(stated)
            yield from _until(_point_in_time(stated), found.headers)


def _longest_of(stated: str, *, unit_seconds: float) -> Iterator[timedelta]:
    """A proxy that adds the header once more makes a list of it: `20, 20`."""
    waits = [list(_numbers(part, unit_seconds=unit_seconds)) for part in stated.split(",")]
    if all(waits):
        yield max(wait for each in waits for wait in each)


def _from_values(found: Findings) -> Iterator[timedelta]:
    for inner in found.objects:
        for name in _KEYS_OF_DURATIONS:
            yield from _duration(as_object(inner.get(name)))
    for key, value in found.values:
        if key in _KEYS_OF_SPANS:
            yield from _span(as_text(value))
        elif key in _KEYS_IN_SECONDS:
            yield from _numbers(str(value), unit_seconds=1.0)
            yield from _whole_span(str(value))
        elif named := _KEY_WITH_UNIT.fullmatch(key):
            yield from _numbers(str(value), unit_seconds=0.001 if named[1] else 1.0)


def _duration(value: JsonObject) -> Iterator[timedelta]:
    for seconds in _numbers(str(value.get("seconds", "0")), unit_seconds=1.0):
        nanos = next(_numbers(str(value.get("nanos", "0")), unit_seconds=1e-9), timedelta(0))
        yield seconds + nanos


def _from_words(found: Findings) -> Iterator[timedelta]:
    for seconds in waits_in(found.with_advice):
        yield from _bounded(seconds)


def _from_reset_headers(found: Findings) -> Iterator[timedelta]:
    """The longest reset among the limits that are used up, as the headers say it."""
    waits = list(_from_rate_limit_header(found.headers.get("ratelimit", "")))
    for name, value in found.headers.items():
        if _RESET_HEADER.fullmatch(name) and _is_used_up(found.headers, name):
            waits.extend(_numbers(value, unit_seconds=1.0))
            waits.extend(_span(value))
            waits.extend(_until(_epoch(value) or _iso_date(value), found.headers))
    yield from sorted((wait for wait in waits if wait), reverse=True)[:1]


def _from_rate_limit_header(stated: str) -> Iterator[timedelta]:
    """The IETF's drafts: `limit=10, remaining=0, reset=25`, and later `"burst";r=0;t=40`."""
    if _NOTHING_LEFT.search(stated):
        for seconds in _UNTIL_MORE.findall(stated):
            yield from _numbers(seconds, unit_seconds=1.0)


def _is_used_up(headers: Mapping[str, str], reset: str) -> bool:
    """By what remains of the same limit, or, where that is not said, of every limit."""
    own = headers.get(reset.replace("reset", "remaining"))
    left = [own] if own is not None else [headers[name] for name in headers if "remaining" in name]
    return all(value.strip() == "0" for value in left)


def _numbers(text: str, *, unit_seconds: float) -> Iterator[timedelta]:
    if _NUMBER.fullmatch(text.strip()):
        yield from _bounded(float(text) * unit_seconds)


def _whole_span(text: str) -> Iterator[timedelta]:
    """`20s`, `1m30s` or `PT20S`, and nothing beside it."""
    span = _ISO_SPAN.sub("", text.strip().lower())
    if is_span(span):
        yield from _span(span)


def _span(text: str) -> Iterator[timedelta]:
    for seconds in seconds_of(text.lower()):
        yield from _bounded(seconds)


def _bounded(seconds: float) -> Iterator[timedelta]:
    if math.isfinite(seconds) and seconds < _LONGEST.total_seconds():
        yield timedelta(seconds=round(seconds, 6))


def _until(at: datetime | None, headers: Mapping[str, str]) -> Iterator[timedelta]:
    """From the answer's own date: a provider's clock is compared with nobody else's."""
    answered_at = _http_date(headers.get("date", ""))
    if at and answered_at:
        yield at - answered_at


def _point_in_time(text: str) -> datetime | None:
    return _http_date(text) or _epoch(text) or _iso_date(text)


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
