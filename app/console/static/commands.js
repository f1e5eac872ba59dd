// What the reader asks of the open turn: go on, stop, cancel. Success is what the server says, and
// not what was pressed.

import { Refused, api } from "./api.js";
import { problemOf } from "./problems.js";
import { works } from "./words.js";

const idle = () => ({ busy: false, stopping: false, width: 0, asking: false, cancelling: false, withdrawing: null, problem: null });

export class Commands {
  /** What is on its way, is asked once more, or went wrong. */
  act = idle();
  #thread;

  constructor(thread) {
    this.#thread = thread;
  }

  /** Nothing is on its way any more. */
  rest() { this.act = idle(); }

  /** The turn is in another state: only a cancellation of a turn at work is still on its way. */
  turned(turn) { this.act = { ...idle(), cancelling: this.act.cancelling && works(turn.status) }; }

  resume(action, width) {
    const { turn } = this.#thread;
    const failureId = action.command === "RETRY_MODEL" ? action.failureId ?? turn.failureId : null;
    const request = () => (action.command === "RUN" ? api.run(turn.turnId) : api.resume(turn.turnId, action.command, failureId));
    return this.#carryOut({ ...idle(), busy: true, width }, request, true);
  }

  pause(width) {
    const { turn } = this.#thread;
    return this.#carryOut({ ...idle(), stopping: true, width }, () => api.pause(turn.turnId));
  }

  async cancel() {
    const { turn, line } = this.#thread;
    await this.#carryOut({ ...this.act, cancelling: true }, () => api.cancel(turn.turnId), line.openWait !== null);
    if (!this.act.problem) this.#set({ ...this.act, asking: false });
  }

  /** Takes a message back that waits. It may wait for the next turn by now, or have been said. */
  withdraw(messageId) {
    const thread = this.#thread;
    return this.#carryOut({ ...idle(), withdrawing: messageId }, () => api.withdraw(thread.conversationId, messageId));
  }

  ask(asking) { this.#set({ ...idle(), asking }); }

  async #carryOut(act, request, tellsNews = false) {
    this.#set(act);
    const thread = this.#thread;
    const { turnId } = thread.turn;
    try {
      const turn = await request();
      if (thread.turn?.turnId !== turnId) return;
      if (act.stopping) this.#set({ ...this.act, stopping: false });
      if (act.withdrawing) this.#set({ ...this.act, withdrawing: null });
      if (turn.turnId === turnId) thread.setTurn(turn);
      else thread.read();
    } catch (error) {
      if (thread.turn?.turnId === turnId) this.#refused(error, tellsNews);
    }
  }

  #set(act) {
    this.act = act;
    this.#thread.onChange();
  }

  #refused(error, tellsNews) {
    if (error instanceof Refused && (error.status === 409 || error.code === "queued_input_not_found")) {
      // Somebody was faster: news, not a fault.
      if (tellsNews) this.#news(error.problem);
      this.#set(idle());
      this.#thread.read();
      return;
    }
    const { title, detail, code } = problemOf(error);
    const problem = `${title} ${detail} Pressing again does no harm.${code ? ` (${code})` : ""}`;
    this.#set({ ...idle(), asking: this.act.asking, problem });
  }

  #news({ currentStatus, currentFailureId }) {
    const wait = this.#thread.line.steps.findLast((step) => step.kind === "wait");
    if (!wait) return;
    const again = currentStatus === "WAITING_FOR_MODEL" && currentFailureId && currentFailureId !== wait.failureId;
    wait.news = again
      ? ["Already retried, refused again.", "The current reason is shown below."]
      : ["Already done.", "This turn was brought back a moment ago; your press changed nothing."];
    wait.rev += 1;
  }
}
