// The card of a turn that waits for the model: why, since when, what is kept, and what may be done.
// Which buttons there are is the server's word (`actions`); the page only draws them.

import { serverNow } from "./api.js";
import { h, say, swap } from "./dom.js";
import { icon } from "./icons.js";
import { FAILURE_ICON, clock, count, langOf, left, long, moment, reasonOf, titleAndRest } from "./words.js";

const check = (text) => h("span", {}, icon("check"), text);

export function keptLine(kept) {
  const items = [];
  if (kept.messages) items.push(check(kept.messages === 1 ? "your message" : `your ${kept.messages} messages`));
  if (kept.results) items.push(check(count(kept.results, "tool result", "tool results")));
  if (kept.words) items.push(check(count(kept.words, "word", "words")));
  return h("p", { class: "kept" }, h("span", { class: "kl" }, "Kept"), ...items);
}

const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
const code = (text) => h("code", {}, text);

/** For operators only: a user's `modelFailure` holds none of this, and then there is no section. */
function operators(failure) {
  if (!failure || failure.exceptionType === undefined) return null;
  const facts = [
    fact("HTTP", failure.httpStatus ? String(failure.httpStatus) : "none"),
    failure.errorCode && fact("Code", code(failure.errorCode)),
    failure.errorType && fact("Type", code(failure.errorType)),
    failure.exceptionType && fact("Exception", code(failure.exceptionType)),
    failure.tokenLimitPhase && fact("Phase", code(failure.tokenLimitPhase)),
    fact("Stated wait", typeof failure.retryAfterMillis === "number" ? long(failure.retryAfterMillis) : "none"),
    failure.modelAttempt && fact("Request", `${failure.modelAttempt} of this turn`),
    fact("Failure", code(failure.failureId)),
  ];
  return h("details", { class: "ops", "data-fold": "ops" },
    h("summary", { class: "lab", "data-focus": "ops" }, icon("user", "s"), "Operators only", icon("chev", "s chev")),
    h("div", { class: "inner" },
      h("dl", { class: "facts" }, ...facts.filter(Boolean)),
      failure.message ? h("pre", { class: "code" }, failure.message) : null));
}

/** What stands on the card, apart from time: title, sentence, icon. */
function wording(view) {
  const { turn, wait, due } = view;
  const [title, rest] = titleAndRest(turn.message ?? "");
  const lang = langOf(turn.message ?? "");
  const waits = lang ? "本轮正在等待。" : "The turn waits. ";
  if (turn.status === "RETRY_SCHEDULED") {
    return { lang: null, symbol: "clock", tone: "run", title: "Trying again by itself",
      text: `${title ? `${title}. ` : ""}${wait.until ? `The next attempt follows at ${clock(wait.until, true)}.` : ""}` };
  }
  const symbol = FAILURE_ICON[turn.failureType] ?? "waits";
  if (due) return { lang: null, symbol, tone: "", title: "Ready for a retry", text: "The turn waits. The time the model asked for is over." };
  // The countdown says the time by the reader's clock; the sentence would say it once more in UTC.
  const text = view.until === null ? `${waits}${rest}` : waits;
  return { lang, symbol, tone: "", title: title || "Waiting for the model", text };
}

function countdown(view) {
  const automatic = view.turn.status === "RETRY_SCHEDULED";
  return h("div", { class: "count", role: "timer", "aria-live": "off", "aria-label": automatic ? "Time until the next attempt" : "Time until a retry can succeed" },
    h("div", { class: "top" },
      h("span", { class: "muted" }, automatic ? "Next attempt" : `Ready for a retry at ${clock(view.until, true)}`),
      h("span", { class: "time num" })),
    h("div", { class: "bar-track", "aria-hidden": "true" }, h("span")));
}

function waitingFacts(view) {
  const facts = [h("div", { class: "since" }, h("dt", {}, "Waiting"), h("dd", {}))];
  if (view.turn.failureType === "QUOTA_EXCEEDED" && !view.until) facts.push(fact("Expected back", "not known"));
  if (view.tries) facts.push(fact("Tried", `${count(view.tries, "time", "times")} by itself`));
  return h("dl", { class: "facts" }, ...facts);
}

const LABEL = { RETRY_MODEL: "Retry", CONTINUE: "Try now" };

/** The main button is filled, unless it is early or cannot help: then it is there, and quiet. */
function mainButton(action, view) {
  const tooLong = view.turn.failureType === "TOKEN_LIMIT_EXCEEDED" && action.command === "RETRY_MODEL";
  const early = view.until !== null && !view.due;
  const label = view.busy ? "Retrying" : tooLong ? "Retry unchanged" : early && action.command === "RETRY_MODEL" ? "Retry now" : LABEL[action.command];
  const kind = tooLong ? "plain" : early ? "" : "primary";
  const off = view.busy || !action.enabled;
  const button = h("button", {
    type: "button", class: `btn ${kind}`, "data-focus": action.command, "data-command": action.command,
    "aria-disabled": off ? "true" : null, "aria-busy": view.busy ? "true" : null,
    onclick: () => { if (!off) view.on.resume(action, button.offsetWidth); },
  }, icon(view.busy ? "run" : "retry", `s${view.busy ? " spin" : ""}`), label);
  // It says something shorter or longer while it is busy and keeps its place all the same.
  if (view.busy && view.width) button.style.minWidth = `${view.width}px`;
  return button;
}

function why(text) {
  return h("span", { class: "why" }, text);
}

/** Cancelling is final, so it is asked once more, in place. */
export function cancelButtons({ asking, busy, on, keep, problem }) {
  if (!asking) return [h("button", { type: "button", class: "btn plain", "data-focus": "cancel", "data-command": "CANCEL", onclick: on.askCancel }, "Cancel turn")];
  return [
    h("button", { type: "button", class: "btn danger", "data-command": "CANCEL_FINALLY", "aria-disabled": busy ? "true" : null, onclick: () => { if (!busy) on.cancel(); } }, "Cancel turn"),
    h("button", { type: "button", class: "btn plain", "data-focus": "cancel", onclick: on.keep }, keep),
    why(problem ?? "Final. What was done stays readable; the turn cannot be brought back."),
  ];
}

function acts(view) {
  const actions = view.turn.actions ?? [];
  const main = actions.find((action) => action.command in LABEL);
  const cancel = actions.find((action) => action.command === "CANCEL" && action.enabled);
  const parts = [];
  if (main && !view.asking) parts.push(mainButton(main, view));
  if (cancel && !view.busy) parts.push(...cancelButtons({ asking: view.asking, busy: view.cancelling, on: view.on, keep: "Keep it waiting", problem: view.problem }));
  if (view.busy) parts.push(why(view.kept.results ? `Asking the model again with ${view.kept.results === 1 ? "the result" : `all ${view.kept.results} results`}.` : "Asking the model again."));
  else if (view.problem && !view.asking) parts.push(why(view.problem));
  else if (main && !main.enabled && main.reason) parts.push(why(reasonOf(main)));
  else if (main?.command === "RETRY_MODEL" && view.until && !view.due && !view.asking) parts.push(why("You may retry before the time is up; it will probably be refused."));
  return h("div", { class: "acts", onkeydown: (e) => { if (e.key === "Escape" && view.asking) view.on.keep(); } }, ...parts);
}

function card(view) {
  const { lang, symbol, tone, title, text } = wording(view);
  const counts = view.until !== null && !view.due;
  return h("section", { class: "card open", "aria-label": title },
    h("div", { class: "card-head" },
      h("span", { class: `ico ${tone}` }, icon(symbol)),
      h("h2", { lang }, title),
      h("span", { class: "age num" }, counts ? moment(view.wait.since, serverNow()) : ""),
      h("p", { lang }, text)),
    h("div", { class: "card-body" }, counts ? countdown(view) : waitingFacts(view), keptLine(view.kept)),
    operators(view.turn.suspension?.modelFailure ?? view.wait.failure),
    acts(view));
}

/** The card as a view that is drawn anew when anything but the time changes. */
export function cardView() {
  let element = h("section", { class: "card open" });
  let shape = "";
  let current = null;

  function tick() {
    if (!current) return;
    const now = serverNow();
    const due = current.until !== null && now >= current.until;
    if (due !== current.due) { update(current); return; }
    const since = element.querySelector(".since dd");
    if (since) say(since, `${long(now - current.wait.since)}, since ${moment(current.wait.since, now)}`);
    const time = element.querySelector(".count .time");
    if (!time) return;
    say(time, left(current.until - now));
    const share = (now - current.wait.since) / Math.max(1, current.until - current.wait.since);
    element.querySelector(".bar-track span").style.width = `${Math.round(Math.min(1, Math.max(0, share)) * 100)}%`;
  }

  function update(view) {
    const due = view.until !== null && serverNow() >= view.until;
    current = { ...view, due };
    const { on, ...rest } = current;
    const next = JSON.stringify(rest);
    if (next !== shape) {
      shape = next;
      element = swap(element, card(current));
    }
    tick();
  }

  return {
    get element() { return element; },
    update,
    tick,
    /** A card that is over leaves no button behind. */
    close() { current = null; shape = ""; element.replaceChildren(); element.hidden = true; },
  };
}
