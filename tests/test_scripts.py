"""The scripts, run in a copy of the project's outline with a `.venv` of stand-ins."""

import os
import shutil
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import LONGEST_FIRST, TESTS

ROOT = Path(__file__).parents[1]
SCRIPTS = sorted(
    path
    for path in (ROOT / "scripts").iterdir()
    if path.is_file() and path.read_text().startswith(("#!/usr/bin/env bash", "# shellcheck"))
)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project whose `.venv` is complete and whose programs only say what they were asked."""
    shutil.copytree(ROOT / "scripts", tmp_path / "scripts")
    for name in ("requirements.txt", "requirements-dev.txt", "pyproject.toml"):
        shutil.copy(ROOT / name, tmp_path)
    place = tmp_path.resolve() / "app/__init__.py"
    _program(tmp_path / ".venv/bin/python", f"echo {place}")
    for name in ("turnkeeper", "pytest", "ruff", "mypy"):
        _program(tmp_path / f".venv/bin/{name}", f'echo {name} "$@"')
    for name, lock in (("runtime", "requirements.txt"), ("dev", "requirements-dev.txt")):
        stamp = (tmp_path / lock).read_text() + (tmp_path / "pyproject.toml").read_text()
        (tmp_path / f".venv/.turnkeeper-{name}").write_text(stamp)
    return tmp_path


def _program(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(0o755)


def _run(
    project: Path, script: str, *arguments: str, path: Path | None = None
) -> subprocess.CompletedProcess[str]:
    search = f"{path}:/usr/bin:/bin" if path else os.environ["PATH"]
    return subprocess.run(  # noqa: S603  our own scripts
        [project / "scripts" / script, *arguments],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": search},
        cwd="/",
    )


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda path: path.name)
def test_a_script_is_sound_bash_says_what_it_is_for_and_can_be_run(script: Path) -> None:
    _, second, *_ = script.read_text().splitlines()
    checked = subprocess.run(["/bin/bash", "-n", script], check=False, capture_output=True)  # noqa: S603

    assert checked.returncode == 0, checked.stderr
    assert second.startswith("# ")
    if script.name != "_env":
        assert script.stat().st_mode & stat.S_IXOTH


def test_a_complete_environment_is_used_as_it_is(project: Path) -> None:
    ran = _run(project, "serve", "--port", "9000")

    assert (ran.stdout, ran.stderr) == ("turnkeeper serve --port 9000\n", "")


def test_arguments_of_the_test_script_are_those_of_pytest_and_only_that_runs(project: Path) -> None:
    ran = _run(project, "test", "tests/turn", "-k", "retry")

    assert ran.stdout == "pytest tests/turn -k retry\n"


@pytest.mark.parametrize("sign", ["another lock", "interrupted", "another folder", "no program"])
def test_an_incomplete_environment_is_made_anew(project: Path, tmp_path: Path, sign: str) -> None:
    match sign:
        case "another lock":
            (project / ".venv/.turnkeeper-runtime").write_text("of yesterday")
        case "interrupted":
            (project / ".venv/.turnkeeper-incomplete").touch()
        case "another folder":
            _program(project / ".venv/bin/python", "echo /elsewhere/app/__init__.py")
        case _:
            (project / ".venv/bin/turnkeeper").unlink()
    stand_ins = tmp_path / "bin"
    _program(stand_ins / "python3.13", 'echo python "$@" >&2; [ "$2" != venv ]')

    ran = _run(project, "serve", path=stand_ins)

    assert "making .venv with" in ran.stderr
    assert "python3.13 -m venv .venv failed" in ran.stderr
    assert ran.returncode == 1


def test_a_python_without_venv_is_told_with_its_remedy(project: Path, tmp_path: Path) -> None:
    (project / ".venv/.turnkeeper-incomplete").touch()
    stand_ins = tmp_path / "bin"
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        _program(stand_ins / name, 'case "$*" in *ensurepip*) exit 1;; esac')
    _program(stand_ins / "apt-get", "exit 100")

    ran = _run(project, "serve", path=stand_ins)

    assert "lacks the venv module: apt-get install python3-venv" in ran.stderr
    assert ran.returncode == 1


def test_a_machine_without_a_python_of_use_is_told_so(project: Path, tmp_path: Path) -> None:
    (project / ".venv/.turnkeeper-incomplete").touch()
    stand_ins = tmp_path / "bin"
    for name in ("python3.13", "python3.12", "python3.11", "python3"):
        _program(stand_ins / name, "exit 1")

    ran = _run(project, "serve", path=stand_ins)

    assert "Python 3.11 or later is needed" in ran.stderr


def test_ci_runs_the_test_script(project: Path) -> None:
    shutil.copytree(ROOT / ".ci", project / ".ci")

    assert _run(project, "../.ci/run", "tests/turn").stdout == "pytest tests/turn\n"


@pytest.mark.parametrize(("ci", "status"), [("true", 1), ("", 0)])
def test_a_skip_is_counted_aloud_and_fails_only_where_ci_is_true(
    tmp_path: Path, ci: str, status: int
) -> None:
    (tmp_path / "test_page.py").write_text(
        "import pytest\n\n\ndef test_page():\n    pytest.skip('chromium is missing')\n"
    )

    ran = subprocess.run(  # noqa: S603  our own tests
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "tests.conftest",
            "--rootdir",
            tmp_path,
            tmp_path,
        ],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "CI": ci, "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
    )

    assert "1 skipped: chromium is missing" in ran.stdout
    assert ("a skipped test is a failure" in ran.stdout) == (status == 1)
    assert ran.returncode == status


@pytest.mark.parametrize("checker", ["mypy", "basedpyright"])
def test_a_checker_that_complains_fails_a_run_in_which_everything_else_has_its_say(
    project: Path, checker: str
) -> None:
    for name in ("mypy", "basedpyright", "lint-imports", "chromium"):
        _program(project / ".venv/bin" / name, f"echo {name} was here")
    _program(project / ".venv/bin" / checker, f"echo {checker} complains; exit 1")
    ran = _run(project, "test", path=project / ".venv/bin")

    said = ran.stdout.splitlines()
    assert ran.returncode == 1
    assert "failed: types" in ran.stderr
    assert f"{checker} complains" in said
    assert sum(line.endswith("was here") for line in said) == 2
    assert any(line.startswith("pytest --numprocesses 2") for line in said)


def test_every_file_that_is_begun_first_is_there() -> None:
    assert [name for name in LONGEST_FIRST if not (TESTS / name).is_file()] == []
