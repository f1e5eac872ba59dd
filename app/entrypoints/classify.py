"""`turnkeeper failures classify`: what the classifier makes of failures in a file, line by line.

A line out for every line in, so that the two files can be laid side by side: a line that is no
failure is answered with `{"error": …}` and told on standard error, and the others go on.
"""

import json
import sys
from collections.abc import Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import Literal, TypeGuard

import typer

from app.providers.failures import Evidence, explain
from app.providers.wire_json import JsonObject, is_object, parsed
from app.turn.failures import ModelFailure

Where = Literal["response", "stream", "transport"]


class InvalidLineError(Exception):
    """A line that is no failure; the text says what it should have been."""


def run(file: str) -> None:
    """Print what the classifier says of each line of the file, or of standard input for `-`.

    Exits with 1 where the file cannot be read or a line was bad, in the end.
    """
    try:
        with _lines(file) as lines:
            is_any_bad = _print_answers(lines)
    except OSError as error:
        sys.exit(f"turnkeeper: {file}: {error.strerror}")
    if is_any_bad:
        raise typer.Exit(1)


def answer(line: bytes) -> dict[str, object]:
    """What the classifier says of one line.

    Raises:
        InvalidLineError: the line is no JSON object, or a field is not what it should be.
    """
    explanation = explain(_evidence(line))
    failure = explanation.result
    if not isinstance(failure, ModelFailure):
        return _answer("NOT_A_MODEL_FAILURE", rule=explanation.rule)
    wait = failure.retry_after
    return _answer(
        failure.type.value,
        phase=failure.token_limit_phase.value if failure.token_limit_phase else None,
        retry_after_ms=None if wait is None else round(wait.total_seconds() * 1_000),
        is_retryable=failure.retryable,
        rule=explanation.rule,
    )


def _answer(
    kind: str,
    *,
    phase: str | None = None,
    retry_after_ms: int | None = None,
    is_retryable: bool = False,
    rule: str,
) -> dict[str, object]:
    return {
        "type": kind,
        "phase": phase,
        "retryAfterMillis": retry_after_ms,
        "retryable": is_retryable,
        "rule": rule,
    }


@contextmanager
def _lines(file: str) -> Generator[Iterable[bytes]]:
    if file == "-":
        yield sys.stdin.buffer
        return
    with Path(file).open("rb") as lines:
        yield lines


def _print_answers(lines: Iterable[bytes]) -> bool:
    """Whether any of the lines was bad."""
    is_any_bad = False
    for number, line in enumerate(lines, start=1):
        try:
            said = answer(line)
        except InvalidLineError as error:
            is_any_bad = True
            said = {"error": f"line {number}: {error}"}
            typer.echo(f"turnkeeper: line {number}: {error}", err=True)
        typer.echo(json.dumps(said))
    return is_any_bad


def _evidence(line: bytes) -> Evidence:
    value = parsed(line)
    if not is_object(value):
        raise InvalidLineError("a JSON object is expected")
    where, status, provider = value.get("where"), value.get("status"), value.get("provider")
    if not _is_where(where):
        raise InvalidLineError('"where" must be "response", "stream" or "transport"')
    if status is not None and (not isinstance(status, int) or isinstance(status, bool)):
        raise InvalidLineError('"status" must be a whole number or null')
    if provider is not None and not isinstance(provider, str):
        raise InvalidLineError('"provider" must be a text or null')
    return Evidence(
        where=where,
        status=status,
        headers=_headers(value),
        body=value.get("body"),
        provider=provider,
    )


def _is_where(value: object) -> TypeGuard[Where]:
    return value in ("response", "stream", "transport")


def _headers(value: JsonObject) -> dict[str, str]:
    headers = value.get("headers")
    if headers is None:
        return {}
    if not is_object(headers):
        raise InvalidLineError('"headers" must be an object or null')
    found: dict[str, str] = {}
    for name, text in headers.items():
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            raise InvalidLineError(f'the header "{name}" must be a text')
        found[name] = str(text)
    return found
