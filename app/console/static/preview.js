// What sending a message would do now, as the server's `actions` allow it.

import { actionOf } from "./acts.js";
import { link } from "./link.js";
import { waitingAction } from "./queueing.js";
import { answeredByMessage } from "./waittitles.js";
import { count, reasonOf, waits, works } from "./words.js";

const TOO_LONG = new Set(["INPUT_CONTEXT", "TOTAL_CONTEXT"]);

function together(kept) {
  if (!kept.results) return "The agent reads your message and the turn goes on.";
  return `The agent reads your message together with the ${kept.results === 1 ? "result" : `${kept.results} results`}; no tool runs again.`;
}

function stopping(running) {
  const wait = running > 0 ? `${count(running, "tool is", "tools are")} given time to end. ` : "";
  return ["pause", "Stopping.", `${wait}Nothing is lost.`];
}

function atWork(turn, message, running) {
  if (turn.held) return ["pause", "On hold.", "It begins when it is told to run. Your text is kept here."];
  if (turn.pauseRequested && !turn.cancelRequested) return stopping(running);
  return ["run", "The agent is working.", reasonOf(message) || "Your text is kept here; send it when this turn has ended."];
}

const LONGEST_QUOTE = 120;
const quoted = (text) => `“${text.length > LONGEST_QUOTE ? `${text.slice(0, LONGEST_QUOTE)}…` : text}”`;
const WAITING = {
  queue: { hint: "Add to the queue", will: ["queue", "Queue:", "your message opens the next turn when this one has ended."] },
  steer: { hint: "Steer this turn", will: ["steer", "Steer:", "calls that have not begun are skipped, then the agent reads this."] },
};

/** A message to a turn at work waits: for its end, or for its next boundary. */
function later(turn, mode) {
  const action = waitingAction(turn, mode);
  if (!action.enabled) return { may: false, will: ["waits", "Not now.", reasonOf(action)] };
  return { may: true, ...WAITING[mode] };
}

/** Whether a message answers what the turn waits for, so that doing something else is a choice. */
const answersWait = (turn) => turn.status === "WAITING_FOR_USER" && (Boolean(turn.suspension?.question) || answeredByMessage(turn) !== null);

/** It had begun, so that nobody may say it was not run. */
const isParked = (wait) => wait.stage === "recovery";

/** What a message gives up: the calls that wait for somebody. */
function givesUp(turn, how) {
  const waiting = (turn.waits ?? []).filter((wait) => wait.callId);
  if (waiting.length === 0) return null;
  const [wait] = waiting;
  if (waiting.length > 1) {
    const become = waiting.some(isParked) ? "given up" : "answered “not run”";
    return { hint: how, will: ["warn", "Sending gives all of this up.", `The calls that wait are ${become}, then the agent reads your message.`] };
  }
  const tool = { code: wait.toolName };
  if (isParked(wait)) {
    return { hint: how, will: ["warn", "Sending gives this call up.", "is answered “outcome unknown”, then the agent reads your message.", tool] };
  }
  if (wait.suspensionType === "EXTERNAL_TOOL") {
    return { hint: how, will: ["warn", "Sending gives this call up.", "is told that its result is no longer wanted, then the agent reads your message.", tool] };
  }
  const lead = wait.suspensionType === "TOOL_APPROVAL" ? "Sending withdraws this request." : "Sending gives this form up.";
  return { hint: how, will: ["warn", lead, "is answered “not run”, then the agent reads your message.", tool] };
}

function answering(turn, mode, kept) {
  const asked = answeredByMessage(turn);
  const question = asked ? asked.message ?? "" : turn.suspension.question;
  if (mode === "answer") {
    const will = ["message", "Answer:", question ? `becomes the reply to ${quoted(question)}.` : "becomes the reply."];
    return { hint: "Answer the agent", when: asked ? "result" : undefined, will };
  }
  return { hint: "Say what to do instead", when: "instead", will: ["steer", "Do something else:", asked ? "the question is given up, then the agent reads this." : together(kept)] };
}

function instead(turn, kept, tools) {
  const gives = givesUp(turn, turn.status === "WAITING_FOR_APPROVAL" ? "Say something else instead of deciding" : "Say something else instead");
  if (gives && turn.status !== "PAUSED") return gives;
  if (turn.status === "PAUSED") {
    return { hint: "Message instead of resuming", will: ["pause", "Sending goes on from here.", tools.open ? "Open calls are closed and not run again." : together(kept)] };
  }
  if (TOO_LONG.has(turn.suspension?.modelFailure?.tokenLimitPhase)) {
    return { hint: "Send anyway", will: ["warn", "This makes it longer.", "The conversation is already too long for the model."] };
  }
  return { hint: "Send a message instead of retrying", will: ["splice", "Sending goes on with this turn.", together(kept)] };
}

/** What there is to choose from for the next message; empty where it does one thing. */
export function modesOf(turn) {
  if (!turn) return [];
  const stands = turn.held || (turn.pauseRequested && !turn.cancelRequested);
  if (works(turn.status)) return !stands && waitingAction(turn, "queue") ? ["queue", "steer"] : [];
  return answersWait(turn) ? ["answer", "instead"] : [];
}

/**
 * Whether sending may be done, and what it would do: `will` is [icon, lead, sentence, tool?], `hint` stands in the
 * empty field, `when` is the way the message goes (thread.js), and `mode` is the reader's choice of `modesOf`.
 */
export function preview({ turn, kept, tools, mode }) {
  if (link.away) return { may: false, will: ["away", "Not connected.", "Your text is kept; send it when the line is back."] };
  const message = actionOf(turn, "MESSAGE");
  if (turn && works(turn.status) && modesOf(turn).length) return { when: mode, ...later(turn, mode) };
  if (turn && works(turn.status) && !message?.enabled) return { may: false, will: atWork(turn, message, tools.running) };
  if (!turn || !waits(turn.status)) return { may: true, will: null };
  if (message && !message.enabled && mode !== "instead") return unlessInstead(turn, message);
  if (answersWait(turn)) return { may: true, ...answering(turn, mode, kept) };
  return { may: true, ...instead(turn, kept, tools) };
}

/** A form that is strict takes no message; to do something else is said in so many words. */
function unlessInstead(turn, message) {
  const replan = actionOf(turn, "REPLAN_WITH_MESSAGE");
  if (message.reason !== "form_waits" || !replan?.enabled) return { may: false, will: ["waits", "Not now.", reasonOf(message)] };
  return { may: true, when: "instead", ...givesUp(turn, "Say what to do instead") };
}
