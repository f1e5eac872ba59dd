"""What is shipped in containers, as far as it can be known without an engine."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).parents[1]
RELEASED = "service_completed_successfully"


@pytest.fixture(scope="module")
def services() -> dict[str, Any]:
    compose: dict[str, dict[str, Any]] = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
    return compose["services"]


def test_compose_runs_a_database_an_api_and_two_workers(services: dict[str, Any]) -> None:
    assert set(services) == {"postgres", "migrate", "api", "worker"}
    assert services["worker"]["deploy"]["replicas"] == 2
    assert services["worker"]["command"] == ["turnkeeper", "worker"]


def test_compose_uses_a_supported_postgresql(services: dict[str, Any]) -> None:
    assert services["postgres"]["image"] in {f"postgres:{version}" for version in range(15, 19)}


def test_the_api_of_compose_drives_no_turn_itself(services: dict[str, Any]) -> None:
    assert services["api"]["environment"]["TURNKEEPER_WORKER_CONCURRENCY"] == "0"


def test_every_service_of_ours_uses_the_one_database(services: dict[str, Any]) -> None:
    urls = {services[name]["environment"]["DATABASE_URL"] for name in ("migrate", "api", "worker")}

    assert len(urls) == 1
    assert "@postgres:5432/" in urls.pop()


def test_migrations_run_once_before_anything_that_needs_them(services: dict[str, Any]) -> None:
    assert services["migrate"]["command"] == ["turnkeeper", "migrate"]
    assert services["migrate"]["restart"] == "no"
    for name in ("api", "worker"):
        assert services[name]["depends_on"]["migrate"]["condition"] == RELEASED


def test_nothing_is_reachable_from_outside_the_machine(services: dict[str, Any]) -> None:
    ports = [port for service in services.values() for port in service.get("ports", [])]

    assert ports == ["127.0.0.1:8080:8080"]


def test_the_image_is_built_in_stages_and_runs_as_an_ordinary_user_with_a_health_check() -> None:
    build, final = re.split(r"^FROM ", (ROOT / "Dockerfile").read_text(), flags=re.MULTILINE)[1:]

    assert "--require-hashes" in build
    assert re.search(r"^USER turnkeeper$", final, re.MULTILINE)
    assert "/livez" in final.partition("HEALTHCHECK")[2]
    assert 'CMD ["turnkeeper", "serve", "--host", "0.0.0.0"]' in final


def test_what_the_image_copies_is_what_the_engine_is_given() -> None:
    given = set(re.findall(r"^!(.+)$", (ROOT / ".dockerignore").read_text(), re.MULTILINE))
    copied = re.findall(
        r"^COPY (?!--from)(.+) \S+$", (ROOT / "Dockerfile").read_text(), re.MULTILINE
    )

    assert given == {source for line in copied for source in line.split()}


@pytest.mark.parametrize(
    "lock", [f"requirements{of}.txt" for of in ("", "-dev", "-more-providers")]
)
def test_a_lock_pins_every_package_by_hash_and_names_no_host(lock: str) -> None:
    text = (ROOT / lock).read_text()
    packages = re.split(r"\n(?=\S)", text.strip())

    assert all("==" in package and "--hash=sha256:" in package for package in packages)
    assert "://" not in text


def test_the_other_locks_hold_the_lock_of_the_service() -> None:
    def pins(lock: str) -> set[str]:
        return set(re.findall(r"^\S+==\S+", (ROOT / lock).read_text(), re.MULTILINE))

    assert pins("requirements.txt") <= pins("requirements-dev.txt")
    assert pins("requirements.txt") <= pins("requirements-more-providers.txt")
