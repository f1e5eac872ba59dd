"""What becomes of model calls that fail, as Prometheus counts it: a projection of the events.

Every process counts the commits that it has made itself, each once: a fleet's figures are the sum
over its processes. Model names are configured by people; their label may hold dates, so they are
not held to what a provider's code may look like.
"""

import re
from datetime import timedelta
from typing import Literal, TypeAlias

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.exposition import CONTENT_TYPE_LATEST

from app.observability.labels import NONE, OTHER, Few, as_name, as_status
from app.ports import Commit
from app.turn import events as e
from app.turn.failures import FailureKind
from app.turn.states import WaitingForModel

EndedBy: TypeAlias = Literal["retry", "message", "replan", "cancel", "other"]
Outcome: TypeAlias = Literal["success", "repeat", "ended"]

_KIND = ("type", "phase", "provider", "model", "http_status", "code")
_BUCKETS = (1, 5, 15, 60, 300, 900, 3_600, 4 * 3_600, 24 * 3_600, 7 * 24 * 3_600)
_MOST_PROVIDERS = 50
_MOST_MODELS = 100
_MOST_CODES = 100
_MOST_KINDS = 500
_MODEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/@+-]{0,119}")
_COMMANDS: dict[str, EndedBy] = {
    "RETRY_MODEL": "retry",
    "USER_MESSAGE": "message",
    "REPLAN_WITH_MESSAGE": "replan",
}


class ModelMetrics:
    """The counters of one process."""

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = CollectorRegistry()
        self._registry = registry
        self._failures = Counter(
            "turnkeeper_model_failures",
            "Recognised failures of model calls.",
            _KIND,
            registry=registry,
        )
        self._retries = Counter(
            "turnkeeper_model_retries",
            "Failed model calls that a turn tries again by itself.",
            _KIND,
            registry=registry,
        )
        self._begun = Counter(
            "turnkeeper_model_waits_begun",
            "Turns that began to wait for their model.",
            _KIND,
            registry=registry,
        )
        self._ended = Counter(
            "turnkeeper_model_waits_ended",
            "Waits for a model that ended, and by which means.",
            (*_KIND, "by"),
            registry=registry,
        )
        self._outcomes = Counter(
            "turnkeeper_model_resumes",
            "What became of turns that went on after such a wait: the model answered (success), "
            "the turn waits for it again (repeat), or it ended without an answer (ended).",
            (*_KIND, "outcome"),
            registry=registry,
        )
        self._waited = Histogram(
            "turnkeeper_model_wait_seconds",
            "How long turns waited for their model.",
            ("type", "by"),
            buckets=_BUCKETS,
            registry=registry,
        )
        self._labels = _Labels()

    def tell(self, commit: Commit) -> None:
        """Count what a commit that is stored has brought; to be told of each exactly once."""
        for event in commit.events:
            match event:
                case e.ModelFailed(record=record):
                    self._failures.labels(*self._labels.of(record.failure.kind)).inc()
                case e.TurnSuspended(suspension_type="RETRY", record=record) if record:
                    self._retries.labels(*self._labels.of(record.failure.kind)).inc()
                case e.TurnSuspended(suspension_type="MODEL", record=record) if record:
                    self._begun.labels(*self._labels.of(record.failure.kind)).inc()
                case _:
                    pass
        state = commit.before.state
        if isinstance(state, WaitingForModel) and commit.after.state != state:
            self._wait_ended(commit, state)
        outcome = _outcome(commit)
        if commit.before.came_back_from is not None and outcome is not None:
            labels = self._labels.of(commit.before.came_back_from)
            self._outcomes.labels(*labels, outcome).inc()

    def exposition(self) -> bytes:
        """All of it in Prometheus' text form."""
        return generate_latest(self._registry)

    def _wait_ended(self, commit: Commit, state: WaitingForModel) -> None:
        kind = state.record.failure.kind
        by = _ended_by(commit)
        waited = max(commit.at - state.requested_at, timedelta(0))
        self._ended.labels(*self._labels.of(kind), by).inc()
        self._waited.labels(kind.type, by).observe(waited.total_seconds())


def _ended_by(commit: Commit) -> EndedBy:
    for event in commit.events:
        match event:
            case e.TurnResumed(command_type=command):
                return _COMMANDS.get(command, "other")
            case e.TurnCancelled():
                return "cancel"
            case _:
                pass
    return "other"


def _outcome(commit: Commit) -> Outcome | None:
    """What it came to, if this commit decides it."""
    for event in commit.events:
        match event:
            case e.ModelCompleted():
                return "success"
            case e.TurnSuspended(suspension_type="MODEL"):
                return "repeat"
            case _:
                pass
    return "ended" if commit.after.is_terminal else None


class _Labels:
    """The labels of kinds of failures, bounded one by one and together."""

    def __init__(self) -> None:
        self._providers = Few(_MOST_PROVIDERS)
        self._models = Few(_MOST_MODELS)
        self._codes = Few(_MOST_CODES)
        self._kinds: set[tuple[str, ...]] = set()

    def of(self, kind: FailureKind) -> tuple[str, ...]:
        known = (kind.type.value, kind.token_limit_phase.value if kind.token_limit_phase else NONE)
        rest = (
            self._providers(as_name(kind.provider)),
            self._models(_as_model(kind.model)),
            as_status(kind.http_status),
            self._codes(as_name(kind.error_code)),
        )
        labels = (*known, *rest)
        if labels not in self._kinds and len(self._kinds) >= _MOST_KINDS:
            return (*known, *(OTHER for _ in rest))
        self._kinds.add(labels)
        return labels


def _as_model(model: str | None) -> str:
    if not model:
        return NONE
    return model if _MODEL.fullmatch(model) else OTHER
