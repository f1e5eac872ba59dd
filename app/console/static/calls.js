// The rows of tool calls: state by shape, word and colour; arguments and results as stored.

import { serverNow } from "./api.js";
import { h, say, swap } from "./dom.js";
import { icon } from "./icons.js";
import { marked } from "./text.js";
import { OPEN, WITH_SOMEBODY } from "./toolcalls.js";
import { CALL, CALL_STORY, clock, count, duration, inWords, long, ordinal } from "./words.js";

const FOLD_ABOVE = 5;
const FOLD_TO = 3;
const SHORT = 32;

/** The arguments on one line, untouched but for quotes around names: no number is reformatted. */
export const oneLine = (text) =>
  text.trim().replace(/^\{\s*|\s*\}$/gu, "").replace(/(,\s*)?"((?:[^"\\]|\\.)*)"\s*:\s*/gu, (_, comma, name) => `${comma ? ", " : ""}${name} `).replace(/\s+/gu, " ");

/** A result in a few words: itself when it is short, "148 orders" when it is an object that counts. */
function inShort(output) {
  const text = output.trim();
  if (text === "" || text.length > SHORT || /[\n{[]/u.test(text)) return counted(text);
  return text;
}

function counted(text) {
  let result = null;
  try { result = JSON.parse(text); } catch { return null; }
  if (result === null || typeof result !== "object" || Array.isArray(result)) return null;
  const found = Object.entries(result).find(([, value]) => Number.isSafeInteger(value));
  return found && found[0].length <= SHORT ? `${found[1]} ${found[0]}` : null;
}

function outcome(call) {
  const [word] = CALL[call.state] ?? [call.state];
  if (call.state === "again") return call.nextAt ? `${word} at ${clock(call.nextAt, true)}` : "Failed, not yet tried again";
  if (call.state === "rejected" && call.decidedBy) return `${word} by ${call.decidedBy}`;
  const said = (call.state === "completed" && inShort(call.output ?? "")) || word;
  return call.attempt > 1 ? `${ordinal(call.attempt)} attempt, ${said}` : said;
}

const counts = (call) => call.state === "running" || (WITH_SOMEBODY.has(call.state) && call.startedAt !== null);

function time(call) {
  if (counts(call)) return long(serverNow() - call.startedAt);
  return call.startedAt && call.endedAt ? duration(call.endedAt - call.startedAt) : "";
}

function section(label, text) {
  return h("div", {}, h("p", { class: "lab" }, label), h("pre", { class: "code" }, ...marked(text)));
}

const STRONG = new Set(["unknown", ...WITH_SOMEBODY]);
const UNWANTED = "It was with an outside tool, which was told that the result is no longer wanted.";

const failedAt = ({ attempt, at }) => `${ordinal(attempt)} attempt failed at ${clock(at, true)}`;

function facts(call, turnId) {
  const pairs = [["Call", h("code", {}, call.callId)]];
  if (call.attempt) pairs.push(["Attempt", String(call.attempt)]);
  if (call.effect) pairs.push(["Effect", call.effect]);
  if (call.effect === "idempotent") pairs.push(["Key", h("code", {}, `${turnId}:${call.callId}`)]);
  return h("dl", { class: "facts" }, ...pairs.map(([name, value]) => h("div", {}, h("dt", {}, name), h("dd", {}, value))));
}

function row(call, turnId) {
  const [word, symbol, colour, kind] = CALL[call.state] ?? [call.state, "info", "quiet", ""];
  const story = call.isUnwanted ? UNWANTED : CALL_STORY[call.state];
  return h("details", { class: `call ${kind}`.trim(), "data-fold": call.callId },
    h("summary", { "data-focus": `call-${call.callId}` },
      icon(symbol, colour),
      h("span", { class: "vh" }, `${word}: `),
      h("code", {}, ...marked(call.toolName)),
      h("span", { class: "arg" }, ...marked(oneLine(call.arguments ?? ""))),
      h("span", { class: `say${STRONG.has(call.state) ? " strong" : ""}` }, ...marked(outcome(call))),
      h("span", { class: "ms num" }, time(call)),
      icon("chev", "s chev")),
    h("div", { class: "call-body" },
      story ? h("p", { class: "small" }, story) : null,
      section("Arguments", call.arguments ?? ""),
      ...call.failures.map((failure) => section(failedAt(failure), failure.error)),
      call.output === null || call.output === "" ? null : section(call.state === "completed" ? "Result" : "What the agent was told", call.output),
      facts(call, turnId)));
}

function headline(calls) {
  const done = calls.filter((call) => !OPEN.has(call.state)).length;
  const skipped = calls.filter((call) => call.state === "skipped").length;
  const verb = skipped === calls.length ? "Asked for" : done === calls.length ? "Used" : "Using";
  const title = `${verb} ${calls.length === 1 ? "a tool" : `${inWords(calls.length)} tools`}`;
  const restarted = calls.filter((call) => call.attempt > call.failures.length + 1).length;
  const retried = calls.filter((call) => call.attempt > 1).length - restarted;
  const states = [`${done} of ${calls.length} done`];
  if (done === calls.length) states[0] = skipped < done ? count(done - skipped, "result", "results") : "not run";
  if (skipped && skipped < done) states.push(`${skipped} skipped`);
  if (retried) states.push(`${retried} of them tried again`);
  if (restarted) states.push(`${restarted} of them again after a restart`);
  return [h("b", {}, title), h("span", {}, states.join(", "))];
}

/** The view of one round of calls. More than five rows fold to three, except in a turn that waits. */
export function callsView(step, { turnId }) {
  const head = h("div", { class: "step-head" });
  const list = h("div", { class: "calls" });
  const more = h("button", { type: "button", class: "btn plain", hidden: true });
  const rows = new Map();
  let all = false;
  more.addEventListener("click", () => {
    all = true;
    update(step, {});
    // The button is gone; the reader goes on where the new rows begin.
    [...rows.values()][FOLD_TO].element.querySelector("summary").focus();
  });

  function update(next, { waiting = false }) {
    head.replaceChildren(...headline(next.calls));
    for (const call of next.calls) {
      const shape = JSON.stringify([call.state, call.attempt, call.output, call.endedAt, call.nextAt, call.startedAt, call.decidedBy, call.isUnwanted]);
      const old = rows.get(call.callId);
      if (old?.shape === shape) continue;
      const element = row(call, turnId);
      element.open = old?.element.open ?? false;
      if (old) swap(old.element, element);
      else list.append(element);
      rows.set(call.callId, { shape, element, call });
    }
    const folds = !all && !waiting && next.calls.length > FOLD_ABOVE && next.calls.every((call) => call.endedAt !== null);
    [...rows.values()].forEach(({ element }, i) => { element.hidden = folds && i >= FOLD_TO; });
    more.hidden = !folds;
    say(more, `Show ${next.calls.length - FOLD_TO} more`);
  }

  return {
    body: [head, list, more],
    node: () => icon("tool"),
    update,
    tick() {
      for (const { element, call } of rows.values()) {
        if (counts(call)) say(element.querySelector(".ms"), time(call));
      }
    },
  };
}
