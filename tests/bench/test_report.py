"""How measured figures are compared with one another and with their goals."""

from bench.report import Goal, medians, table
from bench.results import Results
from bench.turns import Loop


def _loop(overhead: float, turns_per_second: float) -> Loop:
    return Loop(
        script="steps-5",
        concurrency=8,
        turns=10,
        turns_per_second=turns_per_second,
        p50=1,
        p99=1,
        overhead_per_step=overhead,
        first_overhead=1,
        server_cpu=1,
        database_cpu=1,
        statements=1,
        transactions=1,
        wal=1,
    )


def _round(target: str, overhead: float, turns_per_second: float) -> Results:
    loops = [_loop(overhead, turns_per_second)]
    return Results(target=target, memory_at_start=1, loops=loops)


def test_a_figure_is_the_median_of_its_rounds() -> None:
    rounds = [_round("ours", overhead, 1) for overhead in (1.0, 9.0, 2.0)]

    assert medians(rounds)["ours"]["steps-5 c=8 overhead/step"] == 2.0


def test_a_goal_is_met_at_most_or_at_least_and_unknown_without_what_it_is_relative_to() -> None:
    at_most, at_least = Goal("f", ratio=0.5), Goal("f", ratio=6, more_is_better=True)

    assert [at_most.is_reached(v, 10) for v in (5.0, 5.1)] == [True, False]
    assert [at_least.is_reached(v, 10) for v in (60.0, 59.0)] == [True, False]
    assert at_most.is_reached(1, None) is None
    assert [Goal("f", most=2).is_reached(v, None) for v in (2.0, 2.1)] == [True, False]


def test_the_table_says_which_goals_are_missed() -> None:
    rounds = [_round("ours", 1, 50), _round("langgraph", 1, 10)]

    line = next(row for row in table(rounds, "ours").splitlines() if "turns/s" in row)

    assert line == "| steps-5 c=8 turns/s | 50.00 | 10.00 | 5.00 | ≥ 6x | **no** |"
