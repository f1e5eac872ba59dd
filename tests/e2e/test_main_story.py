"""The main story: a turn that survives an outage and a kill, over real HTTP and PostgreSQL."""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.e2e.conftest import Stage
from tests.support.oracles import Record, check_everything, records
from tests.support.polling import eventually
from tests.support.processes import serving
from tests.support.service import SignedIn, running_service
from tests.support.sse_reader import TurnReader, check_reading
from tests.support.story import MODEL, QUOTA, THREE_CALLS, THREE_TOOLS_AND_AN_OUTAGE, clerk

OTHER_IDS = (
    "another",
    "0",
    "null",
    " ",
    "../../etc/passwd",
    "fail_\0hidden",
    "fail\r\nX-Injected: 1",
    "'; DROP TABLE turns; --",
    "ﬁn \N{RIGHT-TO-LEFT OVERRIDE} 一次重试 \N{COLLISION SYMBOL}",
    "x" * 10_000,
)
LONG_ANSWER = "Every word of this long answer is there in the end, whatever happens to us. " * 40


async def test_an_exhausted_quota_parks_the_turn_and_the_right_failure_id_brings_it_back(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, THREE_TOOLS_AND_AN_OUTAGE)
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        waiting = await service.send("ses_demo", "Pay it.", agentId="clerk")
        done = await service.resume(waiting["turnId"], {"failureId": waiting["failureId"]})

    assert waiting["status"] == "WAITING_FOR_MODEL"
    assert waiting["failureType"] == "QUOTA_EXCEEDED"
    assert done.status_code == 202
    assert_completed_once(stage, waiting, done.json())
    assert roles_of_last_request(stage) == ["system", "user", "assistant", "tool", "tool", "tool"]
    await check_everything(stage.dsn, stage.ledger)


async def test_a_waiting_turn_survives_a_kill_and_is_retried_or_goes_on_by_a_message(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, [THREE_CALLS, {"text": "Done.", "faults": [QUOTA | {"times": 2}]}])
    async with serving(stage.dsn, stage.ledger, stage.provider.base_url) as service:
        retried = await service.send("ses_1", "Pay it.", agentId="clerk")
        continued = await service.send("ses_2", "Pay it.", agentId="clerk")
        await service.kill()

    async with serving(stage.dsn, stage.ledger, stage.provider.base_url) as service:
        unchanged = await service.turn(retried["turnId"])
        for failure_id in ("another", continued["failureId"]):
            await assert_refused(service, stage, retried, failure_id)
        done = await service.resume(retried["turnId"], {"failureId": retried["failureId"]})
        request_after_retry = roles_of_last_request(stage)
        answered = await service.send("ses_2", "Are you still there?")
        request_after_message = roles_of_last_request(stage)

    assert unchanged["version"] == retried["version"]
    assert_completed_once(stage, retried, done.json())
    assert_completed_once(stage, continued, answered)
    history = ["system", "user", "assistant", "tool", "tool", "tool"]
    assert request_after_retry == history
    assert request_after_message == [*history, "user"]
    one, two = sorted(await check_everything(stage.dsn, stage.ledger), key=_messages)
    assert (_messages(one), _messages(two)) == (1, 2)


async def test_any_other_failure_id_is_refused_by_name_and_changes_nothing(stage: Stage) -> None:
    stage.provider.script(MODEL, THREE_TOOLS_AND_AN_OUTAGE)
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        waiting = await service.send("ses_demo", "Pay it.", agentId="clerk")
        current = waiting["failureId"]
        others = (*OTHER_IDS, current.upper(), f" {current}", f"{current}\0", waiting["turnId"])
        for failure_id in others:
            await assert_refused(service, stage, waiting, failure_id)

    async with records(stage.dsn) as found:
        record = await found.of(waiting["turnId"])
    assert record.refusals() == Counter({("RETRY_MODEL", "correlation_mismatch"): len(others)})


async def test_case_15_a_retry_without_a_failure_id_is_invalid_and_changes_nothing(
    stage: Stage,
) -> None:
    stage.provider.script(MODEL, THREE_TOOLS_AND_AN_OUTAGE)
    none_at_all: tuple[object, ...] = (None, "", 7, ["a"], {})
    async with running_service(stage.dsn, stage.settings, agents=[clerk(stage.ledger)]) as service:
        waiting = await service.send("ses_demo", "Pay it.", agentId="clerk")
        for failure_id in none_at_all:
            command: dict[str, object] = {"command": "RETRY_MODEL", "failureId": failure_id}
            refused = await service.resume(waiting["turnId"], command)
            assert refused.status_code == 422
            assert refused.json()["code"] == "payload_invalid"
        unchanged = await service.turn(waiting["turnId"])

    assert unchanged == {name: waiting[name] for name in unchanged}
    async with records(stage.dsn) as found:
        record = await found.of(waiting["turnId"])
    assert record.refusals() == Counter({("RETRY_MODEL", "payload_invalid"): len(none_at_all)})


async def test_an_answer_that_streams_at_a_kill_is_given_anew_and_whole(stage: Stage) -> None:
    slow = {"text": LONG_ANSWER, "chunks": 60, "delay_ms": 15}
    stage.provider.script(MODEL, [slow])
    async with serving(stage.dsn, stage.ledger, stage.provider.base_url) as service:
        sent = await service.send("ses_1", "Tell me.", wait=0, agentId="clerk")
        reader = TurnReader(service.client, sent["turnId"])
        await reader.read(until=lambda event: event["data"].get("offset", 0) > 1_000)
        await service.kill()

    async with serving(stage.dsn, stage.ledger, stage.provider.base_url) as service:
        reader.client = service.client
        await reader.read_to_the_end()
        done = await service.turn(sent["turnId"])

    assert done["finalOutput"] == LONG_ANSWER
    assert "STEP_RECOVERED" in reader.types
    record = (await check_everything(stage.dsn, stage.ledger))[0]
    check_reading(reader.received, record.journal)
    assert record.turn.counters.model_attempts >= 2  # more, where a claim runs out under load


async def test_a_writing_tool_that_runs_at_a_kill_is_reported_unknown_and_not_run_again(
    stage: Stage,
) -> None:
    calls = [
        {"id": "A", "name": "pay_slowly", "arguments": '{"amount": 9}'},
        {"id": "B", "name": "look_up_slowly", "arguments": '{"what": "b"}'},
    ]
    stage.provider.script(MODEL, [{"calls": calls}, {"text": "I shall check."}])
    async with serving(stage.dsn, stage.ledger, stage.provider.base_url) as service:
        sent = await service.send("ses_1", "Pay it.", wait=0, agentId="clerk")
        await eventually(lambda: both_tools_began(stage))
        await service.kill()

    stage.ledger.open_gate()
    async with serving(stage.dsn, stage.ledger, stage.provider.base_url) as service:
        done = await service.at_rest(sent["turnId"])

    assert done["finalOutput"] == "I shall check."
    record = (await check_everything(stage.dsn, stage.ledger))[0]
    outcomes = {call_id: str(result.outcome) for call_id, result in record.results.items()}
    assert outcomes == {"A": "unknown", "B": "completed"}
    assert stage.ledger.tools() == ["look_up_slowly", "look_up_slowly", "pay_slowly"]
    assert [e.is_replay for e in stage.ledger.effects() if e.call_id == "B"] == [False, True]


async def test_an_orderly_stop_lets_tools_end_and_gives_the_turn_back_at_once(
    stage: Stage,
) -> None:
    calls = [
        {"id": "A", "name": "pay_slowly", "arguments": '{"amount": 9}'},
        {"id": "B", "name": "look_up_slowly", "arguments": '{"what": "b"}'},
    ]
    stage.provider.script(MODEL, [{"calls": calls}, {"text": "Paid."}])
    place = (stage.dsn, stage.ledger, stage.provider.base_url)
    async with serving(*place, lease_seconds=600) as service:
        sent = await service.send("ses_1", "Pay it.", wait=0, agentId="clerk")
        await eventually(lambda: both_tools_began(stage))
        service.terminate()
        stage.ledger.open_gate()
        status = await service.ended()

    async with serving(*place, lease_seconds=600) as service:
        done = await service.at_rest(sent["turnId"])

    assert status == 0
    assert done["finalOutput"] == "Paid."
    record = (await check_everything(stage.dsn, stage.ledger))[0]
    assert {str(result.outcome) for result in record.results.values()} == {"completed"}
    assert stage.ledger.tools() == ["look_up_slowly", "pay_slowly"]


def _messages(record: Record) -> int:
    return len(record.user_messages)


async def both_tools_began(stage: Stage) -> bool:
    return stage.ledger.tools() == ["look_up_slowly", "pay_slowly"]


async def assert_refused(
    service: SignedIn, stage: Stage, waiting: dict[str, Any], failure_id: str
) -> None:
    """A 409 that names the current failure, and a turn that is as it was."""
    turn_id = waiting["turnId"]
    async with records(stage.dsn) as found:
        before = await found.of(turn_id)
        refused = await service.resume(turn_id, {"failureId": failure_id})
        after = await found.of(turn_id)
    problem = refused.json()
    assert refused.status_code == 409
    assert problem["code"] == "correlation_mismatch"
    assert problem["currentFailureId"] == waiting["failureId"]
    assert problem["currentVersion"] == waiting["version"] == after.turn.version
    assert (after.turn, after.journal) == (before.turn, before.journal)
    row = after.audit[len(before.audit)]
    assert (row["outcome"], row["action"]) == ("refused", "RETRY_MODEL")
    assert len(after.audit) == len(before.audit) + 1


def assert_completed_once(stage: Stage, waiting: dict[str, Any], done: dict[str, Any]) -> None:
    """The same turn, ended, with each tool run once."""
    assert done["status"] == "COMPLETED"
    assert done["turnId"] == waiting["turnId"]
    assert done["failureId"] is None
    assert stage.ledger.tools(waiting["turnId"]) == ["book", "look_up", "pay"]


def roles_of_last_request(stage: Stage) -> Sequence[str]:
    """Roles in order; results must be those of A, B and C, in the order they were declared in."""
    request: Any = stage.provider.requests(MODEL)[-1]
    assert request["status"] == 200
    messages: list[dict[str, Any]] = request["body"]["messages"]
    results = [m["content"] for m in messages if m["role"] == "tool"]
    assert results == ["found a", "booked b", "paid 3"]
    return [message["role"] for message in messages]
