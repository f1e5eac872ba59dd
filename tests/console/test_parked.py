"""A call whose process died in its midst: a person says what became of it."""

import asyncio

from playwright.async_api import expect

from tests.console.conftest import NewConsole
from tests.console.pages import Console
from tests.console.served import ServedService

ASK = "What about TP-4410?"
WAITS = "Waiting for approval"


async def test_a_call_that_was_lost_in_its_midst_is_answered_in_one_of_three_ways(
    new_console: NewConsole, service: ServedService
) -> None:
    consoles = await asyncio.gather(
        new_console(agent="parking"),
        new_console(agent="parking", width=390, dark=True),
        new_console(agent="parking"),
    )
    for console in consoles:
        console.expects(r"ERR_|Failed to load|NetworkError|502|503")
        await console.send(ASK)
        await expect(console.page.locator(".call.running")).to_have_count(1)
    await service.kill()
    await service.start()
    for console in consoles:
        await console.has_status(WAITS, within_seconds=30)
        await _is_told_of(console)
    done, not_done, given_up = consoles

    await done.press("TOOL_RESULT")
    await done.card.get_by_label("The result").fill('{"sku": "TP-4410", "orders": 7}')
    await done.press("TOOL_RESULT")
    await not_done.press("APPROVE_TOOL")
    await given_up.press("REJECT_TOOL")
    await given_up.card.get_by_label("What you found").fill("The archive is closed.")
    await given_up.press("REJECT_TOOL")

    for console in consoles:
        await console.has_status("Completed")
        await expect(console.card).to_have_count(0)
    await expect(done.answer).to_contain_text("7 orders")
    await expect(not_done.answer).to_contain_text("148 orders")
    await given_up.page.locator(".call.unknown summary").click()
    await expect(given_up.page.locator(".call.unknown")).to_contain_text("The archive is closed.")


async def _is_told_of(console: Console) -> None:
    await expect(console.card.locator("h2")).to_have_text("What became of orders_search?")
    await expect(console.card).to_contain_text("It may or may not have taken effect")
    await expect(console.card.locator(".facts")).to_contain_text("Attempt1")
    await expect(console.page.locator(".call.unknown .say")).to_have_text("Outcome unknown")
    await expect(console.page.locator(".will")).to_contain_text("outcome unknown")
    await expect(console.card.locator("tr")).to_have_text(['sku"TP-4410"string'])
    assert not await console.scrolls_sideways()
