"""Kinds of wording that are easily taken for one another, and evidence other than words."""

import pytest

from app.providers.failures import Evidence, explain
from app.turn.failures import RequestRefused, TokenLimitPhase
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


def body(value: object, *, status: int | None = 200, provider: str | None = None) -> Evidence:
    return Evidence(where="response", status=status, body=value, provider=provider)


# --- Money, rates and load -----------------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "Rate limit reached on requests per min. Please add a payment method to your account.",
        "Too many requests. Upgrade to a paid plan for more credits.",
        "Quota exceeded for metric: requests per minute.",
        "Concurrent request limit for your plan reached",
        "You are sending requests too quickly on the free plan",
        "Rate limit exceeded. Limit resets in 42 seconds.",
        "Allocated quota exceeded, please increase your quota limit.",
        "Rate limit reached for x on tokens per day (TPD): Used 9. Please try again in 9m38s.",
    ],
)
def test_a_rate_stays_a_rate_beside_words_of_money_and_days(message: str) -> None:
    failure = failure_from(openai_error(429, message))

    assert (failure.type, failure.retryable) == (RATE, True)


@pytest.mark.parametrize(
    ("status", "message"),
    [
        (429, "Free allocated quota exceeded."),
        (429, "You are limited to 1000 API calls / month."),
        (429, "Your plan has expired."),
        (429, "您的套餐额度已用完"),
        (400, "Budget has been exceeded! Current cost: 26, Max budget: 0.25"),
        (403, "Your team does not have any credits yet."),
        (500, "The postpaid bill is overdue."),
        (429, "You have hit the limit of your current plan"),
        (429, "Your card was declined"),
        (429, "Too many requests today, come back tomorrow"),
        (429, "会员已到期"),
        (200, "积分不足"),
        (403, "预扣费额度失败"),
    ],
)
def test_what_only_an_owner_can_pay_is_a_quota_whatever_its_status(
    status: int, message: str
) -> None:
    failure = failure_from(openai_error(status, message))

    assert (failure.type, failure.retryable) == (QUOTA, False)


@pytest.mark.parametrize(
    ("code", "message"),
    [
        ("too_many_requests_error", "We're experiencing high traffic right now!"),
        ("insufficient_quota", "当前分组上游负载已饱和，请稍后再试"),
        ("invalid_request_error", "Our servers are currently overloaded."),
        ("server_is_overloaded", ""),
        ("rate_limit_error", "Queue full, try again later"),
        ("rate_limit_error", "算力不足，请稍后重试"),
    ],
)
def test_load_is_load_whatever_code_it_comes_with(code: str, message: str) -> None:
    failure = failure_from(openai_error(429, message, code))

    assert (failure.type, failure.retryable) == (BUSY, True)


def test_one_request_that_asks_for_more_than_the_limit_waits_in_vain() -> None:
    asked = "Rate limit reached on tokens per min (TPM): Limit 10000, Requested {}. Try again."

    assert failure_from(openai_error(429, asked.format(9_000))).retryable
    assert not failure_from(openai_error(429, asked.format(10_001))).retryable


# --- Tokens --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("prompt_tokens", "phase"),
    [(100_000, TokenLimitPhase.TOTAL_CONTEXT), (140_000, TokenLimitPhase.INPUT_CONTEXT)],
)
def test_a_prompt_beyond_the_window_by_itself_is_too_long_however_it_is_counted(
    prompt_tokens: int, phase: TokenLimitPhase
) -> None:
    message = (
        "This endpoint's maximum context length is 131072 tokens. However, you requested about "
        f"150000 tokens ({prompt_tokens} of text input, 40000 in the output)."
    )

    assert failure_from(openai_error(400, message)).token_limit_phase is phase


@pytest.mark.parametrize(
    ("message", "phase"),
    [
        ("Your prompt is longer than 8192 tokens", TokenLimitPhase.INPUT_CONTEXT),
        ("number of input tokens 9012 cannot exceed 8192", TokenLimitPhase.INPUT_CONTEXT),
        ("the history and question have too many input tokens", TokenLimitPhase.INPUT_CONTEXT),
        ("输入内容过长", TokenLimitPhase.INPUT_CONTEXT),
        ("max_tokens: 9 is more than this model writes, at most 8", TokenLimitPhase.OUTPUT),
        ("Input should be less than or equal to 8192: max_tokens", TokenLimitPhase.OUTPUT),
        ("#/max_gen_len: 4096 is not less or equal to 2048", TokenLimitPhase.OUTPUT),
        ("max_tokens 取值范围为 [1, 8192]", TokenLimitPhase.OUTPUT),
        ("prompt tokens + max_tokens exceed the context", TokenLimitPhase.TOTAL_CONTEXT),
        ("max_tokens (9) plus input tokens (5) exceed 12", TokenLimitPhase.TOTAL_CONTEXT),
        ("The sum of prompt length and max_tokens is over", TokenLimitPhase.TOTAL_CONTEXT),
        ("输入与输出之和超过上下文窗口", TokenLimitPhase.TOTAL_CONTEXT),
    ],
)
def test_the_phase_is_what_was_counted(message: str, phase: TokenLimitPhase) -> None:
    assert failure_from(openai_error(400, message)).token_limit_phase is phase


@pytest.mark.parametrize(
    ("told", "phase"),
    [
        ("Unhandled stop reason: model_context_window_exceeded", TokenLimitPhase.TOTAL_CONTEXT),
        ('Response ended with finish reason "max_tokens"', TokenLimitPhase.OUTPUT),
    ],
)
def test_a_stop_that_a_client_tells_of_is_that_stop(told: str, phase: TokenLimitPhase) -> None:
    assert failure_from(body(told, status=None)).token_limit_phase is phase


@pytest.mark.parametrize(
    "message",
    [
        "Invalid 'messages[3].id': string too long. Expected a string with maximum length 40.",
        "max_tokens must be a positive integer",
        "Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0.",
        "thinking.budget_tokens must be less than max_tokens",
        "The number of images in the messages exceeds the limit of 10",
        "stop_sequences: List should have at most 4 items after validation, not 5",
        "top_p 取值范围为 (0,1]",
        "The size of the input image exceeds the limit.",
        "`max_tokens` must be greater than `thinking.budget_tokens`.",
        "Invalid `signature` in `thinking` block",
        "Extra inputs are not permitted",
    ],
)
def test_another_limit_of_the_request_is_no_limit_of_tokens(message: str) -> None:
    assert refusal_from(openai_error(400, message)).http_status == 400


def test_advice_alone_says_what_is_too_long_where_nothing_else_does() -> None:
    advice = openai_error(400, "Please reduce the length of the messages.")
    beside = openai_error(429, "Rate limit reached. Please reduce the length of the messages.")

    assert failure_from(advice).token_limit_phase is TokenLimitPhase.INPUT_CONTEXT
    assert failure_from(beside).type is RATE


# --- Numbers -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "rule"),
    [
        ({"error": {"code": "1113", "message": "x"}}, "zhipu-1113"),
        ({"base_resp": {"status_code": 1039, "status_msg": "token limit"}}, "minimax-1039"),
        ({"error_code": 18, "error_msg": "x"}, "qianfan-18"),
        ({"success": False, "errors": [{"code": 3040, "message": "x"}]}, "cloudflare-ai-3040"),
        ({"header": {"code": 11202, "message": "x", "sid": "y"}}, "iflytek-11202"),
        ({"code": 50505, "message": "x", "data": None}, "siliconflow-50505"),
    ],
)
def test_a_number_is_read_in_the_table_of_the_provider_whose_shape_it_has(
    value: object, rule: str
) -> None:
    assert explain(body(value)).rule == rule


def test_a_number_of_nobody_known_means_nothing() -> None:
    value = {"error": {"code": 1113, "message": "x", "type": "y"}}

    assert explain(body(value, status=503)).rule == "status-503"
    assert explain(body(value, status=503, provider="zhipu")).rule == "zhipu-1113"


def test_what_was_asked_says_nothing_of_what_failed() -> None:
    asked = {"messages": [{"content": "Why is my quota exhausted, and the server overloaded?"}]}
    detail = [{"type": "missing", "loc": ["body"], "msg": "Field required", "input": asked}]

    assert refusal_from(body({"detail": detail}, status=422)).http_status == 422


# --- Stop values ---------------------------------------------------------------------------------


def _stopped(value: str, **usage: int) -> Evidence:
    choice = {"finish_reason": value, "message": {"content": "the quota is exhausted, they say"}}
    return body({"choices": [choice], "usage": usage})


def test_the_text_of_an_answer_is_never_read_as_its_failure() -> None:
    assert failure_from(_stopped("length")).token_limit_phase is TokenLimitPhase.OUTPUT
    assert refusal_from(_stopped("content_filter")).http_status == 200


def test_a_length_stop_before_the_first_token_is_a_full_window() -> None:
    failure = failure_from(_stopped("length", completion_tokens=0))

    assert (failure.type, failure.token_limit_phase) == (TOKENS, TokenLimitPhase.INPUT_CONTEXT)


@pytest.mark.parametrize(
    "value",
    [
        {"promptFeedback": {"blockReason": "OTHER"}},
        {"candidates": [{"finishReason": "RECITATION"}]},
        {"response": {"incomplete_details": {"reason": "content_filter"}}},
        {"delta": {"stop_reason": "refusal"}},
    ],
)
def test_a_refusal_is_known_by_its_stop_in_every_dialect(value: object) -> None:
    assert refusal_from(body(value)).http_status == 200


# --- Exceptions as texts -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("chain", "rule"),
    [
        (["RuntimeError: failed", "ValueError: insufficient_quota"], "money"),
        (["OSError: overloaded", "ValueError: your credit balance is too low"], "money"),
        (
            [
                "RateLimitError: Error code: 429 - {'error': {'code': 'insufficient_quota'}}",
                "HTTPStatusError: Client error '429 Too Many Requests'",
            ],
            "money",
        ),
        (["X: Error code: 401 - {'error': {'code': 'invalid_api_key'}}"], "key"),
        (
            ["httpx.ConnectError: all failed", "SSLError: certificate verify failed"],
            "trust-or-address",
        ),
        (
            ["ClientPayloadError: <TransferEncodingError: 400, message='Not enough data'>"],
            "transport",
        ),
        ([], "transport"),
    ],
)
def test_the_innermost_exception_that_names_a_kind_decides_unless_one_names_a_quota(
    chain: list[str], rule: str
) -> None:
    assert explain(Evidence(where="transport", body=chain)).rule == rule


def test_a_cut_stream_is_an_outage_although_its_parser_speaks_of_400() -> None:
    text = "Response payload is not completed: <TransferEncodingError: 400, message='Not enough'>"
    failure = failure_from(Evidence(where="stream", status=200, body=[text]))

    assert (failure.type, failure.retryable) == (DOWN, True)


@pytest.mark.parametrize(
    "message",
    [
        "Invalid schema for function 'check_credit_balance': 'insufficient' is not an array",
        "tools.3.custom.name: 'quota_exceeded' does not match the pattern",
    ],
)
def test_the_words_in_the_name_of_a_malformed_tool_tell_of_no_quota(message: str) -> None:
    body = {"error": {"message": message, "type": "invalid_request_error"}}

    found = explain(Evidence(where="response", status=400, body=body))

    assert found.rule == "tool-declared"
    assert isinstance(found.result, RequestRefused)
