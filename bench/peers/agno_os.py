"""Agno AgentOS on Postgres. BENCH_AGNO_DB: async (AsyncPostgresDb) or sync (PostgresDb)."""
import os

os.environ.setdefault("AGNO_TELEMETRY", "false")
from agno.agent import Agent
from agno.models.openai import OpenAIChat
from agno.os import AgentOS

from bench.peers import common as c

if os.environ.get("BENCH_AGNO_DB", "async") == "async":
    from agno.db.postgres import AsyncPostgresDb
    db = AsyncPostgresDb(db_url=c.DSN.replace("postgresql://", "postgresql+psycopg_async://"))
else:
    from agno.db.postgres import PostgresDb
    db = PostgresDb(db_url=c.DSN.replace("postgresql://", "postgresql+psycopg://"))

extra = {"num_history_runs": int(os.environ["BENCH_AGNO_HISTORY"])} if "BENCH_AGNO_HISTORY" in os.environ else {}
agent = Agent(id="agent", name="agent", model=OpenAIChat(id=c.MODEL, base_url=c.STUB, api_key=c.KEY), db=db,
              tools=[c.lookup], instructions=c.INSTRUCTIONS, add_history_to_context=True, telemetry=False, **extra)
ckpt = os.environ.get("BENCH_AGNO_CHECKPOINT")
if ckpt:
    agent.checkpoint = ckpt
agent_os = AgentOS(id="bench", agents=[agent], telemetry=False)
app = agent_os.get_app()


@app.get("/bench-tools")
async def tools():
    return {"tool_calls": c.TOOL_CALLS}

if __name__ == "__main__":
    c.serve(app)
