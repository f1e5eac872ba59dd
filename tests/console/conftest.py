import asyncio
import secrets
import shutil
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator, Mapping
from dataclasses import dataclass
from typing import TypeAlias

import pytest
from playwright.async_api import (
    APIRequestContext,
    Browser,
    BrowserContext,
    StorageState,
    async_playwright,
)

from tests.console.pages import CUT_STORY, MAIN_STORY, Console
from tests.console.served import ServedService
from tests.support.postgres import PostgresServer
from tests.support.provider import running_provider

NewConsole: TypeAlias = Callable[..., Awaitable[Console]]

_PLAIN = 6
_WORDS_PER_SECOND = 100.0
"""Three times a person's pace; /slow lasts 12 seconds."""

_FLAGS = [
    "--no-sandbox",  # root may not have one, and the page is our own
    "--headless",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """Ids of conversations whose turn waits for the model."""

    plain: list[str]
    """The main story, each to be used by one test."""
    cut: str = "waiting-cut"
    """Its answer broke off in the middle."""
    wide: str = "waiting-wide"
    """Its message is one word of 320 letters, and the time of a retry is known."""


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """A test that fails tells what the service said last: the page shows only that it is away."""
    report = yield
    served = getattr(item, "funcargs", {}).get("service")
    if report.failed and isinstance(served, ServedService):
        report.sections.append(("the service's log", served.said_last()))
    return report


def _chromium() -> str:
    names = ("chromium", "chromium-browser", "google-chrome")
    found = next(filter(None, map(shutil.which, names)), None)
    if found is None:
        pytest.skip("chromium is missing")
    return found


@pytest.fixture(scope="session")
async def launched() -> AsyncGenerator[asyncio.Task[Browser]]:
    """The browser, on its way while the service starts."""
    path = _chromium()
    async with async_playwright() as playwright:
        launching = playwright.chromium.launch(executable_path=path, args=_FLAGS)
        task = asyncio.create_task(launching)
        yield task
        await (await task).close()


@pytest.fixture(scope="session")
async def browser(launched: asyncio.Task[Browser]) -> Browser:
    return await launched


@pytest.fixture(scope="session")
async def service(
    launched: asyncio.Task[Browser],
    postgres_server: PostgresServer,
    tmp_path_factory: pytest.TempPathFactory,
) -> AsyncGenerator[ServedService]:
    del launched  # it has begun, and that is enough
    dsn = await postgres_server.fresh_database()
    async with running_provider(words_per_second=_WORDS_PER_SECOND) as provider:
        served = ServedService(dsn, tmp_path_factory.mktemp("console"), provider.base_url)
        await served.start()
        yield served
        await served.kill()
    await postgres_server.drop_database(dsn)


@pytest.fixture(scope="session")
async def signed_in(browser: Browser, service: ServedService) -> StorageState:
    """The cookies of somebody who opened the address that the service printed: it works once."""
    context = await browser.new_context()
    page = await context.new_page()
    await page.goto(service.url)
    await page.locator("#message").wait_for()
    assert "#login" not in page.url
    state = await context.storage_state()
    await context.close()
    return state


@pytest.fixture(scope="session")
async def on_the_way(
    browser: Browser, service: ServedService, signed_in: StorageState
) -> AsyncGenerator[asyncio.Task[Waiting]]:
    """Begun as soon as there is a service: a turn takes a human pace until it waits."""
    context = await browser.new_context(storage_state=signed_in)
    task = asyncio.create_task(_all_brought_to_wait(context.request, service.url.split("#")[0]))
    yield task
    await task
    await context.close()


@pytest.fixture
async def waiting(on_the_way: asyncio.Task[Waiting]) -> Waiting:
    return await on_the_way


async def _all_brought_to_wait(http: APIRequestContext, origin: str) -> Waiting:
    found = Waiting(plain=[f"waiting-{number}" for number in range(_PLAIN)])
    messages = dict.fromkeys(found.plain, MAIN_STORY) | {
        found.cut: CUT_STORY,
        found.wide: f"{'unbroken' * 40} TP-4410\n/outage rate",
    }
    await asyncio.gather(*(_bring_to_wait(http, origin, *message) for message in messages.items()))
    return found


async def _bring_to_wait(
    http: APIRequestContext, origin: str, conversation_id: str, content: str
) -> None:
    address = f"{origin}conversations/{conversation_id}"
    # The provider counts its outages by what was said: nobody may say the same as another.
    body = {"content": f"{content}\n({conversation_id})", "messageId": f"{conversation_id}-1"}
    sent = await http.post(f"{address}/messages", data=body)
    assert sent.status == 202, await sent.text()
    for _ in range(300):
        found = await (await http.get(address)).json()
        if found["activeTurn"]["status"] == "WAITING_FOR_MODEL":
            return
        await asyncio.sleep(0.05)  # between two looks
    pytest.fail(f"{conversation_id} does not wait")


@pytest.fixture(scope="session")
async def contexts(
    browser: Browser, signed_in: StorageState
) -> AsyncGenerator[Mapping[bool, BrowserContext]]:
    """Who is signed in, without a touch screen (False) and with one: a context takes its time."""
    made = {
        has_touch: await browser.new_context(storage_state=signed_in, has_touch=has_touch)
        for has_touch in (False, True)
    }
    yield made
    for context in made.values():
        await context.close()


async def _begun_with(http: APIRequestContext, origin: str, agent: str) -> str:
    """An empty conversation with this agent, where the page would choose the first one."""
    conversation_id = f"{agent}-{secrets.token_hex(4)}"
    answer = await http.put(f"{origin}conversations/{conversation_id}", data={"agentId": agent})
    assert answer.status == 201, await answer.text()
    return conversation_id


@pytest.fixture
async def new_console(
    contexts: Mapping[bool, BrowserContext],
    service: ServedService,
    on_the_way: asyncio.Task[Waiting],
) -> AsyncGenerator[NewConsole]:
    """Opens the page as a reader who is signed in; at the end nothing may have gone wrong in it."""
    del on_the_way  # it has begun, and that is enough
    opened: list[Console] = []

    async def open_one(
        *,
        width: int = 1280,
        at: str = "#new",
        dark: bool = False,
        agent: str | None = None,
        context: BrowserContext | None = None,
    ) -> Console:
        within = context or contexts[width < 720]
        origin = service.url.split("#")[0]
        if agent is not None:
            at = f"#c={await _begun_with(within.request, origin, agent)}"
        page = await within.new_page()
        console = Console(page, origin)
        opened.append(console)
        await page.set_viewport_size({"width": width, "height": 844})
        # What moves is drawn sixty times a second, without a graphics card: the tests' own time.
        await page.emulate_media(color_scheme="dark" if dark else "light", reduced_motion="reduce")
        await console.open(at)
        return console

    yield open_one
    await asyncio.gather(*(console.close() for console in opened))
    assert [trouble for console in opened for trouble in console.troubles] == []


@pytest.fixture
async def context_apart(
    browser: Browser, signed_in: StorageState
) -> AsyncGenerator[BrowserContext]:
    """For a test that changes more than its page, the clock for example."""
    context = await browser.new_context(storage_state=signed_in)
    yield context
    await context.close()


@pytest.fixture
async def console(new_console: NewConsole) -> Console:
    return await new_console()


@pytest.fixture
async def waiting_console(new_console: NewConsole, waiting: Waiting) -> Console:
    """The page on a turn that waits for the model, with three results kept."""
    console = await new_console(at=f"#c={waiting.plain.pop()}")
    await console.has_status("Waiting for model")
    return console


@pytest.fixture(scope="module")
async def bench(
    browser: Browser, service: ServedService, signed_in: StorageState
) -> AsyncGenerator[Console]:
    """A page to call the modules in; nothing is done with it.

    It is gone before another file stops the service under it.
    """
    context = await browser.new_context(storage_state=signed_in)
    console = Console(await context.new_page(), service.url.split("#")[0])
    await console.open("#new")
    yield console
    assert console.troubles == []
    await context.close()
