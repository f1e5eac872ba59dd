"""What the stub model is asked to do, told by `[[...]]` in the last user message.

    echo-N                  answer with N words
    tools-K                 one message with K parallel `lookup` calls, then 50 words
    steps-M, steps-MxK      M rounds of one (or K) calls each, then 50 words
    fail-429-quota-N        429 `insufficient_quota` N times (`-once`: once), then it works
    fail-429-rate-N         429 `rate_limit_exceeded` with `retry-after: 1` N times, then it works
    overload-503-N          503 N times, then it works
    cut-stream              half of the answer, then the connection is closed; once per key

joined with `+` to modifiers: `dMS` (delay between words, milliseconds), `thinkMS` (before the
first), `sizeB` (`lookup` is asked for B bytes; 64), `outN` (N words in the final answer; 50),
`final` (the fault fires on the final call instead of the first). `#KEY` at the end names the turn;
where KEY begins with `t`, the times of its calls are kept.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, cast

Fault = Literal["quota", "rate", "overload", "cut"]

_SCRIPT = re.compile(r"\[\[([^\[\]]+)\]\]")
_NUMBER = re.compile(r"([a-z]+)(\d+)$")
_MOST_PLANS = 50_000
_PLANS: dict[str, "Plan"] = {}


@dataclass(slots=True)
class Plan:
    """One script, read."""

    key: str = ""
    rounds: int = 0
    width: int = 1
    words: int = 50
    delay: float = 0.0
    """Seconds."""
    think: float = 0.0
    size: int = 64
    fault: Fault | None = None
    faults: int = 0
    fails_at_the_end: bool = False

    @property
    def steps(self) -> int:
        """Model calls and tool executions of the turn."""
        return 1 + self.rounds + self.rounds * self.width


def read_plan(text: str) -> Plan:
    """The plan of a script such as `steps-5+size4096#t1`."""
    script, _, key = text.partition("#")
    plan = Plan(key=key)
    for part in script.split("+"):
        head, _, tail = part.partition("-")
        if tail:
            _what(plan, head, tail)
        elif part == "final":
            plan.fails_at_the_end = True
        elif found := _NUMBER.match(part):
            _how(plan, found[1], int(found[2]))
    return plan


def _what(plan: Plan, head: str, tail: str) -> None:
    match head:
        case "echo":
            plan.words = int(tail)
        case "tools":
            plan.rounds, plan.width = 1, int(tail)
        case "steps":
            rounds, _, width = tail.partition("x")
            plan.rounds, plan.width = int(rounds), int(width or 1)
        case "fail":
            plan.fault = "quota" if "quota" in tail else "rate"
            plan.faults = _times(tail)
        case "overload":
            plan.fault, plan.faults = "overload", _times(tail)
        case "cut":
            plan.fault, plan.faults = "cut", 1
        case _:
            raise ValueError(f"the stub knows no {head!r}")


def _how(plan: Plan, name: str, number: int) -> None:
    match name:
        case "think":
            plan.think = number / 1000
        case "d":
            plan.delay = number / 1000
        case "size":
            plan.size = number
        case "out":
            plan.words = number
        case _:
            raise ValueError(f"the stub knows no {name!r}")


def _times(tail: str) -> int:
    last = tail.rsplit("-", 1)[-1]
    return 1 if last == "once" else int(last)


def plan_of(request: Mapping[str, Any]) -> tuple[Plan, int]:
    """The plan of a request, and how many rounds of tools its turn has behind it."""
    rounds, text = 0, ""
    for message in reversed(request.get("messages", ())):
        if message.get("role") == "assistant" and message.get("tool_calls"):
            rounds += 1
        if message.get("role") == "user":
            text = _text(message.get("content"))
            break
    found = _SCRIPT.search(text)
    script = found[1] if found else "echo-1"
    plan = _PLANS.get(script)
    if plan is None:
        if len(_PLANS) > _MOST_PLANS:
            _PLANS.clear()
        plan = _PLANS[script] = read_plan(script)
    return plan, rounds


def _text(content: object) -> str:
    if isinstance(content, str):
        return content
    parts = cast("Sequence[Mapping[str, str]]", content or ())
    return "".join(part.get("text", "") for part in parts)
