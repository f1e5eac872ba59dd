// How a wait for somebody stands on the line: a card while it is open, one sentence afterwards.

import { keyOf } from "./answers.js";
import { serverNow } from "./api.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { marked } from "./text.js";
import { cardOf } from "./waitcards.js";
import { moment, span } from "./words.js";

const FOR = { approval: "for approval", input: "for your answer", outside: "for an outside tool", parked: "for somebody to look it up" };

const LONGEST_QUOTE = 120;
const quote = (text) => [": “", ...marked(text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text), "”"];
const who = (actorId) => (actorId ? [" by ", ...marked(actorId)] : []);

/** outcome -> what became of the wait; `at` is a moment. */
const ENDS = {
  approved: (step, at) => [step.ask === "parked" ? "Found not done" : "Approved", ...who(step.actorId), ` at ${at}`],
  rejected: (step, at) => [step.ask === "parked" ? "Given up" : "Rejected", ...who(step.actorId), ` at ${at}`, ...(step.reason ? quote(step.reason) : [])],
  answered: (_, at) => [`Answered at ${at}`],
  completed: (step, at) => (step.ask === "outside" ? [`The result came at ${at}`] : [`Answered at ${at}`, ...(step.output ? quote(step.output) : [])]),
  error: (step, at) => (step.ask === "outside" ? [`An error was reported at ${at}`] : [`Failed at ${at}`]),
  superseded: (_, at) => [`Given up at ${at} for a message`],
  skipped: (_, at) => [`Given up at ${at} for a message`],
  cancelled: (_, at) => [`Cancelled at ${at}`],
  expired: () => ["Nobody answered in time. The agent was told so and goes on without it"],
};

const over = (step) => (ENDS[step.by] ?? ((_, at) => [`Ended at ${at}`]))(step, moment(step.endedAt, serverNow()));

/** What a reader is told whose press came too late. */
function stale(step) {
  if (step.open) return [h("b", {}, "Already answered."), " Your press changed nothing."];
  const [first, ...rest] = over(step);
  const lead = step.by === "expired" ? first : `Already ${first[0].toLowerCase()}${first.slice(1)}`;
  return [h("b", {}, lead, ...rest), ". Your press changed nothing."];
}

const MARKS = { approved: ["done", "c-ok"], rejected: ["x", "quiet"], expired: ["hourglass", "quiet"], answered: ["splice", "c-ok"], completed: ["splice", "c-ok"] };
const OPEN = { approval: ["shield", "c-wait"], input: ["form", "c-wait"], outside: ["ext", "c-ext"], parked: ["unknown", "c-wait"] };

/** `context.waits(step)` gives what the card of the step shows (waitcards.js), or null while the server has not said it. */
export function askView() {
  const news = h("p", { class: "gone", role: "status", hidden: true });
  const place = h("div", {});
  const mark = h("div", { class: "mark" });
  let card = null;
  let shown = "";

  function drawCard(view) {
    const key = keyOf(view.wait);
    if (key !== shown) {
      shown = key;
      card = cardOf(view);
      place.replaceChildren(card.element);
    }
    card.update(view);
  }

  function close(step) {
    card = null;
    shown = "";
    place.replaceChildren();
    mark.replaceChildren(h("span", {}, `Waited ${span(step.endedAt - step.since)} ${FOR[step.ask]}. `, ...over(step), "."));
  }

  return {
    body: [news, place, mark],
    node: (step) => icon(...(step.open ? OPEN[step.ask] : MARKS[step.by] ?? ["waits", "c-wait"])),
    classes: (step) => (step.open ? "dash" : "splice"),
    tick: () => card?.tick(),
    update(step, context) {
      mark.hidden = step.open;
      place.hidden = !step.open;
      const view = step.open ? context.waits?.(step) : null;
      if (view) drawCard(view);
      if (!step.open) close(step);
      news.hidden = !step.isStale;
      if (step.isStale) news.replaceChildren(icon(...(MARKS[step.by] ?? ["info"])), h("span", {}, ...stale(step)));
    },
  };
}
