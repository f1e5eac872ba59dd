"""Requests that cannot be, made from a seed: the same ones on every run."""

import json
import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeAlias

SEED = 20_260_101
PER_KIND = 45

Json: TypeAlias = object


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """A request as it goes over the wire; `{turn}` and `{conversation}` are filled in."""

    name: str
    method: str
    path: str
    content: bytes = b""
    headers: tuple[tuple[str, bytes], ...] = field(default=())


RESUME = ("POST", "/turns/{turn}/resume")
MESSAGE = ("POST", "/conversations/{conversation}/messages")
START = ("POST", "/conversations/{conversation}/turns")
START_ANEW = ("POST", "/turns")
PUT = ("PUT", "/conversations/{conversation}")
MAKE = ("POST", "/conversations")
RESUME_ANEW = ("POST", "/conversations/{conversation}/resume")
REVERT = ("POST", "/conversations/{conversation}/revert")
CLAIM = ("POST", "/external-calls/claim")
COMMANDS = (RESUME, MESSAGE, START, START_ANEW, PUT, MAKE, CLAIM, RESUME_ANEW, REVERT)
GETS = (
    "/turns",
    "/turns/{turn}",
    "/turns/{turn}/events",
    "/conversations",
    "/conversations/{conversation}",
    "/conversations/{conversation}/messages",
    "/conversations/{conversation}/resume-point",
    "/turns/{turn}/approvals",
    "/turns/{turn}/late-results",
    "/waits",
    "/external-calls",
    "/agents",
)
_LISTS = (
    "/turns",
    "/conversations",
    "/conversations/{conversation}/messages",
    "/waits",
    "/external-calls",
)
_JSON = (("Content-Type", b"application/json"),)
_FIELDS = {
    RESUME: ("command", "failureId", "callId", "text", "data", "output", "reason", "code"),
    CLAIM: ("tools", "limit", "leaseSeconds"),
    MESSAGE: ("content", "messageId", "agentId", "whenRunning", "hold"),
    START: ("content", "messageId", "agentId", "whenRunning", "hold"),
    START_ANEW: ("content", "messageId", "agentId", "whenRunning", "hold"),
    PUT: ("agentId", "title"),
    MAKE: ("agentId", "title", "history", "format"),
    RESUME_ANEW: ("failureId", "model", "lenient"),
    REVERT: ("messageId",),
}
_ODD_VALUES: tuple[Json, ...] = (
    True,
    0,
    -1,
    2**63,
    1e308,
    [],
    [None],
    {},
    {"a": {"b": []}},
    [[["x"]]],
    [{"type": "text", "text": None}],
    "\0",
    "a\nb",
    "\x1b[0m",
    "x" * 300,
    "../../etc/passwd",
    "\u202e\u2066",
    "<script>alert(1)</script>",
    "' OR 1=1; --",
    "%00",
    "${jndi:ldap://x}",
)
_ODD_BODIES = (
    b"{",
    b"}",
    b"[",
    b'{"content": "x"',
    b'{"content": "x",}',
    b"{'content': 'x'}",
    b'{"content": NaN}',
    b'{"content": Infinity}',
    b'{"content": -}',
    b'{"content": 01}',
    b'{"content": "\\x"}',
    b'{"content": "\\ud800"}',
    b'{"\\udfff": 1}',
    b'{"content": "\xff\xfe"}',
    b'{"content": "\xed\xa0\x80"}',
    b"\xef\xbb\xbf{}",
    b"\xff\xfe{\x00}\x00",
    b"\x1f\x8b\x08\x00",
    b"\x00",
    b"null",
    b"true",
    b"7",
    b'"text"',
    b"[]",
    b'[{"content": "x"}]',
    b"1" * 5_000,
    b'{"content": ' + b"9" * 5_000 + b"}",
    b'{"limit": 1e999}',
    b"[" * 50_000,
    b'{"a":' * 20_000,
    b'{"content": ' + b"[" * 900 + b"]" * 900 + b"}",
    b'{"content": ' + b'{"a":' * 900 + b"1" + b"}" * 901,
    b"{" + b",".join(b'"k%d": 1' % n for n in range(20_000)) + b"}",
    b'{"content": [' + b",".join([b"1"] * 100_000) + b"]}",
    b'{"content": "' + b"x" * 300_000 + b'"}',
    b" " * 1_048_577,
    b"content=x",
    b"--boundary\r\n",
    b"<xml/>",
)
_ODD_TYPES = (
    b"text/plain",
    b"application/x-www-form-urlencoded",
    b"multipart/form-data; boundary=x",
    b"application/xml",
    b"application/jsonp",
    b"json",
    b"",
    b"*/*",
    b"application/json-patch+json",
)
_ODD_IDS = (
    "%00",
    "a%00b",
    "%0A",
    "a%20b",
    "%C3%BC",
    "%FF",
    "%2e%2e%2f",
    "x" * 129,
    "x" * 10_000,
    "%25",
    "%22",
    "a;b",
    "{{7*7}}",
    "%E2%80%AE",
    "%F0%9D%84%9E",
)
_ODD_QUERIES = (
    "limit=0",
    "limit=-5",
    "limit=201",
    "limit=abc",
    "limit=1.5",
    "limit=%00",
    "limit=9" + "9" * 400,
    "cursor=%00",
    "cursor=abc",
    "cursor=W10",
    "cursor=" + "A" * 400,
    "cursor=" + "A" * 401,
    "status=NOPE",
    "status=%00",
    "conversationId=%00",
    "conversationId=a%20b",
    "after=%00",
    "after=-1",
    "after=999999999",
    "after=1:2:3",
    "after=x",
)
_ODD_HEADERS: tuple[tuple[str, bytes], ...] = (
    ("Idempotency-Key", b"k"),
    ("Idempotency-Key", b""),
    ("Idempotency-Key", b"x" * 5_000),
    ("If-Match", b"5"),
    ("If-Match", b'"x"'),
    ("If-Match", b'"0"'),
    ("If-Match", b'"99999999999"'),
    ("If-Match", b'"\xff"'),
    ("If-Match", b'"1", "2"'),
    ("Authorization", b"Bearer x"),
    ("Authorization", b"Bearer \xff"),
    ("Authorization", b"Basic eDp5"),
    ("Content-Encoding", b"gzip"),
    ("Content-Encoding", b"x"),
)


def bad_requests() -> list[Request]:
    """Every kind, shuffled; each is refused whatever the turn's state."""
    chance = random.Random(SEED)  # noqa: S311 - a seed, not a secret
    kinds: tuple[Callable[[random.Random], Iterator[Request]], ...] = (
        _values,
        _unknown_fields,
        _bodies,
        _content_types,
        _ids,
        _queries,
        _headers,
        _methods,
    )
    found = [request for kind in kinds for request in kind(chance)]
    chance.shuffle(found)
    return found


def _with_json(
    name: str, command: tuple[str, str], body: Json, *more: tuple[str, bytes]
) -> Request:
    method, path = command
    content = json.dumps(body).encode()
    return Request(name=name, method=method, path=path, content=content, headers=(*_JSON, *more))


def _good_body(command: tuple[str, str]) -> dict[str, Json]:
    """What would be taken but for one thing."""
    if command in (MESSAGE, START, START_ANEW):
        return {"content": "x"}
    if command == REVERT:
        return {"messageId": "gone"}
    return {"failureId": "stale"} if command in (RESUME, RESUME_ANEW) else {}


def _values(chance: random.Random) -> Iterator[Request]:
    """One field holds what it cannot."""
    cases = [
        (command, name, value)
        for command in COMMANDS
        for name in _FIELDS[command]
        for value in _ODD_VALUES
        if not (name == "content" and isinstance(value, str))
        and not (name == "hold" and value is True)
        and not (name == "history" and value == [])
        and not (
            name == "title" and isinstance(value, str) and value.isprintable() and len(value) < 200
        )
        and not (name == "title" and value == "\u202e\u2066")
    ]
    for command, name, value in chance.sample(cases, 3 * PER_KIND):
        body = _good_body(command) | {name: value}
        yield _with_json(f"{name} = {str(value)[:20]!r}", command, body)


def _unknown_fields(chance: random.Random) -> Iterator[Request]:
    """Fields that a caller may not set, or that are none."""
    names = ["status", "version", "tenantId", "actorId", "turnId", "createdAt", "finalOutput"]
    names += ["__proto__", "constructor", "message_id", "failure_id", "\u00fc", "", "a.b", "$where"]
    for _ in range(PER_KIND):
        command, name = chance.choice(COMMANDS), chance.choice(names)
        value = chance.choice(_ODD_VALUES)
        yield _with_json(f"unknown {name!r}", command, _good_body(command) | {name: value})


def _bodies(chance: random.Random) -> Iterator[Request]:
    """Bodies that are no JSON object, or one that nobody should have to read."""
    for content in _ODD_BODIES:
        method, path = chance.choice([RESUME, MESSAGE, START, START_ANEW])
        yield Request(
            name=f"body {content[:20]!r}", method=method, path=path, content=content, headers=_JSON
        )


def _content_types(chance: random.Random) -> Iterator[Request]:
    for kind in _ODD_TYPES:
        method, path = chance.choice(COMMANDS)
        body = json.dumps(_good_body((method, path)) or {"title": "x"}).encode()
        headers = (("Content-Type", kind),)
        yield Request(
            name=f"type {kind!r}", method=method, path=path, content=body, headers=headers
        )


def _ids(chance: random.Random) -> Iterator[Request]:
    """Ids that are none, where an id belongs."""
    templates = [
        ("GET", "/turns/{id}"),
        ("GET", "/turns/{id}/events"),
        ("POST", "/turns/{id}/cancel"),
        ("POST", "/turns/{id}/resume"),
        ("GET", "/conversations/{id}"),
        ("GET", "/conversations/{id}/messages"),
        ("PUT", "/conversations/{id}"),
        ("POST", "/conversations/{id}/messages"),
        ("POST", "/conversations/{id}/turns"),
        ("POST", "/turns/{id}/run"),
        ("GET", "/turns/{id}/approvals"),
        ("GET", "/turns/{id}/late-results"),
        ("DELETE", "/conversations/{id}"),
    ]
    cases = [(template, odd) for template in templates for odd in _ODD_IDS]
    for (method, path), odd in chance.sample(cases, PER_KIND + 15):
        body = b"" if method == "GET" else b'{"failureId": "x"}'
        yield Request(
            name=f"id {odd[:20]!r}",
            method=method,
            path=path.replace("{id}", odd),
            content=body if path.endswith("resume") else b"",
            headers=_JSON,
        )


def _queries(chance: random.Random) -> Iterator[Request]:
    """Filters that cannot be, on the lists and streams that have them."""
    known = {
        "limit": _LISTS,
        "cursor": _LISTS,
        "status": ("/turns", "/external-calls"),
        "conversationId": ("/turns",),
        "after": ("/turns/{turn}/events",),
    }
    for query in _ODD_QUERIES:
        path = chance.choice(known[query.partition("=")[0]])
        yield Request(name=f"query {query[:20]}", method="GET", path=f"{path}?{query}")


def _headers(chance: random.Random) -> Iterator[Request]:
    """Headers that cannot be, on a command that names no current failure."""
    for name, value in _ODD_HEADERS:
        is_good_elsewhere = name in {"If-Match", "Idempotency-Key"}
        command = RESUME if is_good_elsewhere else chance.choice(COMMANDS)
        body = _good_body(command) or {"title": "x"}
        yield _with_json(f"{name}: {value[:20]!r}", command, body, (name, value))


def _methods(chance: random.Random) -> Iterator[Request]:
    for method in ("PATCH", "DELETE", "PUT", "TRACE", "PROPFIND", "LOCK"):
        for path in chance.sample([p for p in GETS if p != "/conversations/{conversation}"], 3):
            yield Request(name=f"{method}", method=method, path=path)
