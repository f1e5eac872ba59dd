// How each step of the line is drawn. A view has `body` elements, `node()` for its mark on the
// line, `update(step, context)`, and `tick()` when it shows time that passes.

import { serverNow } from "./api.js";
import { askView } from "./asked.js";
import { callsView } from "./calls.js";
import { cardView } from "./cards.js";
import { h, say } from "./dom.js";
import { icon } from "./icons.js";
import { said, prose } from "./text.js";
import { clock, long, moment, span, usedOf } from "./words.js";

function saidView(step) {
  const text = h("p", {}, ...said(step.text));
  const meta = h("div", { class: "meta" });
  const article = h("article", { class: "said", "aria-label": "You wrote" }, text, meta);
  return { body: [article], update: (next) => say(meta, next.at ? moment(next.at, serverNow()) : "") };
}

function thought({ from, to }) {
  if (!from || !to) return "Thought";
  return `Thought for ${span(to - from)}`;
}

function thinkView() {
  const label = h("span", {});
  const text = h("div", {});
  const details = h("details", { class: "think" }, h("summary", {}, label, icon("chev", "s chev")), text);
  let step = null;
  const tick = () => {
    if (step?.live) say(label, `Thinking, ${long(serverNow() - step.from)}`);
  };
  return {
    body: [details],
    node: () => icon("think"),
    tick,
    update(next) {
      step = next;
      say(text, next.pieces.text);
      if (next.live) tick();
      else say(label, thought(next));
    },
  };
}

const PARTIAL = {
  broken: "Not finished. The answer stopped here; what was written is kept.",
  stopped: "Not finished. The answer was stopped here.",
  lost: "Not finished. Its worker was lost here; what was stored is kept.",
};

function answerView() {
  const text = h("div", { class: "prose" });
  const frame = h("div", {}, text);
  const note = h("p", { class: "tiny quiet", hidden: true });
  return {
    body: [frame, note],
    update(step) {
      frame.className = step.partial ? "partial" : "";
      note.hidden = !step.partial;
      say(note, PARTIAL[step.partial] ?? "");
      prose(text, step.pieces.text, { live: step.live });
    },
    classes: (step) => (step.live ? "live" : ""),
  };
}

const BY = {
  RETRY_MODEL: (at) => `Brought back at ${at}`,
  RESUME: (at) => `Resumed at ${at}`,
  CONTINUE: (at) => `Tried again at ${at}, before its time`,
  RETRY: (at) => `Tried again by itself at ${at}`,
  USER_INPUT: (at) => `Went on with your answer at ${at}`,
  USER_MESSAGE: (at) => `Went on with your message at ${at}`,
  REPLAN_WITH_MESSAGE: (at) => `Went on with your message at ${at}`,
  EXPIRY: (at) => `Nobody answered in time; it went on at ${at}`,
  TURN_PAUSED: (at) => `Paused at ${at}`,
  TURN_CANCELLED: (at) => `Cancelled at ${at}`,
};
/** These bring nothing back, so there is nothing to be said of results. */
const STANDS = new Set(["TURN_PAUSED", "TURN_CANCELLED"]);

function waited(step) {
  const time = span(step.endedAt - step.since);
  if (step.pause) return `Paused for ${time}.`;
  if (step.question) return `Waited ${time} for your answer.`;
  return step.tool ? `Waited ${time} to try a tool again.` : `Waited ${time} for the model.`;
}

function spliceText(step, kept) {
  const how = (BY[step.by] ?? ((at) => `Ended at ${at}`))(clock(step.endedAt));
  const withResults = kept && step.by in BY && !STANDS.has(step.by);
  return `${waited(step)} ${how}${withResults ? ` with ${kept === 1 ? "the result" : `all ${kept} results`}` : ""}.`;
}

function waitMark(step) {
  if (!step.open) return STANDS.has(step.by) ? icon("waits", "c-wait") : icon("splice", "c-ok");
  return icon(step.pause ? "pause" : "waits", "c-wait");
}

/** Open, it is a card on the dashed line; over, it is one line that says how long and what came. */
function waitView() {
  const card = cardView();
  const mark = h("div", { class: "mark" });
  const news = h("p", { class: "gone", role: "status", hidden: true });
  return {
    body: [news, card.element, mark],
    node: (step) => waitMark(step),
    classes: (step) => (step.open ? "dash" : "splice"),
    tick: () => card.tick(),
    update(step, context) {
      mark.hidden = step.open;
      card.element.hidden = !step.open;
      if (step.open) card.update({ ...context.card, wait: step });
      else {
        card.close();
        mark.replaceChildren(h("span", {}, spliceText(step, step.results)));
      }
      if (step.news && news.hidden) {
        news.hidden = false;
        news.replaceChildren(icon("info"), h("span", {}, h("b", {}, step.news[0]), ` ${step.news[1]}`));
      }
    },
  };
}

function markView(step) {
  const text = h("span", {});
  return {
    body: [h("div", { class: "mark" }, text)],
    node: () => icon(step.icon, step.tone),
    update: (next) => say(text, next.text),
  };
}

const STOPPED = {
  MAX_OUTPUT: "Cut off: the answer reached the longest the model may write.",
  REFUSAL: "The model declined to answer.",
  CONTEXT_FULL: "This conversation is too long for the model.",
  INTERRUPTED: "The answer was interrupted.",
};

const ENDED = {
  TURN_FAILED: ["failed", "c-fail", "Failed"],
  TURN_CANCELLED: ["cut", "", "Cancelled"],
  MAX_ITERATIONS_REACHED: ["cut", "", "Limit reached"],
  MAX_STEPS_REACHED: ["cut", "", "Limit reached"],
  BUDGET_EXCEEDED: ["cut", "", "Limit reached"],
};

const LIMIT_OF = { MAX_ITERATIONS_REACHED: "max_iterations", MAX_STEPS_REACHED: "max_steps" };

/** What was used up, where the event says so. */
function usedUp({ type, reason, used, allowed }) {
  return typeof used === "number" ? `: ${usedOf({ limit: reason ?? LIMIT_OF[type], used, allowed })}` : "";
}

/** How a turn ended, where the answer does not already show it. */
function endView(step) {
  const [symbol, tone, word] = ENDED[step.type] ?? ["cut", "", ""];
  const text = h("span", {});
  return {
    body: [h("div", { class: "mark end" }, text)],
    node: () => icon(symbol, tone),
    update(next, context) {
      const at = next.at ? ` at ${moment(next.at, serverNow())}` : "";
      const because = context.message && next.type !== "TURN_CANCELLED" ? ` ${context.message}` : "";
      const ref = next.errorRef ? ` Ref ${next.errorRef}` : ""; // for operators: the log has it as well
      say(text, word ? `${word}${at}${usedUp(next)}.${because}${ref}` : STOPPED[next.stopReason] ?? "");
    },
  };
}

export const showsEnd = (step) => step.type in ENDED || step.stopReason in STOPPED;

const PHASES = {
  starting: "Starting", asking: "Asking the model", cancelling: "Cancelling", stopping: "Stopping", held: "On hold",
  crash: "The worker was lost; another one goes on", shutdown: "The worker stopped in order; another one goes on",
};

/** What happens while nothing is to be seen yet. */
function workView() {
  const text = h("span", { class: "small muted" });
  let step = null;
  const tick = () => {
    const waited = step?.since && step.phase !== "held" ? serverNow() - step.since : 0;
    say(text, `${PHASES[step?.phase] ?? "Working"}${waited >= 3000 ? `, ${long(waited)}` : ""}`);
  };
  return {
    body: [text],
    node: (next) => (next.phase === "held" ? icon("pause", "c-wait") : icon("run", "c-run spin")),
    classes: (next) => (next.phase === "held" ? "" : "live"),
    tick,
    update(next) { step = next; tick(); },
  };
}

const VIEWS = {
  said: saidView, think: thinkView, text: answerView, calls: callsView,
  wait: waitView, ask: askView, mark: markView, end: endView, work: workView,
};

/** The view of one step together with its place on the line. */
export function stepView(step, context) {
  const view = VIEWS[step.kind](step, context);
  const opens = step.kind === "said" && context.first;
  const node = view.node ? h("span", { class: "node" }) : null;
  const element = opens ? view.body[0] : h("div", { class: "step" }, node, ...view.body);
  let mark = "";
  return {
    element,
    tick: view.tick,
    update(next, current) {
      view.update(next, current);
      if (opens) return;
      element.className = `step ${view.classes?.(next) ?? ""}`.trim();
      const symbol = `${next.open}${next.icon}${next.phase === "held"}`;
      if (node && mark !== symbol) { mark = symbol; node.replaceChildren(view.node(next)); }
    },
  };
}
