"""What the providers' own stop values mean."""

from app.turn.transcript import StopReason

_VALUES = {
    StopReason.END_TURN: "stop end_turn completed complete eos eos_token stop_sequence",
    StopReason.TOOL_USE: "tool_calls tool_call tool_use function_call function_calls",
    StopReason.MAX_OUTPUT: "length max_tokens max_output_tokens max_completion_tokens"
    " max_new_tokens max_length",
    StopReason.CONTEXT_FULL: "model_length model_context_window_exceeded context_length_exceeded"
    " context_window_exceeded context_length context_full",
    StopReason.REFUSAL: "content_filter content_filtered refusal refused safety sensitive"
    " recitation blocklist prohibited_content spii image_safety image_prohibited_content"
    " image_recitation jailbreak model_armor guardrail_intervened guardrails language",
    StopReason.PAUSED: "pause_turn paused pause",
    StopReason.INTERRUPTED: "error error_finish abort aborted cancel cancelled canceled"
    " interrupted incomplete network_error insufficient_system_resource repetition_truncation"
    " malformed_function_call timeout server_error failed",
}

_MEANING = {value: reason for reason, values in _VALUES.items() for value in values.split()}


def stop_reason(raw: str, *, has_calls: bool) -> StopReason:
    """What a stop value means; `OTHER` for one nobody knows.

    Calls beat a normal end, which some providers name although they ask for tools. They do not
    beat a cut, a refusal or an error.
    """
    meaning = _MEANING.get(raw.strip().lower().replace("-", "_"), StopReason.OTHER)
    return StopReason.TOOL_USE if has_calls and meaning is StopReason.END_TURN else meaning
