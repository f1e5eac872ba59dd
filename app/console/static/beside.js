// What a card shows beside its wait: who has approved the call before, and who has taken a call that
// is outside. Read when a card needs it, and again when its turn has changed.

import { api } from "./api.js";

const CLAIMS_EVERY_MS = 15_000;

export class Beside {
  #approvals = { stamp: "", items: [] };
  #claims = new Map(); // callId -> the call as executors see it
  #lookedAt = 0;
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
  }

  /** Changes when anything here does. */
  get stamp() { return JSON.stringify([this.#approvals, [...this.#claims]]); }

  decided(callId) { return this.#approvals.items.filter((one) => one.callId === callId && one.decidedAt); }

  claim(callId) { return this.#claims.get(callId) ?? null; }

  /** Reads what the waits of `turn` need. */
  look(turn) {
    const waits = turn?.waits ?? [];
    const asked = waits.filter((wait) => wait.suspensionType === "TOOL_APPROVAL");
    const outside = waits.filter((wait) => wait.suspensionType === "EXTERNAL_TOOL");
    if (asked.length) this.#lookAtApprovals(turn);
    if (outside.length && Date.now() - this.#lookedAt >= CLAIMS_EVERY_MS) this.#lookAtClaims(turn.turnId, outside);
  }

  /** Who decided about this very request, read now; null where nobody did or it cannot be read. */
  async decision(turnId, { callId, fingerprint, requestedAt }) {
    const found = await api.approvals(turnId).catch(() => null);
    const isIts = (one) => one.callId === callId && one.fingerprint === fingerprint && Date.parse(one.decidedAt ?? "") >= Date.parse(requestedAt);
    return found?.items.findLast(isIts) ?? null;
  }

  async #lookAtApprovals({ turnId, version }) {
    const stamp = `${turnId}:${version}`;
    if (this.#approvals.stamp === stamp) return;
    const kept = this.#approvals.stamp.startsWith(`${turnId}:`) ? this.#approvals.items : [];
    this.#approvals = { stamp, items: kept };
    const found = await api.approvals(turnId).catch(() => null);
    if (!found || this.#approvals.stamp !== stamp) return;
    this.#approvals = { stamp, items: found.items };
    this.#onChange();
  }

  async #lookAtClaims(turnId, outside) {
    this.#lookedAt = Date.now();
    const before = this.stamp;
    for (const tool of new Set(outside.map((wait) => wait.toolName))) {
      const found = await api.externalCalls(tool).catch(() => null);
      for (const call of found?.items ?? []) if (call.turnId === turnId) this.#claims.set(call.callId, call);
    }
    if (this.stamp !== before) this.#onChange();
  }
}
