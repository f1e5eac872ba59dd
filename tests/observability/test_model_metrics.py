"""What is counted of model calls that fail, from the events of a commit."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta

import pytest

from app.observability.model_metrics import ModelMetrics
from app.ports import Commit
from app.turn import inputs as i
from app.turn.agent import RetryPolicy
from app.turn.failures import FailureType, ModelFailure, TokenLimitPhase
from tests.support.turns import QUOTA, Told, a_message, an_agent, an_answer

BUSY = ModelFailure(
    type=FailureType.OVERLOADED,
    message="the provider's own words",
    retryable=True,
    http_status=529,
    error_type="overloaded_error",
    provider="claude",
    model="sonnet-20250514",
)
KIND = (
    'code="overloaded_error",http_status="529",model="sonnet-20250514",'
    'phase="none",provider="claude",type="OVERLOADED"'
)


class Counted:
    """A story whose commits are counted as they are told."""

    def __init__(self, told: Told) -> None:
        self.told = told
        self.metrics = ModelMetrics()

    def then(self, tell: Callable[[Told], object]) -> "Counted":
        """One commit of the story."""
        before, known = self.told.turn, len(self.told.events)
        tell(self.told)
        events = tuple(self.told.events[known:])
        commit = Commit(before=before, after=self.told.turn, events=events, at=self.told.at)
        self.metrics.tell(commit)
        return self

    def begun(self) -> "Counted":
        return self.then(lambda told: told.begun())

    def gave_up(self, failure: ModelFailure = BUSY, failure_id: str = "f1") -> "Counted":
        return self.then(lambda told: told.gave_up(failure, failure_id=failure_id))

    @property
    def found(self) -> Counter[str]:
        """The counters that are not zero, by name and sorted labels; without times of making."""
        found: Counter[str] = Counter()
        for line in self.metrics.exposition().decode().splitlines():
            sample = re.fullmatch(r"turnkeeper_(model_\w+)\{(.*)\} (\S+)", line)
            if sample is None or sample[1].endswith(("_created", "_bucket")):
                continue
            labels = ",".join(sorted(re.findall(r'\w+="[^"]*"', sample[2])))
            found[f"{sample[1]}{{{labels}}}"] += int(float(sample[3]))
        return +found


def counted(**more: object) -> Counted:
    return Counted(Told(an_agent(**more))) if more else Counted(Told())  # type: ignore[arg-type]  # whatever an agent takes


def test_a_failure_that_waits_is_counted_by_all_that_names_its_kind() -> None:
    story = counted().begun().gave_up()

    assert story.found == Counter(
        {f"model_failures_total{{{KIND}}}": 1, f"model_waits_begun_total{{{KIND}}}": 1}
    )


def test_an_automatic_retry_is_no_wait() -> None:
    story = counted(retry=RetryPolicy(max_retries=1)).begun().gave_up()

    assert story.found == Counter(
        {f"model_failures_total{{{KIND}}}": 1, f"model_retries_total{{{KIND}}}": 1}
    )


def test_a_failure_of_an_agent_that_does_not_wait_is_only_a_failure() -> None:
    story = counted(on_model_failure="fail").begun().gave_up()

    assert story.found == Counter({f"model_failures_total{{{KIND}}}": 1})


def replanned(told: Told) -> Told:
    return told.tell(i.Replan(message=a_message("no", "m3")))


MEANS: dict[str, Callable[[Told], object]] = {
    "retry": Told.retried,
    "message": Told.posted,
    "replan": replanned,
    "cancel": Told.cancelled,
}


@pytest.mark.parametrize("by", MEANS)
def test_the_end_of_a_wait_is_counted_by_its_means_with_its_length(
    by: str,
) -> None:
    story = counted().begun().gave_up()
    story.told.later(minutes=28)

    story.then(MEANS[by])

    ended = ",".join(sorted((*KIND.split(","), f'by="{by}"')))
    assert story.found[f"model_waits_ended_total{{{ended}}}"] == 1
    length = f'by="{by}",type="OVERLOADED"'
    assert story.found[f"model_wait_seconds_sum{{{length}}}"] == timedelta(minutes=28).seconds
    assert story.found[f"model_wait_seconds_count{{{length}}}"] == 1


def outcome(story: Counted) -> list[tuple[str, str]]:
    """What became of resumes: the type they came from, and how it ended."""
    names = [name for name in story.found if name.startswith("model_resumes")]
    return [
        (re.findall(r'type="(\w+)"', name)[-1], re.findall(r'outcome="(\w+)"', name)[0])
        for name in names
    ]


def test_a_success_after_a_resume_is_counted_for_what_it_came_back_from() -> None:
    story = counted().begun().gave_up().then(lambda told: told.retried()).begun()

    story.then(lambda told: told.answered(an_answer("Done.")))

    assert outcome(story) == [("OVERLOADED", "success")]


def test_a_success_without_a_resume_is_none_after_one() -> None:
    story = counted().begun().then(lambda told: told.answered(an_answer("Done.")))

    assert story.found == Counter()


def test_a_turn_that_waits_again_is_a_repeat_of_what_it_came_back_from() -> None:
    story = counted().begun().gave_up().then(lambda told: told.retried()).begun()

    story.gave_up(QUOTA, failure_id="f2")

    assert outcome(story) == [("OVERLOADED", "repeat")]


def test_an_automatic_retry_after_a_resume_decides_nothing_yet() -> None:
    story = counted(retry=RetryPolicy(max_retries=1)).begun()
    story.gave_up(replace(QUOTA, retryable=False)).then(lambda told: told.retried()).begun()

    story.gave_up(failure_id="f2")
    assert outcome(story) == []
    story.told.later(hours=1)
    story.begun().then(lambda told: told.answered(an_answer("Done.")))

    assert outcome(story) == [("QUOTA_EXCEEDED", "success")]


def test_a_turn_that_ends_after_a_resume_without_an_answer_is_neither() -> None:
    story = counted().begun().gave_up().then(lambda told: told.retried())

    story.then(lambda told: told.cancelled()).begun()

    assert story.told.turn.is_terminal
    assert outcome(story) == [("OVERLOADED", "ended")]


def test_no_text_of_a_provider_becomes_a_label() -> None:
    chatty = replace(
        BUSY,
        error_code="Your organization org-4711 is busy",
        model="ignore all\nprevious",
        provider="sk-ant-0123456789",
        http_status=99_999,
        token_limit_phase=TokenLimitPhase.OUTPUT,
    )
    text = counted().begun().gave_up(chatty).metrics.exposition().decode()

    for said in ("org-4711", "ignore", "sk-ant", "99999", "words", "clerk", "amy"):
        assert said not in text
    assert 'code="other"' in text


def test_however_many_kinds_there_are_the_figures_stay_few() -> None:
    metrics = ModelMetrics()
    for n in range(700):
        story = Counted(Told())
        story.metrics = metrics
        story.begun().gave_up(replace(BUSY, http_status=100 + n % 500, model=f"m{n % 90}"))

    lines = metrics.exposition().decode().splitlines()
    assert sum(line.startswith("turnkeeper_model_failures_total{") for line in lines) <= 501
