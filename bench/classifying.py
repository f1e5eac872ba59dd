"""How long it takes to tell what a failure is, by the length of its body."""

import json
import statistics
import time
from dataclasses import dataclass

from app.providers.failures import Evidence, classify

_UNITS = ("error: quota exceeded ", '{"error": ', "retry after ", "余额不足 ", '\\"')
"""What rules look for, again and again: the hardest bodies are those that nearly fit."""
_KIB = 1024
_REPEATS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class Classifying:
    """Medians over several kinds of bodies, in milliseconds."""

    short: float
    """Of 64 KiB."""
    long: float
    """Of 1 MiB: sixteen times as much, where time grows with the length."""


def classifying() -> Classifying:
    """Each kind of body in both lengths."""
    return Classifying(short=_median(64 * _KIB), long=_median(1024 * _KIB))


def _median(length: int) -> float:
    return statistics.median(
        _milliseconds(unit, length) for unit in _UNITS for _ in range(_REPEATS)
    )


def _milliseconds(unit: str, length: int) -> float:
    text = (unit * (length // len(unit) + 1))[:length]
    body = json.dumps({"error": {"message": text}}).encode()
    began = time.perf_counter()
    classify(Evidence(where="response", status=429, body=body))
    return 1e3 * (time.perf_counter() - began)
