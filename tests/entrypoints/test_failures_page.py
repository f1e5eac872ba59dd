"""docs/failures.md: every claim is shown by a command, and every rule is named."""

import json
import re

from app.entrypoints.classify import answer
from app.providers.failure_rules import BROAD_RULES, LAST_RULES, WORD_RULES
from app.providers.failure_verdicts import DENIED, RATE_TOO_BIG, Rule
from tests.house.source import ROOT

PAGE = (ROOT / "docs" / "failures.md").read_text(encoding="utf-8")
_SHOWN = re.compile(r"^\$ turnkeeper failures classify - <<< '(.*)'\n(.*)$", re.MULTILINE)


def test_the_commands_on_the_page_answer_what_the_page_says() -> None:
    shown: list[tuple[str, str]] = _SHOWN.findall(PAGE)

    assert len(shown) > 10
    assert [said for _, said in shown] == [json.dumps(answer(line.encode())) for line, _ in shown]


def test_the_page_names_every_rule_in_its_order() -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| `") and line.count("|") == 4]
    rules = (*WORD_RULES, *BROAD_RULES, *LAST_RULES)

    assert rows[-len(rules) :] == [_row(rule) for rule in rules]


def _row(rule: Rule) -> str:
    verdict = rule.verdict
    kind = verdict.type.value if verdict.type else "NOT_A_MODEL_FAILURE"
    phase = f":{verdict.phase.value}" if verdict.phase else ""
    never = ", not retried" if verdict in (DENIED, RATE_TOO_BIG) else ""
    return f"| `{rule.name}` | `{kind}{phase}`{never} | {rule.why} |"
