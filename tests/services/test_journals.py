"""Readers of one process: what they cost together, and what they live through."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest
from typing_extensions import override

from app.ports import Commit, JournalRow, StoredTurn
from app.services.deps import Services
from app.services.follow import Permit
from app.turn.evolve import advance
from app.turn.ids import TurnId
from tests.http.rig import Rig, fresh_id
from tests.services.followers import Follower, Looks, Process
from tests.support.polling import eventually


async def stored(rig: Rig, turn: dict[str, Any]) -> StoredTurn:
    """The turn as readers are told of it when they come."""
    services = rig.service.runtime.services
    found = await services.turns.load(TurnId(turn["turnId"]))
    assert found is not None
    return StoredTurn(turn=found, updated_at=services.clock())


async def all_have(readers: list[Follower], version: int) -> None:
    async def have() -> bool:
        return all(version in reader.versions for reader in readers)

    await eventually(have)


async def all_ended(readers: list[Follower]) -> None:
    async def ended() -> bool:
        return all(reader.has_ended for reader in readers)

    await eventually(ended)


async def cancelled(rig: Rig, turn: dict[str, Any]) -> dict[str, Any]:
    await rig.post(f"/turns/{turn['turnId']}/cancel")
    return await rig.service.turn(turn["turnId"])


async def settled(process: Process) -> None:
    """Until the readers have looked and wait."""

    async def quiet() -> bool:
        before = process.looks.journal_looks
        for _ in range(20):
            await asyncio.sleep(0)
        return process.looks.journal_looks == before > 0

    await eventually(quiet)


async def test_readers_of_one_turn_look_together(rig: Rig) -> None:
    turn = await rig.waiting()
    process = Process.beside(rig.service.runtime.services)
    async with process.readers(await stored(rig, turn), 200) as readers:
        await settled(process)
        looks = process.looks.journal_looks
        assert looks <= 2  # the second for those who joined the first and got nothing

        now = await cancelled(rig, turn)
        process.hints.announce(TurnId(turn["turnId"]), runnable=False)
        await all_have(readers, now["version"])

    assert process.looks.journal_looks - looks <= 2
    expected = list(range(turn["version"] + 1, now["version"] + 1))
    assert all(reader.versions == expected for reader in readers)


async def test_readers_who_wait_cost_one_statement_a_poll_whatever_they_follow(rig: Rig) -> None:
    process = Process.beside(rig.service.runtime.services)
    turns = [await stored(rig, await rig.waiting()) for _ in range(3)]
    async with (
        process.readers(turns[0], 20),
        process.readers(turns[1], 20),
        process.readers(turns[2], 20),
    ):
        await settled(process)
        looks = process.looks.journal_looks
        for _ in range(5):
            await process.services.journals.poll()
            await settled(process)

    assert process.looks.polls == 5
    assert process.looks.journal_looks == looks


async def test_where_nobody_reads_nothing_is_asked(rig: Rig) -> None:
    process = Process.beside(rig.service.runtime.services)
    async with process.readers(await stored(rig, await rig.waiting()), 3):
        await process.services.journals.poll()
    before = process.looks.polls

    await process.services.journals.poll()

    assert process.looks.polls == before == 1


async def test_without_any_hint_news_come_with_the_next_poll(rig: Rig) -> None:
    turn = await rig.waiting()
    process = Process.beside(rig.service.runtime.services)
    async with process.readers(await stored(rig, turn), 3) as readers:
        await settled(process)
        await process.services.journals.poll()
        now = await cancelled(rig, turn)
        await settled(process)
        assert not any(reader.received for reader in readers)

        await process.services.journals.poll()
        await all_have(readers, now["version"])
        await all_ended(readers)


async def test_readers_of_a_turn_that_is_deleted_learn_it_from_the_poll(rig: Rig) -> None:
    turn = await rig.waiting()
    process = Process.beside(rig.service.runtime.services)
    async with process.readers(await stored(rig, turn), 3) as readers:
        await settled(process)
        await rig.client.delete(f"/conversations/{turn['conversationId']}")

        await process.services.journals.poll()
        await all_ended(readers)

    assert not any(reader.received for reader in readers)


async def test_a_reader_who_may_not_read_any_more_is_let_go(rig: Rig) -> None:
    allowed = [True]
    asked: list[bool] = []

    async def is_still_given() -> bool:
        asked.append(allowed[0])
        return allowed[0]

    permit = Permit(is_still_given=is_still_given, every_seconds=0.01)
    turn = await rig.waiting()
    process = Process.beside(rig.service.runtime.services)
    async with process.readers(await stored(rig, turn), 1, permit=permit) as readers:

        async def asked_twice() -> bool:
            return len(asked) > 1

        await eventually(asked_twice)
        assert not readers[0].has_ended
        allowed[0] = False
        await cancelled(rig, turn)
        await all_ended(readers)

    assert readers[0].received == []


async def test_readers_outlive_a_database_that_is_away(rig: Rig) -> None:
    turn = await rig.waiting()
    process = Process.beside(rig.service.runtime.services)
    async with process.readers(await stored(rig, turn), 3) as readers:
        await settled(process)
        process.looks.is_away, before = True, process.looks.journal_looks
        now = await cancelled(rig, turn)
        process.hints.announce(TurnId(turn["turnId"]), runnable=False)

        async def looked_in_vain() -> bool:
            return process.looks.journal_looks > before

        await eventually(looked_in_vain)
        process.looks.is_away = False
        await all_have(readers, now["version"])


async def test_readers_are_let_go_when_the_process_stops(rig: Rig) -> None:
    turn = await rig.waiting()
    process = Process.beside(rig.service.runtime.services)
    async with (
        process.services.journals.running(process.stopping),
        process.readers(await stored(rig, turn), 3) as readers,
    ):
        await settled(process)
        process.stopping.set()
        await all_ended(readers)


async def queued(rig: Rig, turn: dict[str, Any]) -> int:
    """The turn's version behind a message that waits for its end."""
    said = {"content": "later", "whenRunning": "queue"}
    answer = await rig.post(f"/conversations/{turn['conversationId']}/messages", said)
    return int(answer.json()["version"])


async def remembered(services: Services, before: StoredTurn, version: int) -> None:
    """As if the process of these services had stored the change to `version` itself."""
    turn_id = before.turn.identity.turn_id
    [row] = await services.turns.journal(turn_id, after=version - 1, limit=1)
    after = advance(before.turn, row.events)
    commit = Commit(before=before.turn, after=after, events=row.events, at=row.occurred_at)
    services.recent.stored(commit)


async def test_a_reader_who_is_alone_is_told_from_several(rig: Rig) -> None:
    """What is encoded for one is kept where there is another to be sent it, and only there."""
    turn_id = TurnId((await rig.waiting())["turnId"])
    journals = Process.beside(rig.service.runtime.services).services.journals
    seen = [journals.has_several_readers(turn_id)]
    with journals.followed(turn_id):
        seen.append(journals.has_several_readers(turn_id))
        with journals.followed(turn_id):
            seen.append(journals.has_several_readers(turn_id))
        seen.append(journals.has_several_readers(turn_id))

    assert seen == [False, False, True, False]


async def test_whoever_comes_when_others_have_heard_of_it_has_what_another_process_stored(
    rig: Rig,
) -> None:
    """What this process has stored itself, and remembers, is not all there is then."""
    turn = await rig.at_work()
    early = await stored(rig, turn)
    process = Process.beside(rig.service.runtime.services)
    async with process.readers(early, 1) as first:
        services, ours = process.services, await queued(rig, turn)
        await remembered(services, early, ours)
        theirs = await queued(rig, turn)
        await services.journals.poll()
        await all_have(first, theirs)
        async with process.readers(early, 1) as second:
            await all_have(second, theirs)

    assert second[0].versions == first[0].versions == [ours, theirs]


async def test_a_reader_who_knows_of_more_than_is_in_memory_is_given_what_is_stored(
    rig: Rig,
) -> None:
    turn = await rig.at_work()
    early = await stored(rig, turn)
    process, turn_id = Process.beside(rig.service.runtime.services), TurnId(turn["turnId"])
    journals = process.services.journals
    with journals.followed(turn_id):
        ours = await queued(rig, turn)
        await remembered(process.services, early, ours)
        theirs = await queued(rig, turn)

        at_hand = await journals.behind(turn_id, turn["version"], known=ours)
        looks = process.looks.journal_looks
        all_of_it = await journals.behind(turn_id, turn["version"], known=theirs)

    assert (looks, [row.sequence for row in at_hand]) == (0, [ours])
    assert [row.sequence for row in all_of_it] == [ours, theirs]


@dataclass(slots=True)
class SlowLooks(Looks):
    """What is stored when they are asked, told only when it is time."""

    is_time: asyncio.Event = field(default_factory=asyncio.Event)

    @override
    async def journal(self, turn_id: TurnId, *, after: int, limit: int) -> Sequence[JournalRow]:
        rows = await self.turns.journal(turn_id, after=after, limit=limit)
        self.journal_looks += 1
        await self.is_time.wait()
        return rows


async def test_a_look_that_began_before_what_a_reader_knows_of_is_not_enough_for_it(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    turn = await rig.at_work()
    process, turn_id = Process.beside(rig.service.runtime.services), TurnId(turn["turnId"])
    journals, slow = process.services.journals, SlowLooks(process.looks.turns, process.looks.feeds)
    monkeypatch.setattr(journals, "turns", slow)
    first = await queued(rig, turn)
    early = asyncio.create_task(journals.behind(turn_id, turn["version"]))

    async def has_looked() -> bool:
        return slow.journal_looks == 1

    await eventually(has_looked)
    second = await queued(rig, turn)
    late = asyncio.create_task(journals.behind(turn_id, turn["version"], known=second))
    await asyncio.sleep(0)  # it joins the look that is under way
    slow.is_time.set()

    assert [row.sequence for row in await early] == [first]
    assert [row.sequence for row in await late] == [first, second]


async def test_a_stream_that_begins_with_its_turn_asks_for_nothing_that_was_just_in_memory(
    rig: Rig, monkeypatch: pytest.MonkeyPatch
) -> None:
    journals = rig.service.runtime.services.journals
    looks = Looks(journals.turns, journals.feeds)
    monkeypatch.setattr(journals, "turns", looks)

    answer = await rig.post(
        f"/conversations/{fresh_id()}/messages",
        {"content": "hello", "agentId": "clerk"},
        Accept="text/event-stream",
    )

    assert "event: TURN_COMPLETED" in answer.text
    assert looks.journal_looks == 0
    stored_now = await rig.client.get(f"{answer.headers['Location']}/events")
    assert frames_without_text(stored_now.text) == frames_without_text(answer.text)


def frames_without_text(stream: str) -> list[str]:
    """What a stream has sent but the answer's text, which comes in other pieces live."""
    return [frame for frame in stream.split("\n\n") if "event: MODEL_TEXT" not in frame]
