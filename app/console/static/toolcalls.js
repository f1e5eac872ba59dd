// The tool calls of one turn, by id: what was asked for, how often it was tried, what came of it.

export const OPEN = new Set(["requested", "running", "again", "approval", "input", "outside", "parked", "aside", "lost"]);

/** With somebody, since `startedAt`. */
export const WITH_SOMEBODY = new Set(["approval", "input", "outside", "parked"]);

export class ToolCalls {
  #byId = new Map();
  #arguments = new Map();

  /** What the model wrote stands in its answer, which comes before the requests. */
  written(calls) {
    for (const call of calls) this.#arguments.set(call.callId, call.arguments);
  }

  request(data) {
    const call = {
      arguments: this.#arguments.get(data.callId) ?? "", ...data,
      state: "requested", attempt: 0, failures: [], startedAt: null, endedAt: null, nextAt: null, output: null,
      decidedBy: null, isUnwanted: false,
    };
    this.#byId.set(data.callId, call);
    return call;
  }

  change(callId, changes) {
    const call = this.#byId.get(callId);
    return call ? Object.assign(call, changes) : null;
  }

  /** The call stays open and is tried again. */
  failedOnce(data, at) {
    const call = this.#byId.get(data.callId);
    if (!call) return null;
    call.failures.push({ attempt: data.attempt, error: data.error, at });
    return Object.assign(call, { state: "again", nextAt: Date.parse(data.nextRunnableAt ?? "") || null });
  }

  /** The times that were named no longer hold: the turn stands still, or goes on before them. */
  forgetTimes() {
    const held = this.all.filter((call) => call.nextAt !== null);
    for (const call of held) call.nextAt = null;
    return held;
  }

  /** The worker that ran them is gone: nobody saw them end. */
  lose() {
    const begun = this.all.filter((call) => call.state === "running");
    for (const call of begun) Object.assign(call, { state: "lost", startedAt: null });
    return begun;
  }

  get all() { return [...this.#byId.values()]; }

  /** How many have a result that the model is told. */
  get results() { return this.all.filter((call) => call.state === "completed" || call.state === "error").length; }

  get running() { return this.all.filter((call) => call.state === "running").length; }

  /** How many have no result yet, running or not. */
  get open() { return this.all.filter((call) => OPEN.has(call.state)).length; }
}
