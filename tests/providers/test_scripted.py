"""The demo model: what it does follows from the request alone."""

import json

import pytest

from app.ports import ReasoningDelta, TextDelta
from app.providers.demo_script import HELP
from app.providers.scripted import ScriptedModel, words
from app.providers.strict_history import check_history
from app.turn.resume_notices import NOTICE_TEXTS
from app.turn.transcript import ModelAnswer, StopReason
from tests.providers.asking import (
    Message,
    a_request,
    answer_of,
    asking_for,
    events_of,
    user,
)
from tests.providers.demo_talk import MODEL, Naps, after_the_tools, demo_request, demo_results

# --- An ordinary turn ----------------------------------------------------------------------------


async def test_a_question_is_looked_up_with_three_tools_at_once() -> None:
    events = await events_of(MODEL, demo_request(user("How does AB-123 sell?")))
    answer = events[-1]

    assert isinstance(answer, ModelAnswer)
    assert [(call.tool_name, call.arguments) for call in answer.tool_calls] == [
        ("orders_search", '{"sku":"AB-123"}'),
        ("warehouse_stock", '{"sku":"AB-123"}'),
        ("refunds_list", '{"sku":"AB-123"}'),
    ]
    assert answer.stop_reason is StopReason.TOOL_USE
    assert answer.reasoning
    assert answer.text


async def test_the_answer_refers_to_what_the_tools_said() -> None:
    answer = await answer_of(MODEL, demo_request(*await after_the_tools("And now?"), attempt=2))

    assert "148 orders" in answer.text
    assert "212 units" in answer.text
    assert "9 refunds" in answer.text
    assert answer.tool_calls == ()


async def test_with_the_word_note_a_note_is_saved_before_the_answer() -> None:
    history = await after_the_tools("Look at TP-4410 and save a note")
    saving = await answer_of(MODEL, demo_request(*history, attempt=2))
    history += [asking_for(saving), *demo_results(saving)]
    answer = await answer_of(MODEL, demo_request(*history, attempt=3))

    assert [call.tool_name for call in saving.tool_calls] == ["note_save"]
    assert "148 orders" in json.loads(saving.tool_calls[0].arguments)["text"]
    assert "note is saved" in answer.text


@pytest.mark.parametrize("text", ["hi", "Hello!", "thanks", "  Thank you.  "])
async def test_small_talk_is_answered_directly(text: str) -> None:
    answer = await answer_of(MODEL, demo_request(user(text)))

    assert answer.tool_calls == ()
    assert answer.stop_reason is StopReason.END_TURN


@pytest.mark.parametrize("text", ["/help", "/outage", "/outage nonsense", "/unknown"])
async def test_help_lists_the_commands(text: str) -> None:
    assert (await answer_of(MODEL, demo_request(user(text)))).text == HELP


async def test_an_agent_without_tools_gets_an_answer_too() -> None:
    assert (await answer_of(MODEL, a_request(user("Look at TP-4410")))).tool_calls == ()


async def test_a_conversation_of_several_turns_is_well_formed() -> None:
    history = await after_the_tools("First question")
    history.append(asking_for(await answer_of(MODEL, demo_request(*history, attempt=2))))
    history.append(user("Second question"))
    asked = await answer_of(MODEL, demo_request(*history))
    history += [asking_for(asked), *demo_results(asked)]

    assert check_history(json.loads(json.dumps(history))) is None


@pytest.mark.parametrize("notice", sorted(NOTICE_TEXTS))
async def test_a_notice_of_the_service_asks_nothing_by_itself(notice: str) -> None:
    alone = await answer_of(MODEL, demo_request(user("/slow")))
    noticed = await answer_of(MODEL, demo_request(user("/slow"), user(notice)))

    assert noticed.text == alone.text
    assert noticed.tool_calls == alone.tool_calls == ()


@pytest.mark.parametrize("notice", sorted(NOTICE_TEXTS))
async def test_an_answer_that_broke_off_does_not_end_its_turn(notice: str) -> None:
    broken: Message = {"role": "assistant", "content": "This is"}
    earlier = (user("hello"), {"role": "assistant", "content": "Good day."})
    alone = await answer_of(MODEL, demo_request(user("/slow")))

    again = await answer_of(MODEL, demo_request(*earlier, user("/slow"), broken, user(notice)))

    assert again.text == alone.text


async def test_the_same_request_always_gets_the_same_answer() -> None:
    history = await after_the_tools("Any news of TP-4410?")

    assert await events_of(MODEL, demo_request(*history)) == await events_of(
        ScriptedModel(sleep=Naps()), demo_request(*history)
    )


async def test_no_text_of_the_demo_shouts() -> None:
    history = await after_the_tools("note TP-4410")
    requests = [
        demo_request(*history),
        *(demo_request(user(text)) for text in ("hi", "/help", "/slow")),
    ]
    answers = [await answer_of(MODEL, request) for request in requests]

    assert not any("!" in answer.text + answer.reasoning for answer in answers)


# --- Pace ----------------------------------------------------------------------------------------


async def test_words_come_at_the_pace_asked_for() -> None:
    naps = Naps()
    model = ScriptedModel(words_per_second=20, thinking_seconds=0.5, sleep=naps)

    events = await events_of(model, demo_request(user("hi")))

    spoken = [event for event in events if isinstance(event, TextDelta | ReasoningDelta)]
    assert naps.seconds == [0.5, *[0.05] * len(spoken)]


async def test_a_slow_answer_takes_about_forty_seconds() -> None:
    naps = Naps()

    await events_of(ScriptedModel(sleep=naps), demo_request(user("/slow")))

    assert 30 < sum(naps.seconds) < 50


@pytest.mark.parametrize("text", ["", "one", " a  b\n\nc ", "\n"])
def test_words_joined_are_the_text(text: str) -> None:
    assert "".join(words(text)) == text
