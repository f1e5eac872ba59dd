"""A turn that asks its reader something: the question, the answer, and what stays to be read."""

from playwright.async_api import expect

from tests.console.conftest import NewConsole

QUESTION = "Which year of TP-4410 do you mean?"


async def test_the_question_is_read_and_the_composer_answers_it(new_console: NewConsole) -> None:
    console = await new_console(agent="asking")

    await console.send("What about TP-4410?")
    await console.has_status("Waiting for you")

    await expect(console.answer).to_have_text(QUESTION)
    await expect(console.card.locator("h2")).to_have_text("The agent asks you something")
    await expect(console.card.locator(".kept")).to_contain_text("2 tool results")
    await expect(console.page.locator(".will")).to_contain_text(
        f"Answer: becomes the reply to “{QUESTION}”"
    )
    assert await console.card.locator("[data-command]").count() == 1  # which cancels

    # The demo model takes it for a greeting, and so for the end.
    await console.send("ok")
    await console.has_status("Completed")

    await expect(console.card).to_have_count(0)
    await expect(console.page.locator(".step .prose").nth(-2)).to_have_text(QUESTION)
    await expect(console.page.locator(".step.splice")).to_contain_text("for your answer")
    assert not await console.scrolls_sideways()


async def test_a_question_is_still_there_when_the_page_is_opened_again(
    new_console: NewConsole,
) -> None:
    console = await new_console(agent="asking")
    await console.send("What about TP-4410?")
    await console.has_status("Waiting for you")

    await console.page.reload()

    await expect(console.answer).to_have_text(QUESTION)
    await console.has_status("Waiting for you")
    await console.send("ok")
    await console.has_status("Completed")
    await console.send("thanks")
    await console.page.reload()
    asked = console.page.locator(".step .prose").get_by_text(QUESTION)
    await expect(asked).to_have_count(1)


async def test_a_reader_may_do_something_else_instead_of_answering(
    new_console: NewConsole,
) -> None:
    console = await new_console(agent="asking", width=390)
    await console.send("What about TP-4410?")
    await console.has_status("Waiting for you")

    await console.page.get_by_role("radio", name="Do something else").check()
    await expect(console.page.locator(".will")).to_contain_text(
        "Do something else: The agent reads"
    )
    await console.send("thanks")

    await console.has_status("Completed")
    await expect(console.page.locator(".said")).to_have_count(2)
    await expect(console.page.locator(".mark").first).to_contain_text("Went on with your message")
    assert not await console.scrolls_sideways()
