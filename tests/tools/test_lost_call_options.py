"""What a tool declares for its calls whose end nobody knows, and what its probe may say."""

from typing import Any, cast

import pytest

from app.ports import Probed
from app.tools import Done, NotDone, ToolDeclarationError, tool
from app.turn.agent import OnUnknown
from app.turn.lost_calls import Finding, FoundDone

EVERY_EFFECT = ("reads", "idempotent", "writes")


async def work() -> str:
    """Do something."""
    return "done"


def declared(**options: object) -> Any:  # noqa: ANN401 - any option, of any kind
    return cast("Any", tool)(**options)(work).spec


@pytest.mark.parametrize("effect", EVERY_EFFECT)
@pytest.mark.parametrize("rule", ["report", "interrupt", "park"])
def test_any_tool_may_be_reported_interrupted_or_asked_about(effect: str, rule: str) -> None:
    assert declared(effect=effect, on_unknown=rule).on_unknown is OnUnknown(rule)


@pytest.mark.parametrize(
    ("effect", "rule", "is_allowed"),
    [
        ("reads", "rerun", True),
        ("idempotent", "rerun", False),
        ("writes", "rerun", False),
        ("reads", "rerun_idempotent", True),
        ("idempotent", "rerun_idempotent", True),
        ("writes", "rerun_idempotent", False),
    ],
)
def test_only_what_may_run_twice_is_run_again(effect: str, rule: str, *, is_allowed: bool) -> None:
    if is_allowed:
        assert declared(effect=effect, on_unknown=rule).on_unknown == rule
        return
    with pytest.raises(ToolDeclarationError, match=f"cannot have on_unknown='{rule}'"):
        declared(effect=effect, on_unknown=rule)


def test_a_tool_that_names_no_rule_has_that_of_its_effect() -> None:
    assert declared().on_unknown is None


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"on_unknown": "again"}, "on_unknown is one of 'report', 'rerun', "),
        ({"on_unknown": True}, "on_unknown is one of"),
        ({"after_interrupt": "all"}, "after_interrupt is 'cascade' or 'independent'"),
        ({"on_unknown": "park", "after_interrupt": "cascade"}, "of no use with on_unknown='park'"),
        ({"effect": "reads", "after_interrupt": "cascade"}, "of no use with on_unknown='rerun'"),
        ({"probe": str}, "probe must be an async function"),
        ({"probe": "yes"}, "probe must be an async function"),
    ],
)
def test_what_makes_no_sense_is_refused_where_the_tool_is_declared(
    options: dict[str, object], said: str
) -> None:
    with pytest.raises(ToolDeclarationError, match=said):
        declared(**options)


@pytest.mark.parametrize("after", ["cascade", "independent"])
def test_what_becomes_of_the_calls_behind_may_be_said(after: str) -> None:
    assert declared(on_unknown="interrupt", after_interrupt=after).after_interrupt == after
    assert declared(after_interrupt=after).after_interrupt == after


# --- Probes --------------------------------------------------------------------------------------


async def found(answer: object) -> Finding:
    async def probe(key: str) -> Done | NotDone | None:
        assert key == "turn_1:A"
        if isinstance(answer, Exception) and not isinstance(answer, NotDone):
            raise answer
        return cast("Done | NotDone | None", answer)

    probed = tool(effect="writes", probe=probe)(work)
    assert probed.spec.has_probe
    assert isinstance(probed, Probed)
    return await probed.found("turn_1:A")


@pytest.mark.parametrize(
    ("answer", "finding"),
    [
        (Done("T-7"), FoundDone(content="T-7")),
        (Done({"reference": 7}), FoundDone(content='{"reference":7}')),
        (Done(None), FoundDone(content="null")),
        (NotDone("no such transfer"), "not_done"),
        (None, "unknown"),
    ],
)
async def test_a_probe_says_done_not_done_or_that_it_does_not_know(
    answer: object, finding: Finding
) -> None:
    assert await found(answer) == finding


async def test_a_probe_may_raise_that_nothing_was_done() -> None:
    async def probe(key: str) -> Done | None:
        raise NotDone(key)

    assert await tool(probe=probe)(work).found("k") == "not_done"


@pytest.mark.parametrize("answer", [True, False, "done", 0, OSError("no bank")])
async def test_a_probe_that_says_anything_else_has_not_answered(answer: object) -> None:
    with pytest.raises((TypeError, OSError)):
        await found(answer)
