"""What a tool itself asks approval for: it has it for what was shown, and for nothing else."""

from app.agents import Limits
from tests.e2e.conftest import Stage
from tests.support.waits import a_desk, asks, call, waiting_for


async def test_case_94_the_approval_of_a_call_is_none_of_what_its_tool_asks_for(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        first = await desk.opens(asks(call("A", "pay_twice_gated", amount=5)))
        second = await desk.approves(first, "A")
        paid_before = desk.bank.paid()
        done = await desk.approves(second, "A")

    assert (waiting_for(first)["stage"], waiting_for(second)["stage"]) == ("policy", "tool")
    assert waiting_for(first)["fingerprint"] != waiting_for(second)["fingerprint"]
    assert paid_before == []
    assert done["status"] == "COMPLETED"
    assert [deed.attempt for deed in desk.bank.entries()] == [1, 2]
    assert desk.bank.paid() == [("A", 5)]


async def test_case_95_a_rejection_on_the_second_level_keeps_the_first_on_record(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        desk.bank.set_price(20_000)
        first = await desk.opens(asks(call("A", "pay_in_levels", order="o1")))
        second = await desk.approves(first, "A")
        done = await desk.rejects(second, "A")
        decided = await desk.listed(f"/turns/{done['turnId']}/approvals")

    assert waiting_for(first)["arguments"] == '{"amount":20000,"level":"finance","order":"o1"}'
    assert waiting_for(second)["arguments"] == '{"amount":20000,"level":"compliance","order":"o1"}'
    assert [(d["fingerprint"], d["approved"], d["actorId"]) for d in decided] == [
        (waiting_for(first)["fingerprint"], True, "default"),
        (waiting_for(second)["fingerprint"], False, "default"),
    ]
    assert done["status"] == "COMPLETED"
    assert desk.bank.paid() == []


async def test_case_96_an_approval_of_one_amount_is_none_of_another(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        desk.bank.set_price(20_000)
        first = await desk.opens(asks(call("A", "pay_in_levels", order="o1")))
        desk.bank.set_price(30_000)
        anew = await desk.approves(first, "A")
        second = await desk.approves(anew, "A")
        done = await desk.approves(second, "A")

    assert '"amount":20000' in waiting_for(first)["arguments"]
    assert '"amount":30000,"level":"finance"' in waiting_for(anew)["arguments"]
    assert '"amount":30000,"level":"compliance"' in waiting_for(second)["arguments"]
    assert done["status"] == "COMPLETED"
    assert desk.bank.paid() == [("A", 30_000)]


async def test_case_97_a_tool_that_asks_again_for_what_was_approved_fails_the_turn(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(call("A", "nag")))
        failed = await desk.approves(waiting, "A")
        events = await desk.events(failed)

    assert failed["status"] == "FAILED"
    assert events[-1]["data"]["reason"] == "approval_loop"
    assert desk.bank.entered() == ["nag", "nag"]
    assert len(desk.requests()) == 1


async def test_case_98_the_order_of_keys_makes_no_other_request(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(call("A", "shuffle")))
        done = await desk.approves(waiting, "A")

    assert done["status"] == "COMPLETED"
    assert desk.bank.paid() == [("A", 7)]


async def test_case_100_a_card_of_the_first_level_does_not_approve_the_second(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        desk.bank.set_price(1)
        first = await desk.opens(asks(call("A", "pay_in_levels", order="o1")))
        old = waiting_for(first)["fingerprint"]
        second = await desk.approves(first, "A", fingerprint=old)
        stale = await desk.sends(second, "APPROVE_TOOL", "A", fingerprint=old)
        await desk.is_refused(second, stale, 409, "correlation_mismatch")
        fresh = waiting_for(second)["fingerprint"]
        done = await desk.approves(second, "A", fingerprint=fresh)

    assert done["status"] == "COMPLETED"


async def test_case_103_asking_uses_up_nothing_of_the_budget_of_calls(stage: Stage) -> None:
    async with a_desk(stage, limits=Limits(max_tool_calls=1)) as desk:
        desk.bank.set_price(1)
        first = await desk.opens(asks(call("A", "pay_in_levels", order="o1")))
        second = await desk.approves(first, "A")
        done = await desk.approves(second, "A")

    counted = [turn["counters"]["toolCalls"] for turn in (first, second, done)]
    assert counted == [0, 0, 1]
    assert done["status"] == "COMPLETED"


async def test_case_106_calls_that_need_nobody_are_done_and_the_others_asked_for_in_order(
    stage: Stage,
) -> None:
    calls = asks(
        call("A", "look_up", what="a"),
        call("B", "insure", amount=2),
        call("C", "look_up", what="c"),
        call("D", "wrap"),
    )
    async with a_desk(stage) as desk:
        turn = await desk.opens(calls)
        done_first = await desk.completed(turn)
        entered_first = sorted(desk.bank.entered())
        form = await desk.approves(turn, "B")
        last = await desk.fills_in(form, "B", city="Oslo")
        entered_then = desk.bank.entered()[len(entered_first) :]
        done = await desk.approves(last, "D")
        results = await desk.results()

    assert (waiting_for(turn)["callId"], waiting_for(turn)["stage"]) == ("B", "tool")
    assert done_first == ["A", "C"]
    assert entered_first == ["insure", "look_up", "look_up", "wrap"]
    assert entered_then == ["insure", "insure"]
    assert waiting_for(last)["callId"] == "D"
    assert desk.bank.entered()[-1:] == ["wrap"]
    assert done["status"] == "COMPLETED"
    assert results == [(call_id, "completed") for call_id in "ABCD"]
