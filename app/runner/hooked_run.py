"""One run of a turn as its hooks are told of it: its begin, its messages, its errors, its rest."""

from collections.abc import Callable, Iterable, Mapping

from app.ports import Hooks, Run, RunError, Tool, TurnStore
from app.runner.hooks import Asked, Crashed, RunHooks
from app.turn import inputs as i
from app.turn.events import Event, MessageAdded, ModelFailed
from app.turn.state import Turn
from app.turn.transcript import UserMessage


class HookedRun:
    """The hooks of a run, and what of the turn they have been shown."""

    def __init__(self, hooks: Hooks, store: TurnStore, turn: Callable[[], Turn]) -> None:
        """`turn` says how the turn stands whenever it is asked."""
        self.hooks = RunHooks(hooks, self._run)
        self._store = store
        self._turn = turn
        self._is_resume = turn().is_taken_up
        self._said = set(turn().unread)
        self._heard: set[int] = set()
        self._error: RunError | None = None

    @property
    def is_due(self) -> bool:
        """Whether the run is to be opened, or has a message that hooks have not heard of.

        What only stops a turn is no run.
        """
        turn = self._turn()
        if turn.cancel_requested or turn.pause_requested:
            return False
        return not self.hooks.is_open or bool(self._said - self._heard)

    async def open(self) -> i.Report | None:
        """Hooks see the run and its messages; the report of what they object, if they do."""
        turn = self._turn()
        places = sorted(self._said - self._heard)
        found = [await self._store.message_at(turn, place) for place in places]
        objection = await self.hooks.open([m for m in found if isinstance(m, UserMessage)])
        match objection:
            case None:
                self._heard.update(places)
                return None
            case Asked(question=question, heard=heard):
                self._heard.update(places[:heard])
                seen = sum(place in self._heard for place in turn.unread)
                return i.UserAsked(attempt_id=turn.attempt_in_flight, question=question, heard=seen)
            case Crashed(error=error, reason=reason):
                self.meets(error)
                return i.StepCrashed(attempt_id=turn.attempt_in_flight, reason=reason)

    def sees(self, events: Iterable[Event]) -> None:
        """What a commit has added to what users have said, and how the model has failed in it.

        An answer with neither text nor calls is a failure too, and it is the core that says so.
        """
        for event in events:
            if isinstance(event, ModelFailed):
                self.meets(event.record.failure)
            if isinstance(event, MessageAdded) and isinstance(event.message, UserMessage):
                self._said.add(event.position)

    def meets(self, error: RunError) -> None:
        """An error of which `tell_of_error` is to tell once it is stored."""
        self._error = error

    async def tell_of_error(self) -> None:
        """Tell `on_error` of the error that was met since the last time."""
        error, self._error = self._error, None
        if error is not None:
            await self.hooks.on_error(error)

    async def tell_of_rest(self) -> None:
        """Tell `after_run`, if the run was opened."""
        if self.hooks.is_open:
            await self.hooks.after_run()

    def around(self, tools: Mapping[str, Tool]) -> Mapping[str, Tool]:
        """The tools with the hooks around each."""
        return {name: self.hooks.around(tool) for name, tool in tools.items()}

    def _run(self) -> Run:
        turn = self._turn()
        return Run(
            turn_id=turn.identity.turn_id,
            conversation_id=turn.identity.conversation_id,
            tenant_id=turn.identity.tenant_id,
            agent_id=turn.identity.agent_id,
            agent_version=turn.identity.agent_version,
            is_resume=self._is_resume,
            status=turn.status,
        )
