"""Which client a model's name stands for."""

from collections.abc import Mapping

import pytest

from app.ports import ModelDirectory, ResolvedModel
from app.providers.anthropic_messages import AnthropicMessages
from app.providers.directory import DEMO, ProviderDirectory, ProviderEndpoint
from app.providers.http import new_client
from app.providers.openai_chat import OpenAiChat
from app.providers.scripted import ScriptedModel
from app.turn.failures import FailureType, ModelFailure

HTTP = new_client()
PROVIDERS = {
    "acme": ProviderEndpoint(base_url="https://acme.test/v1", api_key_env="ACME_KEY"),
    "claude": ProviderEndpoint(
        kind="anthropic", base_url="https://claude.test", api_key_env=None, extra_body={"a": 1}
    ),
    "local": ProviderEndpoint(base_url="http://localhost:8000/v1", api_key_env=None),
}


def _directory(
    environment: Mapping[str, str] | None = None, default_model: str | None = None
) -> ProviderDirectory:
    return ProviderDirectory(
        http=HTTP,
        environment=lambda: environment or {},
        providers=PROVIDERS,
        default_model=default_model,
    )


def _resolved(directory: ModelDirectory, model: str | None) -> ResolvedModel:
    resolved = directory.resolve(model)
    assert isinstance(resolved, ResolvedModel), resolved
    return resolved


def _client(directory: ModelDirectory, model: str | None) -> OpenAiChat:
    client = _resolved(directory, model).client
    assert isinstance(client, OpenAiChat)
    return client


def _failure(directory: ModelDirectory, model: str | None) -> ModelFailure:
    failure = directory.resolve(model)
    assert isinstance(failure, ModelFailure)
    return failure


@pytest.mark.parametrize("model", [None, "demo"])
def test_with_nothing_configured_the_demo_model_answers(model: str | None) -> None:
    resolved = _resolved(_directory(), model)

    assert isinstance(resolved.client, ScriptedModel)
    assert (resolved.provider, resolved.model) == (DEMO, DEMO)


def test_a_key_alone_does_not_replace_the_demo_model() -> None:
    assert _resolved(_directory({"OPENAI_API_KEY": "k"}), None).provider == DEMO


def test_the_name_before_the_first_slash_finds_a_configured_provider() -> None:
    directory = _directory({"ACME_KEY": "secret"})
    resolved = _resolved(directory, "acme/vendor/model-1")
    client = _client(directory, "acme/vendor/model-1")

    assert (resolved.provider, resolved.model) == ("acme", "vendor/model-1")
    assert (client.base_url, client.api_key) == ("https://acme.test/v1", "secret")


@pytest.mark.parametrize("model", ["gpt-5", "vendor/model-1", "acme", "acme/"])
def test_any_other_name_goes_whole_to_the_default_provider(model: str) -> None:
    directory = _directory({"OPENAI_API_KEY": "k", "OPENAI_BASE_URL": "http://host/v1"})

    assert _resolved(directory, model).model == model
    assert _resolved(directory, model).provider == "openai"
    assert _client(directory, model).base_url == "http://host/v1"


def test_a_request_without_a_model_gets_the_default_model() -> None:
    directory = _directory({"ACME_KEY": "k"}, default_model="acme/m")

    assert _resolved(directory, None).provider == "acme"


def test_the_default_provider_is_openai_itself_when_no_address_is_named() -> None:
    assert _client(_directory({"OPENAI_API_KEY": "k"}), "m").base_url == "https://api.openai.com/v1"


def test_an_address_of_ones_own_needs_no_key() -> None:
    assert _client(_directory({"OPENAI_BASE_URL": "http://host/v1"}), "m").api_key == ""
    assert _client(_directory(), "local/m").api_key == ""


def test_a_key_that_is_missing_is_told_with_whose_it_is() -> None:
    for name, asked in (("acme/m", ("acme", "m")), ("gpt-5.1", ("openai", "gpt-5.1"))):
        failure = _directory().resolve(name)

        assert isinstance(failure, ModelFailure)
        assert (failure.provider, failure.model) == asked


def test_what_is_known_of_a_key_is_kept_out_of_what_its_provider_says() -> None:
    resolved = _resolved(_directory({"ACME_KEY": "a-secret-key"}), "acme/m")

    assert resolved.discreet("wrong: a%2Dsecret-key") == "wrong: [redacted]"
    assert resolved.discreet(None) is None


def test_a_changed_key_is_used_by_the_next_call() -> None:
    environment = {"ACME_KEY": "old"}
    directory = _directory(environment)
    assert _client(directory, "acme/m").api_key == "old"

    environment["ACME_KEY"] = " new\n"

    assert _client(directory, "acme/m").api_key == "new"


def test_what_the_environment_says_now_beats_what_it_said_at_the_start() -> None:
    directory = ProviderDirectory(
        http=HTTP,
        environment=lambda: {"OPENAI_API_KEY": "now"},
        default_base_url="http://host/v1",
        default_api_key="then",
    )

    assert _client(directory, "m").api_key == "now"


@pytest.mark.parametrize(
    ("model", "environment", "variable"),
    [
        ("acme/m", {}, "ACME_KEY"),
        ("acme/m", {"ACME_KEY": "  "}, "ACME_KEY"),
        ("m", {}, "OPENAI_API_KEY"),
    ],
)
def test_a_missing_key_is_a_failure_that_names_the_variable(
    model: str, environment: dict[str, str], variable: str
) -> None:
    failure = _failure(_directory(environment), model)

    assert (failure.type, failure.retryable) == (FailureType.UNAVAILABLE, False)
    assert variable in failure.message


@pytest.mark.parametrize("key", ["se cret", "sécret", "se\ncret"])
def test_a_key_no_header_can_carry_is_a_failure_that_does_not_quote_it(key: str) -> None:
    failure = _failure(_directory({"ACME_KEY": key}), "acme/m")

    assert "ACME_KEY" in failure.message
    assert key not in failure.message


def test_keys_are_in_no_representation() -> None:
    directory = ProviderDirectory(http=HTTP, environment=dict, default_api_key="sk-secret")

    assert "sk-secret" not in repr(directory)
    assert "sk-secret" not in repr(_resolved(directory, "gpt-5.1"))


def test_a_provider_s_kind_says_which_wire_its_client_speaks() -> None:
    resolved = _resolved(_directory(), "claude/opus")

    assert isinstance(resolved.client, AnthropicMessages)
    assert (resolved.model, resolved.client.provider) == ("opus", "claude")
    assert resolved.client.extra_body == {"a": 1}
