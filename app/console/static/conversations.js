// The list of conversations: those that wait first, then by day.

import { api, serverNow } from "./api.js";
import { h, swap } from "./dom.js";
import { icon } from "./icons.js";
import { link } from "./link.js";
import { firstVisit, loading, notLoaded } from "./panes.js";
import { active, clock, dayOf, daysAgo, waits, wordsOf } from "./words.js";

const EVERY_MS = 10_000;

const COLOUR = { wait: "c-wait", ext: "c-ext", run: "c-run spin", fail: "c-fail" };

const statusOf = (item) => (item.activeTurn ?? item.lastTurn)?.status ?? null;
const isHeld = (item) => item.activeTurn?.held === true;

function dayName(item) {
  const at = Date.parse(item.updatedAt);
  const days = daysAgo(at, serverNow());
  return days <= 0 ? "Today" : days === 1 ? "Yesterday" : dayOf(at);
}

function group(items) {
  const groups = new Map();
  const waiting = items.filter((item) => waits(statusOf(item)));
  if (waiting.length) groups.set("Waiting", waiting);
  for (const item of items) {
    if (waits(statusOf(item))) continue;
    const name = dayName(item);
    groups.set(name, [...(groups.get(name) ?? []), item]);
  }
  return groups;
}

function row(item, current) {
  const status = statusOf(item);
  const [word, symbol, tone] = status ? wordsOf(status, isHeld(item)) : ["Nothing said yet", "chat", ""];
  const at = Date.parse(item.updatedAt);
  return h("li", {}, h("a", {
    class: "conv", href: `#c=${encodeURIComponent(item.conversationId)}`,
    "aria-current": item.conversationId === current ? "page" : null,
    "data-focus": `conv-${item.conversationId}`,
  },
  icon(symbol, COLOUR[tone] ?? "quiet"),
  h("span", { class: "t" }, h("span", { class: "vh" }, `${word}: `), item.title || "New conversation"),
  h("time", { datetime: item.updatedAt }, clock(at)),
  h("span", { class: "d" }, word)));
}

export function conversations(place, onItems) {
  let items = null;
  let cursor = null;
  let current = null;
  let error = null;
  let element = h("div");
  let busy = false;
  let older = [];
  place.replaceChildren(element);

  function draw() {
    const fresh = h("div", {});
    if (items === null && error) fresh.append(notLoaded("This list", error, refresh));
    else if (items === null) fresh.append(loading());
    else if (items.length === 0) {
      fresh.append(h("div", { class: "at-list-only" }, firstVisit(true)), h("p", { class: "note" }, "Conversations appear here."));
    }
    else {
      for (const [name, members] of group([...items, ...older])) {
        fresh.append(h("h3", {}, name), h("ul", {}, ...members.map((item) => row(item, current))));
      }
      if (cursor) fresh.append(h("button", { type: "button", class: "btn plain", "data-focus": "older", onclick: more }, "Show older"));
    }
    // The list is drawn anew only where it differs: a poll must not disturb who reads or scrolls.
    if (fresh.isEqualNode(element)) return;
    element = swap(element, fresh);
  }

  async function refresh() {
    if (busy) return;
    busy = true;
    try {
      const page = await api.conversations();
      items = page.items;
      const known = new Set(items.map((item) => item.conversationId));
      older = older.filter((item) => !known.has(item.conversationId));
      if (older.length === 0) cursor = page.nextCursor ?? null;
      error = null;
      onItems([...items, ...older]);
    } catch (problem) {
      error = problem;
    } finally {
      busy = false;
    }
    draw();
  }

  async function more() {
    const page = await api.conversations(cursor).catch(() => null);
    if (!page) return;
    older = [...older, ...page.items];
    cursor = page.nextCursor ?? null;
    draw();
  }

  setInterval(() => { if (!document.hidden && (items || error)) refresh(); }, EVERY_MS);
  document.addEventListener("visibilitychange", () => { if (!document.hidden && items) refresh(); });
  link.onTryNow(refresh);

  return {
    refresh,
    draw,
    select(conversation) { current = conversation; draw(); },
    get waiting() { return (items ?? []).filter((item) => waits(statusOf(item))).length; },
    get empty() { return items !== null && items.length === 0; },
    find: (conversation) => [...(items ?? []), ...older].find((item) => item.conversationId === conversation),
    /** What the open conversation already knows, without asking again. */
    patch(conversation, turn) {
      const item = items?.find((one) => one.conversationId === conversation);
      if (!item) return;
      item.activeTurn = active(turn.status) ? { turnId: turn.turnId, status: turn.status, held: turn.held, failureId: turn.failureId } : null;
      item.lastTurn = { turnId: turn.turnId, status: turn.status };
      draw();
    },
  };
}
