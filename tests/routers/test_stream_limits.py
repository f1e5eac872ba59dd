"""No more event streams at once than a process can bear, and who is refused loses nothing."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from pathlib import Path

import httpx
import pytest

from app.http.error_handlers import ProblemError
from app.http.open_streams import OpenStreams, StreamLimits
from app.services.principal import Principal, Role
from app.turn.ids import ActorId, TenantId
from tests.http.rig import MUTE, assert_problem, fresh_id
from tests.support.polling import eventually
from tests.support.service import Service, running_service, settings_for_tests

MOST = 2
EVENTS = {"Accept": "text/event-stream"}


@pytest.fixture
async def strict(database_dsn: str, tmp_path: Path) -> AsyncGenerator[Service]:
    """A service that serves a user two streams at once."""
    settings = settings_for_tests(tmp_path, streams_per_user=MOST)
    async with running_service(database_dsn, settings, agents=[MUTE], with_worker=False) as service:
        yield service


async def begun(service: Service) -> dict[str, object]:
    return await service.send(fresh_id(), "hello", agentId="mute", wait=0)


async def opened(service: Service, stack: AsyncExitStack, path: str) -> httpx.Response:
    """A stream that stays open as long as `stack`."""
    answer = await stack.enter_async_context(service.client.stream("GET", path, headers=EVENTS))
    assert answer.status_code == 200
    return answer


async def test_a_stream_beyond_the_limit_is_refused_until_another_is_closed(
    strict: Service,
) -> None:
    turn = await begun(strict)
    of_turn = f"/turns/{turn['turnId']}/events"
    of_conversation = f"/conversations/{turn['conversationId']}/events"

    async with AsyncExitStack() as stack:
        await opened(strict, stack, of_turn)
        await opened(strict, stack, of_conversation)
        for path in (of_turn, of_conversation):
            refused = await strict.client.get(path, headers=EVENTS)
            assert_problem(refused, 429, "too_many_streams")
            assert refused.headers["Retry-After"] == "2"
        page = await strict.client.get(of_turn, headers={"Accept": "application/json"})
        assert page.status_code == 200  # which costs nothing when it has been given

    async def is_served() -> bool:
        async with strict.client.stream("GET", of_turn, headers=EVENTS) as answer:
            return answer.status_code == 200

    assert await eventually(is_served)


async def test_a_command_that_cannot_be_answered_with_events_is_not_carried_out(
    strict: Service,
) -> None:
    turn = await begun(strict)
    conversation = fresh_id()
    async with AsyncExitStack() as stack:
        for _ in range(MOST):
            await opened(strict, stack, f"/turns/{turn['turnId']}/events")

        refused = await strict.client.post(
            f"/conversations/{conversation}/messages",
            json={"content": "hello", "agentId": "mute"},
            headers=EVENTS,
        )

        assert_problem(refused, 429, "too_many_streams")
        assert (await strict.client.get(f"/conversations/{conversation}")).status_code == 404


async def test_many_streams_that_come_and_go_leave_nothing_counted(strict: Service) -> None:
    turn = await begun(strict)
    path = f"/turns/{turn['turnId']}/events"

    async def once() -> int:
        async with strict.client.stream("GET", path, headers=EVENTS) as answer:
            return answer.status_code

    for _ in range(5):
        await asyncio.gather(*(once() for _ in range(8)))

    async def both() -> bool:
        async with AsyncExitStack() as stack:
            streams = [
                await stack.enter_async_context(strict.client.stream("GET", path, headers=EVENTS))
                for _ in range(MOST)
            ]
            return all(stream.status_code == 200 for stream in streams)

    assert await eventually(both)


def somebody(actor: str, tenant: str = "default") -> Principal:
    return Principal(tenant_id=TenantId(tenant), actor_id=ActorId(actor), role=Role.USER)


def limits(**given: int) -> StreamLimits:
    return StreamLimits(**{"per_user": 9, "per_tenant": 9, "per_process": 9, **given})


@pytest.mark.parametrize(
    ("strictest", "refused", "served"),
    [
        (limits(per_user=1), somebody("anna"), somebody("anna", "another")),
        (limits(per_tenant=1), somebody("bert"), somebody("bert", "another")),
        (limits(per_process=1), somebody("bert", "another"), None),
    ],
    ids=["a user", "a tenant", "a process"],
)
def test_users_tenants_and_the_process_have_limits_of_their_own(
    strictest: StreamLimits, refused: Principal, served: Principal | None
) -> None:
    streams = OpenStreams(strictest)

    with streams.counted(somebody("anna")):
        with pytest.raises(ProblemError, match="which is the limit") as error:
            streams.check(refused)
        assert error.value.code == "too_many_streams"
        if served is not None:
            streams.check(served)

    streams.check(refused)
