"""Forms: asked for by the model or by a tool, filled in by the user, checked as they were shown."""

from collections.abc import Mapping
from typing import Any

import pytest

from app.agents import Form
from tests.e2e.conftest import Stage
from tests.support.waits import a_desk, asks, call, waiting_for
from tests.support.waits_cashier import ADDRESS, CONTACT, cashier

IMAGE = {"type": "image", "url": "https://example.com/a.png"}
IN_WORDS = call("A", "request_user_input", message="What is your name?")
WITH_A_FORM = call("A", "request_user_input", message="Where do you live?", form="address")
SHIP = call("A", "ship", parcel="p1")
LOOK = call("B", "look_up", what="b")


async def test_a_model_asks_with_a_form_and_reads_what_was_filled_in(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(WITH_A_FORM, LOOK))
        done = await desk.fills_in(waiting, "A", city="Oslo", zip="01234")
        results = await desk.tool_messages()
        types = await desk.types(done)

    wait = waiting_for(waiting)
    assert (waiting["status"], wait["suspensionType"]) == ("WAITING_FOR_USER", "USER_INPUT")
    assert (wait["formKey"], wait["title"], wait["askedBy"]) == ("address", "Where to?", "model")
    assert (wait["message"], wait["schema"]) == ("Where do you live?", ADDRESS)
    assert done["status"] == "COMPLETED"
    assert [(m["callId"], m["outcome"]) for m in results] == [
        ("A", "completed"),
        ("B", "completed"),
    ]
    assert '"city":"Oslo"' in results[0]["content"].replace(": ", ":")
    asked = types.index("TOOL_INPUT_REQUESTED")
    assert types[asked : asked + 5] == [
        "TOOL_INPUT_REQUESTED",
        "STEP_COMPLETED",
        "TURN_SUSPENDED",
        "TOOL_INPUT_RECEIVED",
        "TOOL_COMPLETED",
    ]


@pytest.mark.parametrize("asked", [IN_WORDS, WITH_A_FORM], ids=["in words", "with a form"])
async def test_case_85_text_is_the_answer_to_the_model_and_an_image_is_none(
    stage: Stage, asked: dict[str, object]
) -> None:
    async with a_desk(stage) as desk:
        by_text = await desk.opens(asks(asked, LOOK))
        answered = await desk.says("Kim, in Oslo")
        of_text = await desk.tool_messages()
        by_image = await desk.opens(asks(asked, LOOK), conversation="ses_2")
        replanned = await desk.posts("ses_2", content=[IMAGE])
        of_image = await desk.results("ses_2")

    assert answered["turnId"] == by_text["turnId"]
    assert [(m["callId"], m["outcome"]) for m in of_text] == [
        ("A", "completed"),
        ("B", "completed"),
    ]
    assert "Kim, in Oslo" in of_text[0]["content"]
    assert (replanned.status_code, replanned.json()["turnId"]) == (202, by_image["turnId"])
    assert of_image == [("A", "superseded"), ("B", "superseded")]


async def test_case_85_a_text_given_as_a_command_answers_the_model_as_well(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(IN_WORDS))
        done = await desk.tells(waiting, "A", "Kim")
        unnamed = await desk.opens(asks(IN_WORDS), conversation="ses_2")
        answer = await desk.sends(unnamed, "USER_INPUT", text="Kim")
        results = await desk.tool_messages()

    assert waiting_for(waiting)["schema"] is None
    assert (done["status"], answer.status_code) == ("COMPLETED", 202)
    assert "Kim" in results[0]["content"]


async def test_a_text_of_nothing_answers_nothing(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(IN_WORDS))
        for answer in (
            await desk.sends(waiting, "USER_INPUT", "A", text=" \n"),
            await desk.sends(waiting, "USER_INPUT", "A"),
            await desk.sends(waiting, "USER_INPUT", "A", text="x", data={"city": "Oslo"}),
            await desk.posts(content="  "),
        ):
            await desk.is_refused(waiting, answer, 422, "payload_invalid")


async def test_case_86_no_field_of_a_tools_form_is_guessed_from_text(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(SHIP, LOOK))
        said = await desk.sends(waiting, "USER_INPUT", "A", text="Oslo")
        await desk.is_refused(waiting, said, 422, "payload_invalid")
        done = await desk.says("To Oslo, please.")
        results = await desk.results()

    assert waiting_for(waiting)["askedBy"] == "tool"
    assert (done["turnId"], done["status"]) == (waiting["turnId"], "COMPLETED")
    assert results == [("A", "superseded"), ("B", "completed")]
    assert desk.bank.payments() == []


async def test_case_86_a_strict_form_refuses_the_message_and_waits_on(stage: Stage) -> None:
    async with a_desk(stage, strict_forms=True) as desk:
        waiting = await desk.opens(asks(SHIP))
        said = await desk.posts(content="To Oslo, please.")
        await desk.is_refused(waiting, said, 409, "wrong_command")
        offered = {a["command"]: (a["enabled"], a.get("reason")) for a in waiting["actions"]}
        replanned = await desk.replans(waiting, "Something else.")
        results = await desk.results()

    assert offered["MESSAGE"] == (False, "form_waits")
    assert offered["USER_INPUT"][0]
    assert (replanned["status"], results) == ("COMPLETED", [("A", "superseded")])


async def test_case_101_a_form_in_two_parts_is_filled_in_bit_by_bit_for_one_effect(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        first = await desk.opens(asks(SHIP))
        second = await desk.fills_in(first, "A", city="Oslo")
        done = await desk.fills_in(second, "A", phone="12345")
        results = await desk.tool_messages()
        received = [
            e["data"] for e in await desk.events(done) if e["type"] == "TOOL_INPUT_RECEIVED"
        ]

    assert (waiting_for(first)["formKey"], waiting_for(second)["formKey"]) == ("address", "contact")
    assert waiting_for(second)["schema"] == CONTACT
    assert results[0]["content"] == "shipped p1 to Oslo, call 12345"
    assert [deed.attempt for deed in desk.bank.entries()] == [1, 2, 3]
    assert [deed.attempt for deed in desk.bank.payments()] == [3]
    assert len(received) == 2


async def test_case_102_an_approval_outlives_the_form_of_the_same_call(stage: Stage) -> None:
    async with a_desk(stage) as desk:
        approval = await desk.opens(asks(call("A", "insure", amount=9)))
        form = await desk.approves(approval, "A")
        done = await desk.fills_in(form, "A", city="Oslo")
        results = await desk.tool_messages()

    assert (approval["status"], form["status"]) == ("WAITING_FOR_APPROVAL", "WAITING_FOR_USER")
    assert (done["status"], results[0]["content"]) == ("COMPLETED", "insured 9 in Oslo")
    assert desk.bank.paid() == [("A", 9)]


WRONG: dict[str, tuple[Mapping[str, Any], str]] = {
    "a field is missing": ({"zip": "01234"}, "city"),
    "a field is of another type": ({"city": 7}, "city"),
    "a field is too short": ({"city": ""}, "city"),
    "a field is not of the pattern": ({"city": "Oslo", "zip": "1"}, "zip"),
    "a field is unknown": ({"city": "Oslo", "planet": "Mars"}, "planet"),
}


@pytest.mark.parametrize("asked", [WITH_A_FORM, SHIP], ids=["the model's", "a tool's"])
async def test_case_104_values_that_do_not_fit_are_refused_by_field(
    stage: Stage, asked: dict[str, object]
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(asked))
        for data, field in WRONG.values():
            answer = await desk.sends(waiting, "USER_INPUT", "A", data=data)
            problem = await desk.is_refused(waiting, answer, 422, "payload_invalid")
            assert any(field in str(error) for error in problem["errors"]), problem
        empty = await desk.sends(waiting, "USER_INPUT", "A", data={})
        await desk.is_refused(waiting, empty, 422, "payload_invalid")

    assert desk.bank.payments() == []


async def test_case_105_a_form_is_checked_as_it_was_when_it_was_asked_for(stage: Stage) -> None:
    stricter = Form(
        key="address",
        title="Where exactly?",
        schema=ADDRESS | {"required": ["city", "zip"]},
    )
    async with a_desk(stage, version="1") as desk:
        waiting = await desk.opens(asks(WITH_A_FORM))
        old = cashier(desk.bank, version="1")
        new = cashier(desk.bank, version="2", forms=(stricter, *old.forms[1:]))
    async with a_desk(stage, old, new) as desk:
        again = await desk.now(waiting)
        done = await desk.fills_in(waiting, "A", city="Oslo")
        newer = await desk.opens(asks(WITH_A_FORM), conversation="ses_2")
        refused = await desk.sends(newer, "USER_INPUT", "A", data={"city": "Oslo"})
        await desk.is_refused(newer, refused, 422, "payload_invalid")

    assert waiting_for(again) == waiting_for(waiting)
    assert (done["status"], done["agentVersion"]) == ("COMPLETED", "1")
    assert (newer["agentVersion"], waiting_for(newer)["title"]) == ("2", "Where exactly?")


async def test_a_form_that_nobody_declared_is_an_error_and_no_wait(stage: Stage) -> None:
    unknown = call("A", "request_user_input", message="Where?", form="nowhere")
    async with a_desk(stage) as desk:
        done = await desk.opens(asks(unknown, call("B", "lose_a_form")))
        results = await desk.results()
        types = await desk.types(done)

    assert done["status"] == "COMPLETED"
    assert [outcome for _, outcome in results] == ["error", "error"]
    assert "TOOL_INPUT_REQUESTED" not in types


async def test_scenario_026_what_was_done_before_a_question_is_not_done_again_behind_it(
    stage: Stage,
) -> None:
    rounds = (asks(call("A", "pay", amount=7)), asks(call("B", "request_user_input", message="?")))
    async with a_desk(stage) as desk:
        waiting = await desk.opens(*rounds)
    async with a_desk(stage) as desk:
        again = await desk.now(waiting)
        done = await desk.tells(waiting, "B", "yes")
        types = await desk.types(done)

    assert again == waiting
    assert done["status"] == "COMPLETED"
    assert (done["counters"]["modelSuccesses"], len(desk.requests())) == (3, 3)
    assert types[waiting["version"]] == "TOOL_INPUT_RECEIVED"
    assert desk.bank.paid() == [("A", 7)]


async def test_a_form_is_filled_in_by_whoever_may_and_for_the_call_that_waits(
    stage: Stage,
) -> None:
    async with a_desk(stage) as desk:
        waiting = await desk.opens(asks(WITH_A_FORM, call("B", "gated_pay", amount=1)))
        other = await desk.sends(waiting, "USER_INPUT", "B", data={"city": "Oslo"})
        approval = await desk.sends(waiting, "APPROVE_TOOL", "A")
        await desk.is_refused(waiting, other, 409, "correlation_mismatch")
        await desk.is_refused(waiting, approval, 409, "wrong_command")
        behind = await desk.fills_in(waiting, "A", city="Oslo")
        late = await desk.sends(behind, "USER_INPUT", "A", data={"city": "Bergen"})
        await desk.is_refused(behind, late, 409, "correlation_mismatch")

    assert waiting_for(behind)["callId"] == "B"
