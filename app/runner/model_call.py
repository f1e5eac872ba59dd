"""One model call: its answer is shown as it comes, stored in batches, handed back at its end."""

import time
from collections.abc import Awaitable, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import TypeAlias

import structlog

from app.ports import (
    ModelDirectory,
    ModelRequest,
    ReasoningDelta,
    ResolvedModel,
    TextDelta,
)
from app.runner.hooks import AskedBehind, Crashed, Objection, RunHooks
from app.runner.instructions import instructions_of
from app.runner.live_text import LiveText, OpenAnswer
from app.turn.agent import Agent
from app.turn.failures import FailureType, ModelFailure, RequestRefused, error_ref
from app.turn.ids import TurnId
from app.turn.state import Turn
from app.turn.transcript import ModelAnswer

_BATCH_SECONDS = 0.25
_BATCH_CHARACTERS = 2_048

CallEnding: TypeAlias = ModelAnswer | ModelFailure | RequestRefused | Objection | AskedBehind
StoreText: TypeAlias = Callable[[], Awaitable[None]]

_log = structlog.get_logger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """Which model a turn asks now, and how."""

    model: str | None
    """`provider/model`, or `None` for whatever the settings name."""
    attempt: int
    """Requests sent so far in this turn, this one included."""
    max_output_tokens: int | None


def asking(turn: Turn, agent: Agent) -> Asking:
    """As the turn stands: with what a person has changed, and the fallback it is at."""
    return Asking(
        model=turn.model_under(agent),
        attempt=turn.counters.model_attempts,
        max_output_tokens=turn.max_output_tokens,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCaller:
    """Makes model calls for turns."""

    models: ModelDirectory
    live_text: LiveText

    async def call(
        self,
        turn_id: TurnId,
        agent: Agent,
        asked: Asking,
        messages: Sequence[str],
        *,
        answer: OpenAnswer,
        store_text: StoreText,
        hooks: RunHooks | None = None,
    ) -> CallEnding:
        """How the call ended.

        Args:
            turn_id: whose call it is.
            agent: supplies instructions and tools.
            asked: which model, and how.
            messages: the history, as stored.
            answer: grows while the model writes, for those who read along.
            store_text: stores what is new of `answer`; called about every 250 ms or 2,048
                characters while text comes.
            hooks: see the request before it is sent, and the answer before it is taken.
        """
        found = self.models.resolve(asked.model)
        if isinstance(found, ResolvedModel):
            answer.asked = _mark_of(found)
        request = ModelRequest(
            model=found.model if isinstance(found, ResolvedModel) else asked.model or "",
            instructions=instructions_of(agent),
            messages=messages,
            tools=agent.tools,
            attempt=asked.attempt,
            max_output_tokens=asked.max_output_tokens,
        )
        with self.live_text.opened(turn_id, answer):
            if hooks is None:
                return await self._read(turn_id, found, request, answer, store_text)
            changed = await hooks.before_model(request)
            if not isinstance(changed, ModelRequest):
                return changed
            if hooks.holds_answers_back:
                answer, store_text = replace(answer), _store_nothing
            ended = await self._read(turn_id, found, changed, answer, store_text)
            return await hooks.after_model(ended) if isinstance(ended, ModelAnswer) else ended

    async def _read(
        self,
        turn_id: TurnId,
        found: ResolvedModel | ModelFailure,
        request: ModelRequest,
        answer: OpenAnswer,
        store_text: StoreText,
    ) -> CallEnding:
        if isinstance(found, ModelFailure):
            return found
        batch = _Batch()
        async with aclosing(found.client.stream(request)) as events:
            while True:
                try:
                    event = await anext(events, _NO_ENDING)
                except Exception as error:  # noqa: BLE001 - a client is foreign code
                    _log.exception("model_client_failed", turn_id=turn_id, provider=found.provider)
                    return Crashed(error=error, reason="internal_error")
                match event:
                    case TextDelta(text=text):
                        answer.text += text
                    case ReasoningDelta(text=text):
                        answer.reasoning += text
                    case _:
                        ended = _named(event, found, request.model)
                        _note_refusal(ended, turn_id, found, request.model)
                        return ended
                self.live_text.grown(turn_id)
                if batch.is_full_with(text):
                    await store_text()
                    batch = _Batch()


def _named(
    ended: ModelAnswer | ModelFailure | RequestRefused, found: ResolvedModel, model: str
) -> ModelAnswer | ModelFailure | RequestRefused:
    """The ending with who was asked, and without the key that was shown to them."""
    if isinstance(ended, ModelAnswer):
        return replace(ended, provider=found.provider, model=model)
    said = replace(
        ended,
        message=found.discreet(ended.message) or "",
        error_code=found.discreet(ended.error_code),
        error_type=found.discreet(ended.error_type),
    )
    if isinstance(said, RequestRefused):
        return said
    return replace(said, provider=found.provider, model=model)


def _note_refusal(ended: CallEnding, turn_id: TurnId, found: ResolvedModel, model: str) -> None:
    """Who has refused a request as wrong: the turn fails, and keeps their words alone."""
    if isinstance(ended, RequestRefused):
        _log.warning(
            "model_refused_request",
            error_ref=error_ref(turn_id),
            turn_id=turn_id,
            provider=found.provider,
            model=model,
            http_status=ended.http_status,
        )


def _mark_of(found: ResolvedModel) -> str:
    """Short, and nothing can be read from it: it is stored with the turn."""
    return sha256(f"{found.provider} {found.address} {found.model}".encode()).hexdigest()[:12]


async def _store_nothing() -> None:
    """For text that nobody may see yet."""


class _Batch:
    """Text that is not stored yet; its age counts from its first piece."""

    def __init__(self) -> None:
        self._since: float | None = None
        self._characters = 0

    def is_full_with(self, text: str) -> bool:
        now = time.monotonic()
        self._since = now if self._since is None else self._since
        self._characters += len(text)
        return now - self._since >= _BATCH_SECONDS or self._characters >= _BATCH_CHARACTERS


_NO_ENDING = ModelFailure(
    type=FailureType.UNAVAILABLE, message="the answer stopped without an ending", retryable=True
)
