"""A hand-written agent loop as a DBOS durable workflow behind FastAPI.

The model call and every tool call are DBOS steps. Tokens go to the reader through an
in-process queue (the cheapest thing a DBOS user can do; BENCH_DBOS_STREAM=1 uses
DBOS.write_stream_async instead, which makes every chunk durable).
The conversation's messages live in the app's own table, written once at the turn's end.
"""
import asyncio
import os
import uuid
from contextlib import asynccontextmanager

import orjson
import psycopg_pool
from dbos import DBOS, SetWorkflowID
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from openai import AsyncOpenAI
from pydantic import BaseModel

from bench.peers import common as c

DURABLE_STREAM = os.environ.get("BENCH_DBOS_STREAM") == "1"
QUEUES: dict[str, asyncio.Queue] = {}
client = AsyncOpenAI(base_url=c.STUB, api_key=c.KEY)


@asynccontextmanager
async def lifespan(app):
    global POOL
    async with psycopg_pool.AsyncConnectionPool(c.DSN, min_size=4, max_size=20, open=False, kwargs={"autocommit": True}) as POOL:
        async with POOL.connection() as con:
            await con.execute("create table if not exists conv(id text, seq int, msg jsonb, primary key(id, seq))")
        DBOS.launch()
        yield
        DBOS.destroy()

app = FastAPI(lifespan=lifespan)
DBOS(config={"name": "bench", "system_database_url": c.DSN, "log_level": "ERROR",
             "run_admin_server": False, "sys_db_pool_size": 20})


@DBOS.step()
async def load_history(conv: str) -> list:
    async with POOL.connection() as con:
        rows = await (await con.execute("select msg from conv where id=%s order by seq", (conv,))).fetchall()
    return [r[0] for r in rows]


@DBOS.step()
async def save(conv: str, base: int, new: list) -> None:
    async with POOL.connection() as con, con.transaction():
        async with con.cursor() as cur:
            await cur.executemany("insert into conv values (%s, %s, %s) on conflict do nothing",
                                  [(conv, base + i, orjson.dumps(m).decode()) for i, m in enumerate(new)])


@DBOS.step()
async def model(messages: list) -> dict:
    wid = DBOS.workflow_id
    q = QUEUES.get(wid)
    text, calls = [], {}
    stream = await client.chat.completions.create(
        model=c.MODEL, messages=[{"role": "system", "content": c.INSTRUCTIONS}, *messages],
        tools=[c.TOOL_SPEC], stream=True)
    async for ch in stream:
        if not ch.choices:
            continue
        d = ch.choices[0].delta
        if d.content:
            text.append(d.content)
            if DURABLE_STREAM:
                await DBOS.write_stream_async("tokens", d.content)
            elif q:
                q.put_nowait(d.content)
        for tc in d.tool_calls or ():
            cur = calls.setdefault(tc.index, {"id": tc.id, "type": "function", "function": {"name": tc.function.name, "arguments": ""}})
            cur["function"]["arguments"] += tc.function.arguments or ""
    msg = {"role": "assistant", "content": "".join(text) or None}
    if calls:
        msg["tool_calls"] = [calls[i] for i in sorted(calls)]
    return msg


@DBOS.step()
async def call_tool(call: dict) -> dict:
    return {"role": "tool", "tool_call_id": call["id"], "content": await c.lookup(**orjson.loads(call["function"]["arguments"]))}


@DBOS.workflow()
async def agent_turn(conv: str, message: str) -> str:
    history = await load_history(conv)
    new = [{"role": "user", "content": message}]
    while True:
        msg = await model(history + new)
        new.append(msg)
        if not msg.get("tool_calls"):
            break
        if len(msg["tool_calls"]) == 1:
            new.append(await call_tool(msg["tool_calls"][0]))
        else:
            new.extend(await asyncio.gather(*(call_tool(x) for x in msg["tool_calls"])))
    await save(conv, len(history), new)
    return msg["content"]


class Turn(BaseModel):
    conversation_id: str
    message: str


@app.post("/turn")
async def turn(t: Turn):
    wid = str(uuid.uuid4())
    LAST[t.conversation_id] = wid
    q = QUEUES[wid] = asyncio.Queue()

    async def gen():
        try:
            with SetWorkflowID(wid):
                handle = await DBOS.start_workflow_async(agent_turn, t.conversation_id, t.message)
            if DURABLE_STREAM:
                async for tok in DBOS.read_stream_async(wid, "tokens"):
                    yield b"data: " + orjson.dumps({"t": tok}) + b"\n\n"
                    
                await handle.get_result()
            else:
                done = asyncio.ensure_future(handle.get_result())
                done.add_done_callback(lambda _: q.put_nowait(None))
                while (tok := await q.get()) is not None:
                    yield b"data: " + orjson.dumps({"t": tok}) + b"\n\n"
                done.result()
        except Exception as e:
            yield b"event: error\ndata: " + orjson.dumps({"error": repr(e)[:300]}) + b"\n\n"
        finally:
            QUEUES.pop(wid, None)
        yield b"data: [DONE]\n\n"
    return StreamingResponse(gen(), media_type="text/event-stream")


LAST: dict[str, str] = {}


class Resume(BaseModel):
    conversation_id: str


@app.post("/resume")
async def resume(r: Resume):
    """A failed DBOS workflow is final; the documented way on is to fork it at the step that failed."""
    steps = await DBOS.list_workflow_steps_async(LAST[r.conversation_id])
    failed = next(s["function_id"] for s in steps if s["error"] is not None)
    handle = await DBOS.fork_workflow_async(LAST[r.conversation_id], failed)
    return {"t": await handle.get_result()}


@DBOS.workflow()
async def parked() -> str:
    return await DBOS.recv_async("wake", timeout_seconds=3600)


@app.post("/park/{n}")
async def park(n: int):
    for _ in range(n):
        await DBOS.start_workflow_async(parked)
    return {"parked": n}


@app.get("/tools")
async def tools():
    return {"tool_calls": c.TOOL_CALLS}

if __name__ == "__main__":
    c.serve(app)
