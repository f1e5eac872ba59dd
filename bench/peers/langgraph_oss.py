"""LangGraph OSS: langchain.agents.create_agent + AsyncPostgresSaver behind FastAPI with SSE.

BENCH_DURABILITY: async (LangGraph's default), sync (checkpoint before the next step) or exit.
BENCH_DELTA=1: keeps `messages` in a DeltaChannel (beta), which stores only each step's writes
and a snapshot every 100 updates, instead of the whole list at every checkpoint (the default).
"""
import os
from contextlib import asynccontextmanager

import orjson
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from langchain.agents import create_agent
from langchain.tools import tool
from langchain_openai import ChatOpenAI
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from psycopg.rows import dict_row
from psycopg_pool import AsyncConnectionPool
from pydantic import BaseModel

from bench.peers import common as c

extra = {}
if os.environ.get("BENCH_DELTA") == "1":
    from typing import Annotated, Required

    from langchain.agents import AgentState
    from langchain_core.messages import AnyMessage
    from langgraph.channels.delta import DeltaChannel
    from langgraph.graph.message import _messages_delta_reducer

    class DeltaState(AgentState):
        messages: Required[Annotated[list[AnyMessage], DeltaChannel(_messages_delta_reducer)]]
    extra["state_schema"] = DeltaState

DURABILITY = os.environ.get("BENCH_DURABILITY", "async")


@asynccontextmanager
async def lifespan(app):
    async with AsyncConnectionPool(c.DSN, min_size=4, max_size=20, open=False,
                                   kwargs={"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}) as pool:
        saver = AsyncPostgresSaver(pool)
        await saver.setup()
        model = ChatOpenAI(model=c.MODEL, base_url=c.STUB, api_key=c.KEY, streaming=True)
        app.state.agent = create_agent(model, [tool(c.lookup)], system_prompt=c.INSTRUCTIONS,
                                       checkpointer=saver, **extra)
        yield


app = FastAPI(lifespan=lifespan)


class Turn(BaseModel):
    conversation_id: str
    message: str | None = None


@app.post("/turn")
async def turn(t: Turn):
    async def gen():
        given = None if t.message is None else {"messages": [{"role": "user", "content": t.message}]}
        try:
            async for chunk, meta in app.state.agent.astream(
                    given, {"configurable": {"thread_id": t.conversation_id}, "recursion_limit": 100_000},
                    stream_mode="messages", durability=DURABILITY):
                if chunk.type == "AIMessageChunk" and chunk.content:
                    yield b"data: " + orjson.dumps({"t": chunk.content}) + b"\n\n"
        except Exception as e:
            yield b"event: error\ndata: " + orjson.dumps({"error": repr(e)[:300]}) + b"\n\n"
        yield b"data: [DONE]\n\n"
    return StreamingResponse(gen(), media_type="text/event-stream")


@app.get("/tools")
async def tools():
    return {"tool_calls": c.TOOL_CALLS}

if __name__ == "__main__":
    c.serve(app)
