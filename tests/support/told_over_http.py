"""A turn that is told things the way the world tells it: people over HTTP, workers by the store.

It stands in for `tests.support.turns.Told` in the machine of all inputs, and after every step holds
what came of it against what the core alone would have said: the answer and its code, the stored
turn in every field, the journal, and that a refusal leaves all of it untouched.
"""

import json
from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass, field, replace
from typing import Any, Self

import httpx
from typing_extensions import override

from app.http.problems import PROBLEMS, action_json
from app.ports import Claim
from app.routers.message_schemas import content_output
from app.services.answers import schema_of
from app.turn import inputs as i
from app.turn.actions import actions
from app.turn.agent import Agent
from app.turn.changes import Changes
from app.turn.decide import decide
from app.turn.effects import brought
from app.turn.errors import Rejected, TurnTerminal, WaitExpired
from app.turn.events import Event, MessageAdded
from app.turn.events import WaitExpired as WaitExpiredEvent
from app.turn.evolve import advance, fold
from app.turn.ids import FailureId, TurnId
from app.turn.offering import with_changes
from app.turn.start import succeed
from app.turn.state import Turn
from app.turn.transcript import TextPart, UserMessage, text_of
from tests.support.turns import Told, a_message
from tests.support.world import World

_WORKER = "worker"
_ORPHANED = """
UPDATE turns SET claimed_by = 'gone', claim_epoch = claim_epoch + 1,
                 claimed_until = clock_timestamp() - interval '1 hour'
WHERE turn_id = $1 AND status = 'RUNNING'
"""
_UNCLAIMED = """
UPDATE turns SET claimed_by = NULL, claimed_until = NULL
WHERE turn_id = $1 AND claimed_until <= clock_timestamp()
"""
"""Also one that a request has taken from the dead and let lapse, for workers to take."""
_CLAIM = """
UPDATE turns SET claimed_by = $1, claim_epoch = claim_epoch + 1,
                 claimed_until = clock_timestamp() + interval '1 hour'
WHERE turn_id = $2 RETURNING claim_epoch
"""


@dataclass(slots=True)
class ToldOverHttp(Told):
    """`Told`, whose turn is the stored one."""

    world: World = field(kw_only=True)
    conversation_id: str = field(init=False)
    opening: UserMessage = field(init=False, default_factory=a_message)
    """What opened the turn."""

    @override
    def __post_init__(self) -> None:
        self.conversation_id = self.world.fresh_conversation()
        self.agent = self.world.catalog.add(self.agent)
        self.world.now[0] = self.at
        path = f"/conversations/{self.conversation_id}/messages"
        who = {"agentId": self.agent.agent_id, "hold": self.held}
        opened = self._post(path, _said(self.opening) | who)
        assert opened.status_code == 202, opened.text
        self.turn = self._stored(TurnId(opened.json()["turnId"]))
        self.events.extend(self._journal(after=0))

    @override
    def tell(self, given: i.Input) -> Self:
        self.world.now[0] = self.at
        given = self._as_served(given)
        self._with_a_worker_or_without(given)
        before = self.turn
        expected = _decided(self, given)
        if isinstance(given, i.PostMessage):
            self._check_foreseen(given, expected)
        answer = self._report(given) if isinstance(given, i.Report) else self._request(given)
        self.turn = self._stored(before.identity.turn_id)
        if isinstance(expected, WaitExpired) and self.turn != before:
            return self._ended_in_time(before, answer, expected)
        if isinstance(expected, Rejected):
            assert self.turn == before, "a refusal changed the turn"
            if isinstance(given, i.PostMessage) and isinstance(expected, TurnTerminal):
                self._check_successor(answer)
            elif isinstance(given, i.Withdraw) and isinstance(expected, TurnTerminal):
                self._check_nothing_queued(answer)
            else:
                self._check_refusal(answer, expected)
            raise expected
        self.last = self._journal(after=before.version)
        if isinstance(given, i.UserInput):
            expected = decide(before, _as_stored(given, self.last), at=self.at, agent=self.agent)
        assert self.last == expected
        assert self.turn == advance(before, expected)
        self.events.extend(self.last)
        if answer is not None:
            assert answer.is_success, answer.text
            assert answer.json()["version"] == self.turn.version
        return self

    @override
    def succeeded(self, turn_id: str = "t2") -> Told:
        """The turn that is at work in the conversation now, as the core opens it."""
        answer = self.world.do(self.world.client.get(f"/conversations/{self.conversation_id}"))
        told = copy(self)
        told.turn = self._stored(TurnId(answer.json()["activeTurn"]["turnId"]))
        told.last, told.before = told._journal(after=0), self
        told.events = list(told.last)
        assert told.last == succeed(self.turn, told.turn.identity, at=self.at)
        assert told.turn == fold(told.last)
        told.opening = self.turn.queue[0].message
        return told

    @classmethod
    def replayed(cls, story: Told, world: World) -> Told:
        """A turn that was told over HTTP what this story tells."""
        if story.before is not None:
            told = cls.replayed(story.before, world).succeeded()
        else:
            told = cls(story.agent, held=story.held, world=world)
        for at, given in story.heard:
            told.at = at
            told.tell(_of_its_own(given, told.turn))
        told.at = story.at
        return told

    def _ended_in_time(
        self, before: Turn, answer: httpx.Response | None, expected: WaitExpired
    ) -> Self:
        """The answer came too late, and what the end of the time does has been done meanwhile."""
        self.last = self._journal(after=before.version)
        assert self.last == decide(before, i.TimePassed(), at=self.at, agent=self.agent)
        assert not all(isinstance(event, WaitExpiredEvent) for event in self.last), "it is kept"
        assert self.turn == advance(before, self.last)
        self.events.extend(self.last)
        self._check_refusal(answer, expected)
        return self

    def looked_at(self) -> Self:
        """What others have brought meanwhile is its last."""
        before = self.turn.version
        self.turn = self._stored(self.turn.identity.turn_id)
        self.last = self._journal(after=before)
        self.events.extend(self.last)
        return self

    def opened_again(self) -> None:
        """The message that opened the turn is answered with it, and changes nothing."""
        path = f"/conversations/{self.conversation_id}/messages"
        answer = self._post(path, _said(self.opening))
        assert answer.json()["turnId"] == self.turn.identity.turn_id
        assert self._stored(self.turn.identity.turn_id) == self.turn

    def _as_served(self, given: i.Input) -> i.Input:
        """With what the service adds to it: what it finds stored, what it knows of the form."""
        if isinstance(given, i.PostMessage | i.Replan):
            return replace(given, lost=self.left_behind)
        return _of_the_form(_merged(given, self.turn, self.agent), self.turn)

    def _with_a_worker_or_without(self, given: i.Input) -> None:
        """The turn is orphaned where the core is told so, and only there."""
        is_orphaned = isinstance(given, i.PostMessage | i.Cancel) and given.is_orphaned
        statement = _ORPHANED if is_orphaned else _UNCLAIMED
        self.world.do(self.world.database.execute(statement, self.turn.identity.turn_id))

    def _check_successor(self, answer: httpx.Response | None) -> None:
        """A message behind the end of a turn opens the next one; it is ended, so that all rests."""
        assert answer is not None
        assert answer.status_code == 202, answer.text
        successor = answer.json()["turnId"]
        assert successor != self.turn.identity.turn_id
        assert self._post(f"/turns/{successor}/cancel", None).status_code == 200

    def _check_nothing_queued(self, answer: httpx.Response | None) -> None:
        """Behind the end of a turn without a queue there is nothing to be withdrawn."""
        assert answer is not None
        assert (answer.status_code, answer.json()["code"]) == (404, "queued_input_not_found")

    def _check_refusal(self, answer: httpx.Response | None, expected: Rejected) -> None:
        assert answer is not None, "a report was refused"
        body = answer.json()
        status = PROBLEMS[expected.code].status
        assert (answer.status_code, body["code"]) == (status, expected.code), body
        assert body["currentStatus"] == self.turn.status
        assert body["currentVersion"] == self.turn.version
        offered = [
            with_changes(action, self.turn, self.agent, by_operator=True)
            for action in actions(self.turn, at=self.at)
        ]
        assert body["allowedActions"] == [action_json(action) for action in offered]

    def _check_foreseen(self, given: i.PostMessage, expected: tuple[Event, ...] | Rejected) -> None:
        """A dry run says what is about to happen, and changes nothing."""
        path = f"/conversations/{self.conversation_id}/messages?dryRun=true"
        said = _said(given.message) | _how(given)
        foreseen = self._post(path, said).json()
        assert self._stored(self.turn.identity.turn_id) == self.turn, "a dry run changed the turn"
        if isinstance(expected, TurnTerminal):
            assert foreseen["effect"] == "OPEN"
        elif isinstance(expected, Rejected):
            assert foreseen["effect"] == "REFUSE", (given, expected.detail, foreseen)
            assert foreseen["problem"]["code"] == expected.code
        else:
            what = brought(self.turn, expected)
            closes = [result.call_id for result in what.closes]
            assert foreseen["effect"] == what.effect
            assert [each["callId"] for each in foreseen["closes"]] == closes

    def _request(self, given: i.Request) -> httpx.Response:
        path, body = _address(given, self.turn, self.conversation_id)
        if isinstance(given, i.Withdraw):
            answer: httpx.Response = self.world.do(self.world.client.delete(path))
            return answer
        return self._post(path, body, by_amy=isinstance(given, i.CallCommand))

    def _report(self, given: i.Report) -> None:
        self.world.do(self._reported(given))

    async def _reported(self, given: i.Report) -> None:
        if isinstance(given, i.TimePassed):
            await self.world.services.writer.time_passed(self.turn)
            return
        epoch = await self.world.database.value(_CLAIM, _WORKER, self.turn.identity.turn_id)
        claim = Claim(worker=_WORKER, epoch=epoch)
        await self.world.services.writer.report(self.turn, given, self.agent, claim)

    def _post(self, path: str, body: object, *, by_amy: bool = False) -> httpx.Response:
        client = self.world.amy if by_amy else self.world.client
        answer: httpx.Response = self.world.do(client.post(path, json=body))
        return answer

    def _stored(self, turn_id: TurnId) -> Turn:
        turn: Turn = self.world.do(self.world.services.turns.load(turn_id))
        return turn

    def _journal(self, *, after: int) -> tuple[Event, ...]:
        turns = self.world.services.turns
        rows = self.world.do(turns.journal(self.turn.identity.turn_id, after=after, limit=1000))
        return tuple(event for row in rows for event in row.events)


def _of_its_own(given: i.Input, turn: Turn) -> i.Input:
    """The same with the failure's id as no other turn has it."""
    match given:
        case (
            i.ModelGaveUp()
            | i.ModelAnswered()
            | i.ModelRefused()
            | i.CompactionEnded()
            | i.RetryModel()
        ):
            own = FailureId(f"{turn.identity.turn_id}-{given.failure_id}")
            return replace(given, failure_id=own)
        case _:
            return given


def _decided(told: Told, given: i.Input) -> tuple[Event, ...] | Rejected:
    try:
        return decide(told.turn, given, at=told.at, agent=told.agent)
    except Rejected as refusal:
        return refusal


def _said(message: UserMessage) -> dict[str, Any]:
    is_text = all(isinstance(part, TextPart) for part in message.content)
    content = text_of(message.content) if is_text else content_output(message.content)
    return {"content": content, "messageId": message.message_id}


def _how(given: i.PostMessage) -> dict[str, Any]:
    return {"whenRunning": given.when_running, "recoverFirst": given.recover_first}


def _of_the_form(given: i.Input, turn: Turn) -> i.Input:
    """Values over HTTP name no schema: they are checked against the one of the form that waits."""
    if not isinstance(given, i.UserInput) or given.data is None:
        return given
    schema = schema_of(turn, given.call_id)
    return replace(given, data=replace(given.data, schema=schema))


def _merged(given: i.Input, turn: Turn, agent: Agent) -> i.Input:
    """Limits over HTTP are those that are changed; the others stay as they are.

    Of a paused turn nothing else is changed there.
    """
    if isinstance(given, i.Resume):
        given = replace(given, changes=Changes(limits=given.changes.limits))
    if not isinstance(given, i.RetryModel | i.Resume) or given.changes.limits is None:
        return given
    iterations = given.changes.limits.max_iterations
    limits = replace(turn.limits_under(agent), max_iterations=iterations)
    return replace(given, changes=replace(given.changes, limits=limits))


def _resume(given: i.RetryModel | i.Resume) -> dict[str, object]:
    if isinstance(given, i.RetryModel) and not given.changes.names:
        return {"failureId": given.failure_id}
    body: dict[str, object] = {"command": "RESUME"}
    if isinstance(given, i.RetryModel):
        body = {"command": "RETRY_MODEL", "failureId": given.failure_id}
    changes, said = given.changes, dict[str, object]()
    for name, value in (
        ("model", changes.model),
        ("maxOutputTokens", changes.max_output_tokens),
        ("compact", changes.compact or None),
        ("keepTurns", changes.keep_turns),
        ("limits", changes.limits and {"maxIterations": changes.limits.max_iterations}),
    ):
        if value is not None:
            said[name] = value
    return body | ({"changes": said} if said else {})


def _address(  # noqa: C901 - it only routes
    given: i.Request, turn: Turn, conversation_id: str
) -> tuple[str, object]:
    """Where a request goes, and what it says."""
    one = f"/turns/{turn.identity.turn_id}"
    match given:
        case i.PostMessage(message=message):
            said = _said(message) | _how(given)
            return f"/conversations/{conversation_id}/messages", said
        case i.Withdraw(message_id=message_id):
            return f"/conversations/{conversation_id}/queue/{message_id}", None
        case i.RetryModel() | i.Resume():
            return f"{one}/resume", _resume(given)
        case i.Retry():
            return f"{one}/resume", {"command": "RETRY"}
        case i.ContinueNow():
            return f"{one}/resume", {"command": "CONTINUE"}
        case i.Replan(message=message):
            body = {"command": "REPLAN_WITH_MESSAGE", "message": _said(message)}
            return f"{one}/resume", body
        case i.Run():
            return f"{one}/run", None
        case i.UserInput(message=message, call_id=call_id, data=data):
            answer: dict[str, object] = {
                "command": "USER_INPUT",
                "text": None if message is None else text_of(message.content),
                "callId": call_id,
                "data": None if data is None else json.loads(data.values),
            }
            return f"{one}/resume", answer
        case i.ApproveTool() | i.RejectTool() | i.GiveToolResult() | i.GiveToolError():
            return f"{one}/resume", _call_command(given)
        case i.Pause():
            return f"{one}/pause", None
        case i.Cancel():
            return f"{one}/cancel", None


def _call_command(given: i.CallCommand) -> dict[str, Any]:
    match given:
        case i.ApproveTool(call_id=call_id, fingerprint=fingerprint):
            return {"command": "APPROVE_TOOL", "callId": call_id, "fingerprint": fingerprint}
        case i.RejectTool(call_id=call_id, reason=reason):
            return {"command": "REJECT_TOOL", "callId": call_id, "reason": reason}
        case i.GiveToolResult(call_id=call_id, output=output):
            return {"command": "TOOL_RESULT", "callId": call_id, "output": output}
        case i.GiveToolError(call_id=call_id, code=code, message=message):
            return {"command": "TOOL_ERROR", "callId": call_id, "code": code, "message": message}


def _as_stored(given: i.UserInput, events: Sequence[Event]) -> i.UserInput:
    """The answer under the message id that the server has made for it, where it is a message."""
    messages = (event.message for event in events if isinstance(event, MessageAdded))
    made = next((m for m in messages if isinstance(m, UserMessage)), given.message)
    return replace(given, message=made)
