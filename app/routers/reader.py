"""For whom something is written down: what they may see, in which language."""

from dataclasses import dataclass, field

from app.http.languages import Language
from app.services.deps import Caller, Services
from app.services.principal import Principal
from app.services.top_up import TopUpLinks


@dataclass(frozen=True, slots=True, kw_only=True)
class Reader:
    """For whom something is written down."""

    principal: Principal
    language: Language
    top_up: TopUpLinks = field(default_factory=TopUpLinks)


def reader_of(services: Services, caller: Caller, language: Language) -> Reader:
    return Reader(principal=caller.principal, language=language, top_up=services.top_up)
