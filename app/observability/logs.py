"""Log lines: our own and those of the libraries, in one form, to standard error."""

import logging
import sys
import traceback
from typing import Literal, TextIO

import structlog
from structlog.typing import ExcInfo, Processor

from app.turn.causes import causes

_QUIET = ("alembic", "asyncio", "httpx", "httpcore", "uvicorn")


def configure_logging(*, level: str, form: Literal["console", "json"]) -> None:
    """From here on, lines of at least `level` go to standard error, one event a line."""
    common: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.StackInfoRenderer(),
    ]
    structlog.configure(
        processors=[*common, structlog.stdlib.ProcessorFormatter.wrap_for_formatter],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=True,
    )
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(foreign_pre_chain=common, processors=_renderers(form))
    )
    logging.basicConfig(handlers=[handler], level=level.upper(), force=True)
    for name in _QUIET:
        logging.getLogger(name).setLevel(logging.WARNING)


def _renderers(form: Literal["console", "json"]) -> list[Processor]:
    strip = structlog.stdlib.ProcessorFormatter.remove_processors_meta
    if form == "json":
        faults = structlog.processors.ExceptionRenderer(_kinds_and_places)
        return [strip, faults, structlog.processors.JSONRenderer()]
    colors = sys.stderr.isatty()
    return [strip, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=_written)]


def _written(out: TextIO, exc_info: ExcInfo) -> None:
    out.write(_kinds_and_places(exc_info))


def _kinds_and_places(exc_info: ExcInfo) -> str:
    """What was raised and where, innermost last, without what it says.

    The words of an exception, like the local variables around it, may be what people said, what a
    provider answered, or a secret: pydantic quotes its input, a driver its parameters.
    """
    told = [
        f"{type(error).__module__}.{type(error).__qualname__}\n"
        + "".join(traceback.format_tb(error.__traceback__))
        for error in causes(exc_info[1])
    ]
    return "came from\n".join(told).rstrip()
