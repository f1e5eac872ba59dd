"""Finds the client for a model's name, with endpoint and key as they are at that moment.

`provider/model` names a configured provider; any other name, slashes included, goes whole to the
default provider. Nothing is remembered between calls, so a key changed in the environment helps
the turns that already wait.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Literal, TypeAlias

from app.ports import ModelClient, ResolvedModel
from app.providers.anthropic_messages import AnthropicMessages
from app.providers.http import HttpClient, Timeouts
from app.providers.openai_chat import OpenAiChat
from app.providers.redaction import without_key
from app.providers.scripted import ScriptedModel
from app.providers.wire_ids import CallIds
from app.turn.failures import FailureType, ModelFailure

DEMO = "demo"
DEFAULT_PROVIDER = "openai"
OPENAI_BASE_URL = "https://api.openai.com/v1"
BASE_URL_VARIABLE = "OPENAI_BASE_URL"
KEY_VARIABLE = "OPENAI_API_KEY"

Environment: TypeAlias = Callable[[], Mapping[str, str]]

_HEADER_VALUE = re.compile(r"[\x21-\x7e]+")


Kind: TypeAlias = Literal["openai", "anthropic", "pydantic-ai"]
"""Which wire a provider speaks, or that Pydantic AI speaks to it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderEndpoint:
    """A provider as configured: where it is, and which variable holds its key."""

    base_url: str
    """Empty where a library knows it."""
    api_key_env: str | None
    """`None` for a provider that asks for no key."""
    kind: Kind = "openai"
    call_ids: CallIds = "any"
    extra_body: Mapping[str, object] = field(default_factory=dict[str, object])
    """Fields for every request to it; for `pydantic-ai` its model settings."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProviderDirectory:
    """A `ModelDirectory` over the configured providers and the demo model."""

    http: HttpClient
    environment: Environment
    """The environment now; asked at every call."""
    providers: Mapping[str, ProviderEndpoint] = field(default_factory=dict[str, ProviderEndpoint])
    default_model: str | None = None
    """What a request without a model means; `None` is the demo model, key or not."""
    default_base_url: str | None = None
    """For the default provider when `OPENAI_BASE_URL` is not in the environment."""
    default_api_key: str | None = field(default=None, repr=False)
    """For the default provider when `OPENAI_API_KEY` is not in the environment."""
    timeouts: Timeouts = field(default_factory=Timeouts)
    demo: ModelClient = field(default_factory=ScriptedModel)

    def resolve(self, model: str | None) -> ResolvedModel | ModelFailure:
        """The client for this name, or why there is none now."""
        name = model or self.default_model or DEMO
        if name == DEMO:
            return ResolvedModel(client=self.demo, model=DEMO, provider=DEMO)
        provider, slash, rest = name.partition("/")
        endpoint = self.providers.get(provider) if slash and rest else None
        if endpoint is not None:
            return self._configured(provider, endpoint, rest)
        return self._default(name)

    def _configured(
        self, provider: str, endpoint: ProviderEndpoint, model: str
    ) -> ResolvedModel | ModelFailure:
        key = ""
        if endpoint.api_key_env is not None:
            key = self.environment().get(endpoint.api_key_env, "").strip()
            if not _HEADER_VALUE.fullmatch(key):
                return _no_key(provider, model, endpoint.api_key_env, is_set=bool(key))
        return self._resolved(provider, endpoint, key, model)

    def _default(self, model: str) -> ResolvedModel | ModelFailure:
        """A base URL of one's own may do without a key; OpenAI's cannot."""
        environment = self.environment()
        base_url = environment.get(BASE_URL_VARIABLE, "").strip() or self.default_base_url
        key = environment.get(KEY_VARIABLE, "").strip() or self.default_api_key or ""
        is_usable = _HEADER_VALUE.fullmatch(key) or (base_url and not key)
        if not is_usable:
            return _no_key(DEFAULT_PROVIDER, model, KEY_VARIABLE, is_set=bool(key))
        endpoint = ProviderEndpoint(base_url=base_url or OPENAI_BASE_URL, api_key_env=KEY_VARIABLE)
        return self._resolved(DEFAULT_PROVIDER, endpoint, key, model)

    def _resolved(
        self, provider: str, endpoint: ProviderEndpoint, key: str, model: str
    ) -> ResolvedModel | ModelFailure:
        client = self._client(provider, endpoint, key, model)
        if isinstance(client, ModelFailure):
            return replace(client, provider=provider, model=model)
        return ResolvedModel(
            client=client,
            model=model,
            provider=provider,
            discreet=partial(without_key, key),
            address=endpoint.base_url,
        )

    def _client(
        self, provider: str, endpoint: ProviderEndpoint, key: str, model: str
    ) -> ModelClient | ModelFailure:
        match endpoint.kind:
            case "openai":
                return OpenAiChat(
                    http=self.http,
                    base_url=endpoint.base_url,
                    api_key=key,
                    provider=provider,
                    extra_body=endpoint.extra_body,
                    call_ids=endpoint.call_ids,
                    timeouts=self.timeouts,
                )
            case "anthropic":
                return AnthropicMessages(
                    http=self.http,
                    base_url=endpoint.base_url,
                    api_key=key,
                    provider=provider,
                    extra_body=endpoint.extra_body,
                    timeouts=self.timeouts,
                )
            case "pydantic-ai":
                # An optional extra, which takes a second to load.
                from app.providers.pydantic_ai_client import client_for  # noqa: PLC0415

                return client_for(
                    model,
                    provider=provider,
                    key=key,
                    base_url=endpoint.base_url,
                    settings=endpoint.extra_body,
                    timeouts=self.timeouts,
                )


def _no_key(provider: str, model: str, variable: str, *, is_set: bool) -> ModelFailure:
    what = "holds characters that no key has" if is_set else "is not set"
    return ModelFailure(
        type=FailureType.UNAVAILABLE,
        message=f"the key of provider {provider!r} is missing: the environment variable "
        f"{variable} {what}; set it, then retry",
        retryable=False,
        error_code="missing_api_key",
        provider=provider,
        model=model,
    )
