"""Any bytes at all: one verdict, and in a time that grows with their number."""

import json
import time
from datetime import timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.providers.failures import Evidence, classify, explain
from app.turn.failures import ModelFailure
from tests.providers.evidence import QUOTA, TOKENS, failure_from
from tests.support.sizes import size

_WORDS = st.sampled_from(
    [
        *("error", "message", "code", "{", "}", '"', "'", "[", "]", ":", ",", "\\", "\\n", "\\u"),
        *("429", "Error code: 500 - ", "data: ", "b'", "quota", "max_tokens", "retry after 5 s"),
        *("\ud800", "\x00", "<", ">", "http://", "sk-", "per minute", " 0 in the completion)"),
        *(
            "prompt ",
            "tokens ",
            "exceeds ",
            "maximum context length is 9 ",
            "requested 12",
            "limit 9 ",
        ),
        *(
            "insufficient ",
            "balance",
            "please reduce the length",
            "overloaded",
            "余额不足",
            "在 9 秒后",
            "Kontingent überschritten",
            "invalid value: 'a b c'",
            "12:33:12",
            "1,000",
        ),
    ]
)
_TEXT = st.lists(_WORDS | st.text(max_size=4), max_size=40).map("".join)
_VALUE = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | _TEXT,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("error", "message", "code", "type", "status", "details", "base_resp", "raw"),
                    *("status_code", "error_code", "error_msg", "success", "errors", "sid", "data"),
                    *("finish_reason", "blockReason", "incomplete_details", "retryDelay", "usage"),
                    *("headers", "completion_tokens", "retry_after", "retry_after_ms"),
                    *("seconds", "nanos", "nextAvailableInMs"),
                ]
            )
            | _TEXT,
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)
_HEADERS = st.dictionaries(
    st.sampled_from(
        [
            *("retry-after", "retry-after-ms", "date", "x-ratelimit-reset-tokens"),
            *("ratelimit-reset", "x-ratelimit-remaining-tokens", "x-amzn-errortype"),
            *("ratelimit", "x-ms-retry-after-ms", "anthropic-ratelimit-unified-status"),
        ]
    ),
    _TEXT | st.floats().map(str) | st.integers().map(str) | st.sampled_from(["0", "7m12s"]),
)
_EVIDENCE = st.builds(
    Evidence,
    where=st.sampled_from(["response", "stream", "transport"]),
    status=st.none() | st.integers(-1, 1_000),
    headers=_HEADERS,
    body=_VALUE | st.binary(),
    provider=st.none() | st.sampled_from(["zhipu", "minimax", "qianfan", "nobody"]),
)


@settings(max_examples=size(2_000, soak=100_000), deadline=1_000)
@given(_EVIDENCE)
def test_any_evidence_gives_one_bounded_verdict_in_a_second(evidence: Evidence) -> None:
    explanation = explain(evidence)
    result = explanation.result

    assert 0 < len(explanation.rule) <= 100
    assert result == classify(evidence)
    assert len(result.message) <= 500
    assert result.message.encode()
    if isinstance(result, ModelFailure):
        assert result.retry_after is None or result.retry_after >= timedelta(0)
        assert (result.token_limit_phase is None) == (result.type is not TOKENS)
        assert not (result.type is QUOTA and result.retryable)


@pytest.mark.parametrize(
    "unit",
    [
        *("{", '{"a":', "[", "'", "max tokens ", "retry after 1 s ", "<", "sk-", "quota ", "1"),
        *("per minute", "exceeds ", "input ", "please reduce the ", "limit ", "b'{\\'", "https://"),
        *(
            "prompt tokens ",
            "insufficient ",
            "balance ",
            "model ",
            "account ",
            "输入",
            "(1 in ",
            "no ",
        ),
        *(
            "tokens exceed context ",
            "limit 9 requested ",
            "free tier ",
            "per ",
            "\\n",
            '"',
            "_",
            "<a ",
        ),
    ],
)
def test_a_body_of_a_mebibyte_takes_a_fraction_of_a_second(unit: str) -> None:
    body = (unit * (1024 * 1024 // len(unit))).encode()
    began = time.process_time()

    assert classify(Evidence(where="response", status=500, body=body)).message
    assert time.process_time() - began < 2


def test_a_long_error_is_read_to_its_end() -> None:
    error = {"details": ["x" * 100] * 1_500, "message": "Quota.", "code": "insufficient_quota"}
    body = json.dumps({"error": error}).encode()

    assert failure_from(Evidence(where="response", status=429, body=body)).type is QUOTA
