"""The outages the demo model can have, as OpenAI sends them; they go through the same classifier.

Bodies after OpenAI's error documentation (guides "Error codes" and "Rate limits").
"""

import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from app.providers.failures import Evidence

MAX_TIMES = 100
STATED_WAIT_SECONDS = 20

CUT = "cut"
"""Not an answer but a broken stream: it stops after some text."""

_COMMAND = re.compile(r"(?:^|\n)\s*/outage\s+([a-z]{1,20})(?:\s+(\d{1,3}))?\b", re.IGNORECASE)


def _outage(
    status: int, code: str | None, kind: str, message: str, headers: Mapping[str, str] | None = None
) -> Evidence:
    error = {"message": message, "type": kind, "param": None, "code": code}
    return Evidence(where="response", status=status, headers=headers or {}, body={"error": error})


OUTAGES: Mapping[str, Evidence | None] = MappingProxyType(
    {
        "quota": _outage(
            429,
            "insufficient_quota",
            "insufficient_quota",
            "You exceeded your current quota, please check your plan and billing details.",
        ),
        "rate": _outage(
            429,
            "rate_limit_exceeded",
            "requests",
            "Rate limit reached for demo in organization org-demo on requests per min (RPM): "
            f"Limit 3, Used 3, Requested 1. Please try again in {STATED_WAIT_SECONDS}s.",
            {"retry-after": str(STATED_WAIT_SECONDS)},
        ),
        "overloaded": _outage(
            503,
            None,
            "server_error",
            "The engine is currently overloaded, please try again later.",
        ),
        "unavailable": _outage(
            500,
            None,
            "server_error",
            "The server had an error while processing your request. Sorry about that.",
        ),
        "context": _outage(
            400,
            "context_length_exceeded",
            "invalid_request_error",
            "This model's maximum context length is 8192 tokens. However, your messages resulted "
            "in 9410 tokens. Please reduce the length of the messages.",
        ),
        "output": _outage(
            400,
            "invalid_value",
            "invalid_request_error",
            "max_tokens is too large: 8192. This model supports at most 4096 completion tokens, "
            "whereas you provided 8192.",
        ),
        "auth": _outage(
            401, "invalid_api_key", "invalid_request_error", "Incorrect API key provided."
        ),
        "refused": _outage(
            400,
            "content_policy_violation",
            "invalid_request_error",
            "Your request was rejected as a result of our safety system.",
        ),
        CUT: None,
    }
)


def outages_ordered(texts: Sequence[str]) -> list[str]:
    """The outages these messages ask for, in order, each as often as it was asked for."""
    ordered: list[str] = []
    for text in texts:
        for kind, times in _COMMAND.findall(text):
            if kind.lower() in OUTAGES:
                ordered += [kind.lower()] * min(int(times or 1), MAX_TIMES)
    return ordered
