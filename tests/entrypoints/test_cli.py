from collections.abc import AsyncGenerator, Generator
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from app.store import migrations
from app.store.inspection import inspect
from tests.entrypoints.command import Command
from tests.store.embedded_children import postmaster_pid, runs
from tests.support.folders import reachable_folder
from tests.support.postgres import PostgresServer, query

A_LEFT_OVER_WAIT = """
WITH c AS (
    INSERT INTO conversations VALUES ('default', 'c1', 'ann', 'clerk', '', now(), now())
)
INSERT INTO turns (turn_id, tenant_id, conversation_id, agent_id, agent_version, status, version,
                   body, created_at, updated_at, stop_requested, claim_epoch, waiting_since)
VALUES ('t1', 'default', 'c1', 'clerk', '1', 'CANCELLED', 1, '{}', now(), now(), false, 0, now())
"""
ANY_PORT = {"TURNKEEPER_PORT": "0", "TURNKEEPER_WORKER_HEALTH_PORT": "0"}


@pytest.fixture
def data_dir() -> Generator[Path]:
    with reachable_folder() as folder:
        yield folder / "data"


@pytest.fixture
async def empty_dsn(postgres_server: PostgresServer) -> AsyncGenerator[str]:
    dsn = await postgres_server.empty_database()
    yield dsn
    await postgres_server.drop_database(dsn)


def _livez(url: str) -> int:
    place = urlsplit(url)
    return httpx.get(f"{place.scheme}://{place.netloc}/livez").status_code


def test_a_wrong_setting_is_told_in_one_line() -> None:
    with Command("serve", TURNKEEPER_PORT="eighty") as command:
        status, printed = command.ended()

    assert status == 1
    assert printed.startswith("turnkeeper: TURNKEEPER_PORT: ")
    assert "Traceback" not in printed


def test_a_database_out_of_reach_is_told_without_its_password(tmp_path: Path) -> None:
    dsn = "postgresql://someone:hunter2@127.0.0.1:1/turnkeeper"
    with Command(
        "serve", DATABASE_URL=dsn, TURNKEEPER_DATA_DIR=str(tmp_path), **ANY_PORT
    ) as command:
        status, printed = command.ended()

    assert status == 1
    assert "turnkeeper: no connection to PostgreSQL at 127.0.0.1:1" in printed
    assert "hunter2" not in printed


async def test_serve_migrates_and_prints_the_url_once_it_listens(
    empty_dsn: str, tmp_path: Path
) -> None:
    folder = str(tmp_path)
    with Command(
        "serve", DATABASE_URL=empty_dsn, TURNKEEPER_DATA_DIR=folder, **ANY_PORT
    ) as command:
        url = command.ready_url()

        assert urlsplit(url).fragment.startswith("login=")
        assert _livez(url) == 200
        assert command.stop() == 0
    assert (await inspect(empty_dsn)).revision == migrations.head()


def test_a_worker_by_itself_answers_on_a_port_of_its_own(database_dsn: str, tmp_path: Path) -> None:
    folder = str(tmp_path)
    with Command(
        "worker", DATABASE_URL=database_dsn, TURNKEEPER_DATA_DIR=folder, **ANY_PORT
    ) as command:
        url = command.ready_url()

        assert url.endswith("/livez")
        assert _livez(url) == 200
        assert command.stop() == 0


async def test_migrate_brings_an_empty_database_to_the_newest_revision(empty_dsn: str) -> None:
    with Command("migrate", DATABASE_URL=empty_dsn) as command:
        status, printed = command.ended()

    assert (status, printed) == (0, f"The database is at revision {migrations.head()}.\n")
    assert (await inspect(empty_dsn)).revision == migrations.head()


def test_a_server_killed_and_started_again_takes_its_database_over_and_ends_it(
    data_dir: Path,
) -> None:
    embedded = {**ANY_PORT, "TURNKEEPER_DATA_DIR": str(data_dir)}
    with Command("serve", **embedded) as command:
        command.ready_url()
        pid = postmaster_pid(data_dir)
        command.kill()
    with Command("serve", **embedded) as command:
        command.ready_url()

        assert postmaster_pid(data_dir) == pid
        assert command.stop() == 0
    assert not runs(pid)


def test_the_doctor_finds_nothing_where_all_is_well(database_dsn: str, tmp_path: Path) -> None:
    with Command("doctor", DATABASE_URL=database_dsn, TURNKEEPER_DATA_DIR=str(tmp_path)) as command:
        status, printed = command.ended()

    assert status == 0
    assert {line.split()[0] for line in printed.splitlines()} == {"ok"}
    assert f"schema at revision {migrations.head()}" in printed
    assert "waits: none is left" in printed


async def test_the_doctor_finds_waits_that_are_left_of_a_turn_that_has_ended(
    database_dsn: str, tmp_path: Path
) -> None:
    await query(database_dsn, A_LEFT_OVER_WAIT)  # which no commit of ours could make

    with Command("doctor", DATABASE_URL=database_dsn, TURNKEEPER_DATA_DIR=str(tmp_path)) as command:
        status, printed = command.ended()

    assert status == 1
    assert "problem  waits: 1 are left of what has ended" in printed


def test_the_doctor_names_each_problem_and_its_remedy(tmp_path: Path) -> None:
    with Command(
        "doctor",
        DATABASE_URL="postgresql://someone:hunter2@127.0.0.1:1/turnkeeper",
        TURNKEEPER_DATA_DIR=str(tmp_path),
        TURNKEEPER_AGENT="mycompany.agents:agents",
        TURNKEEPER_AGENTS="no_such_module:agents",
        TURNKEEPER_MODEL="gpt-5",
    ) as command:
        status, printed = command.ended()

    assert status == 1
    assert "TURNKEEPER_AGENT is no setting: is TURNKEEPER_AGENTS meant?" in printed
    assert "no module 'no_such_module'" in printed
    assert "gpt-5 needs OPENAI_API_KEY or OPENAI_BASE_URL" in printed
    assert "no connection to PostgreSQL at 127.0.0.1:1" in printed
    assert "hunter2" not in printed
