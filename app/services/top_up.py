"""Where an operator raises an allowance that is used up, or switches to another one."""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class TopUpLinks:
    """As configured now; a link is never stored with a failure."""

    by_provider: Mapping[str, str] = field(default_factory=dict[str, str])
    otherwise: str | None = None
    """For providers without a link of their own; `None`: there is none."""

    def of(self, provider: str | None) -> str | None:
        """The link for a provider; of an unknown one the common link."""
        return self.by_provider.get(provider or "", self.otherwise)
