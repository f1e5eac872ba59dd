"""A call that waits for an approval: two levels, two tabs, yes and no, on a desk and on a phone."""

import asyncio

from playwright.async_api import Route, expect

from tests.console.conftest import NewConsole
from tests.console.pages import Console

ASK = "What about TP-4410?"
WAITS = "Waiting for approval"


async def test_both_levels_are_approved_exactly_as_shown(new_console: NewConsole) -> None:
    console = await new_console(agent="approving")
    page = console.page
    await console.send(ASK)
    await console.has_status(WAITS)

    await expect(console.card.locator("h2")).to_have_text("Approve orders_search")
    await expect(console.card.locator("tr")).to_have_text(['sku"TP-4410"string'])
    await expect(console.card.locator(".facts")).to_contain_text("Asked byapproving")
    await expect(page.locator(".call.asks .say")).to_have_text(WAITS)
    await expect(page.locator(".will")).to_contain_text(
        "Sending withdraws this request. orders_search is answered “not run”"
    )
    await expect(page.locator("#status")).to_have_text("The turn waits: Approve orders_search")
    await expect(page.locator("#rail-inbox")).to_contain_text("waiting")
    await console.card.get_by_role("button", name="As stored").click()
    await expect(console.card.locator("pre")).to_have_text('{"sku":"TP-4410"}')
    await console.press("APPROVE_TOOL")

    await expect(console.card.locator(".levels li")).to_contain_text(
        ["1 To run it approved", "2 For this request you can decide"]
    )
    await expect(console.card.locator("tr")).to_have_text(
        ['note"fiZWSPne"string', 'sku"TP-4410"string']
    )
    await expect(console.card.locator(".warn")).to_contain_text("1 invisible character in note")
    await expect(console.card).to_contain_text("Tell the number of orders")
    assert not await console.scrolls_sideways()
    await page.reload()
    await expect(console.card.locator(".levels li")).to_have_count(2)
    await console.press("APPROVE_TOOL")

    await console.has_status("Completed")
    await expect(console.card).to_have_count(0)
    await expect(console.answer).to_contain_text("148 orders")
    await expect(page.locator(".mark")).to_contain_text(["for approval. Approved by"] * 2)


async def test_a_press_that_comes_too_late_is_one_line_of_news(new_console: NewConsole) -> None:
    console = await new_console(agent="approving", width=390)
    await console.send(ASK)
    await console.has_status(WAITS)
    console.expects(r"\b409\b")

    async def somebody_is_faster(route: Route) -> None:
        other = await console.page.request.post(
            route.request.url, data=route.request.post_data_json
        )
        assert other.status == 202, await other.text()
        await route.continue_()

    await console.page.route("**/resume", somebody_is_faster, times=1)
    await console.press("APPROVE_TOOL")

    news = console.page.locator(".gone:not([hidden])")
    await expect(news).to_contain_text("Already approved by")
    await expect(news).to_contain_text("Your press changed nothing.")
    await expect(console.card.locator(".levels li")).to_have_count(2)
    await expect(console.card.locator("[data-command=APPROVE_TOOL]")).to_be_enabled()


async def test_a_rejection_needs_a_reason_and_the_agent_goes_on(new_console: NewConsole) -> None:
    console = await new_console(agent="approving", width=390, dark=True)
    page = console.page
    await console.send(ASK)
    await console.has_status(WAITS)

    await console.press("REJECT_TOOL")
    reason = console.card.get_by_label("Reason, the agent reads it")
    await expect(reason).to_be_focused()
    await console.press("REJECT_TOOL")
    await expect(console.card.get_by_role("alert")).to_have_text("Say why; the agent reads it.")
    await reason.press("Escape")
    await expect(console.card.locator("[data-command=REJECT_TOOL]")).to_be_focused()
    await console.press("REJECT_TOOL")
    await reason.fill("Not today.")
    assert not await console.scrolls_sideways()
    await console.press("REJECT_TOOL")

    await console.has_status("Completed")
    await expect(page.locator(".mark").first).to_contain_text("“Not today.”")
    await expect(page.locator(".call.rejected .say")).to_contain_text("Rejected by")


async def test_what_waits_together_is_answered_in_any_order(new_console: NewConsole) -> None:
    console = await new_console(agent="together")
    await console.send(ASK)
    await expect(console.card).to_have_count(2)
    await expect(console.card.locator("[data-command=CANCEL]")).to_have_count(1)
    await expect(console.page.locator(".will")).to_contain_text("Sending gives all of this up.")

    outside = console.card.nth(1)
    await outside.locator("[data-command=TOOL_RESULT]").click()
    await outside.get_by_label("The result").fill('{"units": 212}')
    await outside.locator("[data-command=TOOL_RESULT]").click()
    await expect(console.card).to_have_count(1)
    await console.press("APPROVE_TOOL")
    await expect(console.card.locator(".levels li")).to_have_count(2)
    await console.press("APPROVE_TOOL")
    await console.has_status("Completed")
    await expect(console.answer).to_contain_text("148 orders, 212 units")


async def test_a_message_withdraws_the_request(new_console: NewConsole) -> None:
    approving, outside = await asyncio.gather(
        new_console(agent="approving"), new_console(agent="outside", width=390)
    )
    await asyncio.gather(
        _says_something_else(approving, WAITS),
        _says_something_else(outside, "Waiting for an outside tool"),
    )
    row = outside.page.locator(".call.unknown")
    await row.locator("summary").click()
    await expect(row).to_contain_text("was told that the result is no longer wanted")


async def _says_something_else(console: Console, status: str) -> None:
    await console.send(ASK)
    await console.has_status(status)
    await console.send("thanks")
    await console.has_status("Completed")
    await expect(console.card).to_have_count(0)
    await expect(console.page.locator(".mark").first).to_contain_text("Given up at")
