"""What a call needs before it may begin: found out by the agent's policy, and fail closed."""

import asyncio
import json
from typing import Any, TypeAlias, cast

import pytest

from app.agents import Allow, Deny, PolicyCall, RequireApproval
from app.ports import NotLocalError, Tool
from app.runner import judging
from app.runner.guarding import NotApprovedError, guarded
from app.settings import Settings
from app.tools import external_tool, request_user_input, tool
from app.turn.ids import ActorId, CallId
from app.turn.inputs import ApproveTool, RejectTool
from app.turn.states import Failed
from app.turn.status import Status
from app.turn.transcript import Outcome
from app.turn.waits import ApprovalWait, fingerprint_of
from tests.support.bench import bench
from tests.support.models import Model, calls, says
from tests.tools.calls import a_context, approved

Verdict: TypeAlias = Any
"""Whatever a policy says, or what it raises."""


class Till:
    """A tool that pays, and what has been paid."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401 - options of @tool
        self.paid: list[int] = []

        async def pay(cents: int) -> str:
            """Pay."""
            self.paid.append(cents)
            return f"paid {cents}"

        self.pay: Tool = cast("Any", tool)(**options)(pay)


class Judging:
    """A policy that says what it is told to, and remembers what it was asked."""

    def __init__(self, *verdicts: Verdict) -> None:
        self.verdicts = list(verdicts)
        self.asked: list[PolicyCall] = []

    async def __call__(self, call: PolicyCall) -> Verdict:
        self.asked.append(call)
        verdict = self.verdicts.pop(0) if len(self.verdicts) > 1 else self.verdicts[0]
        if isinstance(verdict, BaseException):
            raise verdict
        return verdict


def payment(cents: int = 5, times: int = 1) -> Model:
    answer = calls(*["pay"] * times, arguments=json.dumps({"cents": cents}))
    return Model([[answer], [says("Done.")]])


def yes(actor: str = "boss", call: str = "A") -> ApproveTool:
    return ApproveTool(call_id=CallId(call), actor_id=ActorId(actor))


# --- The three verdicts ---------------------------------------------------------------------------


async def test_what_the_policy_allows_is_run(database_dsn: str, settings: Settings) -> None:
    till, policy = Till(), Judging(Allow())
    async with bench(database_dsn, settings, payment(), [till.pay], policy=policy) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert till.paid == [5]
    assert record.turn.status is Status.COMPLETED
    identity = record.turn.identity
    assert policy.asked == [
        PolicyCall(
            tool_name="pay",
            arguments={"cents": 5},
            call_id=CallId("A"),
            turn_id=identity.turn_id,
            conversation_id=identity.conversation_id,
            tenant_id=identity.tenant_id,
            agent_id=identity.agent_id,
            agent_version=identity.agent_version,
        )
    ]


async def test_what_the_policy_denies_is_told_to_the_model(
    database_dsn: str, settings: Settings
) -> None:
    till, policy = Till(), Judging(Deny(code="too_much", message="At most 4 cents."))
    async with bench(database_dsn, settings, payment(), [till.pay], policy=policy) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert till.paid == []
    assert record.turn.status is Status.COMPLETED
    assert record.results["A"].outcome is Outcome.REJECTED
    assert "At most 4 cents." in record.results["A"].content
    assert "TOOL_STARTED" not in record.types


async def test_what_needs_an_approval_waits_for_it_and_is_then_run_once(
    database_dsn: str, settings: Settings
) -> None:
    till, policy = Till(), Judging(RequireApproval(message="A payment."))
    async with bench(database_dsn, settings, payment(), [till.pay], policy=policy) as one:
        turn_id = await one.post()
        await one.run()
        waiting = await one.checked(turn_id)
        await one.command(turn_id, yes())
        await one.run()
        record = await one.checked(turn_id)

    (call,) = waiting.turn.waiting_calls
    assert waiting.turn.status is Status.WAITING_FOR_APPROVAL
    assert isinstance(call.wait, ApprovalWait)
    assert (call.wait.content, call.wait.message) == ('{"cents": 5}', "A payment.")
    assert call.wait.fingerprint == fingerprint_of("pay", '{"cents": 5}')
    assert record.turn.status is Status.COMPLETED
    assert till.paid == [5]
    assert len(policy.asked) == 1


async def test_what_is_rejected_is_never_run(database_dsn: str, settings: Settings) -> None:
    till = Till(needs_approval=True)
    async with bench(database_dsn, settings, payment(), [till.pay]) as one:
        turn_id = await one.post()
        await one.run()
        no = RejectTool(call_id=CallId("A"), actor_id=ActorId("boss"), reason="Not today.")
        await one.command(turn_id, no)
        await one.run()
        record = await one.checked(turn_id)

    assert till.paid == []
    assert record.turn.status is Status.COMPLETED
    assert record.results["A"].outcome is Outcome.REJECTED


async def test_a_tool_that_needs_approval_needs_it_also_where_the_policy_allows(
    database_dsn: str, settings: Settings
) -> None:
    till, policy = Till(needs_approval=True), Judging(Allow())
    async with bench(database_dsn, settings, payment(), [till.pay], policy=policy) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert record.turn.status is Status.WAITING_FOR_APPROVAL
    assert till.paid == []


async def test_a_policy_that_denies_has_nobody_asked(database_dsn: str, settings: Settings) -> None:
    till, policy = Till(needs_approval=True), Judging(Deny(code="no", message="Never."))
    async with bench(database_dsn, settings, payment(), [till.pay], policy=policy) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert record.turn.status is Status.COMPLETED
    assert "TOOL_APPROVAL_REQUESTED" not in record.types
    assert till.paid == []


# --- Fail closed ----------------------------------------------------------------------------------


class DownError(Exception):
    """The policy's service is down."""


NO_VERDICTS: dict[str, Verdict] = {
    "raises": DownError(),
    "exits": SystemExit(),
    "is-cancelled": asyncio.CancelledError(),
    "none": None,
    "true": True,
    "one": 1,
    "word": "allow",
    "class": Allow,
    "object": {"decision": "allow"},
    "list": [Allow()],
}


async def test_case_99_a_policy_that_says_anything_else_lets_nothing_begin(
    database_dsn: str, settings: Settings
) -> None:
    async def odd(call: PolicyCall) -> Verdict:
        verdict = NO_VERDICTS[call.conversation_id]
        if isinstance(verdict, BaseException):
            raise verdict
        return verdict

    till = Till()
    model = Model([[calls("pay", arguments='{"cents":5}')]] * len(NO_VERDICTS))
    async with bench(database_dsn, settings, model, [till.pay], policy=odd) as one:
        for name in NO_VERDICTS:
            turn_id = await one.post(name)
            await one.run()
            record = await one.checked(turn_id)
            assert record.turn.state == Failed(reason="policy_failed"), name
            assert "TOOL_STARTED" not in record.types

    assert till.paid == []


async def test_case_99_a_policy_that_does_not_answer_in_time_lets_nothing_begin(
    database_dsn: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(judging, "POLICY_SECONDS", 0.01)

    async def silent(call: PolicyCall) -> Allow:
        del call
        await asyncio.Event().wait()
        return Allow()

    till = Till()
    async with bench(database_dsn, settings, payment(), [till.pay], policy=silent) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert till.paid == []
    assert record.turn.state == Failed(reason="policy_failed")


async def test_nobody_is_asked_about_arguments_that_do_not_fit(
    database_dsn: str, settings: Settings
) -> None:
    till, policy = Till(needs_approval=True), Judging(DownError())
    misfits = ["{}", '{"cents":"many"}', '{"cents":5,"more":1}']
    answers = [[calls("pay", arguments=each)] for each in misfits]
    async with bench(
        database_dsn, settings, Model([*answers, [says("Done.")]]), [till.pay], policy=policy
    ) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert policy.asked == []
    assert record.turn.status is Status.COMPLETED
    assert [each.outcome for each in record.results.values()] == [Outcome.ERROR] * 3
    assert all("Invalid arguments" in each.content for each in record.results.values())


async def test_a_policy_changes_nothing_of_what_it_is_asked_about(
    database_dsn: str, settings: Settings
) -> None:
    async def greedy(call: PolicyCall) -> Allow:
        cast("dict[str, object]", call.arguments)["cents"] = 1_000_000
        return Allow()

    till = Till()
    async with bench(database_dsn, settings, payment(), [till.pay], policy=greedy) as one:
        await one.post()
        await one.run()

    assert till.paid == [5]


# --- How often it is asked ------------------------------------------------------------------------


async def test_a_policy_is_asked_once_for_each_call_of_a_round(
    database_dsn: str, settings: Settings
) -> None:
    till, policy = Till(), Judging(Allow())
    model = payment(times=20)
    async with bench(database_dsn, settings, model, [till.pay], policy=policy) as one:
        turn_id = await one.post()
        await one.run()
        record = await one.checked(turn_id)

    assert record.turn.status is Status.COMPLETED
    assert len(till.paid) == 20
    assert sorted(call.call_id for call in policy.asked) == sorted(record.results)


async def test_after_somebody_has_answered_the_policy_is_asked_anew_about_the_others(
    database_dsn: str, settings: Settings
) -> None:
    till, policy = Till(), Judging(RequireApproval(), Allow(), Deny(code="no", message="Closed."))
    async with bench(database_dsn, settings, payment(times=2), [till.pay], policy=policy) as one:
        turn_id = await one.post()
        await one.run()
        await one.command(turn_id, yes())
        await one.run()
        record = await one.checked(turn_id)

    assert till.paid == [5]
    assert record.results["A"].outcome is Outcome.COMPLETED
    assert record.results["B"].outcome is Outcome.REJECTED
    assert [call.call_id for call in policy.asked] == ["A", "B", "B"]


# --- What runs is what was approved ---------------------------------------------------------------


async def test_a_tool_is_not_entered_with_other_arguments_than_those_approved() -> None:
    till = Till(needs_approval=True)
    tools = guarded({"pay": till.pay})
    context = a_context(approvals=(approved({"cents": 5}, stage="policy"),))

    with pytest.raises(NotApprovedError):
        await tools["pay"].run('{"cents":50}', context)
    with pytest.raises(NotApprovedError):
        await tools["pay"].run('{"cents":5}', a_context())
    with pytest.raises(NotApprovedError):
        await tools["pay"].run('{"cents":5}', a_context(approvals=(approved({"cents": 5}),)))
    assert till.paid == []

    assert (await tools["pay"].run('{"cents":5}', context)).content == "paid 5"


async def test_neither_an_outside_tool_nor_the_user_s_is_ever_entered() -> None:
    @external_tool
    def scan() -> None:
        """Scan."""

    for each in guarded({"scan": scan, "ask": request_user_input}).values():
        with pytest.raises(NotLocalError):
            await each.run("{}", a_context())
