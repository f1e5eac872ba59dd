"""What a failed call left behind, unwrapped: gateways put errors into errors, often as text.

Every part of a body is visited: objects, lists, JSON inside strings, and Python's printed
dictionaries (`Error code: 429 - {'error': …}`), up to four texts deep. Nothing is lost on the way:
all words and codes are kept, and the deepest message is the one people are shown.
"""

import ast
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Literal

from app.providers import failure_words
from app.providers.wire_json import JsonObject, as_text, is_array, is_object, mended, parsed

MAX_READ_CHARACTERS = 65_536
"""How much of one text is looked at; an error that begins later is not one."""
_MAX_LITERAL_CHARACTERS = 16_384
_MAX_NESTED_TEXTS = 4
_MAX_NESTED_VALUES = 24
_MAX_VALUES = 2_000

_CODE_KEYS = frozenset(
    {
        *("code", "type", "status", "reason", "error_code", "error_type", "errorcode"),
        *(
            "status_code",
            "statuscode",
            "httpstatuscode",
            "originalstatuscode",
            "__type",
            "quotaid",
            "quotametric",
        ),
        *("finish_reason", "finishreason", "blockreason", "http_status", "http_code", "name"),
    }
)
_MESSAGE_KEYS = frozenset(
    {
        *("message", "msg", "error", "error_msg", "errmsg", "error_message", "status_msg"),
        *("detail", "title", "data", "raw", "status_message"),
    }
)
_UNREAD_KEYS = frozenset(
    {
        *("failed_generation", "usage", "headers", "message_zh", "url", "path", "links"),
        *("model", "object", "id", "request_id", "requestid", "sid", "provider", "provider_name"),
        *("remedy_hint", "flagged_input", "documentation_url", "system_fingerprint"),
        *("stack", "stacktrace", "traceback", "timestamp", "prompt_filter_results"),
        *("safetyratings", "input", "messages", "prompt", "contents"),
    }
)
"""Names, identities, advice and what was asked: words that say nothing of what failed."""

_TELLING_HEADERS = ("x-amzn-errortype", ":exception-type")
_STATUS_IN_TEXT = re.compile(
    r"(?:error code|status code|http status|status|http|error|\[|^)[ :=(]{0,3}([1-5]\d\d)\b"
    r"(?! ?[,:] ?message)"
)
"""Not the status that a parser of bodies gives its own exceptions: `400, message='Not enough…'`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """A failure as it arrived."""

    where: Literal["response", "stream", "transport"]
    """An HTTP answer, a part of an answered stream, or no answer at all."""
    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict[str, str])
    body: object = None
    """JSON, text or bytes; for `transport` the exceptions as texts, outermost first."""
    provider: str | None = None
    """Who answered, where that is known: it tells whose numbers the error's numbers are."""


@dataclass(slots=True, kw_only=True)
class Findings:
    """Everything a rule may look at."""

    where: Literal["response", "stream", "transport"]
    status: int | None
    """The innermost HTTP status."""
    headers: Mapping[str, str]
    body: object
    """The body, parsed where it is JSON."""
    provider: str | None = None
    words: str = ""
    """All codes and messages in the form of `failure_words`."""
    with_advice: str = ""
    """The same with the advice that `words` leaves out."""
    message: str = ""
    """The deepest message, as written."""
    error_code: str | None = None
    error_type: str | None = None
    values: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    """Every key with its plain value, in the order met."""
    objects: list[JsonObject] = field(default_factory=list[JsonObject])
    """Every object, in the order met."""


def findings(evidence: Evidence) -> Findings:
    """Unwrap the evidence; never fails, whatever the bytes."""
    body = _body(evidence.body)
    walk = _Walk()
    walk.visit(body, key="message")
    headers = {name.lower(): value for name, value in evidence.headers.items()}
    headers = walk.headers | headers
    walk.words.extend(headers.get(name, "") for name in _TELLING_HEADERS)
    if headers.get("anthropic-ratelimit-unified-status") == "rejected":
        walk.words.append("unified status: rejected")
    codes = (code for code in (walk.error_code, walk.error_type) if code)
    text = " | ".join(dict.fromkeys(_said((*codes, *walk.words))))[:MAX_READ_CHARACTERS]
    inner = [*walk.statuses, *(int(found) for found in _STATUS_IN_TEXT.findall(text.lower()))]
    return Findings(
        where=evidence.where,
        status=next((status for status in reversed(inner) if status >= 300), evidence.status),
        headers=headers,
        body=body,
        provider=evidence.provider,
        words=failure_words.words(text),
        with_advice=failure_words.with_advice(text),
        message=walk.message,
        error_code=walk.error_code,
        error_type=walk.error_type,
        values=walk.values,
        objects=walk.objects,
    )


def _said(texts: Iterable[str]) -> Iterable[str]:
    return (text for text in texts if text and not text.isspace())


def _body(body: object) -> object:
    """JSON of any length is parsed as a whole; of other text the beginning is enough."""
    if not isinstance(body, bytes | str):
        return body
    value = parsed(body)
    return body if value is None else value


@dataclass(slots=True)
class _Walk:
    words: list[str] = field(default_factory=list[str])
    statuses: list[int] = field(default_factory=list[int])
    values: list[tuple[str, object]] = field(default_factory=list[tuple[str, object]])
    objects: list[JsonObject] = field(default_factory=list[JsonObject])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    """Those that a gateway has put into its body."""
    message: str = ""
    error_code: str | None = None
    error_type: str | None = None
    _left: int = _MAX_VALUES

    def visit(self, value: object, *, key: str, texts: int = 0, depth: int = 0) -> None:
        self._left -= 1
        if self._left < 0 or depth > _MAX_NESTED_VALUES:
            return
        if isinstance(value, bytes):
            value = value[: 4 * MAX_READ_CHARACTERS].decode("utf-8", "replace")
        if is_object(value):
            self._visit_object(value, texts, depth)
        elif is_array(value):
            for entry in value:
                self.visit(entry, key=key, texts=texts, depth=depth + 1)
        elif isinstance(value, str):
            self._visit_text(mended(value[:MAX_READ_CHARACTERS]), key, texts, depth)
        elif value is not None:
            self._visit_number(value, key)

    def _visit_object(self, value: JsonObject, texts: int, depth: int) -> None:
        self.objects.append(value)
        if as_text(value.get("message")) or as_text(value.get("code")):
            self.error_code = _short(value.get("code")) or self.error_code
            self.error_type = _short(value.get("type")) or self.error_type
        for key, inner in value.items():
            if key.lower() not in _UNREAD_KEYS:
                self.visit(inner, key=key.lower(), texts=texts, depth=depth + 1)
        self._visit_unread(value)

    def _visit_unread(self, value: JsonObject) -> None:
        """Of what says nothing by itself, the numbers and times: a stated wait may be there."""
        for key in ("headers", "usage"):
            inner = value.get(key)
            if is_object(inner):
                self.values.extend((name.lower(), entry) for name, entry in inner.items())
            if is_object(inner) and key == "headers":
                self.headers.update((name.lower(), as_text(entry)) for name, entry in inner.items())

    def _visit_number(self, value: object, key: str) -> None:
        self.values.append((key, value))
        is_whole = isinstance(value, int) and not isinstance(value, bool)
        if key in _CODE_KEYS and is_whole:
            self._note_status(str(value))

    def _visit_text(self, text: str, key: str, texts: int, depth: int) -> None:
        self.values.append((key, text))
        inner = _value_inside(text) if texts < _MAX_NESTED_TEXTS else None
        if key in _CODE_KEYS or not (is_object(inner) or is_array(inner)):
            self.words.append(text)
        else:
            self.words.append(_around_value(text))
        if key in _CODE_KEYS:
            self._note_status(text)
        elif key in _MESSAGE_KEYS and text.strip():
            self.message = text
        if inner is not None:
            self.visit(inner, key="message", texts=texts + 1, depth=depth + 1)

    def _note_status(self, text: str) -> None:
        self.words.append(text)
        if len(text) == 3 and text.isascii() and text.isdigit():
            self.statuses.append(int(text))


def _short(value: object) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    return as_text(value)[:100] or None


def _value_inside(text: str) -> object:
    """The object or list a text holds, as JSON or as Python prints it; `None` without one."""
    start, end = _bounds_of_value(text)
    if start < 0 or end < start:
        return None
    inner = text[start:end]
    plainer = (inner, inner.replace('\\"', '"'), inner.replace("\\n", " ").replace("\n", " "))
    for candidate in dict.fromkeys(plainer):
        value = parsed(candidate)
        if value is not None:
            return value
    return _python_literal(inner)


def _around_value(text: str) -> str:
    """What is said beside the value: it is read itself, without what was asked."""
    start, end = _bounds_of_value(text)
    return f"{text[:start]} | {text[end:]}".strip(" |")


def _bounds_of_value(text: str) -> tuple[int, int]:
    start = min((at for at in (text.find("{"), text.find("[{")) if at >= 0), default=-1)
    return start, max(text.rfind("}"), text.rfind("}]") + 1) + 1


def _python_literal(text: str) -> object:
    if len(text) > _MAX_LITERAL_CHARACTERS:
        return None
    try:
        value: object = ast.literal_eval(text)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value
