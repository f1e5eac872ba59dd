// What the reader asks of the open turn: go on, stop, cancel. Success is what the server says, and
// not what was pressed.

import { Refused, api } from "./api.js";
import { problemOf } from "./problems.js";
import { waits, works } from "./words.js";

const idle = () => ({
  busy: false, pressed: null, stopping: false, width: 0, asking: false, choosing: false, cancelling: false, withdrawing: null, problem: null,
});

export class Commands {
  /** What is on its way, is asked once more, or went wrong. */
  act = idle();
  #owner;

  /** `owner` shows the turn: { turn, conversationId, setTurn, read, onChange, news(problem) }. */
  constructor(owner) {
    this.#owner = owner;
  }

  /** Nothing is on its way any more. */
  rest() { this.act = idle(); }

  /** The turn is in another state: only a cancellation of a turn at work is still on its way. */
  turned(turn) { this.act = { ...idle(), cancelling: this.act.cancelling && works(turn.status) }; }

  /** `changes` go with a retry; `pressed` says which of them was. */
  resume(action, width, { changes = null, pressed = null } = {}) {
    const { turn } = this.#owner;
    const failureId = action.command === "RETRY_MODEL" ? action.failureId ?? turn.failureId : null;
    const request = () => (action.command === "RUN" ? api.run(turn.turnId) : api.resume(turn.turnId, action.command, failureId, changes));
    const { choosing } = this.act;
    return this.#carryOut({ ...idle(), busy: true, pressed, choosing: Boolean(pressed) && choosing, width }, request, true);
  }

  pause(width) {
    const { turn } = this.#owner;
    return this.#carryOut({ ...idle(), stopping: true, width }, () => api.pause(turn.turnId));
  }

  async cancel() {
    const { turn } = this.#owner;
    await this.#carryOut({ ...this.act, cancelling: true }, () => api.cancel(turn.turnId), waits(turn.status));
    if (!this.act.problem) this.#set({ ...this.act, asking: false });
  }

  /** Takes a message back that waits. It may wait for the next turn by now, or have been said. */
  withdraw(messageId) {
    const owner = this.#owner;
    return this.#carryOut({ ...idle(), withdrawing: messageId }, () => api.withdraw(owner.conversationId, messageId));
  }

  ask(asking) { this.#set({ ...idle(), asking }); }

  /** Whether the models that may be asked instead are to be seen. */
  choose(choosing) { this.#set({ ...idle(), choosing }); }

  async #carryOut(act, request, tellsNews = false) {
    this.#set(act);
    const owner = this.#owner;
    const { turnId } = owner.turn;
    try {
      const turn = await request();
      if (owner.turn?.turnId !== turnId) return;
      if (act.stopping) this.#set({ ...this.act, stopping: false });
      if (act.withdrawing) this.#set({ ...this.act, withdrawing: null });
      if (turn.turnId === turnId) owner.setTurn(turn);
      else owner.read();
    } catch (error) {
      if (owner.turn?.turnId === turnId) this.#refused(error, tellsNews);
    }
  }

  #set(act) {
    this.act = act;
    this.#owner.onChange();
  }

  #refused(error, tellsNews) {
    if (error instanceof Refused && (error.status === 409 || error.code === "queued_input_not_found")) {
      // Somebody was faster: news, not a fault.
      if (tellsNews) this.#owner.news(error.problem);
      this.#set(idle());
      this.#owner.read();
      return;
    }
    const { title, detail, code } = problemOf(error);
    // What was refused for what it says would be refused again.
    const again = error instanceof Refused && error.status < 500 ? "" : " Pressing again does no harm.";
    const problem = `${title} ${detail}${again}${code ? ` (${code})` : ""}`;
    this.#set({ ...idle(), asking: this.act.asking, choosing: this.act.choosing, problem });
  }
}

/** What a reader is told whose press came too late. */
export function newsOf({ currentStatus, currentFailureId }, failureId) {
  if (currentStatus === "WAITING_FOR_MODEL" && currentFailureId && currentFailureId !== failureId) {
    return ["Already retried, refused again.", "The current reason is shown below."];
  }
  return ["Already done.", "This turn was brought back a moment ago; your press changed nothing."];
}
