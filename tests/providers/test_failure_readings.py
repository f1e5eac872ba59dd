"""Around the verdict: stated waits, the network, redaction, and any bytes at all."""

import ssl
from datetime import timedelta

import httpx
import pytest

from app.providers.failures import (
    Evidence,
    classify_exception,
    interrupted,
)
from tests.providers.evidence import DOWN, QUOTA, failure_from, openai_error

# --- Stated waits --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("evidence", "seconds"),
    [
        (openai_error(429, "Slow.", retry_after="20"), 20),
        (openai_error(429, "Slow.", retry_after_ms="1500", retry_after="2"), 1.5),
        (
            openai_error(
                429,
                "Slow.",
                retry_after="Fri, 29 Sep 2023 16:26:57 GMT",
                date="Fri, 29 Sep 2023 16:26:37 GMT",
            ),
            20,
        ),
        (openai_error(429, "Please try again in 6ms."), 0.006),
        (openai_error(429, "Please try again in 1m30.5s. Visit the page."), 90.5),
        (openai_error(429, "Rate limit. Please wait 8 hours 24 minutes and try again"), 30_240),
        (openai_error(429, "Please retry after 9 seconds."), 9),
        (
            openai_error(
                429,
                "Slow.",
                x_ratelimit_remaining_requests="0",
                x_ratelimit_reset_requests="6s",
                x_ratelimit_remaining_tokens="9",
                x_ratelimit_reset_tokens="50s",
            ),
            6,
        ),
        (
            Evidence(
                where="response",
                status=429,
                body={
                    "error": {"details": [{"@type": "google.rpc.RetryInfo", "retryDelay": "44s"}]}
                },
            ),
            44,
        ),
        (openai_error(429, "Slow.", retry_after="1m30s"), 90),
        (openai_error(429, "429 Slow. retry_delay {\n  seconds: 41\n}\n]"), 41),
        (openai_error(429, "Slow. Headers: Retry-After: 30, server: x"), 30),
        (openai_error(429, "请求过于频繁，请在 30 秒后重试"), 30),
        (openai_error(429, "请求过于频繁，请等待2分钟后再试"), 120),
        (openai_error(429, "Slow.", ratelimit_remaining="0", ratelimit_reset="27"), 27),
        (
            openai_error(
                429,
                "Slow.",
                x_ratelimit_remaining_tokens_minute="0",
                x_ratelimit_reset_tokens_minute="32.5",
                x_ratelimit_remaining_requests_day="9",
                x_ratelimit_reset_requests_day="3600",
            ),
            32.5,
        ),
        (
            openai_error(
                429,
                "Slow.",
                x_ratelimit_remaining="0",
                x_ratelimit_reset="1700000060",
                date="Tue, 14 Nov 2023 22:13:20 GMT",
            ),
            60,
        ),
        (openai_error(429, "限流，10秒后重试"), 10),
        (openai_error(429, "限流，剩余冷却时间 : 45秒"), 45),
        (Evidence(where="response", status=429, body={"error": "", "reset_seconds": 137}), 137),
        (Evidence(where="response", status=429, body={"error": {"retry_after_ms": 250}}), 0.25),
        (
            Evidence(
                where="response",
                status=429,
                body={"error": {"metadata": {"headers": {"Retry-After": "7"}}}},
            ),
            7,
        ),
    ],
)
def test_a_stated_wait_is_read_wherever_it_stands(evidence: Evidence, seconds: float) -> None:
    assert failure_from(evidence).retry_after == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "evidence",
    [
        openai_error(429, "Rate limit reached. Try again later."),
        openai_error(429, "Slow.", retry_after="soon"),
        openai_error(429, "Slow.", retry_after="-5"),
        openai_error(429, "Slow.", retry_after="9" * 30),
        openai_error(429, "Slow.", retry_after="Fri, 29 Sep 2023 16:26:57 GMT"),
        openai_error(429, "Limit 100 per min. Limit resets."),
        openai_error(429, "Slow.", x_ratelimit_remaining_requests="9", x_ratelimit_reset="6s"),
        openai_error(429, "Slow.", x_ratelimit_remaining="-1", x_ratelimit_reset="0"),
        openai_error(429, "Slow.", x_ratelimit_remaining="0", x_ratelimit_reset="1741305600000"),
        openai_error(429, "Your limit will reset at 2026-09-09 05:38:28."),
        openai_error(429, "Please wait 0 seconds before retrying.", retry_after="0"),
        openai_error(429, "Claude AI usage limit reached|1753077600"),
        openai_error(429, "Your limit resets 8am (Europe/London)."),
        openai_error(429, "请稍后 重试 3 次。"),
        openai_error(403, "Access denied. If you recently fixed this, try again after 2 minutes."),
        openai_error(400, "prompt is too long. Try again in 5 minutes with less."),
    ],
)
def test_a_wait_is_never_invented(evidence: Evidence) -> None:
    assert failure_from(evidence).retry_after is None


# --- The network ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "error",
    [
        httpx.ConnectError("[Errno 111] Connection refused"),
        httpx.ConnectError("[Errno -2] Name or service not known"),
        httpx.ConnectTimeout("timed out"),
        httpx.ReadError("[Errno 104] Connection reset by peer"),
        httpx.RemoteProtocolError("peer closed connection without sending complete message body"),
        httpx.PoolTimeout(""),
        ssl.SSLError("[SSL: UNEXPECTED_EOF_WHILE_READING] EOF occurred in violation of protocol"),
        ConnectionResetError(104, "Connection reset by peer"),
    ],
    ids=lambda error: type(error).__name__,
)
def test_a_fault_of_the_network_is_an_outage_to_retry(error: Exception) -> None:
    failure = classify_exception(error)

    assert (failure.type, failure.retryable) == (DOWN, True)
    assert (failure.exception_type, failure.http_status) == (type(error).__name__, 0)
    assert failure.message


def test_a_certificate_that_is_not_trusted_does_not_heal_by_waiting() -> None:
    error = httpx.ConnectError("All connection attempts failed")
    error.__cause__ = ssl.SSLCertVerificationError("certificate verify failed: self-signed")

    assert not classify_exception(error).retryable


def test_case_21_the_inner_cause_is_found_through_two_wrappings() -> None:
    error = RuntimeError("the client failed")
    error.__cause__ = httpx.ConnectError("All connection attempts failed")
    error.__cause__.__context__ = ssl.SSLCertVerificationError("certificate verify failed")

    assert not classify_exception(error).retryable


def test_case_21_a_loop_of_causes_is_followed_once() -> None:
    first, second = OSError("a"), OSError("b")
    first.__cause__, second.__cause__ = second, first

    assert classify_exception(first).retryable


def test_case_21_a_failure_that_code_between_has_wrapped_twice_is_told_by_its_inner_kind() -> None:
    inner = ValueError("insufficient_quota: You exceeded your current quota")
    middle, outer = RuntimeError("the call failed"), RuntimeError("in the gateway")
    outer.__cause__, middle.__context__ = middle, inner

    failure = classify_exception(outer)

    assert (failure.type, failure.retryable) == (QUOTA, False)


def test_case_22_the_inner_kind_wins_over_the_one_it_is_wrapped_in() -> None:
    outer = RuntimeError("service unavailable, too many requests")
    outer.__cause__ = ValueError("your credit balance is too low")

    assert classify_exception(outer).type is QUOTA


def test_an_answer_that_broke_off_is_an_outage_to_retry() -> None:
    assert interrupted().retryable
    assert interrupted("network_error").error_code == "network_error"


# --- What an operator may read -------------------------------------------------------------------


@pytest.mark.parametrize(
    "secret",
    [
        "sk-proj-AbCdEf123456",
        "sk-ant-api03-xyz_9-9",
        "Bearer abcdef.ghi-jkl",
        "AIzaSyA1234567890abcdef",
        "api_key=abcd1234efgh",
        '"x-api-key": "abcd1234efgh"',
        "gsk_abcdef123456",
    ],
)
def test_credentials_do_not_reach_the_message(secret: str) -> None:
    failure = failure_from(openai_error(401, f"Wrong key ({secret}) was given."))

    assert secret not in failure.message
    assert "[redacted]" in failure.message


def test_a_message_is_one_bounded_line() -> None:
    failure = failure_from(openai_error(500, "broken\n\n  again " * 500))

    assert len(failure.message) == 500
    assert "\n" not in failure.message


def test_a_failure_without_a_word_still_says_something() -> None:
    assert failure_from(Evidence(where="response", status=503)).message
