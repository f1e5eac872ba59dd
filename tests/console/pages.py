"""The page as a reader uses it, and as a strict reader of its console would."""

import re

from playwright.async_api import ConsoleMessage, Error, Locator, Page, Request, Response, expect

MAIN_STORY = "What about TP-4410?\n/outage quota"
CUT_STORY = "What about TP-4410?\n/outage cut"


class Console:
    """One open page. `troubles` collects what must not happen; `expects` what a test provokes."""

    def __init__(self, page: Page, origin: str) -> None:
        self.page = page
        self.origin = origin
        self.expected: list[re.Pattern[str]] = []
        self.troubles: list[str] = []
        page.on("console", self._on_console)
        page.on("pageerror", self._on_page_error)
        page.on("requestfailed", self._on_request_failed)
        page.on("response", self._on_response)

    def expects(self, pattern: str) -> None:
        """The browser itself writes an error for every status above 399 and every lost line."""
        self.expected.append(re.compile(pattern))

    async def open(self, at: str = "") -> None:
        """Opens the page, at a fragment of its address."""
        await self.page.goto(self.origin + at)
        await self.page.locator("#app:not([hidden]), #signin:not([hidden])").wait_for()

    async def close(self) -> None:
        """Closes the page; what it kept in the browser goes with it."""
        await self.page.evaluate("localStorage.clear()")
        await self.page.close()

    @property
    def message(self) -> Locator:
        return self.page.locator("#message")

    @property
    def status(self) -> Locator:
        return self.page.locator(".thread-head .chip")

    @property
    def answer(self) -> Locator:
        return self.page.locator(".step .prose").last

    @property
    def card(self) -> Locator:
        return self.page.locator(".card.open:not([hidden])")

    @property
    def retry(self) -> Locator:
        return self.page.locator("[data-command=RETRY_MODEL]")

    @property
    def stop(self) -> Locator:
        return self.page.locator(".composer [data-command=PAUSE]")

    @property
    def resume(self) -> Locator:
        """The main button of the card; the composer has one as well."""
        return self.card.locator("[data-command=RESUME]")

    @property
    def waiting(self) -> Locator:
        """The rows of messages that wait for their turn."""
        return self.page.locator(".composer .queue li")

    async def press(self, command: str) -> None:
        """Presses a button of the card that is open; of several cards the first."""
        await self.card.locator(f"[data-command={command}]").first.click()

    async def steers(self) -> None:
        """What is sent next is said at the turn's next boundary."""
        await self.page.get_by_role("radio", name="Steer").check()

    async def cancel_from_the_composer(self) -> None:
        """A turn at work ends; it is asked once more."""
        await self.page.locator(".composer [data-command=CANCEL]").click()
        await self.page.locator("[data-command=CANCEL_FINALLY]").click()
        await self.has_status("Cancelled")

    async def send(self, text: str) -> None:
        await self.message.fill(text)
        await self.message.press("Enter")
        await expect(self.message).to_have_value("")

    async def has_status(self, word: str, *, within_seconds: float = 15) -> None:
        await expect(self.status).to_have_text(word, timeout=within_seconds * 1000)

    async def scrolls_sideways(self) -> bool:
        """Whether the page, or a part of it that scrolls, is wider than what is to be seen."""
        script = """() => {
            const parts = document.querySelectorAll("html, .scroll, .conv-list");
            return [...parts].some((part) => part.scrollWidth > part.clientWidth);
        }"""
        return bool(await self.page.evaluate(script))

    def _note(self, trouble: str) -> None:
        if not any(pattern.search(trouble) for pattern in self.expected):
            self.troubles.append(trouble)

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self._note(f"console {message.type}: {message.text}")

    def _on_page_error(self, error: Error) -> None:
        self._note(f"page error: {error}")

    def _on_request_failed(self, request: Request) -> None:
        # A stream that the page itself lets go of is no failure.
        if request.failure != "net::ERR_ABORTED":
            self._note(f"request failed: {request.url} {request.failure}")

    def _on_response(self, response: Response) -> None:
        if response.status >= 400:
            self._note(f"response: {response.status} {response.url}")
