"""Stop, paused, Resume, done: as a reader sees it, on a desk and on a phone."""

import asyncio
import re

from playwright.async_api import expect

from tests.console.conftest import NewConsole
from tests.console.pages import Console
from tests.console.served import ServedService

PAUSED = "Paused"
DONE = "Completed"


async def test_stop_while_an_answer_is_written_then_reload_then_resume(
    new_console: NewConsole,
) -> None:
    desk, phone = await asyncio.gather(new_console(), new_console(width=390, dark=True))
    await asyncio.gather(_stop_an_answer(desk), _stop_an_answer(phone))


async def _stop_an_answer(console: Console) -> None:
    page = console.page
    await console.send("/slow")
    await console.has_status("Running")
    await expect(console.answer).to_contain_text("This is sentence 9")
    await expect(page.locator(".will")).to_contain_text("Queue: your message opens the next turn")
    await console.stop.press("Enter")

    await console.has_status(PAUSED)
    await expect(console.card.locator("h2")).to_have_text(re.compile(r"^Paused at \d\d:\d\d$"))
    await expect(console.card).to_contain_text("Resume goes on from where it stands.")
    await expect(console.card.locator(".kept")).to_have_text("Keptyour message")
    await expect(page.locator(".will")).to_contain_text("Sending goes on from here.")
    await expect(page.locator(".composer [data-command=RESUME]")).to_be_focused()
    await expect(page.locator(".partial")).to_contain_text("This is sentence 9")
    await expect(page.locator(".caret")).to_have_count(0)
    await expect(console.stop).to_have_count(0)
    await expect(page.locator("#status")).to_contain_text("The turn is paused.")
    assert not await console.scrolls_sideways()

    await page.reload()
    await console.has_status(PAUSED)
    await expect(console.card.locator(".kept")).to_have_text("Keptyour message")
    # What came last may not have been stored.
    await expect(page.locator(".partial")).to_contain_text("This is sentence 1")

    await console.resume.click()
    await console.has_status("Running")
    await expect(page.locator(".mark").first).to_contain_text(
        re.compile(r"^Paused for .+\. Resumed at \d\d:\d\d\.$")
    )
    await expect(console.card).to_have_count(0)
    await expect(page.locator(".step.live .caret")).to_be_visible()
    await expect(page.locator(".partial")).to_have_count(1)
    await console.cancel_from_the_composer()


async def test_stop_while_tools_run_lets_them_end_and_resume_finishes_the_turn(
    new_console: NewConsole, service: ServedService
) -> None:
    desk, phone = await asyncio.gather(
        new_console(agent="gated"), new_console(agent="gated", width=390)
    )
    await asyncio.gather(
        _stop_tools(desk, service, "AB-1280"), _stop_tools(phone, service, "AB-390")
    )


async def _stop_tools(console: Console, service: ServedService, sku: str) -> None:
    page = console.page
    await console.send(f"What about {sku}?")
    await expect(page.locator(".call.running")).to_have_count(1)
    await console.stop.click()
    await expect(console.stop).to_have_text("Stopping")
    await expect(console.stop).to_have_attribute("aria-disabled", "true")
    await expect(page.locator(".will")).to_contain_text(
        "Stopping. 1 tool is given time to end. Nothing is lost."
    )
    await expect(page.locator(".composer [data-command=CANCEL]")).to_be_visible()
    await page.reload()
    await expect(console.stop).to_have_text("Stopping")
    assert not await console.scrolls_sideways()

    (service.gates / sku).touch()
    await console.has_status(PAUSED)
    await expect(page.locator(".call.done")).to_have_count(2)
    await expect(console.card.locator(".kept")).to_contain_text("your message2 tool results")

    await console.resume.click()
    await console.has_status(DONE)
    await expect(page.locator(".mark").first).to_contain_text("with all 2 results")
    await expect(console.answer).to_contain_text("148 orders")
    await expect(page.locator(".call.done")).to_have_count(2)


async def test_a_message_goes_on_with_a_paused_turn(console: Console) -> None:
    await console.send("/slow")
    await expect(console.answer).to_contain_text("This is sentence 1")
    await console.stop.click()
    await console.has_status(PAUSED)
    await expect(console.message).to_have_attribute("placeholder", "Message instead of resuming")
    await console.send("hello")
    await console.has_status(DONE)
    await expect(console.page.locator(".said")).to_have_count(2)
    await expect(console.page.locator(".mark").first).to_contain_text("Went on with your message")


async def test_a_paused_turn_is_cancelled_on_its_card_after_a_second_question(
    console: Console,
) -> None:
    await console.send("/slow")
    await expect(console.answer).to_contain_text("This is sentence 1")
    await console.stop.click()
    await console.has_status(PAUSED)
    await console.card.locator("[data-command=CANCEL]").click()
    await expect(console.card.locator(".why")).to_contain_text("Final.")
    await expect(console.card.get_by_role("button", name="Keep it paused")).to_be_visible()
    await console.card.locator("[data-command=CANCEL_FINALLY]").click()
    await console.has_status("Cancelled")
    await expect(console.page.locator(".mark").first).to_contain_text("Cancelled at")


DOUBLE_CLICK = """() => new Promise((done) => {
    const find = (command) => document.querySelector(`.composer [data-command=${command}]`);
    const look = () => {
        const resume = find("RESUME");
        if (!resume) { requestAnimationFrame(look); return; }
        resume.click();
        requestAnimationFrame(() => requestAnimationFrame(done));
    };
    find("PAUSE").click();
    look();
})"""


async def test_the_second_half_of_a_double_click_on_stop_does_not_resume(console: Console) -> None:
    await console.send("/slow")
    await expect(console.answer).to_contain_text("This is sentence 1")
    await console.page.evaluate(DOUBLE_CLICK)
    await console.has_status(PAUSED)
    await expect(console.resume).to_have_text("Resume")
    here = console.page.locator(".composer [data-command=RESUME]")
    await expect(here).not_to_have_attribute("aria-busy", "true")


async def test_a_limit_pauses_and_the_servers_words_say_so(new_console: NewConsole) -> None:
    console = await new_console(agent="limited", width=390)
    await console.send("What about TP-4410?")
    await console.has_status(PAUSED)
    await expect(console.card.locator("h2")).to_have_text(
        "The turn reached a limit of its agent and is paused"
    )
    await expect(console.card).to_contain_text("An operator can raise the limit and resume it.")
    await expect(console.card.locator(".facts")).to_contain_text("Limittool calls")
    await expect(console.page.locator(".will")).to_contain_text("Open calls are closed")
    # Under the same limit it is paused again, and the page says both.
    await console.resume.click()
    await expect(console.page.locator(".mark").first).to_contain_text("Resumed at")
    await expect(console.card.locator("h2")).to_contain_text("reached a limit")
    await expect(console.resume).to_have_text("Resume")
    await expect(console.resume).not_to_have_attribute("aria-disabled", "true")


async def test_a_tool_that_failed_is_tried_again_by_itself_or_at_once(
    new_console: NewConsole,
) -> None:
    desk, phone = await asyncio.gather(
        new_console(agent="shaky"), new_console(agent="shaky", width=390)
    )
    await asyncio.gather(_tried_again_by_itself(desk), _tried_again_at_once(phone))


async def _tried_again_by_itself(console: Console) -> None:
    await console.send("What about TP-4410? (by itself)")
    await console.has_status("Trying again by itself")
    row = console.page.locator(".call.again .say")
    await expect(row).to_have_text(re.compile(r"^Failed, tried again at \d\d:\d\d:\d\d$"))
    await expect(console.card.locator("h2")).to_have_text("Trying a tool again by itself")
    await expect(console.card).to_contain_text("A tool failed. The next attempt follows at")
    await expect(console.card.locator(".ops")).to_have_count(0)
    await console.has_status(DONE)
    again = console.page.locator(".call.done", has_text="orders_search")
    await expect(again.locator(".say")).to_have_text("2nd attempt, 148 orders")
    await expect(console.page.locator(".step-head")).to_contain_text("1 of them tried again")
    await expect(console.page.locator(".mark").first).to_contain_text("to try a tool again")
    await again.locator("summary").click()
    await expect(again).to_contain_text("1st attempt failed at")
    await expect(again).to_contain_text("the search does not answer")


async def _tried_again_at_once(console: Console) -> None:
    await console.send("What about TP-4410? (at once)")
    await console.card.locator("[data-command=CONTINUE]").click()
    await console.has_status(DONE)
    await expect(console.page.locator(".mark").first).to_contain_text("before its time")


async def test_a_used_up_budget_is_told_as_a_limit(new_console: NewConsole) -> None:
    console = await new_console(agent="bounded")
    await console.send("What about TP-4410?")
    await console.has_status("Limit reached")
    await expect(console.page.locator(".mark.end")).to_have_text(
        re.compile(r"^Limit reached at \d\d:\d\d: [\d,]+ of 1 tokens\. The turn reached a limit")
    )
