"""How many event streams may be open at once: each costs its process a socket and some memory."""

from collections import Counter
from collections.abc import Generator, Hashable, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from app.http.error_handlers import ProblemError
from app.services.principal import Principal


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamLimits:
    """Largest numbers of streams that one process serves at once."""

    per_user: int
    per_tenant: int
    per_process: int


class OpenStreams:
    """The streams that are open in this process, by who reads them."""

    def __init__(self, limits: StreamLimits) -> None:
        self._limits = limits
        self._open: Counter[Hashable] = Counter()

    def check(self, principal: Principal) -> None:
        """Asked before anything is done for a stream, so that a refusal changes nothing.

        Requests between this and their stream are not counted yet, so a limit may be passed by as
        many as the process carries out at that moment.

        Raises:
            ProblemError: `too_many_streams`.
        """
        for whose, key, most in self._counted(principal):
            if self._open[key] >= most:
                message = f"{whose} has {most} event streams open here, which is the limit"
                raise ProblemError("too_many_streams", message)

    @contextmanager
    def counted(self, principal: Principal) -> Generator[None, None, None]:
        """A stream is open as long as the context is."""
        keys = [key for _, key, _ in self._counted(principal)]
        self._open.update(keys)
        try:
            yield
        finally:
            self._open.subtract(keys)
            for key in keys:
                if not self._open[key]:
                    del self._open[key]

    def _counted(self, principal: Principal) -> Sequence[tuple[str, Hashable, int]]:
        tenant_id, limits = principal.tenant_id, self._limits
        return (
            ("this user", (tenant_id, principal.actor_id), limits.per_user),
            ("this tenant", tenant_id, limits.per_tenant),
            ("this server", None, limits.per_process),
        )
