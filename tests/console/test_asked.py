"""What waits for people, on the line of its turn and in the composer's preview."""

import pytest

from tests.console.modules import asked_call, call, event
from tests.console.pages import Console
from tests.console.waits import approval, external, form, in_words, question, turn

_AT = "2026-08-15T12:00:06Z"

BEGUN = [
    event(1, "MESSAGE_ADDED", position=1, messageId="m1", role="user", content="Go"),
    event(2, "MODEL_STARTED", attemptId="a1", modelAttempt=1),
    event(3, "MODEL_COMPLETED", attemptId="a1", text="", toolCalls=[asked_call("c1", "pay")]),
    event(4, "TOOL_REQUESTED", callId="c1", toolName="pay", effect="writes"),
]


def _asked(sequence: int, kind: str, suspension: str) -> list[dict[str, object]]:
    return [
        event(sequence, kind, callId="c1", toolName="pay", requestedAt=_AT),
        event(sequence + 1, "TURN_SUSPENDED", suspensionType=suspension, correlationId="c1"),
    ]


def _result(sequence: int, kind: str, outcome: str, **more: object) -> dict[str, object]:
    result = {"callId": "c1", "toolName": "pay", "outcome": outcome, "output": "why"}
    return event(sequence, kind, **{**result, **more})


APPROVAL = _asked(5, "TOOL_APPROVAL_REQUESTED", "TOOL_APPROVAL")
FORM = _asked(5, "TOOL_INPUT_REQUESTED", "USER_INPUT")
OUTSIDE = _asked(5, "EXTERNAL_TOOL_REQUESTED", "EXTERNAL_TOOL")


def _decided(sequence: int, *, approved: bool, reason: str | None = None) -> dict[str, object]:
    said = {"approved": approved, "actorId": "mei", "reason": reason}
    return event(sequence, "TOOL_APPROVAL_DECIDED", callId="c1", toolName="pay", **said)


_LINE = """const { askView } = await import("/console/asked.js");
    const line = new m.Line("t");
    for (const e of a[0]) line.apply(e);
    const told = (step) => {
        const view = askView();
        view.update(step, {});
        const shown = view.body.filter((part) => !part.hidden).map((part) => part.textContent);
        return shown.join("").replace(/at [^.:]*\\d\\d:\\d\\d/g, "at TIME");
    };
    return [
        line.steps.find((step) => step.calls).calls.map((call) => call.state).join(" "),
        line.steps.filter((step) => step.kind === "ask")
            .map((step) => (step.open ? `open ${step.ask}` : told(step))),
        line.steps.filter((step) => step.kind === "wait").length,
    ];"""


@pytest.mark.parametrize(
    ("events", "call_is", "asks"),
    [
        pytest.param(APPROVAL, "approval", ["open approval"], id="an open approval"),
        pytest.param(FORM, "input", ["open input"], id="an open form"),
        pytest.param(OUTSIDE, "outside", ["open outside"], id="an open outside call"),
        pytest.param(
            [*APPROVAL, _decided(7, approved=True)],
            "requested",
            ["Waited 1 s for approval. Approved by mei at TIME."],
            id="approved",
        ),
        pytest.param(
            [
                *APPROVAL,
                _decided(7, approved=False, reason="too much"),
                _result(8, "TOOL_REJECTED", "rejected"),
            ],
            "rejected",
            ["Waited 1 s for approval. Rejected by mei at TIME: “too much”."],
            id="rejected",
        ),
        pytest.param(
            [
                *APPROVAL,
                _decided(7, approved=True),
                event(8, "TOOL_STARTED", callId="c1", toolName="pay", attempt=1),
                *_asked(9, "TOOL_APPROVAL_REQUESTED", "TOOL_APPROVAL"),
            ],
            "approval",
            ["Waited 1 s for approval. Approved by mei at TIME.", "open approval"],
            id="a second level",
        ),
        pytest.param(
            [*FORM, event(7, "TOOL_INPUT_RECEIVED", callId="c1", data={"a": 1})],
            "requested",
            ["Waited 1 s for your answer. Answered at TIME."],
            id="a form that was filled in",
        ),
        pytest.param(
            [*FORM, _result(7, "TOOL_COMPLETED", "completed", output="Vantaa")],
            "completed",
            ["Waited 1 s for your answer. Answered at TIME: “Vantaa”."],
            id="a question answered in words",
        ),
        pytest.param(
            [*OUTSIDE, _result(7, "EXTERNAL_TOOL_COMPLETED", "completed")],
            "completed",
            ["Waited 1 s for an outside tool. The result came at TIME."],
            id="an outside result",
        ),
        pytest.param(
            [*OUTSIDE, _result(7, "EXTERNAL_TOOL_FAILED", "error", code="lost")],
            "error",
            ["Waited 1 s for an outside tool. An error was reported at TIME."],
            id="an outside error",
        ),
        pytest.param(
            [*APPROVAL, _result(7, "TOOL_INTERRUPTED", "superseded")],
            "superseded",
            ["Waited 1 s for approval. Given up at TIME for a message."],
            id="a message instead",
        ),
        pytest.param(
            [*OUTSIDE, _result(7, "TOOL_INTERRUPTED", "unknown", reason="user_message")],
            "unknown",
            ["Waited 1 s for an outside tool. Given up at TIME for a message."],
            id="a message instead of an outside result",
        ),
        pytest.param(
            [
                *APPROVAL,
                event(7, "WAIT_EXPIRED", callId="c1", onExpiry="answer_expired"),
                _result(8, "TOOL_INTERRUPTED", "expired"),
            ],
            "expired",
            [
                (
                    "Waited 2 s for approval. Nobody answered in time. "
                    "The agent was told so and goes on without it."
                )
            ],
            id="expired",
        ),
        pytest.param(
            [*APPROVAL, event(7, "WAIT_EXPIRED", callId="c1", onExpiry="keep")],
            "approval",
            ["open approval"],
            id="expired and kept",
        ),
        pytest.param(
            [
                *OUTSIDE,
                event(7, "STEP_RECOVERED", calls=[]),
                *_asked(8, "EXTERNAL_TOOL_REQUESTED", "EXTERNAL_TOOL"),
            ],
            "outside",
            ["open outside"],
            id="told once more after a worker was lost",
        ),
        pytest.param(
            [*APPROVAL, event(7, "TURN_CANCELLED")],
            "requested",
            ["Waited 1 s for approval. Cancelled at TIME."],
            id="cancelled",
        ),
        pytest.param(
            [event(5, "TOOL_PUT_ASIDE", callId="c1", suspensionType="TOOL_APPROVAL")],
            "aside",
            [],
            id="put aside",
        ),
    ],
)
async def test_each_wait_is_one_step_of_the_line(
    bench: Console, events: list[dict[str, object]], call_is: str, asks: list[str]
) -> None:
    assert await call(bench, "line", _LINE, [*BEGUN, *events]) == [call_is, asks, 0]


async def test_waits_that_are_open_together_are_steps_of_their_own(bench: Console) -> None:
    events = [
        event(1, "MODEL_STARTED", attemptId="a1"),
        event(2, "MODEL_COMPLETED", attemptId="a1", toolCalls=[asked_call("c1"), asked_call("c2")]),
        event(3, "TOOL_REQUESTED", callId="c1", toolName="t", effect="writes"),
        event(4, "TOOL_REQUESTED", callId="c2", toolName="u", effect="writes"),
        event(5, "TOOL_APPROVAL_REQUESTED", callId="c1", toolName="t"),
        event(6, "EXTERNAL_TOOL_REQUESTED", callId="c2", toolName="u"),
        _decided(7, approved=True),
    ]
    body = """const line = new m.Line("t");
        const open = () => line.asks.open.map((step) => step.callId).join(" ");
        return a[0].map((e) => { line.apply(e); return open(); });"""
    assert await call(bench, "line", body, events) == ["", "", "", "", "c1", "c1 c2", "c2"]


_WILL = """const modes = m.modesOf(a[0]);
    const of = (mode) => {
        const rest = { kept: { results: 2 }, tools: { running: 0, open: 1 } };
        const { may, when = "message", will } = m.preview({ turn: a[0], mode, ...rest });
        const tool = will[3] ? `${will[3].code} ` : "";
        return [may, when, `${will[1]} ${tool}${will[2]}`];
    };
    return modes.length ? modes.map(of) : [of()];"""

_NOT_INSTALLED = "The version of the agent that this turn belongs to is not installed."
_NOT_RUN = "answered “not run”, then the agent reads your message."
_FORM = f"Sending gives this form up. book_courier is {_NOT_RUN}"
_STRICT = {"command": "MESSAGE", "enabled": False, "reason": "form_waits"}
_LATE = {"command": "MESSAGE", "enabled": False, "reason": "agent_version_unavailable"}


@pytest.mark.parametrize(
    ("waiting", "previews"),
    [
        pytest.param(
            turn(approval()),
            [[True, "message", f"Sending withdraws this request. payments_refund is {_NOT_RUN}"]],
            id="approval",
        ),
        pytest.param(turn(form()), [[True, "message", _FORM]], id="business form"),
        pytest.param(
            turn(form(), disabled=[_STRICT]), [[True, "instead", _FORM]], id="strict form"
        ),
        pytest.param(
            turn(approval(), disabled=[_LATE]),
            [[False, "message", f"Not now. {_NOT_INSTALLED}"]],
            id="no agent",
        ),
        pytest.param(
            turn(external()),
            [
                [
                    True,
                    "message",
                    (
                        "Sending gives this call up. scanner_locate is told that its result is no "
                        "longer wanted, then the agent reads your message."
                    ),
                ]
            ],
            id="outside call",
        ),
        pytest.param(
            turn(approval(), external(callId="c2")),
            [
                [
                    True,
                    "message",
                    f"Sending gives all of this up. The calls that wait are {_NOT_RUN}",
                ]
            ],
            id="several",
        ),
        pytest.param(
            turn(in_words()),
            [
                [True, "result", "Answer: becomes the reply to “Which depot?”."],
                [
                    True,
                    "instead",
                    "Do something else: the question is given up, then the agent reads this.",
                ],
            ],
            id="asked in words",
        ),
        pytest.param(
            turn(question()),
            [
                [True, "message", "Answer: becomes the reply to “Which year?”."],
                [
                    True,
                    "instead",
                    (
                        "Do something else: The agent reads your message together with the "
                        "2 results; no tool runs again."
                    ),
                ],
            ],
            id="question",
        ),
    ],
)
async def test_the_composer_says_what_a_message_does_to_what_waits(
    bench: Console, waiting: object, previews: object
) -> None:
    assert await call(bench, "preview", _WILL, waiting) == previews
