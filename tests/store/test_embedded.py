import asyncio
import os
import signal
from collections.abc import Generator
from pathlib import Path

import pytest

from app.store import embedded
from tests.store.embedded_children import (
    Child,
    changed,
    closed_folder,
    drafts,
    environment_of,
    mode_of,
    postmaster_pid,
    runs,
    stranger,
)
from tests.support.folders import reachable_folder
from tests.support.polling import wait_for
from tests.support.postgres import query


@pytest.fixture
def new_dir() -> Generator[Path]:
    """Where nothing has been started yet."""
    with reachable_folder() as folder:
        yield folder / "data"


@pytest.fixture(scope="module")
def data_dir() -> Generator[Path]:
    """Where a server was started before; every test leaves it stopped."""
    with reachable_folder() as folder:
        yield folder / "data"


async def test_a_start_gives_a_real_and_durable_server_without_a_port(new_dir: Path) -> None:
    async with embedded.running(new_dir) as server:
        version = await query(server.dsn, "SHOW server_version_num")
        durable = await query(server.dsn, "SHOW fsync")
        autovacuum = await query(server.dsn, "SHOW autovacuum")
        addresses = await query(server.dsn, "SHOW listen_addresses")

    assert 18_00_00 <= int(version) < 19_00_00
    assert (durable, autovacuum, addresses) == ("on", "on", "")


async def test_what_was_written_is_there_after_a_stop_and_a_start(data_dir: Path) -> None:
    async with embedded.running(data_dir, fsync=False) as server:
        await query(server.dsn, "CREATE TABLE written AS SELECT 7 AS n")

    async with embedded.running(data_dir, fsync=False) as server:
        assert await query(server.dsn, "SELECT n FROM written") == 7


async def test_the_server_lives_until_its_last_user_stops(data_dir: Path) -> None:
    first = await embedded.start(data_dir, fsync=False)
    second = await embedded.start(data_dir, fsync=False)
    pid = postmaster_pid(data_dir)

    assert (first.adopted, second.adopted) == (False, True)
    assert await first.stop() is False
    assert await query(second.dsn, "SELECT 1") == 1
    assert await second.stop() is True
    assert not runs(pid)


async def test_a_second_stop_does_nothing(data_dir: Path) -> None:
    first = await embedded.start(data_dir, fsync=False)
    second = await embedded.start(data_dir, fsync=False)

    assert await first.stop() is False
    assert await first.stop() is False
    assert await query(second.dsn, "SELECT 1") == 1

    await second.stop()


async def test_a_server_left_by_a_kill_is_adopted_and_ended_by_the_next_stop(
    data_dir: Path,
) -> None:
    with Child(data_dir) as child:
        await query(child.dsn(), "CREATE TABLE kept AS SELECT 7 AS n")
        pid = postmaster_pid(data_dir)
        child.kill()

    assert runs(pid)

    server = await embedded.start(data_dir, fsync=False)

    assert server.adopted
    assert postmaster_pid(data_dir) == pid
    assert await query(server.dsn, "SELECT n FROM kept") == 7
    assert await server.stop() is True
    assert not runs(pid)


async def test_processes_that_start_at_the_same_moment_share_one_server(new_dir: Path) -> None:
    with Child(new_dir) as one, Child(new_dir) as two:
        server = await embedded.start(new_dir, fsync=False)
        began = "SELECT pg_postmaster_start_time()::text"
        starts = {await query(dsn, began) for dsn in (server.dsn, one.dsn(), two.dsn())}
        pid = postmaster_pid(new_dir)

        assert len(starts) == 1
        assert await server.stop() is False
        assert (one.stop(), two.stop()) == (0, 0)
        assert not runs(pid)


async def test_a_first_start_killed_within_initdb_is_begun_again(new_dir: Path) -> None:
    with Child(new_dir) as child:
        wait_for(lambda: drafts(new_dir))
        child.kill()

    async with embedded.running(new_dir, fsync=False) as server:
        assert await query(server.dsn, "SELECT 1") == 1


async def test_leavings_of_an_interrupted_initdb_are_cleared_away(new_dir: Path) -> None:
    (new_dir / "postgres.new-left/base").mkdir(parents=True)
    (new_dir / "postgres").mkdir()

    async with embedded.running(new_dir, fsync=False):
        assert drafts(new_dir) == []


async def test_a_server_killed_in_its_work_comes_up_again(data_dir: Path) -> None:
    server = await embedded.start(data_dir, fsync=False)
    await query(server.dsn, "CREATE TABLE committed AS SELECT 7 AS n")
    os.kill(postmaster_pid(data_dir), signal.SIGKILL)

    async with embedded.running(data_dir, fsync=False) as next_server:
        assert not next_server.adopted
        assert await query(next_server.dsn, "SELECT n FROM committed") == 7
    assert await server.stop() is True


async def test_a_stale_pid_that_another_process_now_has_bars_no_start(data_dir: Path) -> None:
    async with embedded.running(data_dir, fsync=False) as server:
        owner = server.cluster.account.uid
        pid_file = data_dir / "postgres/postmaster.pid"
        lines = pid_file.read_text().splitlines(keepends=True)
    with stranger(owner) as process:
        pid_file.write_text("".join([f"{process.pid}\n", *lines[1:]]))

        async with embedded.running(data_dir, fsync=False) as server:
            assert await query(server.dsn, "SELECT 1") == 1

        assert runs(process.pid)
        process.kill()


@pytest.mark.parametrize("name", ["long" * 30, "a 'quoted', \"odd\": $HOME/näme"])
async def test_a_folder_no_socket_can_have_as_its_address_gets_a_private_one_elsewhere(
    new_dir: Path, name: str
) -> None:
    async with embedded.running(new_dir / name, fsync=False) as server:
        setting = await query(server.dsn, "SHOW unix_socket_directories")
        elsewhere = Path(setting.strip('"'))

        assert new_dir not in elsewhere.parents
        assert mode_of(elsewhere) == 0o700
    assert mode_of(elsewhere) is None


async def test_a_data_folder_behind_a_closed_one_is_refused_by_the_name_of_that(
    new_dir: Path,
) -> None:
    closed = closed_folder(new_dir)

    with pytest.raises(embedded.EmbeddedPostgresError, match=f"cannot enter {closed} on the way"):
        await embedded.start(closed / "below/data", fsync=False)


async def test_a_folder_that_holds_something_else_is_left_alone(new_dir: Path) -> None:
    (new_dir / "postgres").mkdir(parents=True)
    (new_dir / "postgres/letter.txt").write_text("mine")

    with pytest.raises(embedded.EmbeddedPostgresError, match="version is none: move it away"):
        await embedded.start(new_dir, fsync=False)

    assert [path.name for path in (new_dir / "postgres").iterdir()] == ["letter.txt"]


async def test_the_data_of_another_version_are_refused(data_dir: Path) -> None:
    async with embedded.running(data_dir, fsync=False):
        pass

    with (
        changed(data_dir / "postgres/PG_VERSION", "15\n"),
        pytest.raises(embedded.EmbeddedPostgresError, match="its version is 15"),
    ):
        await embedded.start(data_dir, fsync=False)


async def test_a_server_that_cannot_start_says_its_last_words(data_dir: Path) -> None:
    async with embedded.running(data_dir, fsync=False):
        pass

    with (
        changed(data_dir / "postgres/postgresql.conf", "{before}\nwork_mem = 'plenty'\n"),
        pytest.raises(embedded.EmbeddedPostgresError, match="work_mem"),
    ):
        await embedded.start(data_dir, fsync=False)


async def test_the_server_sees_nothing_of_our_environment(data_dir: Path) -> None:
    with Child(data_dir, OPENAI_API_KEY="sk-hunter2", PGPORT="1", PGDATA="/nonexistent") as child:
        assert await query(child.dsn(), "SELECT 1") == 1
        seen = environment_of(postmaster_pid(data_dir))

        assert b"hunter2" not in seen
        assert b"PGPORT" not in seen
        assert child.stop() == 0


async def test_its_logs_hold_no_statement_and_no_row(data_dir: Path) -> None:
    async with embedded.running(data_dir, fsync=False) as server:
        await query(server.dsn, "CREATE TABLE seen (word text PRIMARY KEY)")
        await query(server.dsn, "INSERT INTO seen VALUES ('hunter2')")
        with pytest.raises(Exception, match="duplicate key"):
            await query(server.dsn, "INSERT INTO seen VALUES ('hunter2')")
        logs = [*(data_dir / "postgres/log").iterdir(), data_dir / "postgres/startup.log"]

    written = "".join(log.read_text() for log in logs)
    assert "duplicate key" in written
    assert "hunter2" not in written


async def test_many_starts_within_one_process_are_as_safe(data_dir: Path) -> None:
    servers = await asyncio.gather(*(embedded.start(data_dir, fsync=False) for _ in range(5)))
    ends = [await server.stop() for server in servers]

    assert [server.adopted for server in servers].count(False) == 1
    assert ends == [False, False, False, False, True]
