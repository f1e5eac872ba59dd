// What a card of a turn that waits says, apart from time and buttons: title, sentence, icon, facts.
// Title and sentence are the server's `message`, cut in two.

import { answerBefore } from "./cardparts.js";
import { h } from "./dom.js";
import { FAILURE_ICON, count, langOf, limitName, moment, pointInTime, titleAndRest } from "./words.js";

const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));

/** { lang, symbol, tone, title, text }; `now` is the server's. */
export function wording(view, now) {
  const { status } = view.turn;
  if (status === "PAUSED") return paused(view, now);
  if (status === "RETRY_SCHEDULED") return tryingAgain(view, now);
  if (status === "WAITING_FOR_USER") return asking(view);
  return waitingForModel(view);
}

/** The question itself stands above, as the agent's words. */
function asking({ turn }) {
  const message = turn.message ?? "";
  const [title, text] = titleAndRest(message);
  return { lang: langOf(message), symbol: "chat", tone: "", title: title || "The agent asks you something", text };
}

/** A pause has a time and a next step; a limit is named by the server. */
function paused({ turn, wait }, now) {
  const message = turn.message ?? "";
  const lang = langOf(message);
  const [title, text] = titleAndRest(message);
  if (turn.pause && turn.pause.cause !== "person") {
    const untold = turn.pause.cause === "limit" ? "Paused at a limit" : "Paused after a crash";
    return { lang, symbol: "pause", tone: "", title: title || untold, text };
  }
  return { lang: null, textLang: lang, symbol: "pause", tone: "run", title: `Paused at ${moment(wait.since, now)}`, text };
}

function tryingAgain({ turn, wait }, now) {
  const tool = !turn.suspension?.modelFailure && !wait.failure;
  const [reason] = titleAndRest(turn.message ?? (tool ? "A tool failed." : ""));
  const next = wait.until ? `The next attempt follows at ${pointInTime(wait.until, now)}.` : "";
  return {
    lang: null, symbol: "clock", tone: "run",
    title: tool ? "Trying a tool again by itself" : "Trying again by itself",
    text: [reason && `${reason}.`, next].filter(Boolean).join(" "),
  };
}

function waitingForModel({ turn, due, until }) {
  const message = turn.message ?? "";
  const [title, rest] = titleAndRest(message);
  const lang = langOf(message);
  const symbol = FAILURE_ICON[turn.failureType] ?? "waits";
  if (due) return { lang: null, symbol, tone: "", title: "Ready for a retry", text: "The turn waits. The time the model asked for is over." };
  // The countdown says the time by the reader's clock; the sentence would say it once more in UTC.
  const waits = lang ? "本轮正在等待。" : "The turn waits. ";
  return { lang, symbol, tone: "", title: title || "Waiting for the model", text: until === null ? `${waits}${rest}` : waits };
}

/** A person who paused a turn knows since when: it stands in the title. */
export function waitingFacts({ turn, until, tries }) {
  if (turn.pause?.cause === "person") return null;
  const facts = [h("div", { class: "since" }, h("dt", {}, turn.pause ? "Paused" : "Waiting"), h("dd", {}))];
  if (turn.pause?.limit) facts.unshift(fact("Limit", limitName(turn.pause.limit)));
  if (turn.failureType === "QUOTA_EXCEEDED" && !until) facts.push(fact("Expected back", "not known"));
  if (tries) facts.push(fact("Tried", `${count(tries, "time", "times")} by itself`));
  return h("dl", { class: "facts" }, ...facts, turn.suspension && answerBefore(turn.suspension));
}
