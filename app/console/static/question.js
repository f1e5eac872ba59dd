// The card of a plain question, where there is no composer to answer it: in the inbox.

import { cancelButtons, why } from "./acts.js";
import { actionFor, answerBefore, commandButton, frame, plainButton, whyNot } from "./cardparts.js";
import { h, refill } from "./dom.js";
import { icon } from "./icons.js";
import { marked } from "./text.js";
import { waitTitle } from "./waittitles.js";

const ANSWER = { command: "USER_INPUT", label: "Send answer", doing: "Sending", symbol: "message", kind: "primary" };

/** The view of one question; `view` is described in waitcards.js. */
export function questionView(first) {
  const { wait } = first;
  const { element, body, acts, tick } = frame({
    symbol: "message", title: waitTitle(wait), since: wait.requestedAt, text: [marked(wait.question ?? "")],
  });
  const text = h("textarea", { class: "input", rows: "2", "data-focus": "answer" });
  const missing = h("p", { class: "err", role: "alert", hidden: true }, icon("warn"), "Write your answer.");
  const facts = h("dl", { class: "facts" }, answerBefore(wait));
  body.append(h("label", { class: "field" }, "Your answer", text), missing, ...(facts.childElementCount ? [facts] : []));
  text.addEventListener("input", () => { missing.hidden = true; });
  let current = first;
  let shape = "";

  function send(width) {
    missing.hidden = text.value.trim() !== "";
    if (missing.hidden) current.answer({ command: "USER_INPUT", text: text.value }, width);
    else text.focus();
  }

  function draw() {
    const { turn, act, cancel } = current;
    const action = actionFor(turn, "USER_INPUT", wait);
    const said = act.problem ?? whyNot(action);
    refill(acts,
      action && !cancel?.asking ? commandButton(ANSWER, { action, act }, send) : null,
      cancel?.asking || !current.elsewhere ? null : plainButton("Do something else", "else", current.elsewhere, ""),
      cancel && !act.sending ? cancelButtons(cancel) : [], said && !cancel?.asking ? why(said) : null);
    tick();
  }

  return {
    element,
    tick,
    update(view) {
      current = view;
      const next = JSON.stringify([view.turn.actions, view.act, view.cancel]);
      if (next === shape) return;
      shape = next;
      draw();
    },
  };
}
