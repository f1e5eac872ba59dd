// The buttons of a turn. Which there are is the server's word (`actions`); the page only draws them.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { HOPELESS, hold } from "./pressing.js";
import { changingNow, chooseButton } from "./remedies.js";
import { reasonOf } from "./words.js";

export const actionOf = (turn, command) => turn?.actions?.find((action) => action.command === command);

/** command -> [label, icon, label while it is on its way]. */
const MAIN = {
  RETRY_MODEL: ["Retry", "retry", "Retrying"],
  CONTINUE: ["Try now", "retry", "Trying"],
  RESUME: ["Resume", "splice", "Resuming"],
  RUN: ["Run", "splice", "Starting"],
};

/** The one that goes on with the turn, if there is one. */
export const mainAction = (turn) => turn?.actions?.find((action) => action.command in MAIN);

/** The main button is filled, unless it is early or cannot help: then it is there, and quiet. */
export function mainButton(action, { until = null, due = false, busy: isBusy, pressed = null, width, on, focus = action.command }) {
  // What was pressed may be a retry with a change: then this one is only out of reach.
  const busy = isBusy && !pressed;
  const retry = action.command === "RETRY_MODEL";
  const hopeless = HOPELESS.has(action.reason);
  const early = until !== null && !due;
  const [usual, symbol, doing] = MAIN[action.command];
  const label = busy ? doing : hopeless && retry ? "Retry unchanged" : early && retry ? "Retry now" : usual;
  const kind = hopeless ? "plain" : early || action.reason === "needs_operator" ? "" : "primary";
  const off = isBusy || !action.enabled;
  const button = h("button", {
    type: "button", class: `btn ${kind}`, "data-focus": focus, "data-command": action.command,
    "aria-disabled": off ? "true" : null,
    onclick: () => { if (!off) on.resume(action, button.offsetWidth); },
  }, icon(busy ? "run" : symbol, `s${busy ? " spin" : ""}`), label);
  return hold(button, busy, width);
}

/** Stop pauses; it says "Stopping" until the tools that are in flight have ended. */
export function stopButton(action, { turn, stopping, width, on }) {
  const busy = stopping || turn.pauseRequested === true;
  const off = busy || !action.enabled;
  const button = h("button", {
    type: "button", class: "btn", "data-focus": "stop", "data-command": "PAUSE", "aria-disabled": off ? "true" : null,
    title: !busy && off ? reasonOf(action) : null,
    onclick: () => { if (!off) on.pause(button.offsetWidth); },
  }, busy ? null : icon("stop", "s"), busy ? "Stopping" : "Stop");
  return hold(button, busy, width);
}

export const why = (text) => h("span", { class: "why" }, text);

/** Cancelling is final, so it is asked once more, in place. */
export function cancelButtons({ asking, busy, on, keep, problem }) {
  if (!asking) return [h("button", { type: "button", class: "btn plain", "data-focus": "cancel", "data-command": "CANCEL", onclick: on.askCancel }, "Cancel turn")];
  return [
    h("button", { type: "button", class: "btn danger", "data-command": "CANCEL_FINALLY", "aria-disabled": busy ? "true" : null, onclick: () => { if (!busy) on.cancel(); } }, "Cancel turn"),
    h("button", { type: "button", class: "btn plain", "data-focus": "cancel", onclick: on.keep }, keep),
    why(problem ?? "Final. What was done stays readable; the turn cannot be brought back."),
  ];
}

function doingNow(view) {
  const { turn, kept } = view;
  const changed = changingNow(view);
  if (changed) return changed;
  if (turn.status === "PAUSED") return "Going on from where it stands.";
  if (turn.status === "RETRY_SCHEDULED" && !turn.suspension?.modelFailure) return "Trying the tool again.";
  return kept?.results ? `Asking the model again with ${kept.results === 1 ? "the result" : `all ${kept.results} results`}.` : "Asking the model again.";
}

/** The sentence beside the buttons, if there is one to be said. */
function beside(main, view) {
  if (view.busy) return doingNow(view);
  if (view.problem && !view.asking) return view.problem;
  if (main && !main.enabled && main.reason) return reasonOf(main);
  if (HOPELESS.has(main?.reason) && !view.asking) return reasonOf(main);
  const early = main?.command === "RETRY_MODEL" && view.until && !view.due && !view.asking;
  return early ? "You may retry before the time is up; it will probably be refused." : null;
}

/** The row of buttons of a card. */
export function acts(view) {
  const main = mainAction(view.turn);
  const cancel = actionOf(view.turn, "CANCEL");
  const parts = [];
  if (main && !view.asking) parts.push(mainButton(main, view), chooseButton(main, view));
  if (cancel?.enabled && !view.busy) {
    const keep = view.turn.status === "PAUSED" ? "Keep it paused" : "Keep it waiting";
    parts.push(...cancelButtons({ asking: view.asking, busy: view.cancelling, on: view.on, keep, problem: view.problem }));
  }
  const sentence = beside(main, view);
  if (sentence) parts.push(why(sentence));
  const leave = () => { if (view.asking) view.on.keep(); else if (view.choosing) view.on.choose(false); };
  return h("div", { class: "acts", onkeydown: (e) => { if (e.key === "Escape") leave(); } }, ...parts);
}
