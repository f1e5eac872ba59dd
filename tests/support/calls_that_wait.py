"""Turns whose calls wait for somebody: states of `tests.support.transitions`."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from datetime import timedelta

from app.turn import inputs as i
from app.turn.agent import Agent, OnExpiry, WaitPolicy
from app.turn.transcript import Outcome, ToolCall
from tests.support.turns import (
    A_FORM,
    FLAKY,
    QUESTION,
    REFUND,
    SHIP,
    WIRE,
    WRITES,
    Told,
    a_call,
    an_agent,
    an_answer,
    an_approval,
)


def asked_for(*calls: ToolCall, agent: Agent | None = None) -> Told:
    """The round is asked for and begun, as far as it begins by itself."""
    told = Told(agent or an_agent()).begun().answered(an_answer("", *calls))
    return told if told.turn.attempt_in_flight else told.begun()


def _in_a_minute(on_expiry: OnExpiry) -> Agent:
    return an_agent(wait=WaitPolicy(timeout=timedelta(minutes=1), on_expiry=on_expiry))


def _late(on_expiry: OnExpiry) -> Told:
    return asked_for(a_call("A", SHIP), agent=_in_a_minute(on_expiry)).later(minutes=2)


def _question(on_expiry: OnExpiry) -> Told:
    told = asked_for(a_call("A"), agent=_in_a_minute(on_expiry))
    return told.finished("A", question="where to?")


def together(*calls: ToolCall) -> Told:
    return asked_for(*calls, agent=an_agent(open_waits="together"))


def _form_of_a_tool(*, strict: bool = False) -> Told:
    told = asked_for(a_call("A", WRITES), agent=an_agent(strict_forms=strict))
    return told.finished("A", needs=A_FORM)


WAITS_OF_CALLS: Mapping[str, Callable[[], Told]] = {
    "RUNNING, a tool is to be judged": lambda: (
        Told().begun().answered(an_answer("", a_call("A", REFUND), a_call("B")))
    ),
    "WAITING_FOR_APPROVAL": lambda: asked_for(a_call("A", REFUND), a_call("B")),
    "WAITING_FOR_APPROVAL, a tool asks": lambda: asked_for(a_call("A", WRITES)).finished(
        "A", needs=an_approval()
    ),
    "WAITING_FOR_APPROVAL, nobody knows how a call has ended": lambda: asked_for(
        a_call("A", WIRE), a_call("B")
    ).lost(),
    "RUNNING, a call is to be run again that was not done": lambda: (
        asked_for(a_call("A", WIRE)).lost().approved("A")
    ),
    "RUNNING, a tool is begun, nobody knows how the one behind it has ended": lambda: asked_for(
        a_call("A"), a_call("B", WIRE)
    ).lost(),
    "RUNNING, an approved tool is due": lambda: asked_for(a_call("A", REFUND)).approved("A"),
    "RUNNING, a tool is begun with an approval that it asked for": lambda: (
        asked_for(a_call("A", WRITES)).finished("A", needs=an_approval()).approved("A").begun()
    ),
    "RUNNING, a tool is begun, the one behind it is put aside": lambda: asked_for(
        a_call("A"), a_call("B", WRITES)
    ).finished("B", needs=an_approval()),
    "WAITING_FOR_USER, the model asks": lambda: asked_for(a_call("A", QUESTION), a_call("B")),
    "WAITING_FOR_USER, a tool's form": _form_of_a_tool,
    "WAITING_FOR_USER, a tool's strict form": lambda: _form_of_a_tool(strict=True),
    "WAITING_FOR_TOOL": lambda: asked_for(a_call("A", SHIP), a_call("B")),
    "WAITING_FOR_TOOL, its time is over, kept": lambda: _late("keep").tell(i.TimePassed()),
    "WAITING_FOR_TOOL, its time is over, to be answered": lambda: _late("answer_expired"),
    "WAITING_FOR_TOOL, its time is over, to fail": lambda: _late("fail"),
    "WAITING_FOR_TOOL, its time is over, to be cancelled": lambda: _late("cancel"),
    "WAITING_FOR_USER, its time is over, kept": lambda: _question("keep").time_passed(minutes=2),
    "WAITING_FOR_USER, its time is over, to be answered": lambda: _question("answer_expired").later(
        minutes=2
    ),
    "WAITING_FOR_APPROVAL, another call waits together with it": lambda: together(
        a_call("A", REFUND), a_call("B", SHIP)
    ),
    "RUNNING, a tool is begun, another call waits": lambda: together(
        a_call("A", SHIP), a_call("B", WRITES)
    ),
    "RUNNING, a tool is begun, another call waits, a message steers": lambda: together(
        a_call("A", SHIP), a_call("B", WRITES)
    ).steered("s", "m9"),
    "RUNNING, a tool is begun, the time of another is over": lambda: asked_for(
        a_call("A", SHIP),
        a_call("B", WRITES),
        agent=replace(_in_a_minute("fail"), open_waits="together"),
    ).later(minutes=2),
    "RETRY_SCHEDULED, of a tool, another call waits": lambda: together(
        a_call("A", SHIP), a_call("B", FLAKY)
    ).finished("B", outcome=Outcome.ERROR),
    "PAUSED, a call waits": lambda: together(a_call("A", SHIP), a_call("B")).paused().finished("B"),
}
