"""Send, stream, outage, retry, done, as a reader sees it."""

import asyncio
import re

from playwright.async_api import Route, expect

from tests.console.conftest import NewConsole, Waiting
from tests.console.pages import MAIN_STORY, Console
from tests.console.served import ServedService

DONE = "Completed"
WAITING = "Waiting for model"


async def test_send_stream_outage_retry_done_on_a_desk_and_on_a_phone(
    new_console: NewConsole,
) -> None:
    desk = await new_console(width=1280)
    phone = await new_console(width=390, dark=True)
    await asyncio.gather(_main_story(desk, "on a desk"), _main_story(phone, "on a phone"))


async def _main_story(console: Console, where: str) -> None:
    page = console.page
    await console.send(f"{MAIN_STORY}\n({where})")
    await expect(page.locator(".said")).to_contain_text("What about TP-4410?")
    assert re.search("#c=.+", page.url)

    await console.has_status(WAITING)
    await expect(page.locator(".call.done")).to_have_count(3)
    await expect(page.locator(".call .arg").first).to_have_text('sku "TP-4410"')
    await expect(page.locator(".think[open]")).to_have_count(0)
    await expect(console.card.locator("h2")).to_have_text(
        "The usage allowance for this model is used up"
    )
    await expect(console.card.locator(".kept")).to_contain_text("your message3 tool results")
    await expect(console.card).to_contain_text("since")
    await expect(console.retry).to_be_in_viewport()
    await expect(page.locator("#status")).to_contain_text("The turn waits: the usage allowance")
    assert not await console.scrolls_sideways()

    # What the provider said is for operators, and folded even for them.
    provider = page.get_by_text("insufficient_quota").first
    await expect(provider).to_be_hidden()
    await page.locator(".ops summary").click()
    await expect(provider).to_be_visible()

    await console.retry.press("Enter")
    # The button is gone, and the focus is not lost with it.
    await expect(page.get_by_role("log")).to_be_focused()
    await console.has_status(DONE)
    await expect(page.locator(".mark").first).to_contain_text("Brought back")
    await expect(page.locator(".mark").first).to_contain_text("with all 3 results")
    await expect(console.card).to_have_count(0)
    await expect(page.locator(".call.done")).to_have_count(3)
    await expect(page.locator(".said")).to_have_count(1)
    assert await console.answer.inner_text() != ""
    assert not await console.scrolls_sideways()


async def test_an_answer_appears_while_it_is_written(console: Console) -> None:
    await console.send("/slow")
    await expect(console.page.locator(".step.live .caret")).to_be_visible(timeout=10_000)
    before = await console.answer.inner_text()
    await expect(console.answer).not_to_have_text(before, timeout=5_000)
    await console.cancel_from_the_composer()
    await expect(console.page.locator(".mark.end")).to_contain_text("Cancelled")


async def test_reload_in_the_middle_brings_everything_back(console: Console) -> None:
    await console.send("/slow")
    await expect(console.answer).to_contain_text("This is sentence 3", timeout=10_000)
    seen = await console.answer.inner_text()
    await console.page.reload()
    await expect(console.answer).to_contain_text(seen.strip(), timeout=10_000)
    await expect(console.page.locator(".said")).to_have_text(re.compile("^/slow"))
    longer = await console.answer.inner_text()
    await expect(console.answer).not_to_have_text(longer, timeout=5_000)
    text = await console.answer.inner_text()
    numbers = [int(n) for n in re.findall(r"sentence (\d+)", text)]
    assert numbers == list(range(1, len(numbers) + 1)), "a piece is missing or there twice"
    await console.cancel_from_the_composer()


async def test_a_reload_while_it_waits_shows_the_same_card(waiting_console: Console) -> None:
    console = waiting_console
    await expect(console.card.locator("h2")).to_be_visible()
    before = await console.card.locator("h2, .kept").all_inner_texts()
    await console.page.reload()
    await expect(console.card.locator("h2")).to_be_visible()
    assert await console.card.locator("h2, .kept").all_inner_texts() == before
    await expect(console.page.locator(".call.done")).to_have_count(3)


async def test_a_message_instead_of_a_retry_goes_on_with_the_turn(waiting_console: Console) -> None:
    console = waiting_console
    await expect(console.page.locator(".will")).to_contain_text("together with the 3 results")
    await console.send("And in one sentence?")
    await console.has_status(DONE)
    await expect(console.page.locator(".said")).to_have_count(2)
    await expect(console.page.locator(".mark").first).to_contain_text("your message")


async def test_a_broken_answer_is_kept_and_never_styled_as_one(
    new_console: NewConsole, waiting: Waiting
) -> None:
    console = await new_console(at=f"#c={waiting.cut}")
    await expect(console.page.locator(".partial")).to_have_count(1)
    await expect(console.card.locator(".kept")).to_contain_text("words")
    await console.retry.click()
    await console.has_status(DONE)
    await expect(console.page.locator(".partial")).to_have_count(1)
    await expect(console.page.locator(".step > div:not(.partial) > .prose").last).to_be_visible()


async def test_the_keyboard_goes_from_the_list_to_the_card_to_the_composer(
    waiting_console: Console,
) -> None:
    console = waiting_console
    await expect(console.card).to_be_visible()
    await console.page.locator(".skip").focus()
    seen: list[str] = []
    script = """() => document.activeElement.dataset.command ?? document.activeElement.role
        ?? document.activeElement.id"""
    while seen[-1:] != ["message"] and len(seen) < 60:
        await console.page.keyboard.press("Tab")
        seen.append(await console.page.evaluate(script))
    stops = ["rail-chat", "new", "log", "RETRY_MODEL", "CANCEL", "message"]
    assert [stop for stop in seen if stop in stops] == stops


async def test_a_press_that_comes_too_late_is_news_and_no_fault(waiting_console: Console) -> None:
    console = waiting_console
    console.expects(r"409|Conflict")

    async def somebody_is_faster(route: Route) -> None:
        # The same press from another tab, which arrives first.
        post = route.request
        headers = {"Content-Type": "application/json"}
        await console.page.request.post(post.url, data=post.post_data or "", headers=headers)
        await route.continue_()

    await console.page.route("**/resume", somebody_is_faster)
    await console.retry.click()
    await expect(console.page.locator(".gone")).to_contain_text("Already done.")
    await console.has_status(DONE)


async def test_a_turn_brought_back_in_another_tab_goes_on_here(
    new_console: NewConsole, waiting_console: Console
) -> None:
    one = waiting_console
    other = await new_console(at=one.page.url.removeprefix(one.origin))
    await other.has_status(WAITING)
    await other.retry.click()
    await asyncio.gather(one.has_status(DONE), other.has_status(DONE))
    assert await one.answer.inner_text() == await other.answer.inner_text()


async def test_cancelling_a_waiting_turn_asks_once_more(waiting_console: Console) -> None:
    console = waiting_console
    cancel = console.card.locator("[data-command=CANCEL]")
    await cancel.click()
    await expect(console.card.locator(".why")).to_contain_text("Final.")
    await console.page.keyboard.press("Escape")
    await expect(cancel).to_be_focused()
    await cancel.click()
    await console.card.locator("[data-command=CANCEL_FINALLY]").click()
    await console.has_status("Cancelled")
    await expect(console.card).to_have_count(0)
    await expect(console.message).to_be_editable()


async def test_a_killed_server_is_told_and_the_stream_goes_on_by_itself(
    console: Console, service: ServedService
) -> None:
    console.expects(r"ERR_|50[234]")
    await console.send("/slow")
    await expect(console.answer).to_contain_text("This is sentence 3", timeout=10_000)
    await service.kill()
    banner = console.page.locator(".banner")
    await expect(banner).to_contain_text("Reconnecting.", timeout=8_000)
    await expect(console.answer).to_contain_text("This is sentence 3")
    await service.start()
    await expect(banner).to_contain_text("Connected.", timeout=20_000)
    await expect(console.page.locator(".mark").first).to_contain_text(
        "Brought back", timeout=40_000
    )
    await expect(console.answer).to_contain_text("This is sentence 3", timeout=10_000)
    text = await console.answer.inner_text()
    numbers = [int(n) for n in re.findall(r"sentence (\d+)", text)]
    assert numbers == list(range(1, len(numbers) + 1)), "a piece is missing or there twice"
