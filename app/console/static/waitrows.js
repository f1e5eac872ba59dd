// The rows of the inbox: what each kind of wait is called there, and what it says of itself.

import { serverNow } from "./api.js";
import { oneLine } from "./calls.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { waitAddress } from "./place.js";
import { marked } from "./text.js";
import { waitKey } from "./waitlist.js";
import { waitTitle } from "./waittitles.js";
import { FAILURE_ICON, long, moment, titleAndRest } from "./words.js";

/** The tabs: name -> the kinds of waits under it. */
export const TABS = {
  All: null,
  Approvals: ["TOOL_APPROVAL"],
  Forms: ["USER_INPUT"],
  Outside: ["EXTERNAL_TOOL"],
  Model: ["MODEL", "RETRY"],
  Paused: ["PAUSED"],
};

const conversation = ({ title }) => title || "A conversation";

const KINDS = {
  TOOL_APPROVAL: ({ wait }) => ["shield", "c-wait", waitTitle(wait), wait.message ?? oneLine(wait.arguments ?? "")],
  USER_INPUT: ({ wait }) => [wait.schema ? "form" : "message", "c-wait", waitTitle(wait), wait.question ?? wait.message ?? ""],
  EXTERNAL_TOOL: ({ wait }) => ["ext", "c-ext", waitTitle(wait), oneLine(wait.arguments ?? "")],
  MODEL: (item) => [FAILURE_ICON[item.wait.modelFailure?.type] ?? "waits", "c-wait", `${conversation(item)} waits for the model`, titleAndRest(item.wait.modelFailure?.message ?? "")[0]],
  RETRY: (item) => ["clock", "c-wait", `${conversation(item)} tries again by itself`, ""],
  PAUSED: (item) => ["pause", "c-wait", `${conversation(item)} is paused`, ""],
};

/** Kinds that name their conversation in the title already. */
const NAMED = new Set(["MODEL", "RETRY", "PAUSED"]);

function timeOf({ expiresAt, isExpired }) {
  if (isExpired) return "Its time is over";
  return expiresAt ? `Answer before ${moment(Date.parse(expiresAt), serverNow())}` : "";
}

function detail({ wait, title }, more, over) {
  const last = over ?? timeOf(wait);
  return [NAMED.has(wait.suspensionType) ? "" : title, more, last].filter(Boolean).join(". ");
}

/** `over` is what became of it, once it waits no longer; the row stays as one line until the list is left. */
export function waitRow(item, { isCurrent, over }) {
  const { wait } = item;
  const [symbol, tone, title, more] = (KINDS[wait.suspensionType] ?? (() => ["waits", "c-wait", conversation(item), ""]))(item);
  const key = waitKey(item);
  return h("li", {}, h("a", {
    class: `wait-row${over ? " over" : ""}`, href: waitAddress(key), "aria-current": isCurrent ? "true" : null, "data-focus": key,
  },
  icon(over ? "done" : symbol, over ? "quiet" : tone),
  h("b", {}, ...marked(title)),
  h("span", { class: "age num" }, over ? "" : long(serverNow() - Date.parse(wait.requestedAt))),
  h("span", { class: "d" }, ...marked(detail(item, more, over)))));
}
