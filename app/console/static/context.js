// What the steps of the newest turn show besides themselves: the turn, what may be done about it, and
// the cards of what it waits for.

import { actionOf } from "./acts.js";
import { answeredByMessage } from "./waittitles.js";
import { waits } from "./words.js";

/** What cancelling the turn needs on a card; null where it cannot be cancelled from one. */
export function cancelOf(turn, act, on) {
  if (!waits(turn.status) || !actionOf(turn, "CANCEL")?.enabled || act.busy) return null;
  return { asking: act.asking, busy: act.cancelling, problem: act.problem ?? undefined, on, keep: "Keep it waiting" };
}

/** The card of a step that waits for somebody, as waitcards.js describes it; null while the server has not told. */
function viewOf(thread, line, step, on) {
  const { turn, answers, beside, commands } = thread;
  const wait = turn.waits?.find((one) => line.asks.of(one) === step);
  if (!wait) return null;
  const isLast = line.asks.open.at(-1) === step && turn.status !== "PAUSED";
  return {
    turn, wait, effect: step.effect, kept: line.kept,
    act: answers.of(wait), answer: (body, width) => answers.send(wait, body, width),
    isBelow: answeredByMessage(turn) === wait,
    approvals: beside.decided(step.callId), claim: beside.claim(step.callId),
    cancel: isLast ? cancelOf(turn, commands.act, on) : null,
  };
}

/** A turn that is over shows nothing but its line. */
export const contextOfOld = (line) => ({ turn: null, turnId: line.turnId, waiting: false, message: "", stamp: "" });

export function contextOf(thread, on) {
  const { turn, line, commands, answers, beside } = thread;
  beside.look(turn);
  const until = Date.parse(turn.retryAt ?? "") || line.openWait?.until || null;
  return {
    turn, turnId: turn.turnId, message: turn.message ?? "",
    waiting: line.openWait !== null || line.asks.open.length > 0,
    card: { turn, kept: line.kept, tries: line.tries, earlier: thread.lines.length, until, ...commands.act, on },
    waits: (step) => viewOf(thread, line, step, on),
    stamp: JSON.stringify([turn, line.kept, commands.act, answers.acts, beside.stamp]),
  };
}
