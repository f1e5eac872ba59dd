// The card of a call that is with somebody outside: with whom, since when, what they were handed. Who
// may answer in their place does it here, by hand.

import { cancelButtons, why } from "./acts.js";
import { serverNow } from "./api.js";
import { actionFor, answerBefore, code, commandButton, fact, frame, plainButton, whyNot } from "./cardparts.js";
import { keptLine } from "./cards.js";
import { h, refill } from "./dom.js";
import { exact } from "./exact.js";
import { icon } from "./icons.js";
import { marked } from "./text.js";
import { waitTitle } from "./waittitles.js";
import { moment } from "./words.js";

const BYTES = new TextEncoder();

const size = (bytes) => (bytes >= 1024 ? `${Math.floor(bytes / 1024)} KB` : `${bytes} bytes`);

function facts({ wait, claim }) {
  const since = moment(Date.parse(wait.requestedAt), serverNow());
  const until = Date.parse(claim?.claimedUntil ?? "");
  const taken = until > serverNow() ? [code(claim.claimedBy), `, until ${moment(until, serverNow())}`] : null;
  return h("dl", { class: "facts" },
    fact("Tool", code(wait.toolName)),
    fact("Since", since),
    taken ? fact("Taken by", h("span", {}, ...taken)) : null,
    answerBefore(wait, "Expires") ?? fact("Expires", "never"));
}

/** For whoever may answer by hand; those who may not see no key. */
function operators({ turn, wait }) {
  return h("details", { class: "ops", "data-fold": "ops" },
    h("summary", { class: "lab", "data-focus": "ops" }, icon("user", "s"), "For the executor", icon("chev", "s chev")),
    h("div", { class: "inner" },
      h("dl", { class: "facts" },
        fact("Call", code(wait.callId)),
        wait.idempotencyKey ? fact("Key", code(wait.idempotencyKey)) : null,
        wait.maxResultBytes ? fact("Size limit", size(wait.maxResultBytes)) : null),
      h("pre", { class: "code" }, `POST /turns/${turn.turnId}/resume\n{ "command": "TOOL_RESULT", "callId": ${JSON.stringify(wait.callId)}, "output": … }`)));
}

/** A text is a result as it is, unless it reads as JSON. */
function outputOf(text) {
  try { return JSON.parse(text) ?? text; } catch { return text; }
}

/** The fields of an answer by hand: `read()` gives the body, or null after it has shown what is missing. */
function byHand(wait, command) {
  const field = (label, control) => h("label", { class: "field" }, label, control);
  const missing = h("p", { class: "err", role: "alert", hidden: true });
  const tell = (text, control) => {
    missing.hidden = false;
    missing.replaceChildren(icon("warn"), text);
    control.focus();
    return null;
  };
  const text = h("textarea", { class: "input mono", rows: "3", "data-focus": "by-hand" });
  const problem = h("input", { class: "input mono", value: "failed", autocomplete: "off", "data-focus": "code" });
  const isResult = command === "TOOL_RESULT";
  return {
    elements: isResult
      ? [field("The result, as JSON or as text; the agent reads it", text), missing]
      : [field("Code", problem), field("What went wrong; the agent reads it", text), missing],
    focus: () => text.focus(),
    read() {
      missing.hidden = true;
      if (text.value.trim() === "") return tell(isResult ? "Write the result." : "Say what went wrong.", text);
      if (!isResult && problem.value.trim() === "") return tell("Give it a code.", problem);
      if (!isResult) return { command, callId: wait.callId, code: problem.value.trim(), message: text.value.trim() };
      if (wait.maxResultBytes && BYTES.encode(text.value).length > wait.maxResultBytes) return tell(`Longer than ${size(wait.maxResultBytes)}.`, text);
      return { command, callId: wait.callId, output: outputOf(text.value) };
    },
  };
}

const MODES = {
  TOOL_RESULT: { label: "Send this result", doing: "Sending" },
  TOOL_ERROR: { label: "Report this error", doing: "Reporting", kind: "danger" },
};

/** The view of one outside call; `view` is described in waitcards.js. */
export function externalView(first) {
  const { wait } = first;
  const { element, body, acts, tick } = frame({
    symbol: "ext", tone: "ext", title: waitTitle(wait), since: wait.requestedAt,
    text: [wait.message && marked(wait.message), "Somebody outside does this. The turn waits and goes on by itself when the result arrives."],
  });
  const place = h("div", {});
  const kept = h("div", {});
  let current = first;
  let shape = "";
  let hand = null; // the answer that is being written: { command, fields }
  body.append(place, exact(wait.arguments ?? ""), kept);
  if (wait.idempotencyKey) acts.before(operators(first));
  acts.addEventListener("keydown", (event) => { if (event.key === "Escape" && hand) turnBack(); });

  function turnBack() {
    const { command } = hand;
    hand = null;
    draw();
    acts.querySelector(`[data-command=${command}]`)?.focus();
  }

  function write(command) {
    hand = { command, fields: byHand(wait, command) };
    draw();
    hand.fields.focus();
  }

  function send(width) {
    const answer = hand.fields.read();
    if (answer) current.answer(answer, width);
  }

  function buttons() {
    const { turn, act, cancel } = current;
    const action = (command) => actionFor(turn, command, wait);
    if (hand && action(hand.command)) {
      return [...hand.fields.elements,
        commandButton({ command: hand.command, ...MODES[hand.command] }, { action: action(hand.command), act }, send),
        plainButton("Back", "back", turnBack), act.problem ? why(act.problem) : null];
    }
    const open = (command, label) => (action(command) && !cancel?.asking
      ? commandButton({ command, label, doing: label }, { action: action(command), act }, () => write(command)) : null);
    const said = act.problem ?? whyNot(action("TOOL_RESULT"));
    return [open("TOOL_RESULT", "Enter the result…"), open("TOOL_ERROR", "Report an error…"),
      ...(cancel && !act.sending ? cancelButtons(cancel) : []), said && !cancel?.asking ? why(said) : null];
  }

  function draw() {
    refill(place, facts(current));
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
      const next = JSON.stringify([view.turn.actions, view.act, view.cancel, view.kept, view.claim]);
      if (next === shape) return;
      shape = next;
      draw();
    },
  };
}
