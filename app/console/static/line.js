// One turn as one line: the steps a reader sees, made from the turn's events or, for a turn that
// is long over, from its messages. Knows nothing of the page.

import { Asks } from "./asks.js";
import { endsTurn, isText } from "./kinds.js";
import { keptOf } from "./kept.js";
import { Pieces } from "./pieces.js";
import { Queued } from "./queued.js";
import { ToolCalls } from "./toolcalls.js";
import { touch } from "./touch.js";

export const textOf = (content) =>
  typeof content === "string"
    ? content
    : content.map((part) => (part.type === "text" ? part.text : `[image ${part.url}]`)).join("\n");

export class Line {
  steps = [];
  sequence = 0;
  ended = null;
  /** "starting", "asking" or null: what happens while nothing is to be seen yet. */
  phase = "starting";
  phaseSince = null;
  tries = 0;
  queued = new Queued();
  calls = new ToolCalls();
  asks = new Asks(this);
  #attempt = null;
  #serial = 0;
  #over = new Set(); // attempts whose text can no longer change, whatever is sent again

  constructor(turnId) {
    this.turnId = turnId;
  }

  /** Takes one event in; false when it was known already. */
  apply(event) {
    const at = Date.parse(event.occurredAt);
    // Live text carries no number of its own; it is told apart by its offset instead.
    if (!isText(event) && event.sequence <= this.sequence) return false;
    this.sequence = Math.max(this.sequence, event.sequence ?? 0);
    this.queued.hear(event);
    this.asks.hear(event, at);
    if (endsTurn(event)) this.#end(event, at);
    else this[event.type]?.(event.data ?? {}, at);
    return true;
  }

  get openWait() {
    const last = this.steps.findLast((step) => step.kind === "wait");
    return last?.open ? last : null;
  }

  /** What is stored of this turn, as the cards say it. */
  get kept() { return keptOf(this.steps, this.calls.results); }

  get tools() { return { running: this.calls.running, open: this.calls.open }; }

  get answer() {
    return this.steps.findLast((step) => step.kind === "text" && !step.partial)?.pieces.text ?? "";
  }

  // ---- the user ----

  MESSAGE_ADDED(data, at) {
    if (data.role === "user") this.say(data.messageId ?? data.position, textOf(data.content), at);
    if (data.role === "question") this.ask(data.position, textOf(data.content));
    if (data.role === "notice") this.remark("info", "", `Told to the model: ${textOf(data.content)}`, at);
  }

  say(key, text, at) {
    if (!this.steps.some((step) => step.key === `said:${key}`)) this.add({ key: `said:${key}`, kind: "said", text, at });
  }

  ask(key, text) { touch(this.#text(`question:${key}`, false)).pieces.replace(text); }

  // ---- the model ----

  MODEL_STARTED(data, at) {
    this.#closeWait(at, "RETRY");
    this.#giveUpAttempt();
    this.#attempt = data.attemptId;
    this.#wait("asking", at);
  }

  MODEL_REASONING(data, at) {
    if (this.#over.has(data.attemptId)) return;
    const step = this.#step("think", data.attemptId, () => ({ pieces: new Pieces(), from: this.phaseSince ?? at, to: null, live: true }));
    if (step.pieces.add(data.offset, data.text)) touch(step);
  }

  MODEL_TEXT(data, at) {
    if (this.#over.has(data.attemptId)) return;
    this.#stopThinking(data.attemptId, at);
    const step = this.#text(data.attemptId, true);
    if (step.pieces.add(data.offset, data.text)) touch(step);
  }

  MODEL_COMPLETED(data, at) {
    this.#over.add(data.attemptId);
    this.#stopThinking(data.attemptId, at);
    this.#wait(null, at);
    this.#attempt = data.attemptId;
    if (data.text) this.#text(data.attemptId, false).pieces.replace(data.text);
    this.#change("text", data.attemptId, { live: false });
    this.calls.written(data.toolCalls ?? []);
  }

  MODEL_FAILED(data, at) {
    this.#stopThinking(data.attemptId, at);
    this.#wait(null, at);
    this.#giveUpAttempt();
  }

  /** An answer that was begun and not completed is kept, and never styled as an answer. */
  #giveUpAttempt(partial = "broken") {
    for (const step of this.steps) {
      if (step.kind === "text" && step.live) Object.assign(touch(step), { live: false, partial });
      if (step.kind === "think" && step.live) Object.assign(touch(step), { live: false });
    }
  }

  #stopThinking(attemptId, at) {
    const step = this.#find("think", attemptId);
    if (step?.live) Object.assign(touch(step), { live: false, to: at });
  }

  // ---- tools ----

  TOOL_REQUESTED(data, at) {
    const call = this.calls.request(data);
    this.#wait(null, at);
    touch(this.#step("calls", this.#attempt, () => ({ calls: [] }))).calls.push(call);
  }

  TOOL_STARTED(data, at) {
    this.shown(this.calls.change(data.callId, { state: "running", attempt: data.attempt ?? 1, startedAt: at, endedAt: null, nextAt: null }));
  }

  TOOL_ATTEMPT_FAILED(data, at) { this.shown(this.calls.failedOnce(data, at)); }
  TOOL_COMPLETED(data, at) { this.#result(data, at, "completed"); }
  TOOL_FAILED(data, at) { this.#result(data, at, "error"); }
  TOOL_INTERRUPTED(data, at) { this.#result(data, at, "interrupted"); }
  TOOL_SKIPPED(data, at) { this.#result({ ...data, outcome: "skipped" }, at); }
  TOOL_REJECTED(data, at) { this.#result(data, at, "rejected"); }
  EXTERNAL_TOOL_COMPLETED(data, at) { this.#result(data, at, "completed"); }
  EXTERNAL_TOOL_FAILED(data, at) { this.#result(data, at, "error"); }

  #result(data, at, otherwise) {
    this.shown(this.calls.change(data.callId, { state: data.outcome ?? otherwise, output: data.output ?? null, endedAt: at }));
    this.#wait("asking", at);
  }

  shown(call) {
    if (call) touch(this.steps.find((step) => step.kind === "calls" && step.calls.includes(call)));
  }

  // ---- waiting, and coming back ----

  TURN_SUSPENDED(data, at) {
    // What a call waits for has a step of its own, and more than one may be open.
    if (this.asks.open.length > 0) { this.#wait(null, at); return; }
    const tool = data.suspensionType === "RETRY" && !data.modelFailure;
    this.#rest(data.requestedAt, at, {
      type: data.suspensionType, tool, pause: null, question: data.question ?? null, failureId: data.correlationId, failure: data.modelFailure ?? null,
      until: Date.parse(data.nextRunnableAt ?? "") || null,
    });
  }

  TURN_PAUSED(data, at) {
    this.#closeWait(at, "TURN_PAUSED");
    this.calls.forgetTimes().forEach((call) => this.shown(call));
    const isLost = data.cause === "crash" || data.cause === "crash_loop";
    if (isLost) this.calls.lose().forEach((call) => this.shown(call));
    const pause = { cause: data.cause, limit: data.limit ?? null, isLost };
    this.#rest(data.requestedAt, at, { type: "PAUSE", tool: false, pause, failureId: null, failure: null, until: null });
  }

  /** The turn stands still; what was being written stays as far as it came. */
  #rest(requestedAt, at, wait) {
    this.#wait(null, at);
    this.#giveUpAttempt(wait.pause ? (wait.pause.isLost ? "lost" : "stopped") : "broken");
    this.#over.add(this.#attempt);
    this.add({ key: `wait:${this.#serial += 1}`, kind: "wait", open: true, since: Date.parse(requestedAt ?? "") || at, ...wait });
  }

  RETRY_SCHEDULED(data) {
    this.tries += 1;
    const wait = this.openWait;
    if (wait) Object.assign(touch(wait), { type: "RETRY", until: Date.parse(data.nextRunnableAt ?? "") || wait.until });
  }

  TURN_RESUMED(data, at) {
    if (data.commandType !== "RETRY") {
      this.tries = 0;
      this.calls.forgetTimes().forEach((call) => this.shown(call));
    }
    this.#closeWait(at, data.commandType);
    this.#wait("asking", at);
  }

  STEP_RECOVERED(data, at) {
    this.#over.add(data.attemptId);
    const text = this.#find("text", data.attemptId);
    // Without `discardFrom` nothing was stored; what was seen live is withdrawn all the same.
    if (text) touch(text).pieces.discard(data.discardFrom ?? 0);
    this.#giveUpAttempt();
    this.steps = this.steps.filter((step) => step.kind !== "text" || step.pieces.length > 0);
    const lost = data.cause === "shutdown" ? "the worker stopped in order" : "the worker was lost";
    this.remark("splice", "c-ok", `Interrupted: ${lost}. Brought back with everything that was stored.`, at);
    this.#wait("asking", at);
  }

  CANCELLATION_REQUESTED() { this.phase = "cancelling"; }

  #closeWait(at, by) {
    const wait = this.openWait;
    if (wait) Object.assign(touch(wait), { open: false, endedAt: at, by, results: this.kept.results });
  }

  #end(event, at) {
    this.#giveUpAttempt();
    this.#closeWait(at, event.type);
    this.asks.end(event.type === "TURN_CANCELLED" ? "cancelled" : event.type, at);
    this.#wait(null, at);
    const { stopReason = null, reason = null, used = null, allowed = null, errorRef = null } = event.data ?? {};
    this.ended = { type: event.type, at, stopReason, reason, used, allowed, errorRef };
    this.add({ key: "end", kind: "end", ...this.ended });
  }

  // ---- helpers ----

  #wait(phase, at) {
    this.phase = phase;
    this.phaseSince = at;
  }

  remark(symbol, tone, text, at) {
    this.add({ key: `mark:${this.#serial += 1}`, kind: "mark", icon: symbol, tone, text, at });
  }

  #find(kind, attemptId) {
    return this.steps.find((step) => step.key === `${kind}:${attemptId}`);
  }

  #step(kind, attemptId, make) {
    return this.#find(kind, attemptId) ?? this.add({ key: `${kind}:${attemptId}`, kind, ...make() });
  }

  #text(key, live) {
    return this.#step("text", key, () => ({ pieces: new Pieces(), live, partial: null }));
  }

  #change(kind, attemptId, changes) {
    const step = this.#find(kind, attemptId);
    if (step) Object.assign(touch(step), changes);
  }

  add(step) {
    this.steps.push(Object.assign(step, { rev: 0 }));
    return step;
  }
}
