"""The agent that is there before a user has declared one."""

from collections.abc import Sequence

from app.agents.declaration import Agent
from app.ports import Tool

_INSTRUCTIONS = """\
You are the assistant of a small mail-order shop.
Look things up with your tools before you answer, and several at once where you can.
Answer in a few sentences, with the numbers you found.
Save a note only when you are asked to.
If a tool fails or its outcome is unknown, say so plainly."""


def builtin_agent(tools: Sequence[Tool]) -> Agent:
    """The agent `assistant`, on whatever model the settings name at the time of each call.

    It names no model and no version: its version follows from these words and from the tools, so
    that a start with another key or model brings back the turns that wait.
    """
    return Agent(id="assistant", instructions=_INSTRUCTIONS, tools=tools)
