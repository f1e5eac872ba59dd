"""Messages to a turn at work: queued, steering, withdrawn; on a desk and on a phone."""

import asyncio

from playwright.async_api import expect

from tests.console.conftest import NewConsole
from tests.console.pages import Console
from tests.console.served import ServedService

DONE = "Completed"


async def test_a_queued_message_is_shown_survives_a_reload_and_opens_the_next_turn(
    new_console: NewConsole, service: ServedService
) -> None:
    desk, phone = await asyncio.gather(
        new_console(agent="gated"), new_console(agent="gated", width=390, dark=True)
    )
    await asyncio.gather(_queue(desk, service, "QA-1280"), _queue(phone, service, "QA-390"))


async def _queue(console: Console, service: ServedService, sku: str) -> None:
    page = console.page
    await console.send(f"What about {sku}?")
    await console.has_status("Running")
    await expect(page.locator(".will")).to_contain_text("Queue: your message opens the next turn")
    await expect(console.message).to_have_attribute("placeholder", "Add to the queue")
    await console.send("hello")
    await console.send("Thank you.")
    await expect(console.waiting).to_have_count(2)
    await expect(page.locator(".said")).to_have_count(1)
    assert not await console.scrolls_sideways()

    await page.get_by_role("button", name="Withdraw: Thank you.").click()
    await expect(console.waiting).to_have_count(1)
    await page.reload()
    await expect(console.waiting).to_contain_text("hello")
    await expect(page.get_by_role("radio", name="Queue")).to_be_checked()
    await expect(console.waiting.get_by_role("button")).to_be_visible()

    (service.gates / sku).touch()
    await expect(page.locator(".said")).to_have_count(2)
    await expect(page.locator(".said").last).to_contain_text("hello")
    await console.has_status(DONE)
    await expect(console.answer).to_contain_text("Hello. Ask me about a product")
    await expect(console.waiting).to_have_count(0)
    await expect(page.locator(".seg")).to_be_hidden()
    await page.reload()
    await expect(page.locator(".said")).to_have_count(2)


async def test_a_message_that_steers_skips_what_had_not_begun(
    new_console: NewConsole, service: ServedService
) -> None:
    desk, phone = await asyncio.gather(
        new_console(agent="one-by-one"), new_console(agent="one-by-one", width=390)
    )
    await asyncio.gather(_steer(desk, service, "ST-1280"), _steer(phone, service, "ST-390"))


async def _steer(console: Console, service: ServedService, sku: str) -> None:
    page = console.page
    await console.send(f"What about {sku}?")
    await expect(page.locator(".call.running")).to_have_count(1)
    await console.steers()
    await expect(page.locator(".will")).to_contain_text("Steer: calls that have not begun")
    await console.send("hello")
    await expect(console.waiting).to_contain_text("Steer: hello")
    await page.reload()
    await expect(console.waiting).to_contain_text("Steer: hello")

    (service.gates / sku).touch()
    await console.has_status(DONE)
    await expect(page.locator(".call.done")).to_have_count(1)
    await expect(page.locator(".call.skipped")).to_contain_text("Skipped, not run")
    await expect(page.locator(".said")).to_have_count(2)
    await expect(console.waiting).to_have_count(0)


async def test_the_mode_is_changed_by_keys_and_what_another_page_withdraws_goes_away(
    new_console: NewConsole, service: ServedService
) -> None:
    console = await new_console(agent="gated")
    await console.send("What about KE-4410?")
    await expect(console.page.locator(".call.running")).to_have_count(1)
    await console.message.press("Alt+q")
    await expect(console.page.get_by_role("radio", name="Steer")).to_be_checked()
    await console.send("hello")
    await expect(console.waiting).to_contain_text("Steer: hello")

    other = await new_console(at=console.page.url.removeprefix(console.origin))
    await other.waiting.get_by_role("button").click()
    await expect(other.waiting).to_have_count(0)
    await expect(other.message).to_be_focused()
    await expect(console.waiting).to_have_count(0)
    (service.gates / "KE-4410").touch()
    await console.has_status(DONE)
    await expect(console.page.locator(".said")).to_have_count(1)


async def test_a_cancelled_turn_hands_its_queue_on_to_the_next(console: Console) -> None:
    await console.send("/slow")
    await console.has_status("Running")
    await console.send("hello")
    await expect(console.waiting).to_have_count(1)

    await console.page.locator(".composer [data-command=CANCEL]").click()
    await console.page.locator("[data-command=CANCEL_FINALLY]").click()

    await expect(console.page.locator(".said")).to_have_count(2)
    await console.has_status(DONE)
    await expect(console.page.locator(".mark.end")).to_contain_text("Cancelled")
