"""What the page says of a step whose worker was lost, and of a turn that is paused for it."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

import pytest

from tests.console.modules import asked_call, call, event
from tests.console.pages import Console

_SHOW = """const line = new m.Line("t");
    for (const e of a[0]) line.apply(e);
    const calls = line.steps.find((step) => step.calls)?.calls ?? [];
    return {
        partial: line.steps.find((step) => step.kind === "text")?.partial ?? null,
        calls: calls.map((one) => [one.callId, one.state, one.startedAt]),
        asks: line.steps.filter((step) => step.kind === "ask").map((step) => [step.ask, step.by]),
        kept: line.kept, tools: line.tools,
    };"""
_BEGUN = [
    event(1, "MODEL_STARTED", attemptId="a1"),
    event(2, "MODEL_COMPLETED", attemptId="a1", text="", toolCalls=[asked_call("c1")]),
    event(3, "TOOL_REQUESTED", callId="c1", toolName="t", effect="writes"),
    event(4, "TOOL_REQUESTED", callId="c2", toolName="t", effect="writes"),
    event(5, "TOOL_STARTED", callId="c1", attempt=1),
]
_PREVIEW = """const wait = {
        callId: "c1", toolName: "t", suspensionType: "TOOL_APPROVAL", stage: a[0],
    };
    const turn = {
        status: "WAITING_FOR_APPROVAL", waits: Array(a[1]).fill(wait),
        actions: [{ command: "MESSAGE", enabled: true }],
    };
    const whole = { turn, kept: { results: 0 }, tools: { open: 1, running: 0 } };
    return m.preview(whole).will.slice(1, 3);"""


async def shown(bench: Console, events: Sequence[Mapping[str, object]]) -> dict[str, Any]:
    """What the page makes of a turn's events."""
    return cast("dict[str, Any]", await call(bench, "line", _SHOW, events))


@pytest.mark.parametrize("cause", ["crash", "crash_loop"])
async def test_a_call_that_nobody_saw_end_does_not_run_on_in_a_paused_turn(
    bench: Console, cause: str
) -> None:
    paused = event(6, "TURN_PAUSED", cause=cause, limit=None, requestedAt=None)

    found = await shown(bench, [*_BEGUN, paused])

    assert found["calls"] == [["c1", "lost", None], ["c2", "requested", None]]
    assert found["tools"] == {"running": 0, "open": 2}


async def test_a_call_that_was_lost_runs_again_when_its_rule_says_so(bench: Console) -> None:
    events = [
        *_BEGUN,
        event(6, "TURN_PAUSED", cause="crash", limit=None, requestedAt=None),
        event(7, "TURN_RESUMED", commandType="RESUME"),
        event(8, "TOOL_STARTED", callId="c1", attempt=2),
    ]

    found = await shown(bench, events)

    assert found["calls"][0][1] == "running"
    assert found["calls"][1][1] == "requested"


@pytest.mark.parametrize(
    ("cause", "partial"), [("crash", "lost"), ("crash_loop", "lost"), ("person", "stopped")]
)
async def test_an_answer_that_was_lost_was_not_stopped_by_anybody(
    bench: Console, cause: str, partial: str
) -> None:
    events = [
        event(1, "MODEL_STARTED", attemptId="a1"),
        event(2, "MODEL_TEXT", attemptId="a1", offset=0, text="Half an"),
        event(3, "TURN_PAUSED", cause=cause, limit=None, requestedAt=None),
    ]

    found = await shown(bench, events)

    assert found["partial"] == partial
    assert found["kept"]["words"] == 0  # its last words may not have been stored


@pytest.mark.parametrize(("approved", "by"), [(True, "approved"), (False, "rejected")])
async def test_a_call_that_is_parked_is_looked_up_and_not_approved(
    bench: Console, by: str, *, approved: bool
) -> None:
    parked = event(6, "TOOL_APPROVAL_REQUESTED", callId="c1", toolName="t", stage="recovery")
    decided = event(7, "TOOL_APPROVAL_DECIDED", callId="c1", stage="recovery", approved=approved)

    waiting = await shown(bench, [*_BEGUN, parked])
    answered = await shown(bench, [*_BEGUN, parked, decided])

    assert waiting["calls"][0][:2] == ["c1", "parked"]
    assert (waiting["asks"], answered["asks"]) == ([["parked", None]], [["parked", by]])


@pytest.mark.parametrize(
    ("stage", "count", "lead", "word"),
    [
        ("recovery", 1, "Sending gives this call up.", "outcome unknown"),
        ("recovery", 2, "Sending gives all of this up.", "given up"),
        ("policy", 1, "Sending withdraws this request.", "not run"),
        ("policy", 2, "Sending gives all of this up.", "not run"),
    ],
)
async def test_a_message_does_not_promise_that_a_parked_call_was_not_run(
    bench: Console, stage: str, count: int, lead: str, word: str
) -> None:
    will = await call(bench, "preview", _PREVIEW, stage, count)

    assert isinstance(will, list)
    assert will[0] == lead
    assert word in will[1]
    assert ("not run" in will[1]) == (word == "not run")


_WORK = """const scroller = document.createElement("div");
    document.body.append(scroller);
    const view = m.transcript(scroller);
    const { Line } = await import("/console/line.js");
    const turn = { turnId: "t", status: a[0], stoppedBy: a[1], actions: [] };
    const line = new Line("t");
    for (const e of a[2]) line.apply(e);
    view.render([[line, { turn, waiting: false, message: "", stamp: "" }]]);
    const found = scroller.textContent;
    view.close();
    scroller.remove();
    return found;"""


@pytest.mark.parametrize(
    ("stopped_by", "said"),
    [
        (None, "Starting"),
        ("crash", "The worker was lost; another one goes on"),
        ("shutdown", "The worker stopped in order; another one goes on"),
    ],
)
async def test_a_turn_that_nobody_has_taken_over_yet_says_what_its_step_was_lost_to(
    bench: Console, stopped_by: str | None, said: str
) -> None:
    assert await call(bench, "transcript", _WORK, "READY", stopped_by, []) == said


async def test_while_a_tool_runs_again_the_model_is_not_said_to_be_asked(bench: Console) -> None:
    recovered = event(6, "STEP_RECOVERED", attemptId=None, discardFrom=None, cause="crash")
    again = event(7, "TOOL_STARTED", callId="c1", attempt=2)

    text = await call(bench, "transcript", _WORK, "RUNNING", "crash", [*_BEGUN, recovered, again])

    assert isinstance(text, str)
    assert "the worker was lost" in text
    assert "Asking the model" not in text
