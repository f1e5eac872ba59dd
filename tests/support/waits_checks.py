"""What must be true of every turn that has waited for somebody, told from database and bank.

Nobody waits for a settled turn (the doctor's own question), and beside the oracles of all turns:

check_deeds      once per call, told truly by its result, and approved before it was done
check_approvals  the table says what the events say
check_outside    each outside call is asked for once, and called off if its result is not wanted
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any

from app.store.inspection import waits_left
from app.turn import events as e
from app.turn.transcript import Outcome
from tests.http.rig import rows
from tests.support import oracles
from tests.support.ledger import Bank, Deed
from tests.support.oracles import Record, records

GATED = {
    "gated_pay": 1,
    "pay_in_levels": 2,
    "pay_in_levels_by_key": 2,
    "pay_twice_gated": 2,
    "shuffle": 1,
    "insure": 1,
}
"""How many requests of a call are approved before these tools do anything."""
PAYING = {"pay", "ship", *GATED}
_DONE = {Outcome.COMPLETED: {1}, Outcome.UNKNOWN: {0, 1}, Outcome.ERROR: {0, 1}}
"""By outcome, how often a paying tool may have paid; never, under the others."""
_APPROVALS = """
SELECT call_id, tool_name, stage, fingerprint, is_approved, actor_id, body
FROM approvals WHERE turn_id = $1 ORDER BY seq
"""


async def check_waits(dsn: str, bank: Bank) -> list[Record]:
    """All oracles, over all turns of a database; what they looked at."""
    async with records(dsn) as found:
        every = [await found.of(turn_id) for turn_id in await found.turn_ids()]
        await oracles.check_one_active_turn(found)
    assert await waits_left(dsn) == 0
    for record in every:
        oracles.check_fold(record)
        oracles.check_events(record.journal, record.turn)
        oracles.check_history(record)
        oracles.check_records(record)
        oracles.check_audit(record)
        decided = await rows(dsn, _APPROVALS, record.turn.identity.turn_id)
        check_approvals(record, decided)
        check_deeds(record, decided, bank)
        check_outside(record)
    return every


def check_approvals(record: Record, decided: Sequence[dict[str, Any]]) -> None:
    events = [
        {
            "call_id": event.call_id,
            "tool_name": event.tool_name,
            "stage": event.stage,
            "fingerprint": event.fingerprint,
            "is_approved": event.is_approved,
            "actor_id": event.actor_id,
        }
        for event in record.events
        if isinstance(event, e.ToolApprovalDecided)
    ]
    assert [{name: row[name] for name in row if name != "body"} for row in decided] == events


def check_deeds(record: Record, decided: Sequence[dict[str, Any]], bank: Bank) -> None:
    turn_id = record.turn.identity.turn_id
    deeds = [deed for deed in bank.payments() if deed.turn_id == turn_id]
    times = Counter(deed.call_id for deed in deeds)
    assert set(times.values()) <= {1}, times
    for call_id, result in record.results.items():
        if result.tool_name in PAYING:
            assert times[call_id] in _DONE.get(result.outcome, {0}), (call_id, result)
    for deed in deeds:
        assert _approved(deed, decided) >= GATED.get(deed.tool, 0), deed


def _approved(deed: Deed, decided: Sequence[dict[str, Any]]) -> int:
    yes = (row for row in decided if row["is_approved"] and row["call_id"] == deed.call_id)
    return len({(row["stage"], row["fingerprint"]) for row in yes})


def check_outside(record: Record) -> None:
    asked = [x.call_id for x in record.events if isinstance(x, e.ExternalToolRequested)]
    called_off = [x.call_id for x in record.events if isinstance(x, e.ExternalToolCancelRequested)]
    said = [
        event.result.call_id
        for event in record.events
        if isinstance(event, e.ExternalToolCompleted | e.ExternalToolFailed)
    ]
    outside = [call.call_id for call in record.turn.open_calls if call.is_with_others]
    assert len(asked) == len(set(asked)), "an outside tool was asked twice"
    assert sorted(asked) == sorted([*said, *called_off, *outside])
