"""A process is killed while the tools of many turns are at work, and another one takes them up.

Each turn is about one rule of what becomes of a call whose end nobody knows (turn semantics, 2.5).
The second process is killed as well, in the middle of a turn that it has recovered.
"""

from collections.abc import AsyncGenerator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.support import careful
from tests.support.careful import BEGUN, DONE, TURNS
from tests.support.oracles import check_events, check_fold, check_history, records
from tests.support.polling import eventually
from tests.support.postgres import PostgresServer
from tests.support.processes import ServingProcess, serving
from tests.support.provider import RunningProvider, running_provider
from tests.support.sse_reader import TurnReader
from tests.support.story import Effect, Ledger

PARKED = {"63_it_is_done", "63_it_is_not_done", "63_it_is_given_up", "58_never_began"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What callers see of a turn in the end, and what the tools have noted of it."""

    turn: Mapping[str, Any]
    messages: list[dict[str, Any]]
    events: list[dict[str, Any]]
    effects: list[Effect]
    waited: Mapping[str, Any]
    """The turn while it waited for a person; empty if it did not."""

    @property
    def outcomes(self) -> dict[str, str]:
        """Of the calls that have a result."""
        results = [each for each in self.messages if each["role"] == "tool"]
        assert len({each["callId"] for each in results}) == len(results), "two results of a call"
        return {each["callId"]: each["outcome"] for each in results}

    @property
    def told(self) -> dict[str, str]:
        """What the model read, by call."""
        return {each["callId"]: each["content"] for each in self.messages if "callId" in each}

    @property
    def attempts(self) -> list[tuple[str, int]]:
        return [(effect.call_id, effect.attempt) for effect in self.effects]

    def rules(self, number: int = 0) -> dict[str, str]:
        """Of one of its recoveries."""
        found = [x["data"]["calls"] for x in self.events if x["type"] == "STEP_RECOVERED"]
        return {call["callId"]: call["rule"] for call in found[number]}


@pytest.fixture(scope="module")
async def seen(
    postgres_server: PostgresServer, tmp_path_factory: pytest.TempPathFactory
) -> AsyncGenerator[Mapping[str, Seen]]:
    dsn = await postgres_server.fresh_database()
    async with running_provider() as provider:
        yield await _story(dsn, provider, tmp_path_factory.mktemp("careful"))
    await postgres_server.drop_database(dsn)


async def _story(dsn: str, provider: RunningProvider, folder: Path) -> Mapping[str, Seen]:
    ledger = Ledger(folder)
    for turn, rounds in TURNS.items():
        provider.script(turn, rounds)
    process = partial(
        serving,
        dsn,
        ledger,
        provider.base_url,
        agents=f"{careful.__name__}:agents",
        TURNKEEPER_WORKER_CONCURRENCY="64",
    )

    async def are_begun() -> bool:
        return len(ledger.effects()) == BEGUN

    async def is_run_again() -> bool:
        return 2 in [effect.attempt for effect in ledger.effects(ids["71_twice"])]

    async with process() as first:
        sent = {
            turn: await first.send(
                turn, "Go.", wait=0, agentId=turn, neverReplay=turn == "a_strict_turn"
            )
            for turn in TURNS
        }
        ids = {turn: body["turnId"] for turn, body in sent.items()}
        await eventually(are_begun)
        for turn in ("57_answer_not_stored", "65_bar"):
            reader = TurnReader(first.client, ids[turn])
            await reader.read(until=lambda event: event["type"] == "MODEL_TEXT")
        await first.kill()
    provider.simulation.put_script(
        "57_answer_not_stored", {"rounds": [careful.called("quick"), DONE]}
    )
    provider.simulation.put_script("65_bar", {"rounds": [TURNS["65_bar"][0], DONE]})
    async with process() as second:
        await eventually(is_run_again)
        for turn in set(ids) - {"71_twice"}:
            await second.at_rest(ids[turn])
        await second.kill()
    async with process() as third:
        rest = {turn: await third.at_rest(turn_id) for turn, turn_id in ids.items()}
        waited = {turn: rest[turn] for turn in PARKED}
        await _answer(third, waited)
        return {
            turn: await _seen(third, dsn, ledger, ids[turn], waited.get(turn, {})) for turn in ids
        }


async def _answer(service: ServingProcess, waited: Mapping[str, Mapping[str, Any]]) -> None:
    fingerprint = waited["63_it_is_not_done"]["suspension"]["fingerprint"]
    answers: Mapping[str, dict[str, object]] = {
        "58_never_began": {"command": "TOOL_RESULT", "output": "wired"},
        "63_it_is_done": {"command": "TOOL_RESULT", "output": {"reference": "W-1"}},
        "63_it_is_not_done": {"command": "APPROVE_TOOL", "fingerprint": fingerprint},
        "63_it_is_given_up": {"command": "REJECT_TOOL", "reason": "the bank is closed"},
    }
    for turn, body in answers.items():
        answer = await service.resume(waited[turn]["turnId"], {"callId": "A", **body})
        assert answer.status_code == 202, answer.text


async def _seen(
    service: ServingProcess, dsn: str, ledger: Ledger, turn_id: str, waited: Mapping[str, Any]
) -> Seen:
    turn = await service.at_rest(turn_id)
    said = await service.client.get(f"/conversations/{turn['conversationId']}/messages?limit=100")
    reader = TurnReader(service.client, turn_id)
    await reader.read_to_the_end()
    async with records(dsn) as found:
        record = await found.of(turn_id)
    check_fold(record)
    check_events(record.journal, record.turn)
    check_history(record)
    return Seen(
        turn=turn,
        messages=said.json()["items"],
        events=reader.received,
        effects=ledger.effects(turn_id),
        waited=waited,
    )


def test_every_turn_comes_to_its_end(seen: Mapping[str, Seen]) -> None:
    assert {turn: each.turn["status"] for turn, each in seen.items()} == dict.fromkeys(
        TURNS, "COMPLETED"
    )


def test_case_57_an_answer_that_was_not_stored_is_asked_for_again(seen: Mapping[str, Seen]) -> None:
    it = seen["57_answer_not_stored"]

    assert it.attempts == [("A", 1)]
    assert it.outcomes == {"A": "completed"}


def test_case_58_a_call_that_never_began_is_run(seen: Mapping[str, Seen]) -> None:
    it = seen["58_never_began"]

    assert it.rules() == {"A": "park", "B": "run"}
    assert it.attempts == [("A", 1), ("B", 1)]
    assert it.outcomes == {"A": "completed", "B": "completed"}


def test_case_59_a_writing_call_is_reported_as_unknown(seen: Mapping[str, Seen]) -> None:
    it = seen["59_report"]

    assert it.rules() == {"A": "report"}
    assert it.attempts == [("A", 1)]
    assert it.outcomes == {"A": "unknown"}
    assert "check the current state" in it.told["A"]


def test_case_60_an_idempotent_call_runs_again_under_its_key(seen: Mapping[str, Seen]) -> None:
    first, again = seen["60_rerun_idempotent"].effects

    assert (first.idempotency_key, first.attempt, first.is_replay) == (
        again.idempotency_key,
        1,
        False,
    )
    assert (again.attempt, again.is_replay) == (2, True)
    assert seen["60_rerun_idempotent"].outcomes == {"A": "completed"}


def test_case_61_an_interrupted_call_takes_later_ones_with_it(seen: Mapping[str, Seen]) -> None:
    it = seen["61_interrupt"]

    assert it.rules() == {"A": "interrupt", "B": "interrupt"}
    assert it.outcomes == {"A": "unknown", "B": "unknown"}
    reasons = [x["data"]["reason"] for x in it.events if x["type"] == "TOOL_INTERRUPTED"]
    assert reasons == ["worker_lost", "earlier_call_interrupted"]
    assert sorted(it.attempts) == [("A", 1), ("B", 1)]


def test_case_62_a_reading_call_runs_again(seen: Mapping[str, Seen]) -> None:
    it = seen["62_rerun"]

    assert it.attempts == [("A", 1), ("A", 2)]
    assert it.outcomes == {"A": "completed"}


def test_case_63_a_person_is_asked_with_three_answers(seen: Mapping[str, Seen]) -> None:
    waited = seen["63_it_is_done"].waited

    assert waited["status"] == "WAITING_FOR_APPROVAL"
    asked = waited["suspension"]
    assert (asked["stage"], asked["attempt"], asked["arguments"]) == ("recovery", 1, "{}")
    assert asked["idempotencyKey"] == f"{waited['turnId']}:A"
    commands = [action["command"] for action in waited["actions"] if action.get("callId") == "A"]
    assert commands == ["TOOL_RESULT", "APPROVE_TOOL", "REJECT_TOOL"]


def test_case_63_done_not_done_and_given_up(seen: Mapping[str, Seen]) -> None:
    done, again, up = (seen[f"63_it_is_{how}"] for how in ("done", "not_done", "given_up"))

    assert (done.attempts, done.told["A"]) == ([("A", 1)], '{"reference":"W-1"}')
    assert (again.attempts, again.told["A"]) == ([("A", 1), ("A", 2)], "attempt 2")
    assert (up.attempts, up.outcomes) == ([("A", 1)], {"A": "unknown"})
    assert "the bank is closed" in up.told["A"]
    known = [x["data"]["knownBy"] for x in done.events if x["type"] == "TOOL_COMPLETED"]
    assert known == ["person"]


def test_case_64_what_is_done_is_kept_and_the_rest_is_interrupted(seen: Mapping[str, Seen]) -> None:
    it = seen["64_batch"]

    assert it.outcomes == {"A": "completed", "B": "unknown", "C": "unknown"}
    assert sorted(it.attempts) == [("A", 1), ("B", 1), ("C", 1)]


def test_case_65_an_error_that_bars_is_kept(seen: Mapping[str, Seen]) -> None:
    it = seen["65_bar"]

    assert it.outcomes == {"A": "error", "B": "not_started"}
    assert it.attempts == [("A", 1)]


def test_case_69_a_tool_that_declares_nothing_is_not_run_again(seen: Mapping[str, Seen]) -> None:
    it = seen["69_undeclared"]

    assert (it.attempts, it.outcomes) == ([("A", 1)], {"A": "unknown"})


def test_case_71_a_recovery_that_dies_tells_nothing_twice(seen: Mapping[str, Seen]) -> None:
    it = seen["71_twice"]

    assert it.rules(0) == {"A": "report", "B": "rerun"}
    assert it.rules(1) == {"B": "rerun"}
    assert it.outcomes == {"A": "unknown", "B": "completed"}
    assert sorted(it.attempts) == [("A", 1), ("B", 1), ("B", 2), ("B", 3)]
    assert [each["role"] for each in it.messages] == [
        "user",
        "assistant",
        "tool",
        "tool",
        "assistant",
    ]


def test_case_72_an_old_error_stays(seen: Mapping[str, Seen]) -> None:
    it = seen["72_old_error"]

    assert it.outcomes == {"A": "error", "B": "unknown"}
    assert "the archive is closed" in it.told["A"]


def test_a_probe_is_asked_first(seen: Mapping[str, Seen]) -> None:
    done, not_done, blind = (seen[f"probe_{how}"] for how in ("done", "not_done", "blind"))

    assert (done.rules(), done.told["A"]) == ({"A": "keep"}, '{"noted":1}')
    assert (not_done.rules(), not_done.told["A"]) == ({"A": "run"}, "attempt 2")
    assert (blind.rules(), blind.outcomes) == ({"A": "report"}, {"A": "unknown"})


def test_an_agent_that_replays_nothing_runs_nothing_again(seen: Mapping[str, Seen]) -> None:
    it = seen["never_replay"]

    assert it.outcomes == {"A": "unknown", "B": "unknown"}
    assert sorted(it.attempts) == [("A", 1), ("B", 1)]


def test_a_turn_may_be_stricter_than_its_agent(seen: Mapping[str, Seen]) -> None:
    it = seen["a_strict_turn"]

    assert (it.attempts, it.outcomes) == ([("A", 1)], {"A": "unknown"})
