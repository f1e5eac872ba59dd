"""What the page shows when there is nothing, not yet, or not now."""

import json
import re
import secrets
from datetime import timedelta
from email.utils import parsedate_to_datetime

import pytest
from playwright.async_api import Browser, BrowserContext, Route, expect

from tests.console.conftest import NewConsole, Waiting
from tests.console.pages import Console
from tests.console.served import ServedService

HOSTILE = "<img src=x onerror=\"document.title='owned'\"><b>bold</b> https://example.org/a"
BUSY = {
    "title": "This turn is busy",
    "detail": "It is already answering another message.",
    "code": "conversation_busy",
    "status": 409,
}


async def test_without_a_session_the_page_says_how_to_sign_in(
    browser: Browser, service: ServedService
) -> None:
    context = await browser.new_context(viewport={"width": 390, "height": 844})
    console = Console(await context.new_page(), service.url.split("#")[0])
    console.expects("401")
    await console.open()
    form = console.page.locator("#signin form")
    await expect(console.page.locator("#signin")).to_contain_text("that the server printed")
    await form.get_by_label("Code").fill("wrong")
    await form.get_by_role("button").click()
    await expect(form.get_by_role("alert")).to_contain_text("wrong or was used before")
    await expect(form.get_by_label("Code")).to_be_focused()
    assert not await console.scrolls_sideways()
    assert console.troubles == []
    await context.close()


async def test_the_printed_address_may_be_opened_again(
    console: Console, service: ServedService
) -> None:
    for _ in range(2):
        await console.page.goto("about:blank")
        await console.page.goto(service.url)
        await expect(console.page.locator("#app")).to_be_visible()
        assert "#login" not in console.page.url


async def test_hostile_text_is_text(console: Console) -> None:
    await console.send(HOSTILE)
    await expect(console.page.locator(".said p")).to_have_text(HOSTILE)
    row = console.page.locator(".conv[aria-current] .t")
    await expect(row).to_contain_text("<img src=x")
    assert await console.page.locator("#main img, #main b b, #list img, .said a").count() == 0
    assert await console.page.title() != "owned"


async def test_an_unknown_conversation(new_console: NewConsole) -> None:
    console = await new_console(at="#new")
    console.expects("404")
    await console.open("#c=nobody-knows-this")
    await expect(console.page.locator(".empty")).to_contain_text("No such conversation")
    await expect(console.message).to_be_hidden()
    await console.page.get_by_role("link", name="All conversations").click()
    await expect(console.page.locator(".empty").last).to_be_visible()


async def test_a_cut_address_is_an_unknown_conversation(console: Console) -> None:
    console.expects("404|422")
    await console.open("#c=%E0%A4%A")
    await expect(console.page.locator(".empty")).to_be_visible()


async def test_a_turn_on_hold_says_so_and_is_run_from_the_composer(
    new_console: NewConsole,
) -> None:
    console = await new_console()
    page, conversation = console.page, f"held-{secrets.token_hex(4)}"
    sent = await page.request.post(
        f"{console.origin}conversations/{conversation}/messages",
        data={"content": "Hello", "hold": True},
    )
    assert sent.status == 202
    await console.open(f"#c={conversation}")

    await console.has_status("On hold")
    await expect(page.locator(".will")).to_contain_text("It begins when it is told to run.")
    await expect(page.locator(".step").last).to_have_text("On hold")
    await expect(page.locator(".spin")).to_have_count(0)
    await expect(console.stop).to_have_count(0)
    await page.locator(".composer [data-command=RUN]").click()

    await console.has_status("Completed")
    await expect(page.locator("[data-command=RUN]")).to_have_count(0)


async def test_a_turn_on_hold_is_cancelled_from_the_composer(new_console: NewConsole) -> None:
    console = await new_console(width=390)
    conversation = f"held-{secrets.token_hex(4)}"
    await console.page.request.post(
        f"{console.origin}conversations/{conversation}/turns",
        data={"content": "Hello", "hold": True},
    )
    await console.open(f"#c={conversation}")

    await console.has_status("On hold")
    assert not await console.scrolls_sideways()
    await console.cancel_from_the_composer()


async def test_a_refused_message_stays_in_the_composer(console: Console) -> None:
    console.expects("409")

    async def refuse(route: Route) -> None:
        headers = {"Content-Type": "application/problem+json", "X-Request-Id": "req_5YH2"}
        await route.fulfill(status=409, headers=headers, body=json.dumps(BUSY))

    await console.page.route("**/messages", refuse)
    await console.message.fill("Hello")
    await console.message.press("Enter")
    will = console.page.locator(".will.bad")
    await expect(will).to_contain_text("This turn is busy. It is already answering")
    await expect(will).to_contain_text("req_5YH2")
    await expect(console.message).to_have_value("Hello")
    await console.page.unroute("**/messages")
    await console.page.get_by_role("button", name="Send again").click()
    await console.has_status("Completed")
    await expect(console.message).to_have_value("")


async def test_sending_again_after_a_lost_answer_does_not_double(console: Console) -> None:
    console.expects("ERR_FAILED")
    bodies: list[str] = []

    async def lose_the_answer(route: Route) -> None:
        bodies.append(route.request.post_data or "")
        if len(bodies) == 1:
            await route.fetch()
            await route.abort()
        else:
            await route.continue_()

    await console.page.route("**/messages", lose_the_answer)
    await console.message.fill("Hello")
    await console.message.press("Enter")
    await expect(console.page.locator(".will.bad")).to_contain_text("Not sent.")
    await console.page.get_by_role("button", name="Send again").click()
    await console.has_status("Completed")
    assert len(bodies) == 2
    assert bodies[0] == bodies[1]
    await console.page.reload()
    await expect(console.page.locator(".said")).to_have_count(1)


async def test_a_list_that_cannot_be_loaded_offers_to_load_it_again(
    new_console: NewConsole,
) -> None:
    console = await new_console()
    console.expects("500")

    async def fail(route: Route) -> None:
        headers = {"Content-Type": "application/problem+json", "X-Request-Id": "req_5YH9"}
        await route.fulfill(status=500, headers=headers, body='{"title": "Internal error"}')

    await console.page.route("**/conversations?*", fail)
    await console.page.reload()
    await expect(console.page.locator("#list")).to_contain_text("This list could not be loaded")
    await expect(console.page.locator("#list")).to_contain_text("req_5YH9")
    await console.page.unroute("**/conversations?*")
    await console.page.get_by_role("button", name="Load again").click()
    await expect(console.page.locator("#list")).not_to_contain_text("could not")


async def test_a_draft_survives_a_reload(console: Console) -> None:
    await console.message.fill("Not yet sent")
    await console.page.reload()
    await expect(console.message).to_have_value("Not yet sent")
    await console.message.fill("")


@pytest.mark.parametrize("width", [360, 390, 1280])
async def test_nothing_scrolls_sideways_and_targets_are_large_enough(
    new_console: NewConsole, waiting: Waiting, width: int
) -> None:
    console = await new_console(width=width, at=f"#c={waiting.wide}")
    await console.page.locator(".ops summary").click()
    await console.page.locator(".call summary").first.click()
    assert not await console.scrolls_sideways()
    least = 40 if width < 720 else 24
    script = """() => [...document.querySelectorAll("button, a.btn, summary, textarea")]
        .filter((target) => target.checkVisibility())
        .map((target) => [target.textContent.trim(), target.getBoundingClientRect().height])"""
    small = [found for found in await console.page.evaluate(script) if found[1] < least - 0.5]
    assert small == []
    if width < 720:
        await console.page.locator(".back").click()
    await expect(console.page.locator("#list .conv").first).to_be_visible()
    assert not await console.scrolls_sideways()


async def test_a_stated_time_is_counted_down_and_a_retry_stays_allowed(
    context_apart: BrowserContext, new_console: NewConsole, waiting: Waiting
) -> None:
    console = await new_console(at=f"#c={waiting.wide}", context=context_apart)

    async def later(route: Route) -> None:
        answer = await route.fetch()
        server_now = parsedate_to_datetime(answer.headers["date"])
        retry_at = server_now + timedelta(seconds=42)
        await route.fulfill(response=answer, json=await answer.json() | {"retryAt": str(retry_at)})

    await console.page.route(re.compile(r"/turns/[^/]+$"), later)
    # By the reader's clock the time is long over; by the server's it is not.
    await console.page.clock.set_fixed_time("2040-01-01T00:00:00Z")
    await console.page.reload()
    await expect(console.card.locator("h2")).to_have_text("Too many requests at the moment")
    await expect(console.card.locator(".time")).to_have_text(re.compile("0:4[0-3]"))
    await expect(console.retry).to_have_text("Retry now")
    await expect(console.card.locator(".why")).to_contain_text("it will probably be refused")
    await expect(console.retry).not_to_have_attribute("aria-disabled", "true")
