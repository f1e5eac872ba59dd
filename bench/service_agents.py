"""The agent of the benchmark, as `TURNKEEPER_AGENTS` names it: one reading tool, no more."""

from app.agents import Agent, Limits
from app.tools import tool
from bench.peers.common import INSTRUCTIONS, lookup

agents = [
    Agent(
        id="bench",
        instructions=INSTRUCTIONS,
        tools=[tool(effect="reads")(lookup)],
        model="stub/stub-1",
        limits=Limits(max_iterations=10_000, max_steps=20_000),  # for turns of 200 rounds
    )
]
