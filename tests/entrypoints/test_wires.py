"""`turnkeeper wires parse`, as its own process."""

import json
from pathlib import Path

from tests.entrypoints.command import Command

_ANSWER = {
    "wire": "openai_chat",
    "raw": 'data: {"choices":[{"delta":{"content":"Hi\u2028"},"finish_reason":"stop"}]}\n\n',
    "expected": "ignored",
}
_NOTHING: dict[str, object] = {
    "reasoning": "",
    "toolCalls": [],
    "usage": None,
    "signatures": [],
    "failure": None,
}


def _file(folder: Path, *lines: str) -> str:
    file = folder / "answers.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return str(file)


def _ended(*arguments: str) -> tuple[int, list[str]]:
    with Command("wires", "parse", *arguments) as command:
        status, printed = command.ended()
    return status, printed.splitlines()


def test_each_answer_becomes_a_line_whatever_ends_of_lines_are_in_it(tmp_path: Path) -> None:
    status, lines = _ended(_file(tmp_path, json.dumps(_ANSWER, ensure_ascii=False)))

    assert status == 0
    assert json.loads("".join(lines)) == {
        "text": "Hi\u2028",
        "stopReason": "END_TURN",
        **_NOTHING,
    }


def test_a_bad_line_is_told_with_its_number_and_the_others_are_answered(tmp_path: Path) -> None:
    good = json.dumps(_ANSWER)
    unknown = json.dumps({**_ANSWER, "wire": "carrier-pigeon"})
    status, lines = _ended(
        _file(tmp_path, good, "{", unknown, json.dumps({"wire": "openai_chat"}), good)
    )

    printed = [json.loads(line) for line in lines if line.startswith("{")]
    told = [line for line in lines if line.startswith("turnkeeper: ")]
    assert status == 1
    assert ["error" in line for line in printed] == [False, True, True, True, False]
    assert told == [
        "turnkeeper: line 2: a JSON object is needed",
        "turnkeeper: line 3: 'wire' must be one of openai_chat, anthropic_messages",
        "turnkeeper: line 4: 'raw' must be the body as text",
    ]


def test_a_file_that_is_not_there_is_told_in_one_line(tmp_path: Path) -> None:
    status, lines = _ended(str(tmp_path / "none.jsonl"))

    assert (status, len(lines)) == (1, 1)
    assert lines[0].endswith("none.jsonl: No such file or directory")
