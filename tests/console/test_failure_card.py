"""The card of a failure: what its buttons promise, and what operators alone are shown."""

from typing import Any, cast

import pytest
from playwright.async_api import expect

from tests.console.modules import call
from tests.console.pages import Console

SAFE: dict[str, object] = {
    "failureId": "fail_1",
    "type": "QUOTA_EXCEEDED",
    "message": "The usage allowance for this model is used up.",
    "retryAfterMillis": None,
    "tokenLimitPhase": None,
    "occurredAt": "2026-08-15T12:00:00Z",
}
FULL: dict[str, object] = SAFE | {
    "message": "No quota for org [redacted], key [redacted].",
    "exceptionType": None,
    "httpStatus": 429,
    "errorCode": "insufficient_quota",
    "errorType": "insufficient_quota",
    "modelAttempt": 4,
    "provider": "openai",
    "model": "gpt-5.1",
    "errorRef": "err_K7QZ2MA4",
}
LINK = "https://billing.example/top-up"

_SECTION = """const found = m.operators(a[0]);
    if (!found) return null;
    const link = found.querySelector("a");
    return {
        open: found.open,
        text: found.textContent,
        tags: [...found.querySelectorAll("pre .tag")].map((tag) => tag.textContent),
        link: link && [link.getAttribute("href"), link.rel, link.target],
    };"""

_BUTTON = """const [action, more] = a;
    const cancel = { command: "CANCEL", enabled: true };
    const turn = { status: "WAITING_FOR_MODEL", actions: [action, cancel] };
    const on = { resume() {} };
    const found = m.acts({ turn, on, kept: {}, until: null, due: false, ...more });
    const button = found.querySelector("[data-command=RETRY_MODEL], [data-command=RESUME]");
    return {
        label: button.textContent,
        kind: button.className.replace("btn", "").trim(),
        off: button.getAttribute("aria-disabled"),
        why: found.querySelector(".why")?.textContent ?? "",
    };"""


async def section(bench: Console, failure: dict[str, object]) -> dict[str, Any]:
    """What the section for operators shows of a failure."""
    return cast("dict[str, Any]", await call(bench, "operators", _SECTION, failure))


async def test_a_users_failure_has_no_section_for_operators(bench: Console) -> None:
    assert await call(bench, "operators", _SECTION, SAFE) is None
    assert await call(bench, "operators", _SECTION, None) is None


async def test_operators_see_who_failed_under_a_reference_and_what_was_taken_out(
    bench: Console,
) -> None:
    found = await section(bench, FULL)

    for said in (
        "Provideropenai",
        "Modelgpt-5.1",
        "HTTP429",
        "Referr_K7QZ2MA4",
        "No quota for org",
    ):
        assert said in found["text"]
    assert found["text"].count("insufficient_quota") == 1
    assert found["tags"] == ["redacted", "redacted"]
    assert "[redacted]" not in found["text"]
    assert (found["link"], found["open"]) == (None, False)


async def test_the_link_of_an_exhausted_quota_is_not_hidden(bench: Console) -> None:
    found = await section(bench, FULL | {"topUpUrl": LINK})

    assert found["link"] == [LINK, "noopener noreferrer", "_blank"]
    assert found["open"]


@pytest.mark.parametrize(
    ("reason", "label", "kind", "is_said"),
    [
        (None, "Retry", "primary", False),
        ("after_top_up", "Retry", "primary", False),
        ("needs_operator", "Retry", "", False),
        ("unlikely_to_help", "Retry unchanged", "plain", True),
    ],
)
async def test_a_retry_is_as_loud_as_it_helps(
    bench: Console, reason: str | None, label: str, kind: str, *, is_said: bool
) -> None:
    action = {"command": "RETRY_MODEL", "enabled": True, "failureId": "fail_1"}
    if reason is not None:
        action |= {"reason": reason, "message": "What the server says of it."}

    found = await call(bench, "acts", _BUTTON, action, {})

    why = "What the server says of it." if is_said else ""
    assert found == {"label": label, "kind": kind, "off": None, "why": why}


async def test_a_turn_at_its_limit_says_what_it_needs_before_it_is_resumed(bench: Console) -> None:
    action = {"command": "RESUME", "enabled": True, "reason": "limit_reached"}

    found = await call(bench, "acts", _BUTTON, action | {"message": "It needs a limit."}, {})

    assert found == {"label": "Resume", "kind": "plain", "off": None, "why": "It needs a limit."}


async def test_a_failed_turn_is_shown_as_failed(console: Console) -> None:
    await console.send("What about it?\n/outage refused")

    await console.has_status("Failed")
    await expect(console.page.locator(".mark.end")).to_contain_text("does not take this request")
    await expect(console.page.locator(".mark.end")).to_contain_text("Ref err_")
    await expect(console.page.locator("#main")).not_to_contain_text("Completed")
    await expect(console.page.locator("#main")).not_to_contain_text("safety system")
    await expect(console.retry).to_have_count(0)
