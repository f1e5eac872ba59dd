"""Log lines: our own and those of the libraries, in one form, to standard error."""

import logging
import sys
from typing import Literal

import structlog
from structlog.typing import Processor

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
        return [strip, structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    # The renderer's own tracebacks show local variables: tokens, and what people said.
    plain = structlog.dev.plain_traceback
    colors = sys.stderr.isatty()
    return [strip, structlog.dev.ConsoleRenderer(colors=colors, exception_formatter=plain)]
