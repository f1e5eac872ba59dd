"""The parts of the page called in a browser as they are, and the events that they are fed."""

import json

from tests.console.pages import Console


async def call(bench: Console, module: str, body: str, *arguments: object) -> object:
    """Runs `body` with the module's exports as `m` and the arguments as `a`."""
    script = (
        f"(given) => import('/console/{module}.js')"
        f".then(async (m) => {{ const a = JSON.parse(given); {body} }})"
        ".then((found) => JSON.stringify(found))"
    )
    return json.loads(await bench.page.evaluate(script, json.dumps(arguments)))


def event(sequence: int, kind: str, **data: object) -> dict[str, object]:
    at = f"2026-08-15T12:00:{sequence:02}Z"
    return {"sequence": sequence, "type": kind, "occurredAt": at, "data": data}


def asked_call(call_id: str, tool_name: str = "t") -> dict[str, str]:
    """A call as the model's answer holds it."""
    return {"callId": call_id, "toolName": tool_name, "arguments": f'{{"of": "{call_id}"}}'}
