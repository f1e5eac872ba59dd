"""`turnkeeper doctor`: one line for each thing that must be so, and what to do where it is not."""

import difflib
import os
import platform
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager

from app.agents.errors import AgentError
from app.agents.loading import load_declared
from app.settings import ENV_PREFIX, Settings, environment_variable
from app.store import embedded, migrations
from app.store.embedded.folders import nearest_existing
from app.store.inspection import (
    NEWEST_SUPPORTED,
    OLDEST_SUPPORTED,
    DatabaseFacts,
    DatabaseUnreachableError,
    inspect,
    waits_left,
)

OLDEST_PYTHON = (3, 11)


class ProblemError(Exception):
    """Something keeps the service from running; the message says what to do."""


async def examine(settings: Settings) -> None:
    """Prints a line for each check; ends the process with status 1 when one finds a problem."""
    problems = 0
    for check in (_python, _environment, _data_folder, _agents, _provider_keys):
        problems += _report(check, settings)
    async for line, is_ok in _database(settings):
        problems += _print(line, is_ok=is_ok)
    if problems:
        sys.exit(1)


def _report(check: Callable[[Settings], str], settings: Settings) -> int:
    try:
        return _print(check(settings), is_ok=True)
    except ProblemError as problem:
        return _print(str(problem), is_ok=False)


def _print(line: str, *, is_ok: bool) -> int:
    sys.stdout.write(f"{'ok     ' if is_ok else 'problem'}  {line}\n")
    return 0 if is_ok else 1


def _python(_: Settings) -> str:
    version = platform.python_version()
    if sys.version_info < OLDEST_PYTHON:
        raise ProblemError("Python 3.11 or later is needed, not " + version)
    return f"Python {version}"


def _environment(settings: Settings) -> str:
    known = {environment_variable(name) for name in Settings.model_fields}
    known |= {provider.api_key_env or "" for provider in settings.providers.values()}
    unknown = sorted(n for n in os.environ if n.startswith(ENV_PREFIX) and n not in known)
    if unknown:
        raise ProblemError("; ".join(_guess(name, known) for name in unknown))
    return "settings"


def _guess(name: str, known: set[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.8)
    return f"{name} is no setting" + (f": is {near[0]} meant?" if near else "")


def _data_folder(settings: Settings) -> str:
    folder = settings.data_dir
    existing = nearest_existing(folder)
    if not (existing.is_dir() and os.access(existing, os.W_OK | os.X_OK)):
        message = f"data folder {folder}: {existing} cannot be written; set TURNKEEPER_DATA_DIR"
        raise ProblemError(message)
    return f"data folder {folder}"


def _agents(settings: Settings) -> str:
    if settings.agents is None:
        return "agents: the built-in one; name yours in TURNKEEPER_AGENTS"
    try:
        names = [agent.id for agent in load_declared(settings.agents)]
    except AgentError as error:
        raise ProblemError("agents: " + str(error)) from error
    return f"agents: {', '.join(names)}"


def _provider_keys(settings: Settings) -> str:
    missing = list(_missing_keys(settings))
    if missing:
        raise ProblemError("providers: " + "; ".join(missing))
    if settings.model is None:
        return "providers: none is needed, the scripted demo model answers"
    return f"providers: keys are there for {settings.model}"


def _missing_keys(settings: Settings) -> Iterator[str]:
    for name, provider in settings.providers.items():
        if provider.api_key_env and not os.environ.get(provider.api_key_env):
            yield f"{provider.api_key_env}, the key of {name}, is not set"
    has_default = settings.openai_api_key or settings.openai_base_url
    by_name = settings.model and settings.model.partition("/")[0] in settings.providers
    if settings.model and not by_name and not has_default:
        yield f"{settings.model} needs OPENAI_API_KEY or OPENAI_BASE_URL"


async def _database(settings: Settings) -> AsyncIterator[tuple[str, bool]]:
    try:
        async with _dsn(settings) as dsn:
            facts = await inspect(dsn)
            left = await waits_left(dsn) if facts.revision == migrations.head() else None
    except (DatabaseUnreachableError, embedded.EmbeddedPostgresError) as error:
        yield f"database: {error}", False
        return
    where = "of DATABASE_URL" if settings.database_url else "embedded"
    supported = f"versions {OLDEST_SUPPORTED} to {NEWEST_SUPPORTED} are supported"
    yield f"PostgreSQL {facts.major_version} ({where}; {supported})", facts.is_supported
    yield _schema(facts)
    if left is not None:
        yield _waits(left)


@asynccontextmanager
async def _dsn(settings: Settings) -> AsyncGenerator[str]:
    if settings.database_url is not None:
        yield settings.database_url
        return
    async with embedded.running(settings.data_dir) as server:
        yield server.dsn


def _schema(facts: DatabaseFacts) -> tuple[str, bool]:
    head = migrations.head()
    if facts.revision == head:
        return f"schema at revision {head}", True
    if facts.revision is None:
        return "no schema yet: the first start makes it", True
    return f"schema at {facts.revision}, not {head}: run `turnkeeper migrate`", False


def _waits(left: int) -> tuple[str, bool]:
    if left == 0:
        return "waits: none is left of what has ended", True
    return f"waits: {left} are left of what has ended; please report it", False
