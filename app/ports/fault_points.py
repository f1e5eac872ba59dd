"""Named places at which a process can be made to die, hang or fail, so that tests miss none.

A place is *around* something that may stand half done: a commit, a lease action, a tool. It has two
points, `.before` and `.after`. Other points stand alone: the bytes of a model's answer, and the
moment before a command is answered.

Nobody looks on in production, where passing a point is one comparison. `TURNKEEPER_FAULT_POINT`
makes a process do harm to itself at one of them, and is refused outside of tests; in a test's own
process a function looks on by `watched_by`. `POINTS` names all there are.
"""

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import wraps
from itertools import count
from typing import Any, Final, Literal, NewType, TypeAlias, TypeVar, cast, get_args

from app.ports.records import Claim, Command, Commit
from app.turn import events as e
from app.turn.agent import Effect
from app.turn.journal import Interruption

Mode: TypeAlias = Literal["hold", "raise", "exit", "kill"]
"""`hold` stands still for ever, `raise` fails, `exit` and `kill` end the process at once."""
Watcher: TypeAlias = Callable[[str], Awaitable[None]]
Place = NewType("Place", str)
"""What has a point before and one after it."""

Method = TypeVar("Method", bound=Callable[..., Coroutine[Any, Any, Any]])

EXIT_STATUS: Final = 70

_OF_TURNS: Final = tuple(
    Place(f"commit.{kind}")
    for kind in (
        "open",
        "command",
        "expiry",
        "begin",
        "text",
        "answer",
        "failure",
        "results",
        "recovery",
        "stop",
    )
)
"""Commits that change a turn; those of a worker by what they are about, `stop` being the rest."""
_OF_OTHERS: Final = tuple(
    Place(f"commit.{kind}")
    for kind in (
        "conversation",
        "deletion",
        "revert",
        "audit",
        "late_result",
        "taken_outside",
        "reply",
        "forgotten",
        "folded",
        "pruned",
    )
)
_LEASES: Final = tuple(Place(f"claim.{action}") for action in ("take", "renew", "release"))
_TOOLS: Final = tuple(Place(f"tool.{effect.value}") for effect in Effect)
FIRST_BYTE: Final = "model.first_byte"
MID_TEXT: Final = "model.text"
MID_ARGUMENTS: Final = "model.arguments"
BEFORE_STOP: Final = "model.stop.before"
AFTER_STOP: Final = "model.stop.after"
BEFORE_ANSWER: Final = "http.answer"


def _both(places: tuple[Place, ...]) -> tuple[str, ...]:
    return tuple(f"{place}.{side}" for place in places for side in ("before", "after"))


TURN_COMMITS: Final = frozenset(_both(_OF_TURNS))
POINTS: Final = (
    *_both(_OF_TURNS),
    *_both(_OF_OTHERS),
    *_both(_LEASES),
    *_both(_TOOLS),
    *(FIRST_BYTE, MID_TEXT, MID_ARGUMENTS, BEFORE_STOP, AFTER_STOP, BEFORE_ANSWER),
)
"""Every point there is."""

_watcher: Watcher | None = None


async def reached(point: str) -> None:
    """Pass a point that stands alone; whoever looks on may keep us here, or end us."""
    if _watcher is not None:
        await _watcher(point)


def around(place: str | Callable[..., str], *, if_any: bool = False) -> Callable[[Method], Method]:
    """Put a point before and one after a method, the latter when it has returned and not raised.

    Args:
        place: its name, or what tells it from the arguments.
        if_any: whether the second point is passed only when there is something in the result.
    """

    def of(method: Method) -> Method:
        @wraps(method)
        async def passing(*args: object, **kwargs: object) -> object:
            if _watcher is None:
                return await method(*args, **kwargs)
            name = place if isinstance(place, str) else place(*args, **kwargs)
            await reached(f"{name}.before")
            result: object = await method(*args, **kwargs)
            if result or not if_any:
                await reached(f"{name}.after")
            return result

        return cast("Method", passing)

    return of


def change_of_turn(
    _store: object,
    commit: Commit,
    *,
    claim: Claim | None = None,
    command: Command | None = None,
) -> str:
    """The place of a commit that changes a turn, by whose it is and what it is about."""
    if command is not None:
        return "commit.command"
    if claim is None:
        return "commit.expiry"
    for name, kinds in _ABOUT:
        if any(isinstance(event, kinds) for event in commit.events):
            return f"commit.{name}"
    return "commit.stop"


_ABOUT: Final[tuple[tuple[str, tuple[type, ...]], ...]] = (
    ("recovery", (e.StepRecovered,)),
    ("answer", (e.ModelCompleted,)),
    ("failure", (e.ModelFailed,)),
    ("text", (e.ModelText, e.ModelReasoning)),
    ("results", (e.ToolCompleted, e.ToolFailed, e.ToolAttemptFailed, *get_args(Interruption))),
    ("begin", (e.StepStarted,)),
)
"""The first of these that a worker's commit has says what it is about."""


@contextmanager
def watched_by(watcher: Watcher | None) -> Generator[None]:
    """Everything in this process that passes a point is seen by `watcher` while the block is open.

    It may be called from any thread that has an event loop.
    """
    global _watcher  # noqa: PLW0603 - points are passed from everywhere, and off is one comparison
    before, _watcher = _watcher, watcher
    try:
        yield
    finally:
        _watcher = before


class FaultInjected(Exception):  # noqa: N818 - it says what happened
    """A test has asked for this failure."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfHarm:
    """What `TURNKEEPER_FAULT_POINT` asks of its process: at the n-th passage of a point, once."""

    point: str
    mode: Mode
    passage: int = 1
    """Counted from 1."""
    _passages: Iterator[int] = field(default_factory=lambda: count(1), init=False)

    async def meet(self, point: str) -> None:
        """Do what is due here; mostly nothing.

        Raises:
            FaultInjected: it is due, and the mode is `raise`.
        """
        if point != self.point or next(self._passages) != self.passage:
            return
        match self.mode:
            case "hold":
                await asyncio.Event().wait()
            case "raise":
                raise FaultInjected(point)
            case "exit":
                os._exit(EXIT_STATUS)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
