"""What a failed call means: the cases of OpenAI's error documentation, and general rules."""

import pytest

from app.providers.failures import (
    Evidence,
    explain,
)
from app.turn.failures import FailureType, TokenLimitPhase
from tests.providers.evidence import (
    BUSY,
    DOWN,
    QUOTA,
    RATE,
    TOKENS,
    failure_from,
    openai_error,
    refusal_from,
)

# --- OpenAI's error documentation ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "kind", "retryable"),
    [
        (openai_error(401, "Incorrect API key provided: sk-a.", "invalid_api_key"), DOWN, False),
        (openai_error(401, "Invalid Authentication"), DOWN, False),
        (openai_error(401, "You must be a member of an organization to use the API"), DOWN, False),
        (
            openai_error(
                403,
                "Country, region, or territory not supported",
                "unsupported_country_region_territory",
                "request_forbidden",
            ),
            DOWN,
            False,
        ),
        (openai_error(429, "Rate limit reached for requests", "rate_limit_exceeded"), RATE, True),
        (
            openai_error(
                429,
                "You exceeded your current quota, please check your plan and billing details.",
                "insufficient_quota",
                "insufficient_quota",
            ),
            QUOTA,
            False,
        ),
        (
            openai_error(
                500, "The server had an error while processing your request", None, "server_error"
            ),
            DOWN,
            True,
        ),
        (
            openai_error(503, "The engine is currently overloaded, try again later"),
            BUSY,
            True,
        ),
        (openai_error(503, "Slow Down"), BUSY, True),
        (
            openai_error(
                404,
                "The model `gpt-9` does not exist or you do not have access to it.",
                "model_not_found",
                "invalid_request_error",
            ),
            DOWN,
            False,
        ),
    ],
    ids=[
        *("key", "authentication", "organization", "region", "rate", "quota", "server"),
        *("engine", "slow-down", "model"),
    ],
)
def test_openais_documented_errors_are_told_apart(
    evidence: Evidence, kind: FailureType, *, retryable: bool
) -> None:
    failure = failure_from(evidence)

    assert (failure.type, failure.retryable) == (kind, retryable)
    assert failure.http_status == evidence.status


def test_a_full_context_window_names_its_phase() -> None:
    failure = failure_from(
        openai_error(
            400,
            "This model's maximum context length is 4097 tokens. However, your messages resulted "
            "in 4363 tokens. Please reduce the length of the messages.",
            "context_length_exceeded",
            "invalid_request_error",
        )
    )

    assert (failure.type, failure.token_limit_phase) == (TOKENS, TokenLimitPhase.INPUT_CONTEXT)
    assert not failure.retryable


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        (
            "maximum context length is 10 tokens (4 in the messages, 8 in the completion).",
            TokenLimitPhase.TOTAL_CONTEXT,
        ),
        (
            "maximum context length is 10 tokens (12 in the messages, 0 in the completion).",
            TokenLimitPhase.INPUT_CONTEXT,
        ),
        (
            "max_tokens is too large: 8192. This model supports at most 4096 completion tokens.",
            TokenLimitPhase.OUTPUT,
        ),
        ("prompt is too long: 208310 tokens > 200000 maximum", TokenLimitPhase.INPUT_CONTEXT),
    ],
)
def test_the_phase_of_a_token_limit_follows_the_wording(
    message: str, phase: TokenLimitPhase
) -> None:
    assert failure_from(openai_error(400, message)).token_limit_phase is phase


def test_llamacpp_says_that_the_context_is_too_small() -> None:
    error = {
        "code": 400,
        "message": "request (42947 tokens) exceeds the available context size (8192 tokens)",
        "type": "exceed_context_size_error",
    }
    failure = failure_from(Evidence(where="response", status=400, body={"error": error}))

    assert failure.token_limit_phase is TokenLimitPhase.INPUT_CONTEXT
    assert (failure.error_type, failure.error_code) == ("exceed_context_size_error", "400")


@pytest.mark.parametrize(
    ("message", "code"),
    [
        ("Invalid 'tools': array too long. Expected an array with maximum length 128.", None),
        ("Unsupported parameter: 'max_tokens' is not supported with this model.", None),
        ("Your request was rejected as a result of our safety system.", "content_policy_violation"),
        (
            "Invalid prompt: your prompt was flagged as violating our usage policy.",
            "invalid_prompt",
        ),
        ("An assistant message with 'tool_calls' must be followed by tool messages.", None),
    ],
)
def test_a_wrong_request_or_refused_content_is_no_failure_of_the_model(
    message: str, code: str | None
) -> None:
    refusal = refusal_from(openai_error(400, message, code, "invalid_request_error"))

    assert refusal.message == message
    assert (refusal.http_status, refusal.error_code) == (400, code)


# --- Which evidence decides ----------------------------------------------------------------------


def test_case_22_an_exhausted_quota_is_seen_through_any_gateway() -> None:
    inner = (
        '{"error": {"message": "You exceeded your current quota", "code": "insufficient_quota"}}'
    )
    wrapped = f"litellm.RateLimitError: OpenAIException - {inner}"
    printed = "Error code: 429 - {'error': {'code': 'insufficient_quota', 'message': 'No.'}}"

    for message in (inner, wrapped, printed):
        failure = failure_from(openai_error(500, message, "500"))

        assert (failure.type, failure.error_code) == (QUOTA, "insufficient_quota")


def test_tokens_per_minute_are_a_rate_and_not_a_context_window() -> None:
    message = (
        "Rate limit reached for gpt-4 on tokens per min (TPM): Limit 10000, Used 9000, "
        "Requested 2000. Please reduce the length of the messages or completion."
    )

    assert failure_from(openai_error(429, message)).type is RATE


def test_a_request_bigger_than_the_minutes_bucket_is_not_tried_again() -> None:
    message = (
        "Request too large for gpt-4.1 in organization org-a on tokens per min (TPM): "
        "Limit 30000, Requested 37313."
    )
    failure = failure_from(openai_error(429, message))

    assert (failure.type, failure.retryable) == (RATE, False)


@pytest.mark.parametrize(
    ("status", "kind", "retryable"),
    [
        (401, DOWN, False),
        (402, QUOTA, False),
        (404, DOWN, False),
        (408, DOWN, True),
        (413, TOKENS, False),
        (429, RATE, True),
        (500, DOWN, True),
        (502, DOWN, True),
        (503, DOWN, True),
        (524, DOWN, True),
        (529, BUSY, True),
        (302, DOWN, False),
        (None, DOWN, True),
    ],
)
def test_a_bare_status_decides_when_no_word_does(
    status: int | None, kind: FailureType, *, retryable: bool
) -> None:
    failure = failure_from(Evidence(where="response", status=status, body=b""))

    assert (failure.type, failure.retryable) == (kind, retryable)


def test_a_page_of_html_is_an_outage() -> None:
    page = "<html><head><title>502 Bad Gateway</title></head><body><h1>Bad</h1></body></html>"
    failure = failure_from(Evidence(where="response", status=502, body=page))

    assert (failure.type, failure.retryable) == (DOWN, True)


def test_the_rule_that_decided_has_a_name() -> None:
    assert explain(openai_error(429, "x", "insufficient_quota")).rule == "money"
    assert explain(Evidence(where="response", status=502)).rule == "status-502"
