"""Forms, outside calls and the inbox, as a reader uses them."""

from playwright.async_api import expect

from tests.console.conftest import NewConsole, Waiting

ASK = "What about TP-4410?"


async def test_a_form_is_filled_in_with_its_errors_where_they_are(new_console: NewConsole) -> None:
    console = await new_console(agent="filling", width=390)
    page, card = console.page, console.card
    console.expects(r"\b422\b")
    await console.send(ASK)
    await console.has_status("Waiting for you")
    await expect(card.locator("h2")).to_have_text("Which orders to count")
    await expect(card).to_contain_text("There are many orders.")
    await expect(page.locator(".call.asks .say")).to_have_text("Waiting for your answer")

    await console.press("USER_INPUT")
    summary = card.locator(".summary-err")
    await expect(summary).to_be_focused()
    await expect(summary.locator("li")).to_have_text(
        ["Year: This is needed.", "Depot: This is needed."]
    )
    await summary.get_by_role("button", name="Year").click()
    await expect(card.get_by_label("Year")).to_be_focused()

    await card.get_by_label("Year").fill("1999")
    await card.get_by_label("Depot").select_option("Oulu")
    await card.get_by_label("Only those that are paid").check()
    await console.press("USER_INPUT")
    await expect(summary).to_contain_text("1 field needs another look")
    await expect(summary).to_be_focused()
    await expect(card.get_by_label("Year")).to_have_attribute("aria-invalid", "true")
    await expect(card.get_by_label("Depot")).to_have_value("1")
    assert not await console.scrolls_sideways()

    await card.get_by_label("Year").fill("2026")
    await console.press("USER_INPUT")
    await console.has_status("Completed")
    await expect(console.answer).to_contain_text("148 orders")
    await expect(page.locator(".mark").first).to_contain_text("for your answer. Answered at")
    done = page.locator(".call.done", has_text="orders_search")
    await done.locator("summary").click()
    await expect(done).to_contain_text('"depot":"Oulu"')


async def test_an_outside_call_is_shown_and_answered_by_hand(new_console: NewConsole) -> None:
    console = await new_console(agent="outside")
    page, card = console.page, console.card
    await console.send(ASK)
    await console.has_status("Waiting for an outside tool")
    await expect(card.locator("h2")).to_have_text("With an outside tool: orders_search")
    await expect(card).to_contain_text("goes on by itself when the result arrives")
    await expect(page.locator(".call.outside .say")).to_have_text("With an outside tool")
    await card.get_by_text("For the executor").click()
    await expect(card.locator(".ops")).to_contain_text("Size limit64 KB")
    assert not await console.scrolls_sideways()

    await console.press("TOOL_ERROR")
    await card.get_by_role("button", name="Back").click()
    await console.press("TOOL_RESULT")
    await card.get_by_label("The result").fill('{"orders": 12}')
    await console.press("TOOL_RESULT")

    await console.has_status("Completed")
    await expect(console.answer).to_contain_text("12 orders")
    await expect(page.locator(".mark").first).to_contain_text("The result came at")


async def test_the_inbox_shows_what_waits_and_takes_the_answer(
    new_console: NewConsole, waiting: Waiting
) -> None:
    asked = await new_console(agent="approving")
    await asked.send("What about IN-4410?")
    await asked.has_status("Waiting for approval")
    console = await new_console(at="#inbox")
    page = console.page
    card = page.locator(".wait-card")
    rows = page.locator(".wait-row")
    model = rows.filter(has_text=waiting.cut).or_(rows.filter(has_text="waits for the model"))
    await expect(model.first).to_be_visible()
    mine = rows.filter(has_text="IN-4410")
    await expect(mine.locator("b")).to_have_text("Approve orders_search")
    await expect(mine).to_have_count(1)
    await expect(page.locator("#rail-inbox")).to_have_attribute("aria-current", "page")

    await model.first.click()
    await expect(card.locator("[data-command=RETRY_MODEL]")).to_be_visible()
    await page.get_by_role("button", name="Approvals").click()
    await expect(model).to_have_count(0)
    await mine.click()
    await expect(card.locator("tr")).to_have_text(['sku"IN-4410"string'])
    await card.locator("[data-command=APPROVE_TOOL]").click()
    await expect(card.locator(".gone")).to_contain_text("You approved this at")
    await expect(card.locator(".gone")).to_be_focused()
    await expect(mine.filter(has_text="You approved this at")).to_have_count(1)
    again = rows.filter(has_text="Tell the number of orders")  # the tool itself asks now
    await expect(again.first).to_be_visible()
    assert not await console.scrolls_sideways()
    await card.get_by_role("link", name="Open the conversation").click()
    await console.has_status("Waiting for approval")


async def test_on_a_phone_a_row_opens_its_card_and_the_list_comes_back(
    new_console: NewConsole, waiting: Waiting
) -> None:
    del waiting  # something does
    console = await new_console(at="#inbox", width=390, dark=True)
    page = console.page
    await expect(page.locator(".wait-card .card")).to_be_hidden()
    await page.locator(".wait-row", has_text="waits for the model").first.click()
    await expect(page.locator(".wait-card .card")).to_be_visible()
    await expect(page.locator(".waits")).to_be_hidden()
    assert not await console.scrolls_sideways()
    await page.get_by_role("link", name="All that waits").click()
    await expect(page.locator(".waits")).to_be_visible()
    assert not await console.scrolls_sideways()
