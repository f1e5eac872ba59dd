"""Whoever waits is woken by what is told, or by the time; what was told before is not forgotten."""

import asyncio

from app.store.signals import Runnable, Signal
from app.turn.ids import TurnId

LONG = 3600.0
T1, T2 = TurnId("t1"), TurnId("t2")


async def test_a_wait_ends_with_its_time_as_if_something_had_changed() -> None:
    signal = Signal()

    assert await signal.wait(0.001)
    signal.nudge()
    assert not await signal.wait(LONG)  # the time that was over is not told twice


async def test_what_was_set_before_the_wait_is_told_once() -> None:
    signal = Signal()
    signal.set()
    signal.set()

    assert await signal.wait(LONG)
    signal.nudge()
    assert not await signal.wait(LONG)


async def test_a_wait_that_was_given_up_wakes_nobody_later() -> None:
    signal = Signal()
    waiting = asyncio.create_task(signal.wait(0.001))
    await asyncio.sleep(0)
    waiting.cancel()
    await asyncio.wait((waiting,))
    other = asyncio.create_task(signal.wait(LONG))
    assert await Signal().wait(0.01)  # longer than the one that was given up

    assert not other.done()
    signal.nudge()
    assert not await other


async def test_turns_are_named_once_and_a_look_at_all_stands_for_them() -> None:
    runnable = Runnable()
    runnable.may_be(T1)
    runnable.may_be(T2)

    assert await runnable.wait(LONG) == {T1, T2}
    runnable.may_be(T1)
    runnable.look()
    assert await runnable.wait(LONG) is None
    runnable.may_be(T2)
    assert await runnable.wait(LONG) == {T2}


async def test_when_time_is_over_all_are_looked_at() -> None:
    runnable = Runnable()

    assert await runnable.wait(0.001) is None
    runnable.may_be(T1)
    assert await runnable.wait(LONG) == {T1}


async def test_more_turns_than_any_worker_takes_are_a_look_at_all() -> None:
    runnable = Runnable()
    for n in range(5_000):
        runnable.may_be(TurnId(f"t{n}"))

    assert await runnable.wait(LONG) is None
    runnable.may_be(T1)
    assert await runnable.wait(LONG) == {T1}
