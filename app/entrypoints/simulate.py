"""`turnkeeper simulate-provider`: the scripted provider over HTTP, in OpenAI's shape.

For tests and rehearsals. What it answers is decided in `app.providers.simulation`; here are only
routes, delays, cuts and hangs.
"""

import asyncio
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from app.providers.scripted import WORDS_PER_SECOND
from app.providers.simulation import Simulation
from app.providers.simulation_script import (
    AnswerReply,
    ErrorReply,
    InvalidScriptError,
    invalid_request,
)
from app.providers.simulation_wire import event_stream, whole_body
from app.providers.wire_json import as_object, as_text, parsed_object

_JSON = "application/json"


@dataclass(slots=True)
class Performance:
    """Sends an answer piece by piece, or breaks it as the script says.

    Returning from an ASGI application before the last piece makes the server close the
    connection, which is what a broken stream looks like from outside.
    """

    reply: AnswerReply
    pieces: Iterator[bytes]
    content_type: str

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send what is to be sent."""
        del scope
        if self.reply.hangs and self.reply.cut_at_byte is None:
            await _until_the_client_leaves(receive)
            return
        headers = [(b"content-type", self.content_type.encode())]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        is_whole = await self._send_pieces(send)
        if self.reply.hangs:
            await _until_the_client_leaves(receive)
        elif is_whole and not self.reply.breaks_off:
            await send({"type": "http.response.body", "body": b""})

    async def _send_pieces(self, send: Send) -> bool:
        """Whether all bytes were sent, not only those before the cut."""
        left = self.reply.cut_at_byte
        for piece in self.pieces:
            await asyncio.sleep(self.reply.delay_seconds)
            sent = piece if left is None else piece[:left]
            await send({"type": "http.response.body", "body": sent, "more_body": True})
            if left is not None:
                left -= len(sent)
                if left <= 0:
                    return False
        return True


async def _until_the_client_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


def create_app(*, words_per_second: float = WORDS_PER_SECOND) -> Starlette:
    """A simulated provider with no scripts; its state is `app.state.simulation`.

    `words_per_second` is the pace of models without a script, which behave as the demo model.
    """
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", _complete, methods=["POST"]),
            Route("/v1/models", _list_models),
            Route("/scripts/{model:path}", _put_script, methods=["PUT"]),
            Route("/scripts/{model:path}", _delete_script, methods=["DELETE"]),
            Route("/requests/{model:path}", _list_requests),
            Route("/livez", _livez),
        ]
    )
    app.state.simulation = Simulation(words_per_second=words_per_second)
    return app


def run(host: str = "127.0.0.1", port: int = 9900) -> None:
    """Serve until interrupted, after printing the base URL; port 0 takes any free one."""
    config = uvicorn.Config(create_app(), host=host, port=port, log_level="warning")
    socket = config.bind_socket()
    sys.stdout.write(f"http://{host}:{socket.getsockname()[1]}/v1\n")
    sys.stdout.flush()
    uvicorn.Server(config).run(sockets=[socket])


async def _complete(request: Request) -> Response | Performance:
    body = parsed_object(await request.body())
    if body is None:
        return _error(invalid_request("the body is not a JSON object"))
    reply = _simulation(request).reply(body)
    if isinstance(reply, ErrorReply):
        return _error(reply)
    model = as_text(body.get("model"))
    if body.get("stream") is not True:
        return Performance(reply, iter([whole_body(reply, model)]), _JSON)
    has_usage = as_object(body.get("stream_options")).get("include_usage") is True
    pieces = event_stream(reply, model, has_usage=has_usage)
    return Performance(reply, pieces, "text/event-stream; charset=utf-8")


async def _list_models(request: Request) -> Response:
    models = [{"id": name, "object": "model"} for name in _simulation(request).models()]
    return _json({"object": "list", "data": models})


async def _put_script(request: Request) -> Response:
    script = parsed_object(await request.body())
    try:
        _simulation(request).put_script(request.path_params["model"], script or {})
    except InvalidScriptError as error:
        return _error(invalid_request(str(error)))
    return Response(status_code=204)


async def _delete_script(request: Request) -> Response:
    _simulation(request).reset(request.path_params["model"])
    return Response(status_code=204)


async def _list_requests(request: Request) -> Response:
    return _json({"items": _simulation(request).received(request.path_params["model"])})


async def _livez(_: Request) -> Response:
    return _json({"status": "ok"})


def _simulation(request: Request) -> Simulation:
    simulation: Simulation = request.app.state.simulation
    return simulation


def _json(value: object, status: int = 200) -> Response:
    return Response(orjson.dumps(value), status_code=status, media_type=_JSON)


def _error(reply: ErrorReply) -> Response:
    is_text = isinstance(reply.body, str)
    body = reply.body if is_text else orjson.dumps(reply.body)
    headers = {"content-type": _JSON, **reply.headers}
    return Response(body, status_code=reply.status, headers=headers)
