"""What may be changed with an action, by whoever asks, and which of the remedies that leaves.

The list of actions is the same for everybody; what a caller may change with one is up to the
turn's version of its agent. A remedy that needs a change nobody would take from this caller is not
named: what is said to help is offered (case 32).
"""

from collections.abc import Mapping
from dataclasses import replace

from app.turn.actions import Action
from app.turn.agent import Agent
from app.turn.changes import ChangeName, models_offered, offered
from app.turn.retry_advice import Remedy
from app.turn.state import Turn

_TAKE_CHANGES = frozenset({"RETRY_MODEL", "RESUME"})
_NEEDS: Mapping[Remedy, frozenset[ChangeName]] = {
    "shorter_history": frozenset({"compact", "keepTurns"}),
    "shorter_answer": frozenset({"maxOutputTokens"}),
    "higher_output_limit": frozenset({"maxOutputTokens"}),
    "other_model": frozenset({"model"}),
}
"""One of these changes brings it about; what is not here is brought about elsewhere."""


def with_changes(action: Action, turn: Turn, agent: Agent, *, by_operator: bool) -> Action:
    """The action with the changes that a user, or an operator, may make with it now."""
    names: tuple[ChangeName, ...] = ()
    if _takes_changes(action):
        names = offered(turn, agent, by_operator=by_operator)
    models = models_offered(turn, agent) if "model" in names else ()
    if "model" in names and agent.changeable.models is not None and not models:
        names = tuple(name for name in names if name != "model")  # there is no other one
    helps = tuple(each for each in action.helps if _is_at_hand(each, names))
    return replace(action, changes=names, models=models, helps=helps)


def _takes_changes(action: Action) -> bool:
    return action.enabled and action.command in _TAKE_CHANGES


def _is_at_hand(remedy: Remedy, names: tuple[ChangeName, ...]) -> bool:
    return remedy not in _NEEDS or not _NEEDS[remedy].isdisjoint(names)
