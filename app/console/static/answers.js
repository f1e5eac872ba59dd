// Answers to what a turn waits for: a decision, a form, a result. What is on its way, what was wrong
// with it, and what happens when somebody else was faster.

import { Refused, api, newId } from "./api.js";
import { problemOf } from "./problems.js";

const REST = { sending: null, width: 0, problem: null, errors: null };

/** One wait, told from an earlier one of the same call. */
export const keyOf = (wait) => `${wait.callId ?? wait.suspensionType}@${wait.requestedAt}`;

/** Where in the answer an error is, from `/data/a/0` or `body.data.a.0`; null: nowhere in it. */
export function placeOf({ pointer, field = "" }) {
  const given = pointer ?? field;
  const steps = given.startsWith("/")
    ? given.slice(1).split("/").map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))
    : given.split(".").slice(given.startsWith("body.") ? 1 : 0);
  // A body that can be several things names the one it was taken for.
  const data = steps.indexOf("data");
  return data < 0 ? null : steps.slice(data + 1);
}

/** `owner` is what shows the turn: { turn, setTurn, onChange, overtaken(wait, problem) }. */
export class Answers {
  /** By wait; those at rest have none. */
  acts = {};
  #owner;
  #last = { text: "", key: "" };

  constructor(owner) {
    this.#owner = owner;
  }

  of(wait) { return this.acts[keyOf(wait)] ?? REST; }

  rest() { this.acts = {}; }

  /** Sends `body` as the answer to `wait`; true when the server has taken it. */
  async send(wait, body, width = 0) {
    if (this.of(wait).sending) return false;
    const { turnId } = this.#owner.turn;
    this.#set(wait, { sending: body.command, width });
    try {
      const turn = await api.answer(turnId, body, this.#key(turnId, body));
      this.#last = { text: "", key: "" };
      this.#set(wait, {});
      if (this.#owner.turn?.turnId === turnId) this.#owner.setTurn(turn);
      return true;
    } catch (error) {
      const act = await this.#refused(wait, turnId, error);
      this.#set(wait, act);
      return false;
    }
  }

  /** The reader changed what was refused. */
  edited(wait) {
    if (this.of(wait).problem || this.of(wait).errors) this.#set(wait, {});
  }

  #set(wait, act) {
    this.acts[keyOf(wait)] = { ...REST, ...act };
    this.#owner.onChange();
  }

  /** The same answer keeps its key until it has arrived. */
  #key(turnId, body) {
    const text = JSON.stringify([turnId, body]);
    if (this.#last.text !== text) this.#last = { text, key: newId() };
    return this.#last.key;
  }

  async #refused(wait, turnId, error) {
    const { title, detail, code } = problemOf(error);
    const problem = `${title} ${detail}${code ? ` (${code})` : " Pressing again does no harm."}`;
    if (!(error instanceof Refused)) return { problem };
    this.#last = { text: "", key: "" };
    if (error.status === 422 && error.problem.errors?.length) {
      return { errors: error.problem.errors.map((one) => ({ path: placeOf(one), text: one.detail ?? one.problem ?? "" })) };
    }
    if (error.status !== 409) return { problem };
    const turn = await api.turn(turnId).catch(() => null);
    if (turn && this.#owner.turn?.turnId === turnId) this.#owner.setTurn(turn);
    if (!turn || turn.waits.some((one) => keyOf(one) === keyOf(wait))) return { problem };
    // Somebody was faster: news, not a fault.
    this.#owner.overtaken(wait, turn);
    return {};
  }
}
