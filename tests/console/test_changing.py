"""A retry with changes, from the card: what is offered, what is sent, and what is refused."""

import json
from collections.abc import Mapping
from typing import Any, cast

import pytest
from playwright.async_api import Route, expect

from tests.console.conftest import NewConsole
from tests.console.modules import call
from tests.console.pages import Console

_RETRY: dict[str, object] = {"command": "RETRY_MODEL", "enabled": True, "failureId": "fail_1"}
_ALL = ["model", "maxOutputTokens", "compact", "keepTurns"]

_CARD = """const [action, more, story] = a;
    const turn = { status: "WAITING_FOR_MODEL", actions: [action], message: "Too long. It waits." };
    const sent = [];
    const on = { resume: (_, __, given) => sent.push(given), choose() {} };
    const view = { turn, on, wait: { since: 0 }, kept: null, until: null, ...more };
    const card = m.cardView();
    document.body.append(card.element);
    card.update(view);
    const rows = [...card.element.querySelectorAll(".helps li")];
    for (const row of rows) row.querySelector("button").click();
    const found = {
        titles: rows.map((row) => row.querySelector("b").textContent),
        models: rows.map((row) => row.querySelector("code")?.textContent).filter(Boolean),
        loud: rows.map((row) => row.querySelector("button").classList.contains("primary")),
        changes: sent.map((one) => one.changes),
        choose: card.element.querySelector("[data-focus=choose]")?.textContent ?? null,
    };
    card.element.remove();
    return found;"""


async def card(bench: Console, action: Mapping[str, object], **more: object) -> dict[str, Any]:
    """What the card of a turn that waits for its model offers, and what its buttons send."""
    found = await call(bench, "cards", _CARD, {**_RETRY, **action}, more)
    return cast("dict[str, Any]", found)


async def test_what_helps_with_a_token_limit_stands_in_the_card_most_helpful_first(
    bench: Console,
) -> None:
    hopeless = {
        "reason": "unlikely_to_help",
        "helps": ["shorter_history", "other_model"],
        "changes": _ALL,
        "models": ["b/two", "c/three"],
    }

    found = await card(bench, hopeless, earlier=9)

    assert found["titles"] == [
        "Shorten the history, then retry",
        "Ask for a shorter answer",
        "Retry with a model that may take more",
        "Retry with a model that may take more",
        "Keep only the last 6 turns before this one",
    ]
    assert found["models"] == ["b/two", "c/three"]
    assert found["loud"] == [True, False, False, False, False]
    assert found["changes"] == [
        {"compact": True},
        {"maxOutputTokens": 1000},
        {"model": "b/two"},
        {"model": "c/three"},
        {"keepTurns": 6},
    ]
    assert found["choose"] is None


@pytest.mark.parametrize(
    "action",
    [
        {},
        {"changes": ["limits"]},
        {"changes": ["model"]},  # any may be named, and none is known
        {"models": ["b/two"]},
        {"enabled": False, "changes": _ALL, "models": ["b/two"]},
        {"reason": "unlikely_to_help"},
        {"reason": "unlikely_to_help", "changes": ["keepTurns"]},  # no turn came before
    ],
)
async def test_what_the_server_does_not_offer_is_not_there(
    bench: Console, action: dict[str, object]
) -> None:
    found = await card(bench, action, choosing=True)

    assert (found["titles"], found["choose"]) == ([], None)


async def test_another_model_is_behind_a_button_where_the_same_may_help(bench: Console) -> None:
    busy = {"changes": ["model"], "models": ["b/two"]}

    closed, opened = await card(bench, busy), await card(bench, busy, choosing=True)

    assert (closed["titles"], closed["choose"]) == ([], "Retry with another model")
    assert (opened["models"], opened["loud"]) == (["b/two"], [False])
    assert opened["changes"] == [{"model": "b/two"}]


async def test_while_a_change_is_on_its_way_nothing_can_be_pressed_again(bench: Console) -> None:
    hopeless = {"reason": "unlikely_to_help", "changes": _ALL, "models": ["b/two"]}

    assert (await card(bench, hopeless, busy=True, pressed="compact"))["changes"] == []


async def test_on_a_desk_a_turn_goes_on_with_the_model_that_was_chosen(
    new_console: NewConsole,
) -> None:
    console = await new_console(agent="choosing")
    await console.send("/outage quota")
    await console.has_status("Waiting for model")
    choose = console.card.get_by_role("button", name="Retry with another model", exact=True)
    await expect(console.card.locator(".helps")).to_have_count(0)
    await choose.click()
    await expect(choose).to_be_focused()
    await expect(console.card.locator(".helps code")).to_have_text(["demo-large", "demo-wide"])
    await choose.press("Escape")
    await expect(console.card.locator(".helps")).to_have_count(0)
    await choose.click()
    await console.card.locator("[data-change='model:demo-wide']").click()

    await console.has_status("Completed")
    assert await _changes_in(console) == {"model": "demo-wide"}


async def test_on_a_phone_the_history_is_shortened_after_a_refusal_at_the_card(
    new_console: NewConsole,
) -> None:
    console = await new_console(agent="choosing", width=390)
    await console.send("/outage context")
    await console.has_status("Waiting for model")
    await expect(console.card.locator(".helps b")).to_have_text(
        ["Shorten the history, then retry", *["Retry with a model that may take more"] * 2]
    )
    assert not await console.scrolls_sideways()

    async def with_another_change(route: Route) -> None:
        body = json.loads(route.request.post_data or "") | {"changes": {"maxOutputTokens": 9}}
        await route.continue_(post_data=json.dumps(body))

    console.expects("422")
    await console.page.route("**/resume", with_another_change, times=1)
    shorten = console.card.locator("[data-change=compact]")
    await shorten.click()
    await expect(console.card.locator(".why")).to_contain_text("changes.maxOutputTokens")
    await expect(console.card.locator(".why")).not_to_contain_text("no harm")
    await console.has_status("Waiting for model")

    await shorten.click()
    await console.has_status("Completed")
    assert await _changes_in(console) == {"compact": True}


async def test_how_long_an_answer_may_be_is_a_number_or_is_not_sent(
    new_console: NewConsole,
) -> None:
    console = await new_console(agent="choosing")
    await console.send("/outage output")
    await console.has_status("Waiting for model")
    number = console.card.get_by_label("Tokens at most")
    ask = console.card.locator("[data-change=maxOutputTokens]")
    for typed in ("", "0", "1.5", "many"):
        await number.fill(typed)
        await ask.click()
        await expect(number).to_have_attribute("aria-invalid", "true")
    await console.has_status("Waiting for model")

    await number.fill("500")
    await ask.click()
    await console.has_status("Completed")
    assert await _changes_in(console) == {"maxOutputTokens": 500}


async def _changes_in(console: Console) -> object:
    """What the turn of the open conversation went on with, by its events."""
    conversation = console.page.url.split("#c=")[1]
    http = console.page.context.request
    found = await (await http.get(f"{console.origin}conversations/{conversation}")).json()
    turn_id = (found["activeTurn"] or found["lastTurn"])["turnId"]
    accept = {"Accept": "application/json"}
    page = await http.get(f"{console.origin}turns/{turn_id}/events?limit=200", headers=accept)
    events = (await page.json())["items"]
    [resumed] = [one for one in events if one["type"] == "TURN_RESUMED"]
    return resumed["data"]["changes"]
