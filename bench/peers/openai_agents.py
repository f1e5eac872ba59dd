"""OpenAI Agents SDK + SQLAlchemySession (asyncpg) behind FastAPI with SSE."""
from contextlib import asynccontextmanager

import orjson
from agents import Agent, OpenAIChatCompletionsModel, Runner, function_tool, set_tracing_disabled
from agents.extensions.memory import SQLAlchemySession
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel
from sqlalchemy.ext.asyncio import create_async_engine

from bench.peers import common as c

set_tracing_disabled(True)
agent = Agent(name="agent", instructions=c.INSTRUCTIONS, tools=[function_tool(c.lookup)],
              model=OpenAIChatCompletionsModel(model=c.MODEL, openai_client=AsyncOpenAI(base_url=c.STUB, api_key=c.KEY)))
engine = create_async_engine(c.DSN.replace("postgresql://", "postgresql+asyncpg://"), pool_size=20)


@asynccontextmanager
async def lifespan(app):
    await SQLAlchemySession("setup", engine=engine, create_tables=True).get_items()
    yield

app = FastAPI(lifespan=lifespan)


class Turn(BaseModel):
    conversation_id: str
    message: str


@app.post("/turn")
async def turn(t: Turn):
    async def gen():
        try:
            session = SQLAlchemySession(t.conversation_id, engine=engine)
            result = Runner.run_streamed(agent, t.message, session=session, max_turns=100_000)
            async for ev in result.stream_events():
                if ev.type == "raw_response_event" and ev.data.type == "response.output_text.delta":
                    yield b"data: " + orjson.dumps({"t": ev.data.delta}) + b"\n\n"
        except Exception as e:
            yield b"event: error\ndata: " + orjson.dumps({"error": repr(e)[:300]}) + b"\n\n"
        yield b"data: [DONE]\n\n"
    return StreamingResponse(gen(), media_type="text/event-stream")


@app.get("/tools")
async def tools():
    return {"tool_calls": c.TOOL_CALLS}

if __name__ == "__main__":
    c.serve(app)
