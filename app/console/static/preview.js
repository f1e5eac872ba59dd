// What sending a message would do now, as the server's `actions` allow it.

import { actionOf } from "./acts.js";
import { link } from "./link.js";
import { waitingAction } from "./queueing.js";
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
  if (!action.enabled) return { may: false, modes: true, will: ["waits", "Not now.", reasonOf(action)] };
  return { may: true, modes: true, ...WAITING[mode] };
}

function instead(turn, kept, tools) {
  if (turn.status === "WAITING_FOR_USER") {
    return { hint: "Answer the agent", will: ["chat", "Answer:", `becomes the reply to ${quoted(turn.suspension?.question ?? "")}.`] };
  }
  if (turn.status === "PAUSED") {
    return { hint: "Message instead of resuming", will: ["pause", "Sending goes on from here.", tools.open ? "Open calls are closed and not run again." : together(kept)] };
  }
  if (TOO_LONG.has(turn.suspension?.modelFailure?.tokenLimitPhase)) {
    return { hint: "Send anyway", will: ["warn", "This makes it longer.", "The conversation is already too long for the model."] };
  }
  return { hint: "Send a message instead of retrying", will: ["splice", "Sending goes on with this turn.", together(kept)] };
}

/**
 * Whether sending may be done, and what it would do: `will` is [icon, lead, sentence], `hint` stands in the empty
 * field, and with `modes` the reader chooses between queue and steer.
 */
export function preview({ turn, kept, tools, mode }) {
  if (link.away) return { may: false, will: ["away", "Not connected.", "Your text is kept; send it when the line is back."] };
  const message = actionOf(turn, "MESSAGE");
  const stands = turn?.held || (turn?.pauseRequested && !turn.cancelRequested);
  if (turn && works(turn.status) && !stands && waitingAction(turn, mode)) return later(turn, mode);
  if (turn && works(turn.status) && !message?.enabled) return { may: false, will: atWork(turn, message, tools.running) };
  if (!turn || !waits(turn.status)) return { may: true, will: null };
  if (message && !message.enabled) return { may: false, will: ["waits", "Not now.", reasonOf(message)] };
  return { may: true, ...instead(turn, kept, tools) };
}
