"""What the demo model asks people and outside tools for, one command each.

Each call is made once for each time that its command is said in the turn; what came of it is told.
"""

import re
from collections.abc import Mapping
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from types import MappingProxyType

from app.providers.demo_history import TurnSoFar

_COMMAND = re.compile(r"\s*/(\w{1,20})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """A call of the demo's that somebody has to see to."""

    tool: str
    arguments: Mapping[str, object]
    why: str


REFUND = Wanted(
    tool="refund_pay",
    arguments={"order_id": "88121", "cents": 4_900},
    why="I pay 49.00 back for order 88121, once somebody approves.",
)
PAYMENT = Wanted(
    tool="invoice_pay",
    arguments={"invoice_id": "INV-2041", "cents": 1_250_000},
    why="I pay invoice INV-2041, once finance and compliance approve.",
)
ADDRESS = Wanted(
    tool="request_user_input",
    arguments={"message": "Where shall I send the replacement?", "form": "address"},
    why="I need an address.",
)
QUESTION = Wanted(
    tool="request_user_input",
    arguments={"message": "Which of your orders do you mean?"},
    why="I need to know more.",
)
SCAN = Wanted(
    tool="parcel_scan",
    arguments={"parcel_id": "P-7731"},
    why="I have the warehouse scan parcel P-7731.",
)

PEOPLE: Mapping[str, tuple[Wanted, ...]] = MappingProxyType(
    {
        "refund": (REFUND,),
        "invoice": (PAYMENT,),
        "address": (ADDRESS,),
        "ask": (QUESTION,),
        "scan": (SCAN,),
        "everybody": (REFUND, ADDRESS, SCAN),
    }
)


def command_in(text: str) -> str:
    """The word behind the slash with which a message begins; without one, nothing."""
    found = _COMMAND.match(text)
    return found.group(1).lower() if found else ""


def wanted_by(turn: TurnSoFar, tools: AbstractSet[str]) -> tuple[Wanted, ...]:
    """What the latest message asks for, as far as the agent has tools for it."""
    wanted = PEOPLE.get(command_in(turn.latest), ())
    return tuple(each for each in wanted if each.tool in tools)


def is_asked_for(turn: TurnSoFar, wanted: Wanted) -> bool:
    """Whether the call was made for every time that a message of the turn asks for it."""
    said = sum(
        each.tool == wanted.tool for text in turn.asked for each in PEOPLE.get(command_in(text), ())
    )
    return sum(name == wanted.tool for name, _ in turn.results) >= said


def told(turn: TurnSoFar, wanted: tuple[Wanted, ...]) -> str:
    """What came of the calls, in their tools' own words."""
    latest = dict(turn.results)
    return " ".join(f"{each.tool} says: {_short(latest[each.tool])}" for each in wanted)


def _short(content: str) -> str:
    words = " ".join(content.split())
    return words if len(words) <= 200 else words[:199] + "…"
