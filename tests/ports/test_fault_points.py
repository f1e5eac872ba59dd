import asyncio
import sys
from collections.abc import Callable, Sequence

import pytest

from app.ports.fault_points import (
    EXIT_STATUS,
    FaultInjected,
    Mode,
    SelfHarm,
    around,
    reached,
    watched_by,
)

DYING = """
import asyncio
from app.ports.fault_points import SelfHarm, reached, watched_by
async def main():
    with watched_by(SelfHarm(point="a.point", mode={mode!r}, passage=2).meet):
        for n in (1, 2, 3):
            await reached("another")
            await reached("a.point")
            print(n, flush=True)
asyncio.run(main())
"""


class Seen:
    """What was passed, in order."""

    def __init__(self) -> None:
        self.points: list[str] = []

    async def meets(self, point: str) -> None:
        self.points.append(point)


def named(_number: int, name: str) -> str:
    return f"by.{name}"


@around("some.place")
async def doubled(number: int) -> int:
    if number < 0:
        raise ValueError(number)
    return 2 * number


@around(named)
async def ignored(number: int, name: str) -> int:
    return number * len(name)


@around("greedy", if_any=True)
async def taken(things: Sequence[str]) -> Sequence[str]:
    return things


async def test_a_place_has_a_point_before_and_one_after_it() -> None:
    seen = Seen()
    with watched_by(seen.meets):
        result = await doubled(4)

    assert (result, seen.points) == (8, ["some.place.before", "some.place.after"])


async def test_what_has_failed_does_not_come_to_the_point_after_it() -> None:
    seen = Seen()
    with watched_by(seen.meets), pytest.raises(ValueError, match="-1"):
        await doubled(-1)

    assert seen.points == ["some.place.before"]


async def test_a_place_may_be_named_by_what_is_done_there() -> None:
    seen = Seen()
    with watched_by(seen.meets):
        await ignored(4, name="me")

    assert seen.points == ["by.me.before", "by.me.after"]


async def test_who_comes_back_empty_handed_does_not_pass_the_second_point_of_some_places() -> None:
    seen = Seen()
    with watched_by(seen.meets):
        await taken([])
        await taken(["a"])

    assert seen.points == ["greedy.before", "greedy.before", "greedy.after"]


async def test_nobody_looks_on_outside_of_the_block() -> None:
    outer, inner = Seen(), Seen()
    with watched_by(outer.meets):
        with watched_by(inner.meets):
            await reached("one")
        await reached("two")
    await reached("three")

    assert (outer.points, inner.points) == (["two"], ["one"])


async def test_harm_is_done_once_at_the_passage_that_was_asked_for() -> None:
    harm = SelfHarm(point="a.point", mode="raise", passage=2)
    with watched_by(harm.meet):
        await reached("a.point")
        await reached("another")
        with pytest.raises(FaultInjected, match=r"a\.point"):
            await reached("a.point")
        await reached("a.point")


async def test_who_is_held_stands_until_somebody_ends_it() -> None:
    with watched_by(SelfHarm(point="a.point", mode="hold").meet):
        held = asyncio.create_task(doubled_at("a.point"))
        done, _ = await asyncio.wait((held,), timeout=0.05)
        held.cancel()

    assert not done


async def doubled_at(point: str) -> int:
    await reached(point)
    return await doubled(1)


@pytest.mark.parametrize(("mode", "status"), [("exit", EXIT_STATUS), ("kill", -9)])
async def test_a_process_that_does_harm_to_itself_says_nothing_more(
    mode: Mode, status: int
) -> None:
    process = await asyncio.create_subprocess_exec(
        sys.executable, *("-c", DYING.format(mode=mode)), stdout=asyncio.subprocess.PIPE
    )
    said, _ = await process.communicate()

    assert (said, process.returncode) == (b"1\n", status)


def test_methods_keep_their_names_and_their_words() -> None:
    method: Callable[..., object] = doubled

    assert method.__name__ == "doubled"
