// How each step of the line is drawn. A view has `body` elements, `node()` for its mark on the
// line, `update(step, context)`, and `tick()` when it shows time that passes.

import { serverNow } from "./api.js";
import { callsView } from "./calls.js";
import { cardView } from "./cards.js";
import { h, say } from "./dom.js";
import { icon } from "./icons.js";
import { marked, prose } from "./text.js";
import { clock, long, moment, span } from "./words.js";

function saidView(step) {
  const text = h("p", {}, ...marked(step.text));
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

function answerView() {
  const text = h("div", { class: "prose" });
  const frame = h("div", {}, text);
  const note = h("p", { class: "tiny quiet", hidden: true }, "Not finished. The answer stopped here; what was written is kept.");
  return {
    body: [frame, note],
    update(step) {
      frame.className = step.partial ? "partial" : "";
      note.hidden = !step.partial;
      prose(text, step.pieces.text, { live: step.live });
    },
    classes: (step) => (step.live ? "live" : ""),
  };
}

const BY = {
  RETRY_MODEL: (at) => `Brought back at ${at}`,
  CONTINUE: (at) => `Tried again at ${at}, before its time`,
  RETRY: (at) => `Tried again by itself at ${at}`,
  USER_MESSAGE: (at) => `Went on with your message at ${at}`,
  TURN_CANCELLED: (at) => `Cancelled at ${at}`,
};

function spliceText(step, kept) {
  const waited = `Waited ${span(step.endedAt - step.since)} for the model. `;
  const how = (BY[step.by] ?? BY.RETRY_MODEL)(clock(step.endedAt));
  if (step.by === "TURN_CANCELLED" || !kept) return `${waited}${how}.`;
  return `${waited}${how} with ${kept === 1 ? "the result" : `all ${kept} results`}.`;
}

/** Open, it is a card on the dashed line; over, it is one line that says how long and what came. */
function waitView() {
  const card = cardView();
  const mark = h("div", { class: "mark" });
  const news = h("p", { class: "gone", role: "status", hidden: true });
  return {
    body: [news, card.element, mark],
    node: (step) => icon(step.open ? "waits" : "splice", step.open ? "c-wait" : "c-ok"),
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
      say(text, word ? `${word}${at}.${because}` : STOPPED[next.stopReason] ?? "");
    },
  };
}

export const showsEnd = (step) => step.type in ENDED || step.stopReason in STOPPED;

const PHASES = { starting: "Starting", asking: "Asking the model", cancelling: "Cancelling" };

/** What happens while nothing is to be seen yet. */
function workView() {
  const text = h("span", { class: "small muted" });
  let step = null;
  const tick = () => {
    const waited = step?.since ? serverNow() - step.since : 0;
    say(text, `${PHASES[step?.phase] ?? "Working"}${waited >= 3000 ? `, ${long(waited)}` : ""}`);
  };
  return {
    body: [text],
    node: () => icon("run", "c-run spin"),
    classes: () => "live",
    tick,
    update(next) { step = next; tick(); },
  };
}

const VIEWS = {
  said: saidView, think: thinkView, text: answerView, calls: callsView,
  wait: waitView, mark: markView, end: endView, work: workView,
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
      const symbol = `${next.open}${next.icon}`;
      if (node && mark !== symbol) { mark = symbol; node.replaceChildren(view.node(next)); }
    },
  };
}
