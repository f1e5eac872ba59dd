"""The reachable floor: a hand-written durable loop with nothing on top. NOT a product.

FastAPI for routing, asyncpg for storage, one commit per durable point (turn accepted, each
model answer, each batch of tool results), each commit ONE statement (compare-and-set on the
turn's version + append of the new messages). The request body is kept as serialised bytes
and only appended to. BENCH_FLOOR_CLIENT=openai swaps the raw HTTP client for the openai SDK,
BENCH_FLOOR_DB=off drops persistence; the differences price those two parts.
BENCH_FLOOR_OVERLAP=1 sends the next model request while the commit of the tool results is still
under way, and shows nothing of its answer before that commit is done: a model call has no side
effect to protect, so one of the two commits of a round leaves the critical path.
"""
import asyncio
import os
import uuid
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import asyncpg
import orjson
from fastapi import FastAPI
from fastapi.responses import StreamingResponse
from pydantic import BaseModel

from bench.peers import common as c

from bench.raw_http import Pool

SDK = os.environ.get("BENCH_FLOOR_CLIENT") == "openai"
DB = os.environ.get("BENCH_FLOOR_DB") != "off"
OVERLAP = os.environ.get("BENCH_FLOOR_OVERLAP") == "1"
stub = urlsplit(c.STUB)
pool = Pool(stub.port)
PREFIX = (b'{"model":' + orjson.dumps(c.MODEL) + b',"stream":true,"tools":[' + orjson.dumps(c.TOOL_SPEC) +
          b'],"messages":[' + orjson.dumps({"role": "system", "content": c.INSTRUCTIONS}))
SCHEMA = """
create table if not exists turn(id uuid primary key, conv text not null, v int not null, status smallint not null)
  with (fillfactor=70);
create unique index if not exists turn_active on turn(conv) where status < 2;
create table if not exists msg(conv text, seq int, body text not null, primary key(conv, seq));
"""
ACCEPT = """with t as (insert into turn values ($1, $2, 0, 0)), m as (insert into msg
  select $2, coalesce(max(seq), -1) + 1, $3 from msg where conv = $2 returning seq)
  select seq from m"""
STEP = """with t as (update turn set v = v + 1, status = $3 where id = $1 and v = $2 returning conv)
  insert into msg select t.conv, $4 + o.ord, o.body from t, unnest($5::text[]) with ordinality o(body, ord)"""


async def keep(_):
    """The default reset sends four statements on every release; nothing here leaves session state."""


@asynccontextmanager
async def lifespan(app):
    global con
    if DB:
        con = await asyncpg.create_pool(c.DSN, min_size=4, max_size=20, reset=keep)
        await con.execute(SCHEMA)
    if SDK:
        from openai import AsyncOpenAI
        app.state.client = AsyncOpenAI(base_url=c.STUB, api_key=c.KEY)
    yield
    pool.close()

app = FastAPI(lifespan=lifespan)


class Turn(BaseModel):
    conversation_id: str
    message: str


def take(delta, calls):
    for tc in delta.get("tool_calls") or ():
        cur = calls.setdefault(tc["index"], {"id": tc["id"], "type": "function",
                                             "function": {"name": tc["function"]["name"], "arguments": ""}})
        cur["function"]["arguments"] += tc["function"]["arguments"] or ""


async def model_raw(body, calls):
    con_ = await pool.send("POST", stub.path + "/chat/completions", body)
    try:
        buf = b""
        while (x := await con_.read()) is not None:
            buf += x
            *events, buf = buf.split(b"\n\n")
            got = []
            for ev in events:
                if ev == b"data: [DONE]":
                    continue
                choices = orjson.loads(ev[6:])["choices"]
                if choices:
                    d = choices[0]["delta"]
                    if d.get("content"):
                        got.append(d["content"])
                    take(d, calls)
            if got:
                yield got
    finally:
        pool.release(con_)


async def model_sdk(body, calls):
    req = orjson.loads(body)
    async for ch in await app.state.client.chat.completions.create(**req):
        if ch.choices:
            d = ch.choices[0].delta
            if d.content:
                yield [d.content]
            if d.tool_calls:
                take({"tool_calls": [t.model_dump() for t in d.tool_calls]}, calls)


async def run(conv, message):
    tid, v = uuid.uuid4(), 0
    user = orjson.dumps({"role": "user", "content": message})
    parts, seq = [PREFIX], 0
    if DB:
        async with con.acquire() as db:
            seq = await db.fetchval(ACCEPT, tid, conv, user.decode())
            if seq:
                parts += [r[0].encode() for r in await db.fetch(
                    "select body from msg where conv = $1 and seq < $2 order by seq", conv, seq)]
    parts.append(user)
    model = model_sdk if SDK else model_raw
    prefix, saving = b",".join(parts), None
    while True:
        text, calls = [], {}
        async for got in model(prefix + b"]}", calls):
            if saving:
                await saving
                saving = None
            text += got
            yield b"".join(b"data: " + orjson.dumps({"t": g}) + b"\n\n" for g in got)
        msg = {"role": "assistant", "content": "".join(text) or None}
        calls = [calls[i] for i in sorted(calls)]
        if calls:
            msg["tool_calls"] = calls
        new = [orjson.dumps(msg)]
        if saving:
            await saving
            saving = None
        if DB:
            await con.execute(STEP, tid, v, 1 if calls else 2, seq, [n.decode() for n in new])
            v, seq = v + 1, seq + len(new)
        if not calls:
            return
        prefix += b"," + new[0]
        out = await asyncio.gather(*(c.lookup(**orjson.loads(x["function"]["arguments"])) for x in calls))
        new = [orjson.dumps({"role": "tool", "tool_call_id": x["id"], "content": o}) for x, o in zip(calls, out)]
        if DB:
            saving = asyncio.ensure_future(con.execute(STEP, tid, v, 1, seq, [n.decode() for n in new]))
            v, seq = v + 1, seq + len(new)
            if not OVERLAP:
                await saving
                saving = None
        prefix += b"," + b",".join(new)


@app.post("/turn")
async def turn(t: Turn):
    async def gen():
        try:
            async for b in run(t.conversation_id, t.message):
                yield b
        except Exception as e:
            yield b"event: error\ndata: " + orjson.dumps({"error": repr(e)[:300]}) + b"\n\n"
        yield b"data: [DONE]\n\n"
    return StreamingResponse(gen(), media_type="text/event-stream")


@app.get("/sse/{n}")
async def sse(n: int):
    """Bare FastAPI SSE: n events, one yield each (a physical limit)."""
    async def gen():
        for _ in range(n):
            yield b'data: {"t":"lorem "}\n\n'
    return StreamingResponse(gen(), media_type="text/event-stream")


@app.get("/tools")
async def tools():
    return {"tool_calls": c.TOOL_CALLS}

if __name__ == "__main__":
    c.serve(app)
