"""The simulated provider on a free loopback port, inside the test's event loop."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

import uvicorn

from app.entrypoints.serving import Listener
from app.entrypoints.simulate import create_app
from app.providers.simulation import Simulation

_FAST_WORDS_PER_SECOND = 1_000_000.0


@dataclass(frozen=True, slots=True)
class RunningProvider:
    """A simulated provider that answers now."""

    base_url: str
    """Ends in `/v1`, for `OPENAI_BASE_URL`."""
    simulation: Simulation

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
    """Serve the simulator until the block ends; models without a script play the demo, fast.

    The server's own loop is left out: it would take the test process's signals, and 100 ms to end.
    """
    app = create_app(words_per_second=words_per_second)
    config = uvicorn.Config(
        app, host="127.0.0.1", port=0, log_config=None, timeout_graceful_shutdown=10
    )
    config.load()
    server = uvicorn.Server(config)
    server.lifespan = config.lifespan_class(config)
    with Listener.bind("127.0.0.1", 0, variable="the port") as listener:
        await server.startup(sockets=[listener.socket])
        try:
            yield RunningProvider(f"{listener.url}/v1", app.state.simulation)
        finally:
            await server.shutdown(sockets=[listener.socket])
