// One open conversation: loads it, follows its newest turn, and sends what the reader writes.

import { Refused, api, newId } from "./api.js";
import { Answers } from "./answers.js";
import { Beside } from "./beside.js";
import { Commands, newsOf } from "./commands.js";
import { announce } from "./dom.js";
import { linesOf } from "./history.js";
import { endsTurn, isBegin, isNews } from "./kinds.js";
import { Line } from "./line.js";
import { problemOf } from "./problems.js";
import { follow } from "./stream.js";
import { touch } from "./touch.js";
import { waitTitle } from "./waittitles.js";
import { titleAndRest, waits, works } from "./words.js";

/** What a message to a turn at work does. */
const LATER = new Set(["queue", "steer"]);

/** A replay that takes longer than this is shown as far as it came. */
const PATIENCE_MS = 2_000;

async function allMessages(conversation) {
  const found = [];
  let cursor = null;
  do {
    const page = await api.messages(conversation, cursor);
    found.push(...page.items);
    cursor = page.nextCursor ?? null;
  } while (cursor);
  return found.sort((a, b) => a.position - b.position);
}

export class Thread {
  conversationId = null;
  lines = []; // turns before the newest
  line = null; // the newest turn
  turn = null; // its resource, as the server last told it
  state = "blank"; // blank, loading, ready, missing, failed
  error = null;
  sending = false;
  sendProblem = null;
  commands; // what is asked of the turn
  answers; // what is said to what it waits for
  beside; // what the cards show beside it
  #messages = [];
  #stream = null;
  #target = 0;
  #epoch = 0;
  #reading = false;
  #readAgain = false;
  #pending = null; // the message on its way: { text, messageId, conversationId }

  constructor(onChange, onTurn) {
    this.onChange = onChange;
    this.commands = new Commands(this);
    this.answers = new Answers(this);
    this.beside = new Beside(onChange);
    this.onTurn = onTurn;
  }

  /** False while the past of the newest turn is still coming in: then nothing flickers by. */
  get settled() {
    return !this.line || this.line.sequence >= this.#target;
  }

  tryNow() { this.#stream?.tryNow(); }

  /** Opens a conversation; `null` is one that does not exist yet. */
  async open(conversationId) {
    this.#leave();
    const epoch = this.#epoch;
    this.conversationId = conversationId;
    this.state = conversationId === null ? "blank" : "loading";
    this.onChange();
    if (conversationId === null) return;
    try {
      const conversation = await api.conversation(conversationId);
      const newest = conversation.activeTurn ?? conversation.lastTurn;
      const [messages, turn] = await Promise.all([allMessages(conversationId), newest ? api.turn(newest.turnId) : null]);
      if (epoch !== this.#epoch) return;
      this.#messages = messages;
      this.lines = [...linesOf(messages.filter((message) => message.turnId !== turn?.turnId)).values()];
      this.state = "ready";
      if (turn) this.#follow(turn);
    } catch (error) {
      if (epoch !== this.#epoch) return;
      this.state = error instanceof Refused && error.status === 404 ? "missing" : "failed";
      this.error = error;
    }
    this.onChange();
  }

  close() {
    this.#leave();
    this.conversationId = null;
    this.state = "blank";
  }

  #leave() {
    this.#epoch += 1;
    this.#stream?.stop();
    Object.assign(this, { lines: [], line: null, turn: null, error: null, sending: false, sendProblem: null });
    this.commands.rest();
    this.answers.rest();
    this.#pending = null;
  }

  #follow(turn) {
    this.#stream?.stop();
    if (this.line) this.lines.push(this.line);
    const line = new Line(turn.turnId);
    Object.assign(this, { line, turn });
    this.commands.rest();
    this.#target = turn.version ?? 0;
    setTimeout(() => { if (this.line === line && !this.settled) { this.#target = 0; this.onChange(); } }, PATIENCE_MS);
    this.#stream = follow(turn.turnId, {
      onEvents: (events) => this.#take(line, events),
      onEnd: () => {},
      onRefused: () => this.#fromMessages(line),
    });
    this.onTurn(turn);
  }

  #take(line, events) {
    if (this.line !== line) return;
    const fresh = events.filter((event) => line.apply(event));
    const changes = (event) => isNews(event) || (this.turn.status === "READY" && isBegin(event));
    if (fresh.some(changes) && line.sequence > (this.turn.version ?? 0)) this.read();
    if (fresh.some((event) => event.type === "TURN_RESUMED")) this.commands.rest();
    if (fresh.some(endsTurn) && line.queued.size > 0) this.catchUp();
    this.onChange();
  }

  /** Another turn is the newest: the queue opened it, or somebody else did. What came between is shown as well. */
  async catchUp() {
    const { conversationId, line } = this;
    const epoch = this.#epoch;
    const found = await api.conversation(conversationId).catch(() => null);
    const newest = found?.activeTurn ?? found?.lastTurn;
    if (!newest) return; // the list of conversations comes by again
    const [messages, turn] = await Promise.all([allMessages(conversationId), api.turn(newest.turnId)]).catch(() => []);
    if (!turn || epoch !== this.#epoch || this.line !== line || turn.turnId === line?.turnId) return;
    this.#follow(turn);
    this.#target = 0;
    const known = new Set([turn.turnId, ...this.lines.map((one) => one.turnId)]);
    this.lines.push(...linesOf(messages.filter((message) => !known.has(message.turnId))).values());
    this.onChange();
  }

  /** Events that cannot be read are no reason to hide what was said. */
  #fromMessages(line) {
    if (this.line !== line) return;
    this.line = linesOf(this.#messages.filter((message) => message.turnId === line.turnId)).get(line.turnId) ?? line;
    this.#target = 0;
    this.onChange();
  }

  /** Reads the turn again; calls that come meanwhile become one more reading. */
  async read() {
    if (this.#reading) { this.#readAgain = true; return; }
    this.#reading = true;
    do {
      this.#readAgain = false;
      const turnId = this.turn?.turnId;
      const turn = turnId ? await api.turn(turnId).catch(() => null) : null;
      if (turn && turn.turnId === this.turn?.turnId) this.setTurn(turn);
    } while (this.#readAgain);
    this.#reading = false;
  }

  /** The turn as an answer told it; an older answer that comes late changes nothing. */
  setTurn(turn) {
    const before = this.turn;
    if ((turn.version ?? 0) < (before.version ?? 0)) return;
    this.turn = turn;
    if (turn.failureId !== before.failureId || turn.status !== before.status) this.commands.turned(turn);
    if (turn.status !== before.status) {
      this.#tell(turn);
      this.onTurn(turn);
    }
    this.onChange();
  }

  /** A press on a button of the turn came too late. */
  news(problem) {
    const wait = this.line.steps.findLast((step) => step.kind === "wait");
    if (wait) touch(wait).news = newsOf(problem, wait.failureId);
  }

  /** An answer to a call's wait came too late. */
  overtaken(wait) {
    const step = this.line.asks.of(wait);
    if (step) touch(step).isStale = true;
    this.onChange();
  }

  #tell(turn) {
    const question = turn.suspension?.question;
    const asked = waits(turn.status) && turn.waits?.find((wait) => wait.callId);
    if (asked) announce(`The turn waits: ${waitTitle(asked)}`);
    else if (question) announce(`The agent asks: ${question}`);
    else if (turn.status === "PAUSED") announce(turn.message ?? "The turn is paused.");
    else if (waits(turn.status)) {
      const [title] = titleAndRest(turn.message ?? "");
      announce(`The turn waits: ${title ? title[0].toLowerCase() + title.slice(1) : "nothing is lost"}`);
    } else if (turn.status === "COMPLETED") announce(`The agent answered. ${this.line?.answer ?? ""}`);
    else if (!works(turn.status)) announce("The turn has ended.");
  }

  // ---- what the reader asks ----

  async send(text, when) {
    this.sending = true;
    this.sendProblem = null;
    this.onChange();
    const epoch = this.#epoch;
    // The same text goes out under the same id, so that sending it again cannot double it.
    // A conversation begins with its first message; its id is ours for the same reason.
    if (this.#pending?.text !== text) {
      this.#pending = { text, messageId: newId(), conversationId: this.conversationId ?? newId() };
    }
    const pending = this.#pending;
    try {
      const turn = when === "instead"
        ? await api.replan(this.turn.turnId, text, pending.messageId)
        : await api.send(pending.conversationId, text, pending.messageId, LATER.has(when) ? when : undefined);
      if (epoch !== this.#epoch) return null;
      this.#pending = null;
      this.sending = false;
      this.#accepted(pending, turn, when);
      return pending.conversationId;
    } catch (error) {
      if (epoch !== this.#epoch) return null;
      this.sending = false;
      this.sendProblem = { ...problemOf(error), ...(error instanceof Refused ? {} : { title: "Not sent." }) };
      if (error instanceof Refused && error.status === 409) this.read();
      this.onChange();
      return null;
    }
  }

  #accepted(pending, turn, when) {
    this.conversationId = pending.conversationId;
    this.state = "ready";
    if (turn.turnId === this.turn?.turnId) {
      this.setTurn(turn);
      // What waits or becomes a call's result is no message yet; the events tell when it is.
      if (LATER.has(when) || when === "result") return;
    } else {
      this.#follow(turn);
      this.#target = 0;
    }
    this.line.say(pending.messageId, pending.text, Date.parse(turn.updatedAt));
    this.onChange();
  }

  /** The text was changed: what was refused no longer stands there. */
  edited() {
    if (!this.sendProblem) return;
    this.sendProblem = null;
    this.onChange();
  }
}
