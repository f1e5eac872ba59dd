"""An answer that is itself a failure: what its stop value says."""

import re
from collections.abc import Iterator

from app.providers.failure_evidence import Findings
from app.providers.failure_verdicts import DOWN, INPUT, OUTPUT, REFUSED, TOTAL, Verdict
from app.providers.stop_values import stop_reason
from app.providers.wire_json import JsonObject, as_count, as_object, as_text
from app.turn.transcript import StopReason

_STOP_KEYS = (
    *("finish_reason", "finishReason", "stop_reason", "stopReason", "done_reason"),
    "completionReason",
)
_TOLD_BY_A_CLIENT = re.compile(r"(?:finish|stop) reason:? (?!error)(\w+(?: \w+){0,3})")
_VERDICTS = {
    StopReason.MAX_OUTPUT: OUTPUT,
    StopReason.CONTEXT_FULL: TOTAL,
    StopReason.REFUSAL: REFUSED,
    StopReason.INTERRUPTED: DOWN,
}
_COUNTS_OF_OUTPUT = frozenset(
    {"completion_tokens", "output_tokens", "candidatestokencount", "eval_count"}
)


def by_answer(found: Findings) -> tuple[str, Verdict] | None:
    """`by_stop` of an answer that has no error beside it: its text is the model's, not a failure's.

    A stop that says no more than "an error" is left to the words, which a relay may have put there.
    """
    if any("error" in value for value in found.objects):
        return None
    decision = by_stop(found)
    return decision if decision and decision[1] is not DOWN else None


def by_stop(found: Findings) -> tuple[str, Verdict] | None:
    """The rule and verdict of the first stop value that means a failure, if there is one.

    A length stop before the first token is no cap on output: the prompt left no room
    (older LMDeploy).
    """
    for raw in _stops(found):
        verdict = _VERDICTS.get(stop_reason(raw, has_calls=False))
        if verdict is OUTPUT and _wrote_nothing(found):
            return "stop-without-room", INPUT
        if verdict is not None:
            return f"stop-{raw.strip().lower()}"[:60], verdict
    return None


def _stops(found: Findings) -> Iterator[str]:
    for value in found.objects:
        if as_text(value.get("blockReason")):  # Gemini: the prompt was blocked, whatever the reason
            yield "refusal"
        for key in _STOP_KEYS:
            if as_text(value.get(key)):
                yield as_text(value[key])
        yield from _incomplete(value)
    for told in _TOLD_BY_A_CLIENT.findall(found.words):
        names = told.split()
        yield from ("_".join(names[:length]) for length in range(len(names), 0, -1))


def _incomplete(value: JsonObject) -> Iterator[str]:
    """OpenAI's Responses say the reason of an incomplete answer beside it."""
    reason = as_text(as_object(value.get("incomplete_details")).get("reason"))
    if reason:
        yield reason


def _wrote_nothing(found: Findings) -> bool:
    counts = [as_count(value) for key, value in found.values if key in _COUNTS_OF_OUTPUT]
    return bool(counts) and not any(counts)
