"""Serves the console: one page and a fixed set of files beside it.

The page reaches the service through the public API alone, so there is nothing here but files.
"""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files
from typing import Annotated, Final

from fastapi import APIRouter, Header, HTTPException, Response

CONTENT_SECURITY_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)

_SECURITY: Final = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}

_MEDIA_TYPES: Final = {
    "html": "text/html; charset=utf-8",
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
}

_PAGE: Final = "index.html"

IfNoneMatch = Annotated[str | None, Header()]


@dataclass(frozen=True, slots=True)
class _File:
    content: bytes
    media_type: str
    etag: str


@cache
def _shelf() -> dict[str, _File]:
    """Every file there is, read once: a name is looked up and never joined to a path."""
    shelf: dict[str, _File] = {}
    for entry in files("app.console").joinpath("static").iterdir():
        media_type = _MEDIA_TYPES.get(entry.name.rpartition(".")[2])
        if media_type is not None:
            content = entry.read_bytes()
            etag = f'"{sha256(content).hexdigest()[:32]}"'
            shelf[entry.name] = _File(content, media_type, etag)
    return shelf


def _known_to(reader: str | None, etag: str) -> bool:
    """Whether the reader's copy is this very file; a proxy that compresses marks the tag weak."""
    tags = {tag.strip().removeprefix("W/") for tag in (reader or "").split(",")}
    return bool(tags & {etag, "*"})


def _answer(name: str, if_none_match: str | None) -> Response:
    file = _shelf().get(name)
    if file is None:
        raise HTTPException(404)
    # Asked again at every load and answered by 304: a page never meets scripts of another version.
    headers = _SECURITY | {"ETag": file.etag, "Cache-Control": "no-cache"}
    if _known_to(if_none_match, file.etag):
        return Response(status_code=304, headers=headers)
    return Response(file.content, media_type=file.media_type, headers=headers)


router = APIRouter(include_in_schema=False)


@router.api_route("/", methods=["GET", "HEAD"])
async def page(if_none_match: IfNoneMatch = None) -> Response:
    """The console itself."""
    return _answer(_PAGE, if_none_match)


@router.api_route("/console/{name}", methods=["GET", "HEAD"])
async def static_file(name: str, if_none_match: IfNoneMatch = None) -> Response:
    """A file of the page; the page has one address only."""
    return _answer("" if name == _PAGE else name, if_none_match)
