// The card of a call that waits for an approval: exactly what would be done, who has approved before,
// and the two answers. What is shown is what is approved: the fingerprint goes with the answer.

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

const EFFECTS = {
  reads: "It only reads.",
  idempotent: "It writes to the outside; done twice, it counts once.",
  writes: "It writes to the outside and cannot be undone from here.",
};

/** What an approval is for, by who asked for it. */
const STAGES = { policy: "To run it", tool: "For this request" };

function sentence({ wait, effect }) {
  const tool = code(wait.toolName);
  const asks = wait.stage === "tool"
    ? [tool, " was run and asks before it does this. It has done nothing so far."]
    : ["The agent wants to run ", tool, "."];
  return [...asks, effect && EFFECTS[effect] ? ` ${EFFECTS[effect]}` : ""];
}

const fingerprint = (text) => h("code", { title: text }, (text.match(/.{1,4}/gu) ?? []).slice(0, 3).join(" "));

function levels({ wait, approvals, approve }) {
  const earlier = approvals.filter((one) => one.approved);
  if (earlier.length === 0) return null;
  const level = (n, stage, symbol, tone, rest) =>
    h("li", {}, icon(symbol, tone), h("span", {}, h("b", {}, `${n} ${STAGES[stage] ?? ""}`), rest));
  return h("ol", { class: "levels" },
    ...earlier.map((one, i) => level(i + 1, one.stage, "done", "c-ok",
      h("span", {}, ` approved ${moment(Date.parse(one.decidedAt), serverNow())} by `, ...marked(one.actorId)))),
    level(earlier.length + 1, wait.stage, "shield", "c-wait", approve?.enabled ? " you can decide" : " not decided"));
}

function facts({ turn, wait }) {
  const version = turn.agentVersion ?? "";
  return h("dl", { class: "facts" },
    turn.agentId ? fact("Asked by", `${turn.agentId} ${version.length > 12 ? version.slice(0, 8) : version}`.trim()) : null,
    wait.fingerprint ? fact("Fingerprint", fingerprint(wait.fingerprint)) : null,
    answerBefore(wait));
}

function consequence({ wait }) {
  if (wait.stage === "tool") return ["Approving lets ", code(wait.toolName), " go on with exactly this. If it changes, you are asked again."];
  return ["Approving runs ", code(wait.toolName), " with exactly these arguments, and nothing else."];
}

/** The view of one approval; `view` is described in waitcards.js. */
export function approvalView(first) {
  const { wait } = first;
  const { element, body, acts, tick } = frame({
    symbol: "shield", title: waitTitle(wait), since: wait.requestedAt,
    text: [sentence(first), wait.message && marked(wait.message)],
  });
  const content = exact(wait.arguments ?? "");
  const earlier = h("div", {});
  const kept = h("div", {});
  const reason = h("textarea", { class: "input", rows: "2", "data-focus": "reason" });
  const missing = h("p", { class: "err", role: "alert", hidden: true }, icon("warn"), "Say why; the agent reads it.");
  const asksWhy = h("div", { class: "field" }, h("label", {}, "Reason, the agent reads it", reason), missing);
  let rejecting = false;
  let current = first;
  let shape = "";
  const about = h("div", {});
  body.append(earlier, content, about, kept);
  acts.addEventListener("keydown", (event) => { if (event.key === "Escape" && rejecting) turnBack(); });
  reason.addEventListener("input", () => { missing.hidden = true; });

  function turnBack() {
    rejecting = false;
    draw();
    acts.querySelector("[data-command=REJECT_TOOL]")?.focus();
  }

  function askWhy() {
    rejecting = true;
    draw();
    reason.focus();
  }

  function reject(width) {
    if (reason.value.trim() === "") { missing.hidden = false; reason.focus(); return; }
    current.answer({ command: "REJECT_TOOL", callId: wait.callId, reason: reason.value.trim() }, width);
  }

  function buttons() {
    const approve = actionFor(current.turn, "APPROVE_TOOL", wait);
    const refuse = actionFor(current.turn, "REJECT_TOOL", wait);
    if (rejecting && refuse) {
      const label = { command: "REJECT_TOOL", label: "Reject with this reason", doing: "Rejecting", kind: "danger" };
      return [asksWhy, commandButton(label, { action: refuse, act: current.act }, reject), plainButton("Back", "back", turnBack),
        why("The tool is not run. The agent gets your reason as the result of this call and goes on.")];
    }
    const asking = current.cancel?.asking;
    return [
      approve && !asking ? commandButton({ command: "APPROVE_TOOL", label: "Approve exactly this", doing: "Approving", symbol: "check", kind: "primary" },
        { action: approve, act: current.act },
        (width) => current.answer({ command: "APPROVE_TOOL", callId: wait.callId, fingerprint: wait.fingerprint }, width)) : null,
      refuse && !asking ? commandButton({ command: "REJECT_TOOL", label: "Reject", doing: "Rejecting", symbol: "x" }, { action: refuse, act: current.act }, askWhy) : null,
      ...(current.cancel && !current.act.sending ? cancelButtons(current.cancel) : []),
      asking ? null : sentenceBelow(approve),
    ];
  }

  function sentenceBelow(approve) {
    const not = current.act.problem ?? whyNot(approve);
    return not ? why(not) : approve ? h("span", { class: "why" }, ...consequence(current)) : null;
  }

  function draw() {
    const approve = actionFor(current.turn, "APPROVE_TOOL", wait);
    refill(earlier, levels({ ...current, approve }));
    earlier.hidden = earlier.childElementCount === 0;
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
      const { turn, act, cancel, approvals } = view;
      const next = JSON.stringify([turn.actions, turn.agentVersion, act, cancel, approvals, view.kept]);
      if (next === shape) return;
      shape = next;
      draw();
    },
  };
}
