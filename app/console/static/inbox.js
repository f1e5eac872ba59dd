// The inbox: everything that waits for the reader, oldest first, with the card of one of them beside it.

import { cardView } from "./cards.js";
import { cancelOf } from "./context.js";
import { Desk } from "./desk.js";
import { h, swap } from "./dom.js";
import { art, icon } from "./icons.js";
import { loading, notLoaded } from "./panes.js";
import { conversationAddress } from "./place.js";
import { marked } from "./text.js";
import { cardOf } from "./waitcards.js";
import { WaitList, waitKey } from "./waitlist.js";
import { TABS, waitRow } from "./waitrows.js";

/** A turn that goes on often comes back soon with what it needs next. */
const SOON_MS = 2_000;

const empty = () => h("div", { class: "empty" }, art("begun"), h("h2", {}, "Nothing waits for you"),
  h("p", {}, "Approvals, forms and turns that wait appear here."));

const goneLine = (sentence) =>
  h("p", { class: "gone", role: "status", tabindex: "-1" }, icon("done"), h("span", {}, ...marked(sentence)));

/** `onCount(text)` is told how many wait. */
export function inbox(place, onCount) {
  const tabs = h("div", { class: "tabs", role: "group", "aria-label": "Kinds of waits" });
  const shelf = h("div", { class: "panel" });
  const beside = h("div", { class: "wait-card", tabindex: "-1" });
  place.replaceChildren(
    h("header", { class: "page-head" }, h("div", {}, h("h1", {}, "Waiting for me"),
      h("p", {}, "Oldest first. Work that waits costs nothing and loses nothing."))),
    tabs, h("div", { class: "inbox" }, shelf, beside));

  const gone = new Map(); // key -> { item, sentence }: what was answered since the list was opened
  let tab = "All";
  let wanted = null; // the key that the address names
  let isOpen = false;
  let element = h("div");
  let card = null;
  let shown = "";
  shelf.append(element);

  const desk = new Desk(draw, (item, sentence) => {
    gone.set(waitKey(item), { item, sentence });
    list.refresh();
    setTimeout(() => list.refresh(), SOON_MS);
  });
  const on = {
    resume: (action, width, more) => desk.commands.resume(action, width, more),
    askCancel: () => desk.commands.ask(true),
    keep: () => desk.commands.ask(false),
    choose: (choosing) => desk.commands.choose(choosing),
    cancel: () => desk.commands.cancel(),
  };
  const list = new WaitList(() => {
    const count = list.items?.length ?? 0;
    onCount(count === 0 ? "" : `${count}${list.hasMore ? "+" : ""}`);
    if (isOpen && desk.item && !desk.over) desk.read();
    draw();
  });

  function rows() {
    const items = [...(list.items ?? []), ...[...gone.values()].map(({ item }) => item)];
    const byKey = new Map(items.map((item) => [waitKey(item), item]));
    return [...byKey.values()].sort((a, b) => Date.parse(a.wait.requestedAt) - Date.parse(b.wait.requestedAt));
  }

  const under = (items, name) => (TABS[name] ? items.filter((item) => TABS[name].includes(item.wait.suspensionType)) : items);

  function drawTabs(items) {
    const fresh = Object.keys(TABS).map((name) => [name, under(items, name).filter((item) => !gone.has(waitKey(item))).length])
      .filter(([name, count]) => name === "All" || name === tab || count > 0)
      .map(([name, count]) => h("button", {
        type: "button", "aria-pressed": String(name === tab), "data-focus": `tab-${name}`, onclick: () => { tab = name; draw(); },
      }, name, " ", h("span", { class: "n num" }, String(count))));
    const next = h("div", { class: "tabs", role: "group", "aria-label": "Kinds of waits" }, ...fresh);
    if (!next.isEqualNode(tabs)) {
      const focused = tabs.contains(document.activeElement) ? document.activeElement.dataset.focus : null;
      tabs.replaceChildren(...next.children);
      if (focused) tabs.querySelector(`[data-focus="${focused}"]`)?.focus();
    }
  }

  function drawList(items, current) {
    const fresh = h("div");
    if (list.items === null) fresh.append(list.error ? notLoaded("The inbox", list.error, () => list.refresh()) : loading());
    else if (items.length === 0) fresh.append(empty());
    else {
      fresh.append(h("ul", { class: "waits" }, ...items.map((item) =>
        waitRow(item, { isCurrent: item === current, over: gone.get(waitKey(item))?.sentence }))));
      if (list.hasMore) fresh.append(h("button", { type: "button", class: "btn plain", "data-focus": "more", onclick: () => list.more() }, "Show more"));
    }
    if (!fresh.isEqualNode(element)) element = swap(element, fresh);
  }

  /** What the card beside the list is about: what was asked for, and otherwise what waits longest. */
  function currentOf(items) {
    return items.find((item) => waitKey(item) === wanted) ?? (wanted === null ? items[0] : null) ?? null;
  }

  function drawCard(current) {
    if (current === null) {
      desk.close();
      shown = "";
      beside.replaceChildren(...(wanted === null ? [] : [h("p", { class: "gone" }, icon("info"), "This no longer waits.")]));
      return;
    }
    if (!desk.item || waitKey(desk.item) !== waitKey(current)) desk.open(current);
    const sentence = desk.over ?? gone.get(waitKey(current))?.sentence;
    const key = `${waitKey(current)}${sentence ?? ""}`;
    if (key !== shown) {
      shown = key;
      const links = h("p", { class: "small to" },
        h("a", { class: "back-to-list", href: "#inbox" }, "All that waits"),
        h("a", { href: conversationAddress(current.conversationId) }, "Open the conversation"));
      card = sentence ? null : cardOf(viewOf()) ?? cardView();
      const hadFocus = beside.contains(document.activeElement);
      beside.replaceChildren(sentence ? goneLine(sentence) : card.element, links);
      if (hadFocus) beside.querySelector(".gone")?.focus({ preventScroll: true });
    }
    if (!card) return;
    const before = card.element;
    const hadFocus = beside.contains(document.activeElement);
    card.update(viewOf());
    // A card of a turn draws itself anew; where it stood then stands nothing of ours.
    if (before !== card.element && !beside.contains(card.element)) before.replaceWith(card.element);
    // The button that was pressed may be gone; what comes of it is told here.
    if (hadFocus && !beside.contains(document.activeElement)) beside.focus({ preventScroll: true });
  }

  /** As waitcards.js and cards.js describe it; both take what they know. */
  function viewOf() {
    const { turn, wait, answers, commands, beside: more } = desk;
    more.look(turn);
    const until = Date.parse(turn.retryAt ?? "") || null;
    return {
      turn, wait: { ...wait, since: Date.parse(wait.requestedAt), until, failure: wait.modelFailure ?? null },
      ...commands.act, on, kept: null, tries: 0, until,
      act: answers.of(wait), answer: (body, width) => desk.answer(body, width),
      approvals: more.decided(wait.callId), claim: more.claim(wait.callId), effect: null,
      cancel: cancelOf(turn, commands.act, on),
      elsewhere: () => { location.hash = conversationAddress(desk.conversationId); },
    };
  }

  function draw() {
    if (!isOpen) return;
    const items = rows();
    const some = under(items, tab);
    const current = currentOf(wanted === null ? some : items);
    drawTabs(items);
    drawList(some, current);
    drawCard(current);
    place.classList.toggle("at-wait", wanted !== null);
  }

  /** Where only one of the two is to be seen, the focus goes from the row to its card and back. */
  function follow(before) {
    if (place.contains(document.activeElement) && document.activeElement.checkVisibility()) return;
    if (wanted !== null) beside.focus({ preventScroll: true });
    else if (before !== null) element.querySelector(`[data-focus="${CSS.escape(before)}"]`)?.focus();
  }

  setInterval(() => { if (isOpen) card?.tick(); }, 1_000);

  return {
    refresh: () => list.refresh(),
    open(key) {
      if (!isOpen) list.refresh();
      isOpen = true;
      const before = wanted;
      wanted = key;
      draw();
      follow(before);
    },
    /** What was answered is forgotten: the list is made anew when it is opened again. */
    close() {
      isOpen = false;
      gone.clear();
      desk.close();
      shown = "";
      card = null;
    },
  };
}
