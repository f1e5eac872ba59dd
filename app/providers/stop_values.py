"""What the providers' own stop values mean, on any wire.

Values are compared without regard to how they are written: upper case, camel case, hyphens, spaces,
and the name of the enumeration in front of them. A value nobody has listed is never taken for a
normal end or for a wish for tools; words that can only mean a cut, a refusal or a fault are
recognised wherever they stand in it.
"""

import re

from app.turn.transcript import StopReason

_VALUES = {
    StopReason.END_TURN: "stop end_turn completed complete eos eos_token stop_sequence normal",
    StopReason.TOOL_USE: "tool_calls tool_call tool_use function_call function_calls",
    StopReason.MAX_OUTPUT: "length",
    StopReason.CONTEXT_FULL: "error_limit",
    StopReason.REFUSAL: "language",
    StopReason.PAUSED: "pause_turn paused pause",
}
_MEANING = {value: reason for reason, values in _VALUES.items() for value in values.split()}

_WORDS = (
    (
        StopReason.CONTEXT_FULL,
        re.compile(
            r"context_(?:window|length|full|limit|overflow|exceeded)|(?:max_)?model_(?:max_)?len"
        ),
    ),
    (
        StopReason.MAX_OUTPUT,
        re.compile(
            r"max_(?:\w+_)?(?:token|length|len\b|output)|(?:token|length|output)_limit"
            r"|length_(?:exceeded|reached|capped)"
        ),
    ),
    (
        StopReason.REFUSAL,
        re.compile(
            r"filter|refus|safety|unsafe|sensitive|recitation|block_?list|blocked|prohibited|spii"
            r"|jailbreak|armor|guardrail|moderation|policy|toxic"
        ),
    ),
    (
        StopReason.INTERRUPTED,
        re.compile(
            r"error|abort|cancel|interrupt|incomplete|insufficient|truncation|malformed|unexpected"
            r"|time_?out|fail|disconnect|unavailable|overload"
        ),
    ),
)
"""Asked in this order: `malformed_context_length_error` would be about the context."""

_CAMEL = re.compile(r"(?<=[a-z])(?=[A-Z])")
_APART = re.compile(r"[^a-z0-9]+")
_PREFIX = re.compile(r"^(?:[a-z]+_){0,2}(?:finish|stop|done)_reason_")
_MOST_CHARACTERS = 200


def stop_reason(raw: str, *, has_calls: bool) -> StopReason:
    """What a stop value means; `OTHER` for one nobody knows.

    Calls beat a normal end, which some providers name although they ask for tools. They do not
    beat a cut, a refusal or an error.
    """
    meaning = _meaning(raw[:_MOST_CHARACTERS])
    return StopReason.TOOL_USE if has_calls and meaning is StopReason.END_TURN else meaning


def _meaning(raw: str) -> StopReason:
    written = _APART.sub("_", _CAMEL.sub("_", raw).lower()).strip("_")
    value = _PREFIX.sub("", written)
    if value in _MEANING:
        return _MEANING[value]
    return next((reason for reason, words in _WORDS if words.search(value)), StopReason.OTHER)
