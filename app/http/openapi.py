"""What the description says beyond its routes: the sign-in, and the problems of each operation.

A route names the codes that are its own (`openapi_extra=may_answer(…)`); those that every operation
of its kind can answer are added here, from the one table of problems.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from fastapi import FastAPI
from typing_extensions import override

from app.http.auth import COOKIE, SIGN_IN_PATH
from app.http.idempotency import REPLAYED_HEADER
from app.http.problems import MEDIA_TYPE, PROBLEMS

Schema: TypeAlias = dict[str, Any]

_CODES = "x-problem-codes"
_OPEN_PATHS = frozenset({"/livez", "/readyz", SIGN_IN_PATH})
_OF_THE_FRAMEWORK = ("HTTPValidationError", "ValidationError")
_OF_EVERYTHING = frozenset({"internal_error"})
_OF_SIGNED_IN = frozenset({"unauthenticated", "store_unavailable", "turn_not_readable"})
_OF_BODIES = frozenset({"bad_request", "payload_too_large", "unsupported_media_type"})
_OF_COMMANDS = frozenset({"forbidden", "cross_site"})
_OF_KEYS = frozenset({"idempotency_in_progress", "idempotency_key_reused"})


def may_answer(*codes: str) -> Schema:
    """For a route's `openapi_extra`: the problems that are its own.

    Raises:
        KeyError: for a code that is not in the table.
    """
    return {_CODES: sorted(codes, key=lambda code: (PROBLEMS[code].status, code))}


class DescribedApi(FastAPI):
    """A FastAPI application whose description is complete."""

    @override
    def openapi(self) -> Schema:
        schema = super().openapi()
        if "securitySchemes" not in schema["components"]:
            _complete(schema)
        return schema


def openapi_text(app: FastAPI) -> str:
    """The description as openapi/openapi.json holds it."""
    return json.dumps(app.openapi(), indent=2, sort_keys=True, ensure_ascii=False) + "\n"


def _complete(schema: Schema) -> None:
    components = schema["components"]
    components["securitySchemes"] = {
        "bearer": {"type": "http", "scheme": "bearer"},
        "cookie": {"type": "apiKey", "in": "cookie", "name": COOKIE},
    }
    for name in _OF_THE_FRAMEWORK:
        components["schemas"].pop(name, None)
    components["schemas"]["Problem"] = _PROBLEM
    schema["security"] = [{"bearer": []}, {"cookie": []}]
    for path, operations in schema["paths"].items():
        for method, operation in operations.items():
            _complete_operation(path, method, operation)
    _drop_unused(schema)


def _drop_unused(schema: Schema) -> None:
    """Parts of what is described elsewhere, and so of nothing here."""
    described = json.dumps(schema)
    for name in list(schema["components"]["schemas"]):
        if f'"#/components/schemas/{name}"' not in described:
            del schema["components"]["schemas"][name]


def _complete_operation(path: str, method: str, operation: Schema) -> None:
    is_open = path in _OPEN_PATHS
    if is_open:
        operation["security"] = []
    codes = {*operation.get(_CODES, ()), *_OF_EVERYTHING}
    codes |= set() if is_open else _OF_SIGNED_IN
    if method != "get":
        codes |= _OF_BODIES if is_open else _OF_BODIES | _OF_COMMANDS
    if method == "post" and not is_open:
        codes |= _OF_KEYS
        for response in operation["responses"].values():
            response["headers"] = response.get("headers", {}) | REPLAYED_HEADER
    if any(
        "text/event-stream" in each.get("content", {}) for each in operation["responses"].values()
    ):
        codes.add("too_many_streams")
    if "requestBody" in operation:
        codes.add("payload_invalid")
    operation |= may_answer(*codes)
    operation["responses"].pop("422", None)
    operation["responses"] |= _problem_responses(codes)


def _problem_responses(codes: Iterable[str]) -> Schema:
    by_status: dict[int, list[str]] = {}
    for code in sorted(codes):
        by_status.setdefault(PROBLEMS[code].status, []).append(code)
    return {str(status): _problem_response(found) for status, found in sorted(by_status.items())}


def _problem_response(codes: Iterable[str]) -> Schema:
    description = " ".join(f"`{code}`: {PROBLEMS[code].title}" for code in codes)
    content: Schema = {MEDIA_TYPE: {"schema": {"$ref": "#/components/schemas/Problem"}}}
    return {"description": description, "content": content}


def _nullable(kind: str) -> Schema:
    return {"anyOf": [{"type": kind}, {"type": "null"}]}


_PROBLEM: Mapping[str, Any] = {
    "type": "object",
    "title": "Problem",
    "description": "RFC 9457. `code` is stable; docs/problems has a page for each.",
    "required": ["type", "title", "status", "detail", "code"],
    "properties": {
        "type": {"type": "string"},
        "title": {"type": "string"},
        "status": {"type": "integer"},
        "detail": {"type": "string", "description": "What was tried, on what, and what to do."},
        "code": {"type": "string", "enum": sorted(PROBLEMS)},
        "errors": {
            "type": "array",
            "description": "Of an invalid request: what is wrong where; at most 20.",
            "items": {
                "type": "object",
                "required": ["field", "problem"],
                "properties": {"field": {"type": "string"}, "problem": {"type": "string"}},
            },
        },
        "reason": {"type": "string", "description": "Of `not_resumable`: as the resume point."},
        "turnId": {"type": "string"},
        "conversationId": {"type": "string"},
        "currentStatus": {"$ref": "#/components/schemas/Status"},
        "currentVersion": {"type": "integer"},
        "currentFailureId": _nullable("string"),
        "retryAt": _nullable("string"),
        "allowedActions": {
            "type": "array",
            "items": {"$ref": "#/components/schemas/ActionOutput"},
        },
    },
}
