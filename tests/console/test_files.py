"""The files of the page, as they are served and as they are written."""

import re
from collections.abc import AsyncGenerator
from importlib.resources import files

import httpx
import pytest
from fastapi import FastAPI

from app.console.router import CONTENT_SECURITY_POLICY, router

STATIC = files("app.console").joinpath("static")
NAMES = sorted(entry.name for entry in STATIC.iterdir())
SCRIPTS = [name for name in NAMES if name.endswith(".js")]


@pytest.fixture
async def client() -> AsyncGenerator[httpx.AsyncClient]:
    app = FastAPI(openapi_url=None)
    app.include_router(router)
    transport = httpx.ASGITransport(app=app)
    async with httpx.AsyncClient(transport=transport, base_url="http://console") as opened:
        yield opened


@pytest.mark.parametrize("path", ["/", *(f"/console/{n}" for n in NAMES if n != "index.html")])
async def test_every_file_is_served_strictly_and_again_by_its_tag(
    client: httpx.AsyncClient, path: str
) -> None:
    first = await client.get(path)
    assert first.status_code == 200
    assert first.headers["content-security-policy"] == CONTENT_SECURITY_POLICY
    assert first.headers["x-content-type-options"] == "nosniff"
    assert first.headers["referrer-policy"] == "no-referrer"
    assert first.headers["cache-control"] == "no-cache"
    etag = first.headers["etag"]
    for known in (etag, f'W/{etag}, "other"'):
        again = await client.get(path, headers={"If-None-Match": known})
        assert (again.status_code, again.content) == (304, b"")
        assert again.headers["content-security-policy"] == CONTENT_SECURITY_POLICY


async def test_media_types(client: httpx.AsyncClient) -> None:
    types = {
        path: (await client.get(path)).headers["content-type"]
        for path in ("/", "/console/main.js", "/console/console.css", "/console/icon.svg")
    }
    assert types == {
        "/": "text/html; charset=utf-8",
        "/console/main.js": "text/javascript; charset=utf-8",
        "/console/console.css": "text/css; charset=utf-8",
        "/console/icon.svg": "image/svg+xml",
    }


@pytest.mark.parametrize(
    "path",
    [
        "/console/index.html",  # the page has one address
        "/console/router.py",
        "/console/..%2Frouter.py",
        "/console/%2e%2e%2frouter.py",
        "/console/static/main.js",
        "/console/",
    ],
)
async def test_nothing_else_is_served(client: httpx.AsyncClient, path: str) -> None:
    assert (await client.get(path)).status_code == 404


def test_the_page_needs_nothing_that_the_policy_forbids() -> None:
    page = STATIC.joinpath("index.html").read_text("utf-8")
    assert not re.search(r"<style|\sstyle=|\son\w+=|<script(?! type=\"module\" src=)", page)
    assert not re.search(r"(?:src|href)=\"(?:https?:)?//", page)


@pytest.mark.parametrize("name", SCRIPTS)
def test_no_script_makes_markup_of_text(name: str) -> None:
    script = STATIC.joinpath(name).read_text("utf-8")
    forbidden = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|DOMParser|srcdoc"
    assert not re.search(forbidden, script)


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_script_is_small_and_imports_what_exists(name: str) -> None:
    script = STATIC.joinpath(name).read_text("utf-8")
    assert len(script.splitlines()) <= 265
    assert set(re.findall(r"from \"\./([^\"]+)\"", script)) <= set(SCRIPTS)
