"""What was really done, written outside the service's database: a bank's book, and a price list.

Lines in files, so that they outlive every process and stand whatever a turn's transaction does.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import orjson

from app.tools import ToolContext


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something a tool has done that cannot be undone."""

    tool: str
    turn_id: str
    call_id: str
    attempt: int
    amount: int


@dataclass(frozen=True, slots=True)
class Bank:
    """Takes each order once: one that comes again under its key is known already."""

    folder: Path

    def enter(self, tool: str, call: ToolContext) -> None:
        """Note that the tool was entered, whatever it does then."""
        self._write("entries", _deed(tool, call, 0))

    def pay(self, tool: str, call: ToolContext, amount: int = 0) -> None:
        """Do it, by whoever's doubt whether it was done."""
        self._write("payments", _deed(tool, call, amount))

    def pay_once(self, tool: str, call: ToolContext, amount: int) -> int:
        """Do it unless it was done under this key; what was paid."""
        key = (call.turn_id, call.call_id)
        known = [d.amount for d in self.payments() if (d.turn_id, d.call_id) == key]
        if known:
            return known[0]
        self.pay(tool, call, amount)
        return amount

    def entries(self) -> Sequence[Deed]:
        return self._read("entries")

    def entered(self) -> list[str]:
        """The names of the tools that were entered, in order."""
        return [deed.tool for deed in self.entries()]

    def payments(self) -> Sequence[Deed]:
        return self._read("payments")

    def paid(self) -> list[tuple[str, int]]:
        """Call and amount of each payment, in order."""
        return [(deed.call_id, deed.amount) for deed in self.payments()]

    def set_price(self, amount: int) -> None:
        """What everything costs from now on."""
        (self.folder / "price").write_text(str(amount))

    def price(self) -> int:
        return int((self.folder / "price").read_text())

    def _write(self, name: str, deed: Deed) -> None:
        with (self.folder / name).open("ab") as file:
            file.write(orjson.dumps(asdict(deed)) + b"\n")

    def _read(self, name: str) -> Sequence[Deed]:
        path = self.folder / name
        lines = path.read_bytes().splitlines() if path.exists() else []
        return [Deed(**orjson.loads(line)) for line in lines]


def _deed(tool: str, call: ToolContext, amount: int) -> Deed:
    return Deed(
        tool=tool,
        turn_id=call.turn_id,
        call_id=call.call_id,
        attempt=call.attempt,
        amount=amount,
    )
