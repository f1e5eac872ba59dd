"""Cards that people answer: what they send, what they do not, and that all they show is text."""

import pytest

from tests.console.modules import call
from tests.console.pages import Console
from tests.console.waits import Json, approval, external, form, in_words, question, turn

_CARD = """const [wait, turn] = a;
    const sent = [];
    const view = {
        turn, wait, act: { sending: null, problem: null, errors: null }, approvals: [], claim: null,
        effect: "writes", kept: null, cancel: null, answer: (body) => sent.push(body),
    };
    const card = m.cardOf(view);
    document.body.append(card.element);
    card.update(view);
    const one = (selector) => card.element.querySelector(selector);
    const press = (command) => one(`[data-command=${command}]`).click();
    const fill = (selector, value) => { one(selector).value = value; };
    const found = (() => { STORY })();
    card.element.remove();
    return found ?? sent;"""


async def _card(
    bench: Console, wait: Json, story: str, *, whole_turn: Json | None = None
) -> object:
    """What `story` returns, or else what the card has sent after it."""
    given = whole_turn or turn(wait)
    return await call(bench, "waitcards", _CARD.replace("STORY", story), wait, given)


async def test_approving_sends_the_fingerprint_of_what_was_shown(bench: Console) -> None:
    assert await _card(bench, approval(), 'press("APPROVE_TOOL");') == [
        {"command": "APPROVE_TOOL", "callId": "c1", "fingerprint": "9f2c41d781ab" + "0" * 52}
    ]


async def test_the_second_half_of_a_double_click_approves_nothing(bench: Console) -> None:
    story = """const second = new MouseEvent("click", { detail: 2 });
        one("[data-command=APPROVE_TOOL]").dispatchEvent(second);"""
    assert await _card(bench, approval(), story) == []


async def test_rejecting_needs_a_reason(bench: Console) -> None:
    story = """press("REJECT_TOOL"); press("REJECT_TOOL");
        fill("textarea", "  "); press("REJECT_TOOL");
        fill("textarea", " No. "); press("REJECT_TOOL");"""
    assert await _card(bench, approval(), story) == [
        {"command": "REJECT_TOOL", "callId": "c1", "reason": "No."}
    ]


async def test_a_form_is_sent_when_the_page_finds_nothing_wrong_with_it(bench: Console) -> None:
    story = """press("USER_INPUT"); fill("input", "Main 1"); press("USER_INPUT");
        fill(".field:nth-child(2) input", "3"); press("USER_INPUT");"""
    assert await _card(bench, form(), story) == [
        {"command": "USER_INPUT", "callId": "c1", "data": {"street": "Main 1", "floor": 3}}
    ]


@pytest.mark.parametrize(
    ("text", "output"),
    [("found it", "found it"), ('{"a": 1}', {"a": 1}), ("12", 12), ("null", "null")],
)
async def test_a_result_by_hand_is_json_or_else_text(
    bench: Console, text: str, output: object
) -> None:
    story = f'press("TOOL_RESULT"); fill("textarea", {text!r}); press("TOOL_RESULT");'
    assert await _card(bench, external(), story) == [
        {"command": "TOOL_RESULT", "callId": "c1", "output": output}
    ]


async def test_a_result_that_is_too_long_is_not_sent(bench: Console) -> None:
    story = 'press("TOOL_RESULT"); fill("textarea", "é".repeat(11)); press("TOOL_RESULT");'
    assert await _card(bench, external(), story) == []


async def test_an_error_by_hand_has_a_code_and_a_message(bench: Console) -> None:
    story = (
        'press("TOOL_ERROR"); press("TOOL_ERROR"); fill("textarea", "gone"); press("TOOL_ERROR");'
    )
    assert await _card(bench, external(), story) == [
        {"command": "TOOL_ERROR", "callId": "c1", "code": "failed", "message": "gone"}
    ]


@pytest.mark.parametrize("wait", [approval(), form(), external(), in_words(), question()])
async def test_without_its_actions_a_card_has_no_button(bench: Console, wait: Json) -> None:
    story = 'return card.element.querySelectorAll("[data-command]").length;'
    assert await _card(bench, wait, story, whole_turn=turn()) == 0


async def test_an_expired_wait_shows_its_buttons_and_why_they_do_nothing(bench: Console) -> None:
    late = {"enabled": False, "callId": "c1", "reason": "wait_expired"}
    waiting = turn(approval(), disabled=[{"command": "APPROVE_TOOL", **late}])
    story = """press("APPROVE_TOOL");
        return [sent.length, card.element.querySelector(".why").textContent];"""
    assert await _card(bench, approval(), story, whole_turn=waiting) == [
        0,
        "Its time is over; an answer is no longer taken.",
    ]


_PAYLOADS = [
    "<img src=x onerror=hacked()>",
    "</pre></td></section><script>hacked()</script>",
    '" onmouseover="hacked()" x="',
    "javascript:hacked()",
    "<svg/onload=hacked()>",
    "{{constructor.constructor('hacked()')()}}",
    "<style>*{display:none}</style>",
    "<iframe srcdoc='<script>parent.hacked()</script>'>",
    "[click](javascript:hacked())",
    "\u202e<b>evil</b>\u0000",
]

_INJECT = """const [payloads, waits, turns] = a;
    window.hacked = () => { window.wasHacked = true; };
    const { askView } = await import("/console/asked.js");
    const { waitRow } = await import("/console/waitrows.js");
    const place = document.createElement("div");
    document.body.append(place);
    const evil = (value, payload) => {
        if (typeof value === "string") return value.replaceAll("EVIL", payload);
        if (Array.isArray(value)) return value.map((one) => evil(one, payload));
        if (value === null || typeof value !== "object") return value;
        const members = Object.entries(value);
        return Object.fromEntries(members.map((pair) => pair.map((one) => evil(one, payload))));
    };
    const decided = {
        callId: "c1", stage: "EVIL", approved: true, actorId: "EVIL", decidedAt: "2026-08-15",
    };
    const over = {
        open: false, isStale: true, ask: "approval", by: "rejected", actorId: "EVIL",
        reason: "EVIL", since: 0, endedAt: 0,
    };
    const wrong = [{ path: ["x"], text: "EVIL" }, { path: [], text: "EVIL" }];
    const shown = {
        approvals: [decided], effect: "EVIL",
        claim: { claimedBy: "EVIL", claimedUntil: "2999-01-01T00:00:00Z" },
        act: { sending: null, problem: "EVIL", errors: wrong },
    };
    const tags = "img, script, iframe, style, a[href^=javascript], [onmouseover], [onload]";
    const told = [];
    for (const payload of payloads) {
        waits.forEach((given, i) => {
            const view = evil({ ...shown, turn: turns[i], wait: given }, payload);
            const card = m.cardOf(view);
            card.update(view);
            const item = evil({ turnId: "EVIL", title: "EVIL", wait: given }, payload);
            place.append(card.element, waitRow(item, { isCurrent: true, over: null }));
        });
        const line = askView();
        line.update(evil(over, payload), {});
        place.append(...line.body);
        await new Promise((done) => setTimeout(done, 0));
        const words = payload.replace(/[\\u0000\\u202e]/g, "");
        told.push([place.textContent.includes(words), place.querySelectorAll(tags).length]);
        place.replaceChildren();
    }
    place.remove();
    return [told, window.wasHacked ?? false];"""


async def test_nothing_that_a_card_shows_can_become_markup(bench: Console) -> None:
    evil_schema = {
        "type": "object",
        "title": "EVIL",
        "properties": {
            "EVIL": {"type": "string", "title": "EVIL", "description": "EVIL", "default": "EVIL"},
            "x": {"enum": ["EVIL", {"EVIL": "EVIL"}], "title": "EVIL", "description": "EVIL"},
            "y": {"const": "EVIL"},
            "z": {"type": "array", "items": {"enum": ["EVIL"]}},
            "v": {"type": "boolean", "description": "EVIL"},
            "w": {
                "type": "object",
                "title": "EVIL",
                "properties": {"EVIL": {"examples": ["EVIL"]}},
            },
        },
    }
    words = {
        "message": "EVIL",
        "title": "EVIL",
        "toolName": "EVIL",
        "expiresAt": "2026-08-16T00:00:00Z",
    }
    waits = [
        approval(**words, arguments='{"EVIL": 1, "x": EVIL', fingerprint="EVIL"),
        approval(**words, arguments='{"a": ["x", {}]}', onExpiry="EVIL"),
        form(**words, schema=evil_schema),
        in_words(**words),
        external(**words, arguments="EVIL", idempotencyKey="EVIL"),
        question("EVIL"),
    ]
    turns = [turn(wait, agentId="EVIL", agentVersion="EVIL", turnId="EVIL") for wait in waits]
    found = await call(bench, "waitcards", _INJECT, _PAYLOADS, waits, turns)
    assert found == [[[True, 0]] * len(_PAYLOADS), False]
