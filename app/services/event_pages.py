"""Events a page at a time, for those who would rather ask than be told."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass

from app.ports import StoredTurn
from app.services.deps import Services
from app.services.follow import news_of
from app.services.reading import Cursor, Followed
from app.turn.ids import ConversationId, TenantId


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event, and the turn it is of."""

    stored: StoredTurn
    followed: Followed


async def page_of_turn(
    services: Services, stored: StoredTurn, cursor: Cursor, limit: int
) -> tuple[list[Told], bool]:
    """Up to `limit` events behind `cursor`, and whether there are more now."""
    return await _page(_of_turn(services, stored, cursor), limit)


async def page_of_conversation(
    services: Services,
    conversation: tuple[TenantId, ConversationId],
    place: tuple[int, Cursor],
    limit: int,
) -> tuple[list[Told], bool]:
    """Up to `limit` events of its turns behind `place`, and whether there are more now."""
    return await _page(_of_conversation(services, conversation, place), limit)


async def _page(events: AsyncGenerator[Told, None], limit: int) -> tuple[list[Told], bool]:
    found: list[Told] = []
    async with aclosing(events):
        async for told in events:
            if len(found) == limit:
                return found, True
            found.append(told)
    return found, False


async def _of_turn(
    services: Services, stored: StoredTurn, cursor: Cursor
) -> AsyncGenerator[Told, None]:
    async with aclosing(news_of(services, stored, cursor)) as feed:
        async for news in feed:
            for followed in news:
                yield Told(stored=stored, followed=followed)


async def _of_conversation(
    services: Services,
    conversation: tuple[TenantId, ConversationId],
    place: tuple[int, Cursor],
) -> AsyncGenerator[Told, None]:
    number, cursor = place
    while (stored := await services.feeds.turn_from(*conversation, number)) is not None:
        async with aclosing(_of_turn(services, stored, cursor)) as events:
            async for told in events:
                yield told
        number, cursor = stored.number + 1, Cursor(version=0)
