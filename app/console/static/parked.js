// The card of a call that was begun and whose end nobody knows: a person looks where it does its work,
// and says what became of it.

import { cancelButtons, why } from "./acts.js";
import { serverNow } from "./api.js";
import { byHand } from "./byhand.js";
import { actionFor, answerBefore, code, commandButton, fact, frame, plainButton, whyNot } from "./cardparts.js";
import { keptLine } from "./cards.js";
import { h, refill } from "./dom.js";
import { exact } from "./exact.js";
import { waitTitle } from "./waittitles.js";
import { moment } from "./words.js";

function facts({ wait }) {
  return h("dl", { class: "facts" },
    fact("Attempt", String(wait.attempt)),
    fact("Found at", moment(Date.parse(wait.requestedAt), serverNow())),
    wait.idempotencyKey ? fact("Key", code(wait.idempotencyKey)) : null,
    answerBefore(wait));
}

/** A reason is asked for like a result; it may be left out. */
function reasonField() {
  const text = h("textarea", { class: "input", rows: "2", "data-focus": "reason" });
  return {
    elements: [h("label", { class: "field" }, "What you found, the agent reads it", text)],
    focus: () => text.focus(),
    read: () => text.value.trim(),
  };
}

const SENDS = {
  TOOL_RESULT: { label: "Send this result", doing: "Sending", kind: "primary" },
  REJECT_TOOL: { label: "Give up", doing: "Giving up", kind: "danger" },
};
const AFTERWARDS = {
  TOOL_RESULT: "The tool is not run. The agent gets this as the result of the call and goes on.",
  REJECT_TOOL: "The tool is not run. The agent is told that the call may or may not have taken effect, and goes on.",
};

/** The view of one such call; `view` is described in waitcards.js. */
export function parkedView(first) {
  const { wait } = first;
  const { element, body, acts, tick } = frame({
    symbol: "unknown", title: waitTitle(wait), since: wait.requestedAt,
    text: [[code(wait.toolName), " was begun and not seen to end. It may or may not have taken effect: look it up before you answer."]],
  });
  const about = h("div", {});
  const kept = h("div", {});
  let current = first;
  let shape = "";
  let said = null; // the answer that is being written: { command, fields }
  body.append(about, exact(wait.arguments ?? ""), kept);
  acts.addEventListener("keydown", (event) => { if (event.key === "Escape" && said) turnBack(); });

  function turnBack() {
    const { command } = said;
    said = null;
    draw();
    acts.querySelector(`[data-command=${command}]`)?.focus();
  }

  function write(command) {
    said = { command, fields: command === "TOOL_RESULT" ? byHand(wait, command) : reasonField() };
    draw();
    said.fields.focus();
  }

  function send(width) {
    const { command, fields } = said;
    const answer = fields.read();
    if (command === "REJECT_TOOL") current.answer({ command, callId: wait.callId, reason: answer }, width);
    else if (answer) current.answer(answer, width);
  }

  function buttons() {
    const { turn, act, cancel } = current;
    const action = (command) => actionFor(turn, command, wait);
    if (said && action(said.command)) {
      return [...said.fields.elements,
        commandButton({ command: said.command, ...SENDS[said.command] }, { action: action(said.command), act }, send),
        plainButton("Back", "back", turnBack), why(act.problem ?? AFTERWARDS[said.command])];
    }
    const offer = (command, label, onPress, kind = "") => (action(command) && !cancel?.asking
      ? commandButton({ command, label, doing: label, kind }, { action: action(command), act }, onPress) : null);
    const not = act.problem ?? whyNot(action("APPROVE_TOOL"));
    return [
      offer("TOOL_RESULT", "It is done…", () => write("TOOL_RESULT")),
      offer("APPROVE_TOOL", "It is not done, run it",
        (width) => current.answer({ command: "APPROVE_TOOL", callId: wait.callId, fingerprint: wait.fingerprint }, width)),
      offer("REJECT_TOOL", "Give up…", () => write("REJECT_TOOL"), "plain"),
      ...(cancel && !act.sending ? cancelButtons(cancel) : []),
      cancel?.asking ? null : why(not ?? "Running it does it a second time if it was done."),
    ];
  }

  function draw() {
    refill(about, facts(current));
    refill(kept, current.kept ? keptLine(current.kept) : null);
    kept.hidden = kept.childElementCount === 0;
    refill(acts, buttons());
    tick();
  }

  return {
    element,
    tick,
    update(view) {
      current = view;
      const { turn, act, cancel } = view;
      const next = JSON.stringify([turn.actions, act, cancel, view.kept]);
      if (next === shape) return;
      shape = next;
      draw();
    },
  };
}
