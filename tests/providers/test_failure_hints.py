"""Evidence at the edge: what was asked, what is advised, whose numbers, and waits in odd places."""

from datetime import timedelta

import pytest

from app.providers.failures import Evidence, explain
from app.turn.failures import TokenLimitPhase
from tests.providers.evidence import (
    BUSY,
    DOWN,
    QUOTA,
    RATE,
    failure_from,
    openai_error,
    refusal_from,
)

# --- What was asked says nothing -----------------------------------------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "Invalid value in messages[0].content: 'please explain what rate limit exceeded means'",
        'Unrecognized content: "You exceeded your current quota"',
        "Unexpected text: “the server is overloaded, they said”",
        'Could not parse the body: {"messages": [{"content": "my quota is exhausted"}]}',
    ],
)
def test_a_complaint_is_not_read_for_what_it_quotes_of_the_request(message: str) -> None:
    assert refusal_from(openai_error(400, message)).http_status == 400


@pytest.mark.parametrize(
    "message",
    [
        "Unexpected response from upstream: 'You exceeded your current quota'",
        'The provider said: {"error": {"message": "You exceeded your current quota"}}',
    ],
)
def test_what_another_provider_said_is_no_quotation_of_the_request(message: str) -> None:
    assert failure_from(openai_error(400, message)).type is QUOTA


def test_a_parameter_in_quotes_is_no_quotation_of_the_request() -> None:
    failure = failure_from(openai_error(400, "Invalid value for 'max_tokens': at most 4096"))

    assert failure.token_limit_phase is TokenLimitPhase.OUTPUT


# --- Having to pay -------------------------------------------------------------------------------


@pytest.mark.parametrize("message", ["Too many requests", "Rate limit exceeded", "60 per minute"])
def test_words_of_rates_do_not_make_a_402_one(message: str) -> None:
    failure = failure_from(openai_error(402, message))

    assert (failure.type, failure.retryable) == (QUOTA, False)


def test_credits_that_running_requests_hold_come_back_although_it_is_a_402() -> None:
    message = "This request would exceed your credits given your current in-flight requests."

    assert failure_from(openai_error(402, message)).type is RATE


@pytest.mark.parametrize(
    "message",
    [
        "Please upgrade your account to keep using this model",
        "Add a payment method to use this API",
        "Purchase additional capacity to continue",
    ],
)
def test_advice_to_pay_says_what_is_wrong_where_nothing_else_does(message: str) -> None:
    for status in (403, 429):
        assert explain(openai_error(status, message)).rule == "advice-to-pay", status


def test_advice_to_pay_says_nothing_beside_advice_to_wait_or_an_outage() -> None:
    waiting = openai_error(429, "Please try again later, or upgrade your plan.")
    down = openai_error(503, "Upgrade your account for a better service.")

    assert failure_from(waiting).type is RATE
    assert failure_from(down).type is DOWN


def test_a_window_of_a_subscription_that_a_header_says_is_full_is_a_quota() -> None:
    full = {"anthropic_ratelimit_unified_status": "rejected"}
    open_ = {"anthropic_ratelimit_unified_status": "allowed"}
    message = "This request would exceed your account's rate limit."

    assert failure_from(openai_error(429, message, **full)).type is QUOTA
    assert failure_from(openai_error(429, message, **open_)).type is RATE


def test_a_request_larger_than_the_minutes_bucket_is_known_in_either_order_of_the_numbers() -> None:
    message = "This request needs {} tokens but your tier allows 60,000 tokens per minute"

    assert failure_from(openai_error(429, message.format("50,000"))).retryable
    assert not failure_from(openai_error(429, message.format("90,000"))).retryable


# --- Faults of the other side under the status of a wrong request --------------------------------


@pytest.mark.parametrize(
    "message",
    [
        "Function id '7a1': DEGRADED function cannot be invoked",
        "Failed to generate JSON. Please adjust your prompt. See 'failed_generation' for more.",
    ],
)
def test_what_another_attempt_may_mend_is_an_outage_although_it_is_a_400(message: str) -> None:
    failure = failure_from(openai_error(400, message))

    assert (failure.type, failure.retryable) == (DOWN, True)


@pytest.mark.parametrize(
    "message",
    [
        "Malformed input request: extraneous key [n] is not permitted",
        "Jinja Exception: System message must be at the beginning",
    ],
)
def test_a_field_or_template_that_fails_is_a_wrong_request(message: str) -> None:
    assert refusal_from(openai_error(400, message)).http_status == 400


def test_a_host_without_a_free_machine_is_overloaded() -> None:
    assert failure_from(openai_error(429, "No available GPU")).type is BUSY


@pytest.mark.parametrize(
    "message", ["您的账号已被锁定，请联系客服", "Your account has been terminated."]
)
def test_a_closed_account_is_not_tried_again(message: str) -> None:
    failure = failure_from(openai_error(429, message))

    assert (failure.type, failure.retryable) == (DOWN, False)


@pytest.mark.parametrize(
    "message",
    [
        "prompt_cache_key is too long",
        "There are no messages on input",
        "没有通过安全策略的检查",
    ],
)
def test_words_of_limits_about_something_else_leave_a_wrong_request(message: str) -> None:
    assert refusal_from(openai_error(400, message)).http_status == 400


@pytest.mark.parametrize("message", ["Retry budget exhausted", "Thinking budget exceeded"])
def test_a_budget_that_is_no_money_is_no_quota(message: str) -> None:
    assert failure_from(openai_error(503, message)).type is not QUOTA


def test_words_between_angle_brackets_count_where_they_are_no_markup() -> None:
    text = '<_InactiveRpcError of RPC with: details = "The model is overloaded">'

    assert failure_from(Evidence(where="transport", body=[text])).type is BUSY


def test_a_rate_of_a_team_that_says_when_it_resets_is_a_rate() -> None:
    message = "Rate limit exceeded for team: a. Limit type: tokens. Limit resets at: 00:01:00 UTC"

    assert failure_from(openai_error(429, message)).type is RATE


# --- Whose numbers -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "rule"),
    [
        ("zhipu", "zhipu-1113"),
        ("glm https://example.com/v1", "zhipu-1113"),
        ("main https://open.bigmodel.cn/api/paas/v4", "zhipu-1113"),
        ("main https://api.z.ai/api/paas/v4", "zhipu-1113"),
        ("main https://api.example.com/v1", "status-503"),
        ("puzzlai", "status-503"),
    ],
)
def test_a_number_is_its_providers_by_name_or_address(provider: str, rule: str) -> None:
    body = {"error": {"code": 1113, "message": "x", "type": "y"}}

    found = explain(Evidence(where="response", status=503, body=body, provider=provider))

    assert found.rule == rule


# --- Waits in odd places -------------------------------------------------------------------------


def _body(value: object, **headers: str) -> Evidence:
    names = {name.replace("_", "-"): stated for name, stated in headers.items()}
    return Evidence(where="response", status=429, headers=names, body=value)


@pytest.mark.parametrize(
    ("evidence", "seconds"),
    [
        (_body("", retry_after="20, 20"), 20),
        (_body("", retry_after="20, 30"), 30),
        (_body("", retry_after="PT1M30S"), 90),
        (_body("", x_retry_after="9"), 9),
        (_body("", X_AI_RateLimit_Retry_After_60_openai="9"), 9),
        (_body("", x_ms_retry_after_ms="250"), 0.25),
        (
            _body("", retry_after="1700000060", date="Tue, 14 Nov 2023 22:13:20 GMT"),
            60,
        ),
        (
            _body("", retry_after="2023-11-14T22:13:50Z", date="Tue, 14 Nov 2023 22:13:20 GMT"),
            30,
        ),
        (_body("", ratelimit="limit=10, remaining=0, reset=25"), 25),
        (_body("", ratelimit='"burst";r=0;t=40'), 40),
        (_body({"error": {"details": [{"retryDelay": {"seconds": 30}}]}}), 30),
        (
            _body({"error": {"details": [{"retryDelay": {"seconds": "3", "nanos": 500000000}}]}}),
            3.5,
        ),
        (_body({"error": {"message": "rate limit", "nextAvailableInMs": 1_500}}), 1.5),
        (_body({"error": {"message": "rate limit", "wait_for_seconds": "7"}}), 7),
        (
            _body(
                {
                    "error": {
                        "message": "rate limit",
                        "metadata": {
                            "headers": {
                                "X-RateLimit-Remaining": "0",
                                "X-RateLimit-Reset": "1700000060000",
                            }
                        },
                    }
                },
                date="Tue, 14 Nov 2023 22:13:20 GMT",
            ),
            60,
        ),
        (
            openai_error(403, "Out of call volume quota. Quota will be replenished in 12:33:12."),
            45_192,
        ),
        (openai_error(429, "Burst limit hit; back off for 2.5 seconds"), 2.5),
        (openai_error(429, "Rate limited. Please wait for 5 more seconds"), 5),
        (openai_error(429, "Rate limited. 45 seconds until reset"), 45),
        (openai_error(429, "Rate limited. Try again in 1,500 ms"), 1.5),
    ],
)
def test_a_stated_wait_is_read_in_every_form(evidence: Evidence, seconds: float) -> None:
    assert failure_from(evidence).retry_after == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "evidence",
    [
        _body("", retry_after="20, soon"),
        _body("", retry_after="1700000060"),
        _body("", ratelimit="limit=10, remaining=3, reset=25"),
        _body({"error": {"details": [{"retryDelay": {"seconds": "soon"}}]}}),
        _body({"error": {"message": "rate limit", "window_seconds": 60}}),
        openai_error(429, "Rate limit: 5 requests in 10 seconds"),
        openai_error(429, "Rate limited at 12:33:12."),
    ],
)
def test_no_wait_is_made_of_another_number(evidence: Evidence) -> None:
    assert failure_from(evidence).retry_after is None
