"""One frozen `Settings`, read from the environment once per process.

The descriptions of the fields are the documentation: `scripts/settings-table` writes them into
`docs/settings.md`, and a test compares the two.
"""

import os
import re
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Self

import platformdirs
from pydantic import (
    AfterValidator,
    BaseModel,
    ConfigDict,
    Field,
    JsonValue,
    SecretStr,
    StringConstraints,
    ValidationError,
    ValidationInfo,
    field_validator,
    model_validator,
)
from pydantic_settings import BaseSettings, SettingsConfigDict, SettingsError

from app.ports import fault_points

ENV_PREFIX = "TURNKEEPER_"
ROOT_DATA_DIR = Path("/var/lib/turnkeeper")
MIN_TOKEN_CHARACTERS = 16


class InvalidSettingsError(Exception):
    """The environment holds a setting that cannot be used; each line names one and says why."""


def default_data_dir() -> Path:
    """The folder for data when none is named: the user's data directory, or root's."""
    if os.geteuid() == 0:
        return ROOT_DATA_DIR
    return platformdirs.user_data_path("turnkeeper", appauthor=False)


def _absolute(path: Path) -> Path:
    return path.expanduser().absolute()


def _link(url: str) -> str:
    if not re.fullmatch(r"https?://[^/\s]+(/\S*)?", url):
        message = "must be a URL that starts with http:// or https://"
        raise ValueError(message)
    return url


def _http_url(url: str) -> str:
    if not re.match(r"https?://[^/\s]+", url):
        message = "must be a URL that starts with http:// or https://"
        raise ValueError(message)
    return url.rstrip("/")


def _postgresql_url(url: str) -> str:
    scheme, separator, rest = url.partition("://")
    if not separator or scheme.partition("+")[0] not in ("postgresql", "postgres"):
        message = "must be a URL such as postgresql://user:password@host:5432/database"
        raise ValueError(message)
    # `postgresql+asyncpg://` is customary with SQLAlchemy; asyncpg itself refuses it.
    return f"postgresql://{rest}"


def _installed(kind: str) -> str:
    if kind == "pydantic-ai" and find_spec("pydantic_ai") is None:
        message = "needs an extra: pip install 'turnkeeper[more-providers]'"
        raise ValueError(message)
    return kind


def _not_ours(fields: dict[str, JsonValue]) -> dict[str, JsonValue]:
    for name in ("model", "messages", "system", "tools", "stream"):
        if name in fields:
            message = f"{name!r} is written by the service itself"
            raise ValueError(message)
    return fields


def _usable(token: SecretStr) -> SecretStr:
    if len(token.get_secret_value()) < MIN_TOKEN_CHARACTERS:
        message = f"must have at least {MIN_TOKEN_CHARACTERS} characters"
        raise ValueError(message)
    if not re.fullmatch(r"[\x21-\x7e]+", token.get_secret_value()):
        message = "must be of visible ASCII characters, or no header can carry it"
        raise ValueError(message)
    return token


def _known(point: str) -> str:
    name, _, passage = point.partition(":")
    if name not in fault_points.POINTS or not re.fullmatch(r"([1-9][0-9]{0,5})?", passage):
        message = "must be the name of a fault point, or name:n for its n-th passage"
        raise ValueError(message)
    return point


Port = Annotated[int, Field(ge=0, le=65_535)]
HttpUrl = Annotated[str, AfterValidator(_http_url)]
Link = Annotated[str, AfterValidator(_link)]
PostgresqlUrl = Annotated[str, AfterValidator(_postgresql_url)]
EnvironmentVariable = Annotated[str, StringConstraints(pattern=r"^[A-Za-z_][A-Za-z0-9_]*$")]
ProviderName = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9_.-]*$")]
ModuleAttribute = Annotated[str, StringConstraints(pattern=r"^[\w.]+:[\w.]+$")]
Token = Annotated[SecretStr, AfterValidator(_usable)]
FaultPoint = Annotated[str, AfterValidator(_known)]
Timeout = Annotated[float, Field(gt=0, le=86_400)]


class ProviderSettings(BaseModel):
    """A provider by name: the wire it speaks, where, and which variable holds its key.

    `extra_body` holds fields for every request to it, such as `max_tokens` or `thinking`; a null
    leaves out a field that is sent otherwise. `call_ids` says which ids of tool calls it takes.
    `top_up_url` is where an operator raises an allowance that is used up.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    kind: Annotated[Literal["openai", "anthropic", "pydantic-ai"], AfterValidator(_installed)]
    base_url: HttpUrl | None = Field(default=None, validate_default=True)
    api_key_env: EnvironmentVariable | None = None
    call_ids: Literal["any", "nine_characters"] = "any"
    top_up_url: Link | None = None
    extra_body: Annotated[dict[str, JsonValue], AfterValidator(_not_ours)] = Field(
        default_factory=dict[str, JsonValue]
    )

    @field_validator("base_url")
    @classmethod
    def _wires_need_an_address(cls, base_url: str | None, info: ValidationInfo) -> str | None:
        if base_url is None and info.data.get("kind") in ("openai", "anthropic"):
            message = "is needed for this kind"
            raise ValueError(message)
        return base_url


class Settings(BaseSettings):
    """Everything that may differ from one installation to the next."""

    model_config = SettingsConfigDict(
        env_prefix=ENV_PREFIX,
        env_ignore_empty=True,  # an empty line in a compose file means "not set"
        extra="forbid",
        frozen=True,
        hide_input_in_errors=True,  # a rejected DATABASE_URL still holds a password
        validate_by_alias=True,
        validate_by_name=True,
    )

    host: str = Field(default="127.0.0.1", description="Address the API listens on.")
    port: Port = Field(default=8080, description="Port of the API; 0 takes any free one.")
    data_dir: Annotated[Path, AfterValidator(_absolute)] = Field(
        default_factory=default_data_dir,
        description="Folder of the embedded PostgreSQL and of the generated token. "
        "As root it must be reachable by the database's unprivileged user.",
        json_schema_extra={"default_text": f"the user's data directory; as root {ROOT_DATA_DIR}"},
    )
    token: Token | None = Field(
        default=None,
        description="Value of the default bearer token, at least 16 characters; "
        "unset, one is generated on first start and kept in a file of mode 0600.",
    )
    model: str | None = Field(
        default=None,
        min_length=1,
        description="Model of the built-in agent: `provider/model` for a provider named in "
        "`TURNKEEPER_PROVIDERS`, any other name goes whole to the default provider. "
        "Unset, the scripted demo model answers.",
    )
    providers: Mapping[ProviderName, ProviderSettings] = Field(
        default_factory=dict[str, ProviderSettings],
        description="Providers by name, as JSON: "
        '`{"name": {"kind": "openai", "base_url": "https://…", "api_key_env": "NAME_API_KEY"}}`; '
        "the kinds and further fields are in [providers.md](providers.md).",
        json_schema_extra={"default_text": "`{}`"},
    )
    agents: ModuleAttribute | None = Field(
        default=None,
        description="Your agents, as `module:attribute`, for example `mycompany.agents:agents`.",
    )
    worker_concurrency: int = Field(
        default=16,
        ge=0,
        le=1_000,
        description="Turns one process drives at the same time; 0 runs no worker in the API.",
    )
    worker_health_port: Port = Field(
        default=8081,
        description="Port on which `turnkeeper worker` answers `/livez` and `/metrics`; "
        "0 takes any free one.",
    )
    database_url: PostgresqlUrl | None = Field(
        default=None,
        validation_alias="DATABASE_URL",
        repr=False,
        description="PostgreSQL 15 to 18 to use; unset, an embedded one is started.",
    )
    database_pool_size: int = Field(
        default=10, ge=1, le=500, description="Connections one process keeps to PostgreSQL at most."
    )
    openai_base_url: HttpUrl | None = Field(
        default=None,
        validation_alias="OPENAI_BASE_URL",
        description="Base URL of the default OpenAI-compatible provider.",
    )
    openai_api_key: SecretStr | None = Field(
        default=None, validation_alias="OPENAI_API_KEY", description="Key of the default provider."
    )
    top_up_url: Link | None = Field(
        default=None,
        description="Where operators raise an allowance that is used up, or switch to another; "
        "shown to them, and to nobody else, for providers without a `top_up_url` of their own.",
    )
    model_connect_timeout_seconds: Timeout = Field(
        default=5.0, description="Longest wait for a connection to a provider."
    )
    model_first_byte_timeout_seconds: Timeout = Field(
        default=60.0, description="Longest wait for the first byte of an answer."
    )
    model_idle_timeout_seconds: Timeout = Field(
        default=60.0, description="Longest silence within an answer."
    )
    model_total_timeout_seconds: Timeout = Field(
        default=600.0, description="Longest time for one model call as a whole."
    )
    claim_lease_seconds: float = Field(
        default=15.0,
        ge=1,
        le=3_600,
        description="How long a worker may drive a turn without renewing its claim; "
        "after a worker's death its turns wait this long.",
    )
    claim_renew_seconds: float = Field(
        default=5.0,
        ge=0.1,
        le=1_800,
        description="How often claims are renewed; at most half the lease.",
    )
    claim_poll_seconds: float = Field(
        default=1.0,
        ge=0.01,
        le=60,
        description="How often a worker looks for work it was not told of, and half as often for "
        "waits whose time is over.",
    )
    hand_over: bool = Field(
        default=True,
        description="Whether the process that takes a message or a command drives the turn itself "
        "where its worker has a place free; else any worker claims it.",
    )
    tool_grace_seconds: float = Field(
        default=30.0,
        ge=0,
        le=3_600,
        description="How long tools in flight may go on when their turn is paused or cancelled, "
        "or their worker is to stop; then they are ended.",
    )
    keep_text_pieces_hours: float = Field(
        default=1.0,
        ge=0,
        le=87_600,
        description="How long after a turn has ended the pieces in which its text came are kept; "
        "then readers are given each answer in one piece.",
    )
    keep_events_days: int | None = Field(
        default=None,
        ge=1,
        le=36_500,
        description="How long after a turn has ended its events are kept; later readers get a "
        "`SNAPSHOT` and the turn's end. Unset, as long as the conversation. "
        "The transcript stays either way.",
    )
    streams_per_user: int = Field(
        default=2_000,
        ge=1,
        le=100_000,
        description="Most event streams that one process serves one user at once; a further one "
        "is refused (`too_many_streams`). Everybody who comes with the installation's token is one "
        "user.",
    )
    streams_per_tenant: int = Field(
        default=2_000,
        ge=1,
        le=100_000,
        description="The same for all users of a tenant.",
    )
    streams_per_process: int = Field(
        default=2_000,
        ge=1,
        le=100_000,
        description="The same for everybody; the process needs as many file descriptors.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Least level of the log lines that are written."
    )
    log_format: Literal["console", "json"] = Field(
        default="console", description="`console` for people, `json` for machines."
    )

    environment: Literal["production", "test"] = Field(
        default="production",
        description="`test` lets a process be told to do harm to itself, as the tests do.",
    )
    fault_point: FaultPoint | None = Field(
        default=None,
        description="For tests alone: the point at which the process does harm to itself, as "
        "`name` or `name:n` for its n-th passage ([crash-matrix.md](crash-matrix.md) names all).",
    )
    fault_mode: fault_points.Mode = Field(
        default="kill",
        description="What happens there: `kill` (SIGKILL), `exit`, `raise` or `hold`.",
    )

    @model_validator(mode="after")
    def _no_harm_in_production(self) -> Self:
        if self.fault_point is not None and self.environment != "test":
            message = (
                f"{ENV_PREFIX}FAULT_POINT makes the process do harm to itself; "
                f"it needs {ENV_PREFIX}ENVIRONMENT=test"
            )
            raise ValueError(message)
        return self

    @model_validator(mode="after")
    def _renewals_fit_the_lease(self) -> Self:
        if self.claim_renew_seconds * 2 > self.claim_lease_seconds:
            message = (
                f"{ENV_PREFIX}CLAIM_RENEW_SECONDS ({self.claim_renew_seconds:g}) must be at most "
                f"half of {ENV_PREFIX}CLAIM_LEASE_SECONDS ({self.claim_lease_seconds:g}), "
                "so that one lost renewal does not cost a claim"
            )
            raise ValueError(message)
        return self


def load_settings(*, host: str | None = None, port: int | None = None) -> Settings:
    """The settings of this process, from its environment; what is given here goes before it.

    Raises:
        InvalidSettingsError: a variable holds what cannot be used; values are never quoted.
    """
    given: dict[str, Any] = {"host": host, "port": port}
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as error:
        raise InvalidSettingsError("\n".join(_complaints(error))) from None
    except SettingsError:
        message = f"{ENV_PREFIX}PROVIDERS: must be a JSON object"
        raise InvalidSettingsError(message) from None


def environment_variable(field: str) -> str:
    """The variable that sets a field of `Settings`."""
    alias = Settings.model_fields[field].validation_alias
    return alias if isinstance(alias, str) else f"{ENV_PREFIX}{field.upper()}"


def _complaints(error: ValidationError) -> list[str]:
    lines: list[str] = []
    for detail in error.errors(include_input=False, include_url=False):
        where = [str(part) for part in detail["loc"]]
        what = detail["msg"].removeprefix("Value error, ")
        lines.append(f"{_variable_of(where)}: {what}" if where else what)
    return lines


def _variable_of(location: list[str]) -> str:
    head, *rest = location
    field = head.lower().removeprefix(ENV_PREFIX.lower())
    variable = environment_variable(field) if field in Settings.model_fields else head
    return ".".join((variable, *rest))


def settings_table() -> str:
    """The table of `docs/settings.md`: a line per setting, in the order of the model."""
    lines = ["| variable | default | meaning |", "|---|---|---|"]
    for name, field in Settings.model_fields.items():
        extra = field.json_schema_extra
        default = "unset" if field.default is None else f"`{field.default}`"
        if isinstance(extra, dict):
            default = f"{extra['default_text']}"
        lines.append(f"| `{environment_variable(name)}` | {default} | {field.description} |")
    return "\n".join(lines) + "\n"
