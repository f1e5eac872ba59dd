"""`GET /metrics`: what becomes of model calls that fail, for whoever runs the installation."""

import re

import httpx

from app.http.worker_app import worker_app
from app.services.principal import Role
from tests.http.rig import SECRET_WORDS, Rig, assert_problem, fresh_id, outage
from tests.support.service import TOKEN


def counted(text: str, name: str, **labels: str) -> float:
    """The sum over all series of a name that have these labels."""
    total = 0.0
    for line in text.splitlines():
        sample = re.fullmatch(rf"{name}(?:\{{(.*)\}})? (\S+)", line)
        if sample and all(f'{key}="{value}"' in (sample[1] or "") for key, value in labels.items()):
            total += float(sample[2])
    return total


async def figures(rig: Rig) -> str:
    answer = await rig.client.get("/metrics")
    assert answer.status_code == 200, answer.text
    assert answer.headers["Content-Type"].startswith("text/plain; version=")
    return answer.text


async def test_a_wait_its_end_and_the_answer_after_it_are_counted_once(rig: Rig) -> None:
    before = await figures(rig)
    turn = await rig.waiting()
    body = {"failureId": turn["failureId"]}
    done = await rig.service.resume(turn["turnId"], body)
    again = await rig.service.resume(turn["turnId"], body)
    after = await figures(rig)

    assert done.json()["status"] == "COMPLETED"
    assert_problem(again, 409, "turn_terminal")
    quota = {
        "type": "QUOTA_EXCEEDED",
        "provider": "openai",
        "model": "quick",
        "http_status": "429",
        "code": "insufficient_quota",
    }
    for name, more in (
        ("turnkeeper_model_failures_total", {}),
        ("turnkeeper_model_waits_begun_total", {}),
        ("turnkeeper_model_waits_ended_total", {"by": "retry"}),
        ("turnkeeper_model_resumes_total", {"outcome": "success"}),
    ):
        was, now = (counted(text, name, **quota, **more) for text in (before, after))
        assert now - was == 1, name


async def test_figures_tell_of_no_tenant_no_turn_and_no_words(rig: Rig) -> None:
    turn = await rig.waiting()
    await rig.failed()

    text = await figures(rig)

    said = (turn["turnId"], turn["conversationId"], "clerk", "default", SECRET_WORDS, "quota,")
    assert not [each for each in said if each in text]


async def test_figures_are_for_whoever_runs_the_installation(rig: Rig) -> None:
    for role in Role:
        async with rig.signed_in_as(role) as somebody:
            assert_problem(await somebody.get("/metrics"), 403, "forbidden")
    async with httpx.AsyncClient(base_url=rig.service.url, trust_env=False) as nobody:
        assert_problem(await nobody.get("/metrics"), 401, "unauthenticated")


async def test_a_worker_tells_its_own_to_the_same_token(rig: Rig) -> None:
    await rig.service.send(fresh_id(), outage("overloaded"), agentId="clerk")
    runtime = rig.service.runtime
    app = worker_app(runtime.authenticator, runtime.metrics)
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app=app), base_url="http://worker"
    ) as client:
        mine = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}"})
        theirs = await client.get("/metrics", headers={"Authorization": f"Bearer {TOKEN}x"})
        nobodys = await client.get("/metrics")

    assert counted(mine.text, "turnkeeper_model_failures_total", type="OVERLOADED") >= 1
    assert [theirs.status_code, nobodys.status_code] == [401, 401]
    assert "turnkeeper" not in theirs.text + nobodys.text
