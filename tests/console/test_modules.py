"""The parts of the page that know nothing of it, called in the browser as they are."""

from typing import cast

import pytest

from tests.console.modules import asked_call, call, event
from tests.console.pages import Console


@pytest.mark.parametrize(
    "pieces",
    [
        pytest.param([(0, "ab"), (2, "cd")], id="in order"),
        pytest.param([(0, "ab"), (0, "ab"), (1, "bcd")], id="repeated and overlapping"),
        pytest.param([(2, "cd"), (0, "ab")], id="early"),
        pytest.param([(0, "abcd"), (1, "bc")], id="known already"),
    ],
)
async def test_text_is_filled_in_by_offset(bench: Console, pieces: list[tuple[int, str]]) -> None:
    body = """const filled = new m.Pieces();
        for (const [offset, text] of a[0]) filled.add(offset, text);
        return [filled.text, filled.length];"""
    assert await call(bench, "pieces", body, pieces) == ["abcd", 4]


async def test_offsets_count_code_points(bench: Console) -> None:
    body = """const p = new m.Pieces();
        p.add(0, "a🙂"); p.add(1, "🙂b"); p.add(3, "c"); const whole = p.text;
        p.discard(2); return [whole, p.text, p.length];"""
    assert await call(bench, "pieces", body) == ["a🙂bc", "a🙂", 2]


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
async def test_a_stream_is_cut_into_events_wherever_it_is_cut_itself(
    bench: Console, end: str
) -> None:
    stream = end.join(
        ["id: 7:4", "event: A", "data: x\u2028y", "", ": heartbeat", "data:2", "", ""]
    )
    body = """return [...Array(a[0].length + 1).keys()].map((i) => {
        const feed = m.parser();
        const more = a[0].endsWith("\\r") ? ":" : "";
        return [a[0].slice(0, i), a[0].slice(i), more].flatMap(feed);
    });"""
    expected = [{"id": "7:4", "event": "A", "data": "x\u2028y"}, {"data": "2"}]
    assert await call(bench, "stream", body, stream) == [expected] * (len(stream) + 1)


async def test_text_becomes_paragraphs_and_code_alone(bench: Console) -> None:
    text = "One\ntwo\n\n```js\n<b>\n\nx\n```\nAfter\n\n~~~\nopen"
    assert await call(bench, "text", "return m.blocks(a[0]);", text) == [
        {"kind": "p", "text": "One\ntwo"},
        {"kind": "pre", "text": "<b>\n\nx"},
        {"kind": "p", "text": "After"},
        {"kind": "pre", "text": "open"},
    ]


async def test_arguments_are_not_reformatted(bench: Console) -> None:
    text = '{ "id": 12345678901234567890, "rate": 1.50, "q": "a\\"b: c" }'
    shown = 'id 12345678901234567890, rate 1.50, q "a\\"b: c"'
    dense = text.replace(" ", "").replace("b:c", "b: c")
    body = "return a.map(m.oneLine);"
    assert await call(bench, "calls", body, text, dense) == [shown, shown]


async def test_a_message_is_a_title_and_an_explanation_in_any_tongue(bench: Console) -> None:
    body = "return a.map((text) => [...m.titleAndRest(text), m.langOf(text)]);"
    assert await call(
        bench, "words", body, "It is busy. Try 3.5 again.", "模型繁忙。请稍后重试。"
    ) == [
        ["It is busy", "Try 3.5 again.", None],
        ["模型繁忙", "请稍后重试。", "zh-Hans"],
    ]


async def test_durations_and_moments(bench: Console) -> None:
    body = """const now = new Date(2026, 7, 15, 12).getTime();
        const moments = [0, 20, 96, -25, -50].map((hours) => m.moment(now - hours * 36e5, now));
        return [[412, 1940, 28e3, 28 * 60e3, 86 * 60e3, 74 * 36e5].map(m.duration),
                moments, m.left(41_200), m.left(74 * 36e5),
                m.pointInTime(now, now), m.pointInTime(now + 36e5 * 24, now)];"""
    assert await call(bench, "words", body) == [
        ["412 ms", "1.94 s", "28 s", "28 min", "1 h 26 min", "3 d 2 h"],
        [
            "12:00",
            "yesterday, 16:00",
            "11 Aug, 12:00",
            "tomorrow, 13:00",
            "17 Aug, 14:00",
        ],
        "0:42",
        "3 d 2 h",
        "12:00:00",
        "tomorrow, 12:00",
    ]


STORY = [
    event(1, "MESSAGE_ADDED", position=1, messageId="m1", role="user", content="Go"),
    event(2, "TURN_STARTED"),
    event(3, "MODEL_STARTED", attemptId="a1", modelAttempt=1),
    event(4, "MODEL_REASONING", attemptId="a1", offset=0, text="Hm"),
    event(
        5,
        "MODEL_COMPLETED",
        attemptId="a1",
        text="",
        toolCalls=[asked_call("c1"), asked_call("c2")],
    ),
    event(6, "TOOL_REQUESTED", callId="c1", toolName="t", effect="writes"),
    event(7, "TOOL_REQUESTED", callId="c2", toolName="u", effect="reads"),
    event(8, "TOOL_STARTED", callId="c1", toolName="t", attempt=1),
    event(9, "STEP_RECOVERED", calls=["c1"]),
    event(10, "TOOL_INTERRUPTED", callId="c1", toolName="t", outcome="unknown", output="?"),
    event(11, "TOOL_COMPLETED", callId="c2", toolName="u", outcome="completed", output="ok"),
    event(12, "MODEL_STARTED", attemptId="a2", modelAttempt=2),
    event(13, "MODEL_TEXT", attemptId="a2", offset=0, text="Half an"),
    event(14, "MODEL_FAILED", attemptId="a2", modelFailure={"failureId": "f1"}),
    event(15, "TURN_SUSPENDED", suspensionType="MODEL", correlationId="f1", requestedAt=None),
    event(16, "TURN_RESUMED", commandType="RETRY_MODEL", correlationId="f1"),
    event(17, "MODEL_STARTED", attemptId="a3", modelAttempt=3),
    event(18, "MODEL_TEXT", attemptId="a3", offset=0, text="Lost"),
    event(19, "STEP_RECOVERED", attemptId="a3", discardFrom=0, calls=[]),
    event(20, "MODEL_STARTED", attemptId="a4", modelAttempt=4),
    event(21, "MODEL_COMPLETED", attemptId="a4", stopReason="END_TURN", text="Whole"),
    event(22, "TURN_COMPLETED", stopReason="END_TURN"),
]

SHOW = """const line = new m.Line("t");
    for (const batch of a) for (const e of batch) line.apply(e);
    const calls = (step) => step.calls?.map((call) => `${call.arguments} ${call.state}`);
    const says = (step) => step.text ?? step.pieces?.text ?? step.failureId ?? calls(step);
    return line.steps.map((s) => [s.kind, says(s) ?? s.type, s.partial ?? s.open ?? null]);"""


async def test_a_turn_is_one_line_however_often_its_events_come(bench: Console) -> None:
    brought_back = "Interrupted: the worker was lost. Brought back with everything that was stored."
    expected = [
        ["said", "Go", None],
        ["think", "Hm", None],
        ["calls", ['{"of": "c1"} unknown', '{"of": "c2"} completed'], None],
        ["mark", brought_back, None],
        ["text", "Half an", "broken"],
        ["wait", "f1", False],
        ["mark", brought_back, None],
        ["text", "Whole", None],
        ["end", "TURN_COMPLETED", None],
    ]
    assert await call(bench, "line", SHOW, STORY) == expected
    assert await call(bench, "line", SHOW, STORY[:15], STORY[3:], STORY) == expected


async def test_a_notice_is_a_remark_live_and_afterwards(bench: Console) -> None:
    told = "Your answer does not fit.\n- total: Field required"
    live = [event(1, "MESSAGE_ADDED", position=1, role="notice", content=told)]
    stored = [{"position": 1, "turnId": "t", "role": "notice", "content": told, "createdAt": "x"}]
    show = "return [...m.linesOf(a).values()][0].steps.map((s) => [s.kind, s.text]);"

    marked = [["mark", f"Told to the model: {told}", None]]
    assert await call(bench, "line", SHOW, live) == marked
    assert await call(bench, "history", show, *stored) == [step[:2] for step in marked]


PAUSES = [
    event(1, "MESSAGE_ADDED", position=1, messageId="m1", role="user", content="Go"),
    event(2, "MODEL_STARTED", attemptId="a1", modelAttempt=1),
    event(3, "MODEL_TEXT", attemptId="a1", offset=0, text="Half an"),
    event(4, "TURN_PAUSED", cause="person", requestedAt=None, limit=None),
    event(4, "MODEL_TEXT", attemptId="a1", offset=7, text=" answer"),
    event(5, "TURN_RESUMED", commandType="RESUME", correlationId=None),
    event(6, "MODEL_STARTED", attemptId="a2", modelAttempt=2),
    event(7, "MODEL_COMPLETED", attemptId="a2", text="", toolCalls=[asked_call("c1")]),
    event(8, "TOOL_REQUESTED", callId="c1", toolName="t", effect="reads"),
    event(9, "TOOL_STARTED", callId="c1", toolName="t", attempt=1),
    event(
        10,
        "TOOL_ATTEMPT_FAILED",
        callId="c1",
        toolName="t",
        attempt=1,
        error="no answer",
        nextRunnableAt="2026-08-15T12:00:20Z",
    ),
    event(
        11,
        "TURN_SUSPENDED",
        suspensionType="RETRY",
        correlationId=None,
        requestedAt=None,
        nextRunnableAt="2026-08-15T12:00:20Z",
        modelFailure=None,
    ),
    event(12, "RETRY_SCHEDULED", retryCount=1, nextRunnableAt="2026-08-15T12:00:20Z"),
    event(13, "TURN_PAUSED", cause="limit", requestedAt=None, limit="max_tool_calls"),
]


async def test_a_pause_ends_whatever_it_finds_and_forgets_the_times(bench: Console) -> None:
    expected = [
        ["said", "Go", None],
        ["text", "Half an", "stopped"],
        ["wait", "PAUSE", False],
        ["calls", ['{"of": "c1"} again'], None],
        ["wait", "RETRY", False],
        ["wait", "PAUSE", True],
    ]
    assert await call(bench, "line", SHOW, PAUSES) == expected
    times = """const line = new m.Line("t"); const times = [];
        for (const e of a[0]) {
            line.apply(e);
            times.push(line.steps.find((step) => step.calls)?.calls[0].nextAt ?? null);
        }
        return [times.filter(Boolean).length, times.at(-1), line.tools, line.kept];"""
    assert await call(bench, "line", times, PAUSES) == [
        3,
        None,
        {"running": 0, "open": 1},
        {"messages": 1, "results": 0, "words": 0},
    ]


STEERED = [
    event(1, "TURN_STARTED", queue=[{"messageId": "m1"}, {"messageId": "m2"}]),
    event(2, "INPUT_PROMOTED", messageId="m1"),
    event(3, "MESSAGE_ADDED", position=1, messageId="m1", role="user", content="Go"),
    event(4, "MODEL_STARTED", attemptId="a1", modelAttempt=1),
    event(5, "MODEL_COMPLETED", attemptId="a1", text="", toolCalls=[asked_call("c1")]),
    event(6, "TOOL_REQUESTED", callId="c1", toolName="t", effect="reads"),
    event(7, "INPUT_QUEUED", messageId="m3", mode="steer", content="No, this"),
    event(8, "TOOL_SKIPPED", callId="c1", toolName="t", outcome="superseded", output="?"),
    event(9, "INPUT_PROMOTED", messageId="m3"),
    event(10, "MESSAGE_ADDED", position=4, messageId="m3", role="user", content="No, this"),
    event(11, "INPUT_WITHDRAWN", messageId="m2"),
]


async def test_what_waits_is_known_and_what_was_skipped_was_not_run(bench: Console) -> None:
    expected = [
        ["said", "Go", None],
        ["calls", ['{"of": "c1"} skipped'], None],
        ["said", "No, this", None],
    ]
    assert await call(bench, "line", SHOW, STEERED) == expected
    waiting = """const line = new m.Line("t");
        return a[0].map((e) => { line.apply(e); return [...line.queued].join(" "); });"""
    found = await call(bench, "line", waiting, STEERED)
    assert found == ["m1 m2", *["m2"] * 5, *["m2 m3"] * 2, *["m2"] * 2, ""]


async def test_what_was_used_up_is_said_in_its_unit(bench: Console) -> None:
    body = """return [["max_total_tokens", 200410, 200000], ["max_duration", 600.4, 600]]
        .map(([limit, used, allowed]) => m.usedOf({ limit, used, allowed }))
        .concat([1, 2, 3, 4, 11, 21, 112].map(m.ordinal));"""
    assert await call(bench, "words", body) == [
        "200,410 of 200,000 tokens",
        "10 min of 10 min",
        *["1st", "2nd", "3rd", "4th", "11th", "21st", "112th"],
    ]


async def test_a_turn_of_old_is_made_from_its_messages(bench: Console) -> None:
    messages = [
        {"position": 1, "turnId": "t", "role": "user", "content": [{"type": "text", "text": "Go"}]},
        {
            "position": 2,
            "turnId": "t",
            "role": "assistant",
            "content": "",
            "reasoning": "Hm",
            "toolCalls": [{"callId": "c1", "toolName": "t", "arguments": "{}"}],
        },
        {"position": 3, "turnId": "t", "role": "tool", "callId": "c1", "outcome": "error"},
        {"position": 4, "turnId": "t", "role": "assistant", "content": "Done"},
        {"position": 5, "turnId": "t", "role": "closing", "content": "Cancelled."},
    ]
    body = """const [line] = m.linesOf(a[0]).values();
        return line.steps.map((s) => [s.kind, s.text ?? s.pieces?.text ?? s.calls[0].state]);"""
    assert await call(bench, "history", body, messages) == [
        ["said", "Go"],
        ["think", "Hm"],
        ["calls", "error"],
        ["text", "Done"],
        ["mark", "Cancelled."],
    ]


async def test_times_follow_the_servers_clock(bench: Console) -> None:
    body = """const off = (ms) => {
            const headers = { Date: new Date(Date.now() + ms).toUTCString() };
            m.noteClock(new Response("", { headers }), Date.now());
            return Math.round((m.serverNow() - Date.now()) / 1000);
        };
        return [off(0), off(3600e3), off(3600e3), off(0)];"""
    found = await call(bench, "api", body)
    assert isinstance(found, list)
    off = cast("list[float]", found)
    assert off == pytest.approx([0, 3600, 3600, 0], abs=2)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        pytest.param("\U0001f468\u200d\U0001f469\u200d\U0001f467", None, id="a family"),
        pytest.param("\u0645\u06cc\u200c\u062e\u0648\u0627\u0647\u0645", None, id="Persian"),
        pytest.param("\u2764\ufe0f 1\ufe0f\u20e3", None, id="a heart and a key cap"),
        pytest.param("pay\u200d 5", "payZWJ 5", id="a joiner that joins nothing"),
        pytest.param("pay\u202e5", "payRLO5", id="a turned direction"),
    ],
)
async def test_joiners_that_spell_are_left_in_what_people_write(
    bench: Console, text: str, shown: str | None
) -> None:
    body = "return m.said(a[0]).map((node) => node.textContent).join('');"

    assert await call(bench, "text", body, text) == (shown or text)
