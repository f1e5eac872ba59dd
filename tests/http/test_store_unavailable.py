"""When the database does not answer, callers are told so and when to come back."""

from pathlib import Path
from typing import Any

from tests.http.rig import assert_problem, fresh_id, rows, running_rig


async def test_a_service_without_its_database_says_so(database_dsn: str, tmp_path: Path) -> None:
    async with running_rig(database_dsn, tmp_path, with_worker=False) as rig:
        turn = (await rig.post("/conversations/c/messages", {"content": "x"})).json()
        pool: Any = rig.service.runtime.services.turns
        pool._database._pool.terminate()
        answers = [
            await rig.client.get("/turns"),
            await rig.client.get(f"/turns/{turn['turnId']}"),
            await rig.client.get(f"/turns/{turn['turnId']}/events"),
            await rig.client.get("/conversations"),
            await rig.client.get("/conversations/c/messages"),
            await rig.client.put("/conversations/c"),
            await rig.post("/conversations"),
            await rig.post("/conversations/c/messages", {"content": "x"}),
            await rig.post(f"/turns/{turn['turnId']}/resume", {"failureId": "x"}),
            await rig.post(f"/turns/{turn['turnId']}/cancel"),
            await rig.client.get("/readyz"),
        ]
        alive = await rig.client.get("/livez")

    for answer in answers:
        assert_problem(answer, 503, "store_unavailable")
        assert int(answer.headers["Retry-After"]) > 0
    assert alive.status_code == 200


async def test_connections_that_broke_are_replaced(database_dsn: str, tmp_path: Path) -> None:
    async with running_rig(database_dsn, tmp_path, with_worker=False) as rig:
        await rig.post("/conversations/c/messages", {"content": "x"})
        await rows(
            rig.dsn,
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
            "WHERE datname = current_database() AND pid <> pg_backend_pid()",
        )
        message = {"content": "y", "messageId": fresh_id()}
        answers = [await rig.post("/conversations/d/messages", message) for _ in range(5)]

    assert {answer.status_code for answer in answers} <= {202, 503}
    assert answers[-1].status_code == 202
    for answer in answers:
        if answer.status_code == 503:
            assert_problem(answer, 503, "store_unavailable")
    assert len({answer.json()["turnId"] for answer in answers if answer.status_code == 202}) == 1
