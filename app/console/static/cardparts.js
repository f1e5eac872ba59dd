// The parts that cards for people share: the head with its age, facts, buttons that say what they do.

import { actionOf } from "./acts.js";
import { serverNow } from "./api.js";
import { h, say } from "./dom.js";
import { icon } from "./icons.js";
import { hold } from "./pressing.js";
import { marked } from "./text.js";
import { long, moment, reasonOf } from "./words.js";

export const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
export const code = (text) => h("code", {}, ...marked(text));

/** What may be done about this very wait, as the server says it; undefined: nothing of the kind. */
export const actionFor = (turn, command, wait) =>
  turn.actions?.find((action) => action.command === command && (action.callId ?? null) === (wait.callId ?? null))
  ?? (wait.callId ? undefined : actionOf(turn, command));

const AFTERWARDS = {
  keep: "later answers are refused, and the turn waits on",
  answer_expired: "the agent is told then that nobody answered",
  fail: "the turn fails then",
  cancel: "the turn is cancelled then",
};

/** When an answer has to be there, and what happens otherwise; null where it may take as long as it takes. */
export function answerBefore(wait, name = "Answer before") {
  if (!wait.expiresAt) return null;
  const time = moment(Date.parse(wait.expiresAt), serverNow());
  const then = AFTERWARDS[wait.onExpiry];
  return fact(name, h("span", {}, time, then ? h("span", { class: "quiet" }, `, ${then}`) : null));
}

/** The frame of a card: `body` and `acts` are filled by whoever draws it. */
export function frame({ tag = "section", symbol, tone = "", title, text, since }) {
  const age = h("span", { class: "age num" });
  const body = h("div", { class: "card-body" });
  const acts = h("div", { class: "acts" });
  const heading = h("h2", {}, ...marked(title));
  const element = h(tag, { class: "card open", "aria-label": heading.textContent },
    h("div", { class: "card-head" },
      h("span", { class: `ico ${tone}` }, icon(symbol)), heading, age,
      ...text.filter(Boolean).map((parts) => h("p", {}, ...[parts].flat()))),
    body, acts);
  return {
    element,
    body,
    acts,
    tick: () => say(age, `waiting ${long(serverNow() - Date.parse(since))}`),
  };
}

/** A button for a command on a wait; `doing` is its word while it is on its way. */
export function commandButton({ command, label, doing, symbol, kind = "" }, { action, act }, onPress) {
  const busy = act.sending === command;
  const off = Boolean(act.sending) || !action.enabled;
  const shape = busy ? "run" : symbol;
  const button = h("button", {
    type: "button", class: `btn ${kind}`.trim(), "data-focus": command, "data-command": command,
    "aria-disabled": off ? "true" : null,
    // A card goes when it is answered, and another may stand in its place: the second half of a double
    // click was meant for neither.
    onclick: (event) => { if (!off && event.detail < 2) onPress(button.offsetWidth); },
  }, shape ? icon(shape, busy ? "s spin" : "s") : null, busy ? doing : label);
  return hold(button, busy, act.width);
}

export const plainButton = (label, focus, onclick, kind = "plain") =>
  h("button", { type: "button", class: `btn ${kind}`.trim(), "data-focus": focus, onclick }, label);

/** Why a button that is there cannot be pressed. */
export const whyNot = (action) => (action && !action.enabled ? reasonOf(action) : null);
