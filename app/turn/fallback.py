"""Fallback models: what an agent asks when the model before it fails.

They are asked in their order, for the failure types that the agent names, at once and in a step of
their own each; every failure stands in the history (`MODEL_FAILED`). Only before any output (C12),
and not where a person has named a model: then it is that one or none.

The turn stays with the model that answered. Automatic retries stay with the last one asked, so that
an exhausted quota is not asked again by itself; whoever ends a wait for the model begins with the
first again.
"""

from app.turn.agent import Agent
from app.turn.failures import ModelFailure
from app.turn.state import Turn


def can_fall_back(turn: Turn, failure: ModelFailure, agent: Agent) -> bool:
    """Whether another model is left to be asked after this failure, which came before any output.

    An exception to the order are types that the agent does not name: those wait or are tried again
    as without fallbacks.
    """
    is_left = turn.model is None and turn.fallback < len(agent.fallbacks)
    return is_left and failure.type in agent.fallback_on
