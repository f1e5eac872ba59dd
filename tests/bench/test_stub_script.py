"""What the benchmark asks of its scripted model."""

import pytest

from bench.stub_script import Plan, plan_of, read_plan


def test_a_script_says_rounds_width_and_sizes() -> None:
    assert read_plan("steps-5x2+size4096+out7#t1") == Plan(
        key="t1", rounds=5, width=2, size=4096, words=7
    )
    assert read_plan("steps-5x2").steps == 1 + 5 + 10


def test_a_fault_has_a_number_of_times_and_a_place() -> None:
    plan = read_plan("tools-10+fail-429-quota-6+final#t2")

    assert (plan.fault, plan.faults, plan.fails_at_the_end) == ("quota", 6, True)
    assert read_plan("overload-503-2").fault == "overload"
    assert read_plan("fail-429-rate-once").faults == 1


@pytest.mark.parametrize("script", ["nothing-5", "far5"])
def test_a_word_that_the_stub_does_not_know_is_an_error(script: str) -> None:
    with pytest.raises(ValueError, match="the stub knows no"):
        read_plan(script)


def test_the_last_users_message_says_the_script_and_what_follows_it_counts_as_rounds() -> None:
    asked = {"role": "assistant", "tool_calls": [{"id": "c"}]}
    answered = {"role": "tool", "content": "x"}
    before = {"role": "user", "content": "[[echo-3]]"}
    user = {"role": "user", "content": [{"type": "text", "text": "[[steps-9]] please"}]}
    request = {"messages": [before, asked, user, asked, answered, asked, answered]}

    plan, rounds = plan_of(request)

    assert (plan.rounds, rounds) == (9, 2)
