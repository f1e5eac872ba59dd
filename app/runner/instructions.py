"""What the model is told before the conversation."""

from app.turn.agent import Agent

_OUTPUT = """\
Your final answer, the one with which you call no tool, must be one JSON value that fits this JSON \
Schema, and nothing else: no words before it or behind it.
{schema}"""


def instructions_of(agent: Agent) -> str:
    """The agent's instructions, and the form of its final answer where it declares one.

    The form is said in words, because that works with every provider.
    """
    if agent.output_schema is None:
        return agent.instructions
    form = _OUTPUT.format(schema=agent.output_schema)
    return f"{agent.instructions}\n\n{form}" if agent.instructions.strip() else form
