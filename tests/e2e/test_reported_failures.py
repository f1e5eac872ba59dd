"""What was reported elsewhere of failing models: secrets that got out, retries that helped nobody.

The numbers are those of the public reports that these stories were made from.
"""

import json
from base64 import b64encode
from itertools import product
from typing import Any
from urllib.parse import quote

import httpx
import pytest
from pydantic import SecretStr

from app.agents import Agent, RetryPolicy
from app.services.principal import Role
from tests.e2e.conftest import Stage
from tests.http.rig import Rig, fresh_id, logging_as_served, rows
from tests.support.service import running_service
from tests.support.story import MODEL

KEY = "canary/9f8e+7d6c5b4a3928"
FORMS = {
    "plain": KEY,
    "percent": quote(KEY, safe=""),
    "base64": b64encode(KEY.encode()).decode(),
    "escaped": "".join(f"\\u{ord(c):04x}" for c in KEY),
}
PATIENT = Agent(
    id="clerk",
    instructions="Be brief.",
    model=MODEL,
    retry=RetryPolicy(max_retries=5),
)


def failing(status: int, error: dict[str, Any], **headers: str) -> list[dict[str, object]]:
    """A model that always fails so."""
    fault = {"times": 999, "status": status, "headers": headers, "body": {"error": error}}
    return [{"text": "Done.", "faults": [fault]}]


# --- 091 and 092: quotas and rates ----------------------------------------------------------------


async def test_an_exhausted_quota_costs_one_call_and_is_told_at_once(stage: Stage) -> None:
    variants = {
        "openai": (
            429,
            {"message": "You exceeded your current quota", "code": "insufficient_quota"},
        ),
        "anthropic": (403, {"message": "Your credit balance is too low", "type": "billing_error"}),
        "deepseek": (402, {"message": "Insufficient Balance", "code": "invalid_request_error"}),
        "dashscope": (400, {"message": "Access denied, account in arrears.", "code": "Arrearage"}),
    }
    async with running_service(stage.dsn, stage.settings, agents=[PATIENT]) as service:
        for name, (status, error) in variants.items():
            stage.provider.script(MODEL, failing(status, error))

            turn = await service.send(f"c-{name}", "go", agentId="clerk", wait=2)

            assert (turn["status"], turn["failureType"]) == ("WAITING_FOR_MODEL", "QUOTA_EXCEEDED")
            assert turn["counters"]["retries"] == 0
            assert len(stage.provider.requests(MODEL)) == 1


async def test_a_wait_that_is_stated_is_kept_and_shown(stage: Stage) -> None:
    limited = {"message": "Rate limit reached", "code": "rate_limit_exceeded"}
    stage.provider.script(MODEL, failing(429, limited, **{"retry-after": "120"}))
    async with running_service(stage.dsn, stage.settings, agents=[PATIENT]) as service:
        turn = await service.send("c-1", "go", agentId="clerk", wait=2)

    assert (turn["status"], turn["retryAfterMillis"]) == ("RETRY_SCHEDULED", 120_000)
    [go_on] = [each for each in turn["actions"] if each["command"] == "CONTINUE"]
    assert (go_on["enabled"], go_on["reason"]) == (True, "not_before")
    assert len(stage.provider.requests(MODEL)) == 1


# --- 112: a key in the provider's answer ----------------------------------------------------------


_EVERY_TABLE = """
SELECT string_agg(format('SELECT t::text FROM %I t', tablename), ' UNION ALL ') AS asked
FROM pg_tables WHERE schemaname = 'public'
"""


async def test_a_key_that_the_provider_sends_back_is_nowhere(
    stage: Stage, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []
    settings = stage.settings.model_copy(update={"openai_api_key": SecretStr(KEY)})
    with logging_as_served("json"):
        async with running_service(stage.dsn, settings, agents=[PATIENT]) as service:
            rig = Rig(service=service, provider=stage.provider, dsn=stage.dsn)
            for role in (Role.OPERATOR, Role.USER):
                async with rig.signed_in_as(role) as client:
                    for status, form in product((400, 401, 429, 500), FORMS.values()):
                        error = {"message": f"Incorrect API key {form}.", "type": form}
                        told = failing(status, error | {"code": form}, **{"x-echo": KEY})
                        stage.provider.script(MODEL, told)
                        seen += await everything_told(client)
            seen.append((await service.client.get("/metrics")).text)
    [every_table] = await rows(stage.dsn, _EVERY_TABLE)
    stored = str(await rows(stage.dsn, every_table["asked"]))
    seen += [stored, capsys.readouterr().err]

    for text in seen:
        for name, form in FORMS.items():
            assert form not in text, name
            assert json.dumps(form)[1:-1] not in text, name
    assert "[redacted]" in stored
    assert any("errorRef" in text and "[redacted]" in text for text in seen)


async def everything_told(client: httpx.AsyncClient) -> list[str]:
    """All that is answered about a turn that fails, to whoever began it."""
    sent = await client.post(
        f"/conversations/{fresh_id()}/messages",
        json={"content": "go", "agentId": "clerk"},
        headers={"Prefer": "wait=10"},
    )
    path = f"/turns/{sent.json()['turnId']}"
    read = [await client.get(f"{path}{rest}") for rest in ("", "/failures")]
    await client.post(f"{path}/cancel")
    read.append(await client.get(f"{path}/events"))
    assert [answer.status_code for answer in read] == [200, 200, 200]
    return [answer.text for answer in (sent, *read)]
