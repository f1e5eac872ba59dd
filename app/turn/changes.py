"""What may be changed when a turn is retried or resumed, by whom, and where it makes sense.

A change holds for the rest of the turn (turn semantics T60, C15 to C17). The turn's exact version
of its agent says who may make it; what is not allowed there is refused. A change that cannot help
with the failure that is waited for is refused as well:

    model              whatever the failure is
    maxOutputTokens    a token limit that an answer's length has a part in
    compact, keepTurns a token limit that the history has a part in
    limits             whatever the failure is, and where a limit has paused the turn
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from app.turn.agent import Agent, Limits, Who
from app.turn.failures import FailureType, ModelFailure, TokenLimitPhase
from app.turn.state import Turn
from app.turn.states import Paused, WaitingForModel

ChangeName: TypeAlias = Literal["model", "maxOutputTokens", "compact", "keepTurns", "limits"]
"""As the API spells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Changes:
    """What is to be otherwise from here on; `None`: as it was."""

    model: str | None = None
    max_output_tokens: int | None = None
    """At least 1."""
    compact: bool = False
    """Whether what was said before the turn is summed up first."""
    keep_turns: int | None = None
    """How many turns before this one go into its requests, and are not summed up; from 0."""
    limits: Limits | None = None

    @property
    def names(self) -> tuple[ChangeName, ...]:
        """What is changed, in the order of the fields."""
        said: Mapping[ChangeName, bool] = {
            "model": self.model is not None,
            "maxOutputTokens": self.max_output_tokens is not None,
            "compact": self.compact,
            "keepTurns": self.keep_turns is not None,
            "limits": self.limits is not None,
        }
        return tuple(name for name, is_said in said.items() if is_said)


NO_CHANGES = Changes()


def offered(turn: Turn, agent: Agent, *, by_operator: bool = False) -> tuple[ChangeName, ...]:
    """The changes that would be accepted now and can help, of a user or of an operator.

    With `RETRY_MODEL`, or with `RESUME`, which takes limits only.
    """
    taken = {"limits"} if isinstance(turn.state, Paused) else set(_WHO)
    return tuple(
        name
        for name in _WHO
        if name in taken
        and is_fitting(turn, name)
        and is_allowed(agent, name, by_operator=by_operator)
    )


def models_offered(turn: Turn, agent: Agent) -> tuple[str, ...]:
    """Models that the agent's version knows of, without the one that is asked now."""
    own = () if agent.model is None else (agent.model,)
    known = dict.fromkeys((*own, *agent.fallbacks, *(agent.changeable.models or ())))
    now = turn.model_under(agent)
    return tuple(name for name in known if name != now and may_be_named(agent, name))


def is_allowed(agent: Agent, name: ChangeName, *, by_operator: bool) -> bool:
    """Whether the agent's version lets a user, or an operator, change this at all."""
    who = _WHO[name](agent)
    return who == "user" or (who == "operator" and by_operator)


def may_be_named(agent: Agent, model: str) -> bool:
    """Whether the agent's version lets this model be asked in place of its own."""
    named = agent.changeable.models
    return named is None or model in named


def is_fitting(turn: Turn, name: ChangeName) -> bool:
    """Whether the change can help where the turn stands."""
    match turn.state:
        case WaitingForModel(record=record):
            return name in _helps_with(record.failure)
        case Paused():
            return name in {"model", "limits"}
        case _:
            return False


def _helps_with(failure: ModelFailure) -> frozenset[ChangeName]:
    if failure.type is not FailureType.TOKEN_LIMIT_EXCEEDED:
        return _ALWAYS
    match failure.token_limit_phase:
        case TokenLimitPhase.INPUT_CONTEXT:
            return _ALWAYS | _SHORTER_HISTORY
        case TokenLimitPhase.OUTPUT:
            return _ALWAYS | _OTHER_LENGTH
        case TokenLimitPhase.TOTAL_CONTEXT | TokenLimitPhase.UNKNOWN | None:
            return _ALWAYS | _SHORTER_HISTORY | _OTHER_LENGTH


_ALWAYS: frozenset[ChangeName] = frozenset({"model", "limits"})
_SHORTER_HISTORY: frozenset[ChangeName] = frozenset({"compact", "keepTurns"})
_OTHER_LENGTH: frozenset[ChangeName] = frozenset({"maxOutputTokens"})
_WHO: Mapping[ChangeName, Callable[[Agent], Who]] = {
    "model": lambda agent: agent.changeable.model,
    "maxOutputTokens": lambda agent: agent.changeable.max_output_tokens,
    "compact": lambda agent: agent.changeable.compact,
    "keepTurns": lambda agent: agent.changeable.keep_turns,
    "limits": lambda agent: agent.changeable.limits,
}
