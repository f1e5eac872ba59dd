"""An agent whose calls wait for somebody: an approval, a form, an outside tool."""

from dataclasses import replace
from typing import Any

from app.agents import Agent, Form
from app.tools import (
    NeedsApproval,
    NotDone,
    ToolContext,
    external_tool,
    request_user_input,
    tool,
)
from tests.support.ledger import Bank
from tests.support.story import MODEL, Ledger

SMALL = 64
"""Bytes, the longest result of the small external tools."""
ADDRESS = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "minLength": 1},
        "zip": {"type": "string", "pattern": "^[0-9]{5}$"},
    },
    "required": ["city"],
    "additionalProperties": False,
}
CONTACT = {
    "type": "object",
    "properties": {"phone": {"type": "string", "minLength": 3}},
    "required": ["phone"],
}
FORMS = (
    Form(key="address", title="Where to?", schema=ADDRESS),
    Form(key="contact", title="Whom to call?", schema=CONTACT),
)


def cashier(bank: Bank, **options: Any) -> Agent:  # noqa: ANN401 - options of an agent
    """The agent, with whatever options a test is about."""
    given: dict[str, Any] = {"id": "cashier", "forms": FORMS} | options
    return Agent(
        instructions="Be brief.",
        model=MODEL,
        tools=(
            *_plain(bank),
            *_approved(bank),
            *_odd(bank),
            *_outside(),
            *_filled_in(bank),
            request_user_input,
        ),
        **given,
    )


def slow_cashier(ledger: Ledger, **options: Any) -> Agent:  # noqa: ANN401 - as above
    """The cashier with one more tool, `search`, that waits behind the gate."""

    @tool(effect="reads")
    async def search() -> str:
        """Search for long."""
        await ledger.passed_gate()
        return "found at last"

    whole = cashier(Bank(ledger.folder), **options)
    return replace(whole, tools=(*whole.tools, search))


def _plain(bank: Bank) -> tuple[Any, ...]:
    @tool(effect="reads")
    async def look_up(what: str, call: ToolContext) -> str:
        """Look something up."""
        bank.enter("look_up", call)
        return f"found {what}"

    @tool
    async def pay(amount: int, call: ToolContext) -> str:
        """Pay at once."""
        bank.enter("pay", call)
        bank.pay("pay", call, amount)
        return f"paid {amount}"

    return look_up, pay


def _approved(bank: Bank) -> tuple[Any, ...]:
    @tool(needs_approval=True)
    async def gated_pay(amount: int, call: ToolContext, note: str = "none") -> str:
        """Pay when somebody has approved the call."""
        bank.enter("gated_pay", call)
        bank.pay("gated_pay", call, amount)
        return f"paid {amount}, note {note}"

    def approved_on_both_levels(order: str, call: ToolContext) -> int:
        amount = bank.price()
        for level in ("finance", "compliance"):
            wanted = {"level": level, "order": order, "amount": amount}
            call.require_approval(wanted, message=f"{level}: pay {amount} for {order}")
        return amount

    @tool
    async def pay_in_levels(order: str, call: ToolContext) -> str:
        """Pay what the order costs now, when finance and compliance have approved that."""
        bank.enter("pay_in_levels", call)
        amount = approved_on_both_levels(order, call)
        bank.pay("pay_in_levels", call, amount)
        return f"paid {amount}"

    @tool(effect="idempotent")
    async def pay_in_levels_by_key(order: str, call: ToolContext) -> str:
        """The same, at a bank that takes an order once."""
        bank.enter("pay_in_levels_by_key", call)
        amount = approved_on_both_levels(order, call)
        return f"paid {bank.pay_once('pay_in_levels_by_key', call, amount)}"

    @tool(needs_approval=True)
    async def pay_twice_gated(amount: int, call: ToolContext) -> str:
        """Pay what the call says, when the call and then its request are approved."""
        bank.enter("pay_twice_gated", call)
        call.require_approval({"amount": amount})
        bank.pay("pay_twice_gated", call, amount)
        return f"paid {amount}"

    return gated_pay, pay_in_levels, pay_in_levels_by_key, pay_twice_gated


def _odd(bank: Bank) -> tuple[Any, ...]:
    @tool
    async def nag(call: ToolContext) -> str:
        """Ask for the same thing for ever."""
        bank.enter("nag", call)
        raise NeedsApproval({"again": True}, message="Again?")

    @tool
    async def shuffle(call: ToolContext) -> str:
        """Ask for one thing in words that stand in another order each time."""
        bank.enter("shuffle", call)
        wanted: dict[str, object] = {"amount": 7, "to": {"name": "Kim", "city": "Oslo"}}
        if call.attempt > 1:
            wanted = {"to": {"city": "Oslo", "name": "Kim"}, "amount": 7}
        call.require_approval(wanted)
        bank.pay("shuffle", call, 7)
        return "paid 7"

    @tool(effect="reads")
    async def wrap(call: ToolContext) -> str:
        """Ask through layers that know nothing of asking."""
        bank.enter("wrap", call)
        try:
            call.require_approval({"wrapped": True})
        except Exception as error:
            raise RuntimeError("a layer in between") from error
        return "approved"

    return nag, shuffle, wrap


def _outside() -> tuple[Any, ...]:
    @external_tool
    def scan(parcel: str) -> None:
        """Scan a parcel."""

    @external_tool(needs_approval=True)
    def gated_scan(parcel: str) -> None:
        """Scan a parcel when somebody has approved that."""

    @external_tool(max_result_bytes=SMALL)
    def small_scan(parcel: str) -> None:
        """Scan a parcel and say little."""

    @external_tool(max_result_bytes=SMALL, on_oversize="truncate")
    def cut_scan(parcel: str) -> None:
        """Scan a parcel; what is too long is cut."""

    return scan, gated_scan, small_scan, cut_scan


def _filled_in(bank: Bank) -> tuple[Any, ...]:
    @tool
    async def ship(parcel: str, call: ToolContext) -> str:
        """Ship a parcel to where the user says."""
        bank.enter("ship", call)
        address = call.require_input("address")
        contact = call.require_input("contact")
        bank.pay("ship", call)
        return f"shipped {parcel} to {address['city']}, call {contact['phone']}"

    @tool
    async def insure(amount: int, call: ToolContext) -> str:
        """Insure when that is approved and the user has said where."""
        bank.enter("insure", call)
        call.require_approval({"amount": amount})
        address = call.require_input("address")
        bank.pay("insure", call, amount)
        return f"insured {amount} in {address['city']}"

    @tool
    async def lose_a_form(call: ToolContext) -> str:
        """Ask for a form that nobody has declared."""
        bank.enter("lose_a_form", call)
        call.require_input("nowhere")
        raise NotDone("nobody comes here")

    return ship, insure, lose_a_form
