// What a turn's calls wait for, told from its events: one step of the line per wait. Open, it is a
// card; over, it says who answered and when, or that nobody did.

import { touch } from "./touch.js";

/** What a wait is for, and what its call shows meanwhile. */
const KINDS = {
  TOOL_APPROVAL_REQUESTED: "approval",
  TOOL_INPUT_REQUESTED: "input",
  EXTERNAL_TOOL_REQUESTED: "outside",
};

/** These give a call its result, whatever it waited for. */
const RESULTS = new Set([
  "TOOL_COMPLETED", "TOOL_FAILED", "TOOL_INTERRUPTED", "TOOL_SKIPPED", "TOOL_REJECTED",
  "EXTERNAL_TOOL_COMPLETED", "EXTERNAL_TOOL_FAILED",
]);

/** Why a call was answered without its tool -> what became of its wait, whatever is known of its outcome. */
const GIVEN_UP = { user_message: "superseded", replanned: "superseded", turn_cancelled: "cancelled" };

export class Asks {
  #line;

  constructor(line) {
    this.#line = line;
  }

  hear({ type, data }, at) {
    const { callId } = data ?? {};
    if (type in KINDS) this.#open(data.stage === "recovery" ? "parked" : KINDS[type], data, at);
    if (type === "TOOL_PUT_ASIDE") this.#call(callId, { state: "aside" });
    if (type === "TOOL_APPROVAL_DECIDED") this.#decided(data, at);
    if (type === "TOOL_INPUT_RECEIVED") this.#close(callId, "answered", at);
    if (type === "WAIT_EXPIRED") this.#expired(data);
    if (type === "EXTERNAL_TOOL_CANCEL_REQUESTED") this.#call(callId, { isUnwanted: true });
    if (RESULTS.has(type)) this.#close(callId, GIVEN_UP[data.reason] ?? data.outcome ?? "completed", at, { output: data.output ?? null });
  }

  /** The turn is over, and so is whatever it waited for. */
  end(type, at) {
    for (const step of this.open) this.#close(step.callId, type, at);
  }

  get open() { return this.#line.steps.filter((step) => step.kind === "ask" && step.open); }

  /** The last wait of a call, open or over. */
  last(callId) { return this.#line.steps.findLast((step) => step.kind === "ask" && step.callId === callId) ?? null; }

  /** The step of one wait, as the turn tells it: a call may have waited before, and wait again. */
  of({ callId, requestedAt }) {
    return this.#line.steps.find((step) => step.kind === "ask" && step.callId === callId && step.since === Date.parse(requestedAt)) ?? null;
  }

  #open(ask, data, at) {
    if (this.last(data.callId)?.open) return; // told once more, after a worker was lost
    const since = Date.parse(data.requestedAt ?? "") || at;
    const call = this.#call(data.callId, { state: ask, startedAt: since, endedAt: null });
    const nth = this.#line.steps.filter((step) => step.kind === "ask" && step.callId === data.callId).length;
    this.#line.add({
      key: `ask:${data.callId}:${nth}`, kind: "ask", ask, callId: data.callId, toolName: data.toolName ?? call?.toolName ?? "",
      effect: call?.effect ?? null, open: true, since, by: null, endedAt: null, isExpired: false, expiresAt: null, isStale: false,
    });
  }

  #decided(data, at) {
    const { callId, approved, actorId = null, reason = null } = data;
    this.#close(callId, approved ? "approved" : "rejected", at, { actorId, reason });
    this.#call(callId, { decidedBy: actorId });
  }

  /** With `keep` the wait goes on without taking answers; otherwise its end follows. */
  #expired({ callId }) {
    const step = callId ? this.last(callId) : null;
    if (step?.open) Object.assign(touch(step), { isExpired: true });
  }

  #close(callId, by, at, more = {}) {
    const step = this.last(callId);
    if (!step?.open) return;
    Object.assign(touch(step), { open: false, by, endedAt: at, ...more });
    // Until it is run, or has its result, the call is one that was asked for.
    this.#call(callId, { state: "requested", startedAt: null });
  }

  #call(callId, changes) {
    const call = this.#line.calls.change(callId, changes);
    this.#line.shown(call);
    return call;
  }
}
