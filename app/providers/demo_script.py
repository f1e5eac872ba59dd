"""What the demo model does next, as a pure function of the request.

It has no memory. What happens follows from the messages and from `attempt` alone, so that it does
the same after a crash, on another machine, and when the turn goes on by a retry or a new message.

Outages are counted without a counter: of the `attempt - 1` requests before this one in this turn,
those that left an answer in the history succeeded, and the others failed. So the failures so far
are `attempt - 1 - answers`. The outages asked for in the turn's messages stand in one row, each as
often as asked for (`/outage quota 2` is two), and the failures so far say which is next. A request
lost in a crash counts as a failure: the demo cannot tell them apart, and a turn that has to be
retried once less is the harmless side.
"""

import json
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import TypeAlias

from app.providers.demo_history import TurnSoFar, turn_so_far
from app.providers.demo_outages import CUT, OUTAGES, outages_ordered
from app.providers.demo_people import (
    PEOPLE,
    Wanted,
    command_in,
    is_asked_for,
    told,
    wanted_by,
)
from app.providers.failures import Evidence
from app.providers.wire_json import JsonObject, as_count, as_text, parsed_object

READS = ("orders_search", "warehouse_stock", "refunds_list")
NOTE = "note_save"
DEFAULT_SKU = "TP-4410"

_SKU = re.compile(r"\b[A-Z]{2,4}-\d{2,6}\b")
_NOTE = re.compile(r"\bnotes?\b", re.IGNORECASE)
_SMALL_TALK = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|evening|day)|thanks|thank you|thx|ok|okay|bye)"
    r"(?: there| a lot| very much)?\W*",
    re.IGNORECASE,
)
_SLOW_SENTENCES = 200

HELP = f"""\
I am the demo model. I need no key and no network.
Ask about a product, for example {DEFAULT_SKU}, and I look it up with three tools at once.
With the word note in your message I also save a note, which is a tool that writes.
/outage quota: the call after the tools fails with an exhausted quota. Press Retry to go on.
/outage rate | overloaded | unavailable | context | output | auth | refused | cut: other failures.
/outage quota 2: the same, twice in a row.
/refund, /invoice: a call that somebody has to approve, and one that two have to.
/address, /ask: a form for you to fill in, and a question.
/scan: a call that somebody outside carries out.
/everybody: an approval, a form and an outside call in one answer.
/slow: a long answer, long enough to kill the server in the middle of it.
/help: this list."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoCall:
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Say:
    """An answer; with `is_cut` the stream breaks in the middle of the text."""

    text: str
    reasoning: str = ""
    calls: tuple[DemoCall, ...] = ()
    is_cut: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fail:
    """The call fails, as this evidence of OpenAI's shape shows it."""

    evidence: Evidence


Scene: TypeAlias = Say | Fail


def scene(messages: Sequence[JsonObject], tools: AbstractSet[str], attempt: int) -> Scene:
    """What the model does with this request.

    `messages` are the parsed messages without the system's, `tools` the names it may call, and
    `attempt` counts the turn's requests, this one included, from 1.
    """
    turn = turn_so_far(messages)
    direct = _direct(turn)
    if direct is not None:
        return direct
    wanted = wanted_by(turn, tools)
    missing = tuple(each for each in wanted if not is_asked_for(turn, each))
    if missing:
        return _ask_for(missing)
    reads = [name for name in READS if name in tools]
    if reads and not wanted and not any(map(turn.has_result_of, reads)):
        return _look_up(turn, reads)
    outages = outages_ordered(turn.asked)
    failures = max(0, attempt - 1 - turn.answers)
    if failures < len(outages):
        return _outage(outages[failures], turn)
    wants_note = NOTE in tools and not turn.has_result_of(NOTE)
    if wants_note and any(_NOTE.search(text) for text in turn.asked):
        return _save_note(turn)
    return Say(text=told(turn, wanted) if wanted else _findings(turn))


def _direct(turn: TurnSoFar) -> Scene | None:
    """An answer that needs no tools and has no outage."""
    word = command_in(turn.latest)
    if word == "slow":
        return Say(reasoning="A long answer was asked for.", text=_long_text())
    if word and word not in PEOPLE and not outages_ordered([turn.latest]):
        return Say(text=HELP)
    if not turn.results and _SMALL_TALK.fullmatch(turn.latest):
        return Say(text=f"Hello. Ask me about a product, for example {DEFAULT_SKU}, or type /help.")
    return None


def _ask_for(wanted: Sequence[Wanted]) -> Say:
    return Say(
        reasoning="I cannot do this alone.",
        text=" ".join(each.why for each in wanted),
        calls=tuple(DemoCall(name=each.tool, arguments=_json(each.arguments)) for each in wanted),
    )


def _look_up(turn: TurnSoFar, reads: Sequence[str]) -> Say:
    sku = _sku(turn)
    return Say(
        reasoning=f"The question is about {sku}. Orders, stock and refunds do not depend on one "
        "another, so I can look at all of them at once.",
        text=f"I look up {sku}.",
        calls=tuple(DemoCall(name=name, arguments=_json({"sku": sku})) for name in reads),
    )


def _outage(kind: str, turn: TurnSoFar) -> Scene:
    evidence = OUTAGES[kind]
    if kind == CUT or evidence is None:
        return Say(text=_findings(turn), is_cut=True)
    return Fail(evidence=evidence)


def _save_note(turn: TurnSoFar) -> Say:
    note = f"{_sku(turn)}: {_in_words(turn)}"
    return Say(
        reasoning="The numbers are there. A note was asked for, so I save one.",
        text="I save a note.",
        calls=(DemoCall(name=NOTE, arguments=_json({"text": note})),),
    )


def _findings(turn: TurnSoFar) -> str:
    if not any(map(turn.has_result_of, READS)):
        return "I have no tools here, so I can only say that I got your message."
    note = " The note is saved." if turn.has_result_of(NOTE) else ""
    return f"Here is what I found for {_sku(turn)}: {_in_words(turn)}.{note}"


def _in_words(turn: TurnSoFar) -> str:
    return ", ".join(_said_by(name, content) for name, content in turn.results if name in READS)


def _said_by(name: str, content: str) -> str:
    """A tool's result in a few words: its first number, else its first words."""
    result = parsed_object(content)
    numbers = ((key, as_count(value)) for key, value in (result or {}).items())
    counted = next(((key, count) for key, count in numbers if count is not None), None)
    if counted:
        return f"{counted[1]} {counted[0]}"
    said = as_text((result or {}).get("error")) or " ".join(content.split())
    return f"{name} says {said[:80]!r}"


def _sku(turn: TurnSoFar) -> str:
    found = (_SKU.search(text) for text in turn.asked)
    return next((match.group() for match in found if match), DEFAULT_SKU)


def _json(arguments: Mapping[str, object]) -> str:
    return json.dumps(arguments, ensure_ascii=False, separators=(",", ":"))


def _long_text() -> str:
    return " ".join(
        f"This is sentence {number} of {_SLOW_SENTENCES}." for number in range(1, _SLOW_SENTENCES)
    ) + (" That was the last one.")
