"""What is approved is shown as it is stored: every character, every digit, every name."""

import json
import random

import pytest

from tests.console.modules import call
from tests.console.pages import Console
from tests.support.sizes import size

_TEXTS = ["", "a", 'a"b', "\\", "{}[],:", "\u202e", "\u00e9\U0001f642", "  ", "\n\t", "__proto__"]
_NUMBERS = ["0", "-1", "12345678901234567890", "1.50", "1E+2", "0.10000000000000000001"]


def _value(chance: random.Random, depth: int) -> str:
    """Any JSON value as text, written in one of many ways."""
    kinds = ["text", "number", "word", *(["object", "array"] if depth else [])]
    blank = chance.choice(["", " ", "\n  "])
    match chance.choice(kinds):
        case "text":
            return json.dumps(chance.choice(_TEXTS), ensure_ascii=chance.random() < 0.5)
        case "number":
            return chance.choice(_NUMBERS)
        case "word":
            return chance.choice(["true", "false", "null"])
        case "object":
            members = (_member(chance, depth - 1)[2] for _ in range(chance.randrange(3)))
            return f"{{{blank}{f'{blank},{blank}'.join(members)}{blank}}}"
        case _:
            values = (_value(chance, depth - 1) for _ in range(chance.randrange(3)))
            return f"[{blank}{f',{blank}'.join(values)}{blank}]"


def _member(chance: random.Random, depth: int) -> tuple[str, str, str]:
    name, raw = chance.choice(_TEXTS), _value(chance, depth)
    blank = chance.choice(["", " ", "\t"])
    return name, raw, f"{json.dumps(name)}{blank}:{blank}{raw}"


async def test_any_object_is_read_member_by_member_as_it_is_written(bench: Console) -> None:
    chance = random.Random(88121)  # noqa: S311 - a seed, not a secret
    made = [
        [_member(chance, 3) for _ in range(chance.randrange(5))]
        for _ in range(size(200, soak=5_000))
    ]
    texts = [f" {{ {' , '.join(written for _, _, written in members)} }} " for members in made]
    body = "return a[0].map((text) => m.membersOf(text).map(({ name, raw }) => [name, raw]));"

    found = await call(bench, "members", body, texts)

    assert found == [[[name, raw] for name, raw, _ in members] for members in made]


@pytest.mark.parametrize("text", ["", "{", "[1]", "1", "null", '"a"', '{"a":1}x', "{'a': 1}"])
async def test_what_is_no_object_is_shown_as_it_is(bench: Console, text: str) -> None:
    body = """const shown = m.exact(a[0]);
        return [shown.querySelector("table"), shown.querySelector("pre").textContent];"""
    assert await call(bench, "exact", body, text) == [None, text]


_SHOWN = """const shown = m.exact(a[0]);
    const words = (all) => [...all].map((one) => one.textContent);
    return [words(shown.querySelectorAll("tr")), words(shown.querySelectorAll(".warn"))];"""


async def test_numbers_keep_their_digits_and_names_their_order(bench: Console) -> None:
    text = '{"b": 12345678901234567890, "a": 1.50, "on": true, "of": {"x":  [1, 2]}, "no": null}'
    assert await call(bench, "exact", _SHOWN, text) == [
        [
            "b12345678901234567890integer",
            "a1.50number",
            "ontrueboolean",
            'of{"x":  [1, 2]}object',
            "nonullnull",
        ],
        [],
    ]


_IN_NOTE = (
    "3 invisible characters in note are shown as marks. One of them changes the reading direction."
)
_IN_NAMES = (
    "1 invisible character in the names is shown as a mark. It changes the reading direction."
)


async def test_what_hides_is_marked_and_counted(bench: Console) -> None:
    text = '{"note": "poles\\nAalto\u200bnen \\u202e.lluf ni", "a\u2066b": "fine"}'
    assert await call(bench, "exact", _SHOWN, text) == [
        ['note"polesLFAaltoZWSPnen RLO.lluf ni"string', 'aLRIb"fine"string'],
        [
            _IN_NOTE,
            _IN_NAMES,
        ],
    ]


async def test_a_name_that_is_there_twice_is_shown_twice_and_said(bench: Console) -> None:
    assert await call(bench, "exact", _SHOWN, '{"amount": 1, "amount": 100}') == [
        ["amount1integer", "amount100integer"],
        ["amount is there more than once."],
    ]


@pytest.mark.parametrize(
    "code",
    [
        *[0x00, 0x08, 0x0B, 0x1F, 0x7F, 0x85, 0x9F, 0xAD, 0x34F, 0x61C, 0x115F, 0x17B4, 0x180E],
        *[0x200B, 0x200F, 0x2028, 0x202A, 0x202E, 0x2060, 0x2064, 0x2066, 0x2069, 0x206F, 0x3164],
        *[0xFE0F, 0xFEFF, 0xFFA0, 0xFFF9, 0x1BCA0, 0xE0001, 0xE0041, 0xE007F, 0xE0100],
    ],
    ids=hex,
)
async def test_every_character_that_cannot_be_seen_gets_a_mark(bench: Console, code: int) -> None:
    body = """const nodes = m.marked(`a${String.fromCodePoint(a[0])}b`);
        return nodes.map((node) => [node.textContent !== "", node.className ?? null]);"""
    assert await call(bench, "text", body, code) == [[True, None], [True, "ctl"], [True, None]]
