// The card of a call that is with somebody outside: with whom, since when, what they were handed. Who
// may answer in their place does it here, by hand.

import { cancelButtons, why } from "./acts.js";
import { serverNow } from "./api.js";
import { byHand, MODES, size } from "./byhand.js";
import { actionFor, answerBefore, code, commandButton, fact, frame, plainButton, whyNot } from "./cardparts.js";
import { keptLine } from "./cards.js";
import { h, refill } from "./dom.js";
import { exact } from "./exact.js";
import { icon } from "./icons.js";
import { marked } from "./text.js";
import { waitTitle } from "./waittitles.js";
import { moment } from "./words.js";

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
