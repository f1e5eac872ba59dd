import re
from pathlib import Path

import pytest

from app.settings import (
    ENV_PREFIX,
    InvalidSettingsError,
    Settings,
    environment_variable,
    load_settings,
    settings_table,
)

ROOT = Path(__file__).parents[1]


@pytest.fixture(autouse=True)
def _bare_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(environment_variable(name), raising=False)


def _complaint(monkeypatch: pytest.MonkeyPatch, **environment: str) -> str:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(InvalidSettingsError) as caught:
        load_settings()
    return str(caught.value)


def test_the_table_in_the_docs_is_the_one_that_the_code_gives() -> None:
    page = (ROOT / "docs/settings.md").read_text()

    assert settings_table() in page, "run scripts/settings-table"


def test_every_setting_has_a_meaning_in_the_table() -> None:
    assert "None |\n" not in settings_table()


def test_every_span_of_time_has_its_unit_in_its_name() -> None:
    spans = re.compile("timeout|lease|renew|poll")

    assert all(name.endswith("_seconds") for name in Settings.model_fields if spans.search(name))


def test_an_empty_environment_is_enough() -> None:
    settings = load_settings()

    assert (settings.host, settings.port) == ("127.0.0.1", 8080)
    assert settings.database_url is None
    assert settings.model is None
    assert dict(settings.providers) == {}


def test_an_empty_variable_counts_as_unset(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "")
    monkeypatch.setenv("TURNKEEPER_PORT", "")

    assert load_settings().database_url is None
    assert load_settings().port == 8080


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "postgresql+asyncpg"])
def test_the_database_keeps_its_customary_name_and_its_customary_spellings(
    monkeypatch: pytest.MonkeyPatch, scheme: str
) -> None:
    monkeypatch.setenv("DATABASE_URL", f"{scheme}://u:p@db/turnkeeper")

    assert load_settings().database_url == "postgresql://u:p@db/turnkeeper"


def test_providers_are_read_from_json(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(
        "TURNKEEPER_PROVIDERS",
        '{"deepseek": {"kind": "openai", "base_url": "https://ds.test/v1/", "api_key_env": "K"}}',
    )

    provider = load_settings().providers["deepseek"]

    assert (provider.base_url, provider.api_key_env) == ("https://ds.test/v1", "K")


def test_a_kind_whose_extra_is_not_installed_is_told_at_the_start(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def find_none(name: str) -> None:
        assert name == "pydantic_ai"

    monkeypatch.setattr("app.settings.find_spec", find_none)
    complaint = _complaint(monkeypatch, TURNKEEPER_PROVIDERS='{"g": {"kind": "pydantic-ai"}}')

    assert "TURNKEEPER_PROVIDERS.g.kind: needs an extra: pip install 'turnkeeper[more" in complaint


WRONG = [
    ("TURNKEEPER_PORT", "70000", "TURNKEEPER_PORT: Input should be less than or equal to 65535"),
    ("TURNKEEPER_TOKEN", "short", "TURNKEEPER_TOKEN: must have at least 16 characters"),
    (
        "TURNKEEPER_TOKEN",
        "a token with spaces",
        "TURNKEEPER_TOKEN: must be of visible ASCII characters, or no header can carry it",
    ),
    ("TURNKEEPER_PROVIDERS", "{", "TURNKEEPER_PROVIDERS: must be a JSON object"),
    ("TURNKEEPER_PROVIDERS", '{"a/b": {"kind": "openai", "base_url": "http://x"}}', "a/b"),
    ("TURNKEEPER_PROVIDERS", '{"a": {"kind": "openai"}}', "TURNKEEPER_PROVIDERS.a.base_url"),
    (
        "TURNKEEPER_PROVIDERS",
        '{"a": {"kind": "anthropic", "base_url": "http://x", "extra_body": {"messages": []}}}',
        "TURNKEEPER_PROVIDERS.a.extra_body: 'messages' is written by the service itself",
    ),
    (
        "TURNKEEPER_PROVIDERS",
        '{"a": {"kind": "telepathy", "base_url": "http://x"}}',
        "TURNKEEPER_PROVIDERS.a.kind: Input should be 'openai', 'anthropic' or 'pydantic-ai'",
    ),
    ("TURNKEEPER_AGENTS", "mycompany.agents", "TURNKEEPER_AGENTS"),
    ("TURNKEEPER_WORKER_CONCURRENCY", "-1", "TURNKEEPER_WORKER_CONCURRENCY"),
    ("TURNKEEPER_MODEL_IDLE_TIMEOUT_SECONDS", "0", "TURNKEEPER_MODEL_IDLE_TIMEOUT_SECONDS"),
    ("TURNKEEPER_CLAIM_RENEW_SECONDS", "9", "at most half of TURNKEEPER_CLAIM_LEASE_SECONDS"),
    ("DATABASE_URL", "mysql://u:p@h/d", "DATABASE_URL: must be a URL such as postgresql://"),
    ("TURNKEEPER_TOP_UP_URL", "javascript:alert(1)", "must be a URL that starts with http"),
    ("TURNKEEPER_TOP_UP_URL", "https://x/a b", "must be a URL that starts with http"),
    ("OPENAI_BASE_URL", "localhost:8000", "OPENAI_BASE_URL: must be a URL that starts with"),
]


@pytest.mark.parametrize(("variable", "value", "complaint"), WRONG)
def test_a_wrong_value_is_refused_by_the_name_of_its_variable(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, complaint: str
) -> None:
    assert complaint in _complaint(monkeypatch, **{variable: value})


def test_a_complaint_and_a_repr_hold_no_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DATABASE_URL", "postgresql://u:hunter2@h/d")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2")
    shown = repr(load_settings())
    complaint = _complaint(
        monkeypatch, DATABASE_URL="mysql://u:hunter2@h/d", TURNKEEPER_TOKEN="hunter2"
    )

    assert "hunter2" not in shown + complaint


def test_a_process_does_harm_to_itself_only_where_tests_are_run(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    complaint = _complaint(monkeypatch, TURNKEEPER_FAULT_POINT="commit.begin.before:2")
    monkeypatch.setenv("TURNKEEPER_ENVIRONMENT", "test")

    assert "TURNKEEPER_ENVIRONMENT=test" in complaint
    assert load_settings().fault_point == "commit.begin.before:2"


@pytest.mark.parametrize("point", ["commit", "commit.begin", "claim.take.after:0", "http.answer:x"])
def test_a_fault_point_that_does_not_exist_is_refused(
    monkeypatch: pytest.MonkeyPatch, point: str
) -> None:
    environment = {"TURNKEEPER_ENVIRONMENT": "test", "TURNKEEPER_FAULT_POINT": point}

    assert "must be the name of a fault point" in _complaint(monkeypatch, **environment)


def test_prefix_is_the_projects_name() -> None:
    assert ENV_PREFIX == "TURNKEEPER_"
