// One wait that is looked at outside its conversation: its turn, read again as it changes, and what
// became of it when it waits no longer.

import { Answers, keyOf } from "./answers.js";
import { api, serverNow } from "./api.js";
import { Beside } from "./beside.js";
import { Commands, newsOf } from "./commands.js";
import { moment } from "./words.js";

const DONE = {
  APPROVE_TOOL: "You approved this",
  REJECT_TOOL: "You rejected this",
  USER_INPUT: "You answered this",
  TOOL_RESULT: "You gave the result",
  TOOL_ERROR: "You reported an error",
};

const isPersons = (wait) => ["TOOL_APPROVAL", "USER_INPUT", "EXTERNAL_TOOL"].includes(wait.suspensionType);

export class Desk {
  item = null;
  turn = null;
  over = null; // what became of the wait: a sentence
  #isOurs = false; // our own answer is on its way
  #onOver;

  /** `onOver(item, sentence)` is told when the wait is over. */
  constructor(onChange, onOver) {
    this.onChange = onChange;
    this.#onOver = onOver;
    this.commands = new Commands(this);
    this.answers = new Answers(this);
    this.beside = new Beside(onChange);
  }

  get conversationId() { return this.item.conversationId; }

  /** The wait as the turn has it now, or as the list told it. */
  get wait() { return this.turn.waits?.find((one) => keyOf(one) === keyOf(this.item.wait)) ?? this.item.wait; }

  open(item) {
    const { turnId, conversationId, agentId, status, actions, wait } = item;
    this.item = item;
    this.over = null;
    // Enough for a card, until the turn has been read.
    this.turn = { turnId, conversationId, agentId, status, actions, waits: [wait], version: -1 };
    this.commands.rest();
    this.answers.rest();
    this.read();
  }

  close() { this.item = null; this.turn = null; }

  async read() {
    const { turnId } = this.turn;
    const turn = await api.turn(turnId).catch(() => null);
    if (turn && this.turn?.turnId === turnId) this.setTurn(turn);
  }

  setTurn(turn) {
    if (turn.version < this.turn.version) return;
    if (turn.status !== this.turn.status) this.commands.turned(turn);
    this.turn = turn;
    if (!this.over && !this.#isOurs && !this.#stillWaits()) this.overtaken(this.item.wait);
    this.onChange();
  }

  #stillWaits() {
    const { wait, status } = this.item;
    if (!isPersons(wait)) return this.turn.status === status && (!wait.correlationId || this.turn.failureId === wait.correlationId);
    return this.turn.waits.some((one) => keyOf(one) === keyOf(wait));
  }

  async answer(body, width) {
    this.#isOurs = true;
    const taken = await this.answers.send(this.item.wait, body, width);
    this.#isOurs = false;
    if (taken) this.#end(`${DONE[body.command]} at ${moment(serverNow(), serverNow())}.`);
  }

  news(problem) { this.#end(newsOf(problem, this.item.wait.correlationId).join(" ")); }

  /** It waits no longer, and not by our doing. */
  async overtaken(wait) {
    if (this.over) return;
    this.over = "This no longer waits.";
    const { item, turn } = this;
    const decision = wait.suspensionType === "TOOL_APPROVAL" ? await this.beside.decision(turn.turnId, wait) : null;
    if (this.item !== item) return;
    const changed = moment(Date.parse(turn.updatedAt), serverNow());
    this.#end(decision
      ? `Already ${decision.approved ? "approved" : "rejected"} by ${decision.actorId} at ${moment(Date.parse(decision.decidedAt), serverNow())}.`
      : `This no longer waits. Its turn went on at ${changed}.`);
  }

  #end(sentence) {
    this.over = sentence;
    this.#onOver(this.item, sentence);
    this.onChange();
  }
}
