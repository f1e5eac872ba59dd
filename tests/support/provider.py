"""The simulated provider on a free loopback port, inside the test's event loop."""

import asyncio
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from starlette.datastructures import State

from app.entrypoints.serving import Listener
from app.entrypoints.simulate import create_app
from app.providers.simulation import Simulation
from tests.support.prompt_server import PromptServer

_FAST_WORDS_PER_SECOND = 1_000_000.0


@dataclass(frozen=True, slots=True)
class RunningProvider:
    """A simulated provider that answers now."""

    base_url: str
    """Ends in `/v1`, for `OPENAI_BASE_URL`."""
    _state: State

    @property
    def simulation(self) -> Simulation:
        found: Simulation = self._state.simulation
        return found

    def forget_everything(self) -> None:
        """As if it had just been started."""
        self._state.simulation = Simulation(words_per_second=self.simulation.words_per_second)

    def script(
        self, model: str, rounds: Sequence[Mapping[str, object]], *, strict: bool = True
    ) -> None:
        """Set a model's script; its faults and requests begin anew."""
        self.simulation.reset(model)
        self.simulation.put_script(model, {"rounds": list(rounds), "strict": strict})

    def requests(self, model: str) -> list[dict[str, object]]:
        """All requests to a model, oldest first, as `{"status": …, "body": …}`."""
        return self.simulation.received(model)


@asynccontextmanager
async def running_provider(
    *, words_per_second: float = _FAST_WORDS_PER_SECOND
) -> AsyncGenerator[RunningProvider, None]:
    """Serve the simulator until the block ends; models without a script play the demo, fast."""
    app = create_app(words_per_second=words_per_second)
    stop = asyncio.Event()
    with Listener.bind("127.0.0.1", 0, variable="the port") as listener:
        server = PromptServer(app, listener)
        serving = asyncio.create_task(server.serve_until(stop))
        assert await server.is_ready()
        try:
            yield RunningProvider(f"{listener.url}/v1", app.state)
        finally:
            stop.set()
            await serving
