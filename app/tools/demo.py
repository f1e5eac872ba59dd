"""The tools of the built-in agent: a shop that does not exist, answering at a human pace.

The same question always gets the same answer, and the three reading tools agree on a product.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import date, timedelta
from hashlib import sha256
from typing import Annotated, TypeAlias

from pydantic import Field

from app.ports import Tool, ToolContext
from app.tools.external import external_tool
from app.tools.local import tool
from app.tools.user_input import request_user_input

Sleep: TypeAlias = Callable[[float], Awaitable[object]]
Sku: TypeAlias = Annotated[
    str, Field(description="A product number, such as TP-4410.", min_length=1, max_length=64)
]
Since: TypeAlias = Annotated[date | None, Field(description="Only orders from this day on.")]
OrderId: TypeAlias = Annotated[
    str, Field(description="An order's number.", min_length=1, max_length=64)
]
InvoiceId: TypeAlias = Annotated[
    str, Field(description="An invoice's number.", min_length=1, max_length=64)
]
ParcelId: TypeAlias = Annotated[
    str, Field(description="A parcel's number.", min_length=1, max_length=64)
]
Cents: TypeAlias = Annotated[int, Field(description="An amount in cents.", ge=1, le=10_000_000)]
Note: TypeAlias = Annotated[str, Field(description="What to note.", min_length=1, max_length=2_000)]

SHORTEST_SECONDS = 0.3
LONGEST_SECONDS = 1.2

_FIRST_DAY = date(2026, 8, 1)
_SITES = ("Rotterdam", "Lyon", "Poznan", "Malmo")


def demo_tools(sleep: Sleep = asyncio.sleep) -> tuple[Tool, ...]:
    """Four to look things up and note them, two that need people's approval, and two to ask others.

    Those that are run here take 0.3 to 1.2 seconds of `sleep`, the same for the same question.
    """

    @tool(effect="reads")
    async def orders_search(sku: Sku, since: Since = None) -> dict[str, object]:
        """Count the orders of a product and list the latest ones."""
        await sleep(_pace("orders_search", sku))
        days = [day for day in _order_days(sku) if since is None or day >= since]
        latest = [
            {"orderId": str(_number(sku, i, 10_000, 99_999)), "day": day.isoformat()}
            for i, day in enumerate(days[:5])
        ]
        return {"sku": sku, "orders": len(days), "latest": latest}

    @tool(effect="reads")
    async def warehouse_stock(sku: Sku) -> dict[str, object]:
        """Say how many units of a product lie in which warehouse."""
        await sleep(_pace("warehouse_stock", sku))
        sites = {site: _number(sku, site, 0, 120) for site in _SITES}
        return {"sku": sku, "units": sum(sites.values()), "sites": sites}

    @tool(effect="reads")
    async def refunds_list(sku: Sku) -> dict[str, object]:
        """List the refunds paid for a product."""
        await sleep(_pace("refunds_list", sku))
        count = len(_order_days(sku)) // 16
        paid = [
            {"refundId": f"R{_number(sku, f'r{i}', 1_000, 9_999)}", "amountCents": _price(sku)}
            for i in range(count)
        ]
        return {"sku": sku, "refunds": count, "paid": paid}

    @tool(effect="writes")
    async def note_save(text: Note, context: ToolContext) -> dict[str, object]:
        """Save a note for the team."""
        await sleep(_pace("note_save", text))
        return {"noteId": f"N{_number(context.idempotency_key, 'note', 1_000, 9_999)}"}

    @tool(effect="idempotent", needs_approval=True)
    async def refund_pay(order_id: OrderId, cents: Cents) -> dict[str, object]:
        """Pay money back for an order."""
        await sleep(_pace("refund_pay", order_id))
        return {"refundId": f"R{_number(order_id, 'refund', 1_000, 9_999)}", "cents": cents}

    @tool(effect="idempotent")
    async def invoice_pay(
        invoice_id: InvoiceId, cents: Cents, context: ToolContext
    ) -> dict[str, object]:
        """Pay an invoice of a supplier's."""
        for level in ("finance", "compliance"):
            payment = {"level": level, "invoiceId": invoice_id, "cents": cents}
            context.require_approval(payment, message=f"Pay invoice {invoice_id}? ({level})")
        await sleep(_pace("invoice_pay", invoice_id))
        return {"paymentId": f"P{_number(invoice_id, 'payment', 1_000, 9_999)}", "cents": cents}

    return (
        orders_search,
        warehouse_stock,
        refunds_list,
        note_save,
        refund_pay,
        invoice_pay,
        parcel_scan,
        request_user_input,
    )


@external_tool
def parcel_scan(parcel_id: ParcelId) -> None:
    """Have the warehouse scan a parcel and say where it is."""


def _pace(name: str, asked: str) -> float:
    share = _number(asked, name, 0, 1_000) / 1_000
    return SHORTEST_SECONDS + share * (LONGEST_SECONDS - SHORTEST_SECONDS)


def _order_days(sku: str) -> list[date]:
    """One day of August 2026 per order, the latest first."""
    count = _number(sku, "orders", 16, 200)
    days = (_FIRST_DAY + timedelta(days=_number(sku, i, 0, 30)) for i in range(count))
    return sorted(days, reverse=True)


def _price(sku: str) -> int:
    return _number(sku, "price", 900, 24_000)


def _number(of: str, what: object, low: int, high: int) -> int:
    """A number from `low` to `high`, always the same for the same question."""
    digest = sha256(f"{what}\n{of}".encode()).digest()
    return low + int.from_bytes(digest[:8]) % (high - low + 1)
