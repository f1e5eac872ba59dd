// The card of a turn that waits or is paused: why, since when, what is kept, and what may be done.

import { acts, mainAction } from "./acts.js";
import { serverNow } from "./api.js";
import { h, say, swap } from "./dom.js";
import { icon } from "./icons.js";
import { operators } from "./operators.js";
import { remedyList } from "./remedies.js";
import { waitingFacts, wording } from "./wording.js";
import { count, left, long, moment, pointInTime } from "./words.js";

const check = (text) => h("span", {}, icon("check"), text);

export function keptLine(kept) {
  const items = [];
  if (kept.messages) items.push(check(kept.messages === 1 ? "your message" : `your ${kept.messages} messages`));
  if (kept.results) items.push(check(count(kept.results, "tool result", "tool results")));
  if (kept.words) items.push(check(count(kept.words, "word", "words")));
  return h("p", { class: "kept" }, h("span", { class: "kl" }, "Kept"), ...items);
}

function countdown(view) {
  const automatic = view.turn.status === "RETRY_SCHEDULED";
  return h("div", { class: "count", role: "timer", "aria-live": "off", "aria-label": automatic ? "Time until the next attempt" : "Time until a retry can succeed" },
    h("div", { class: "top" },
      h("span", { class: "muted" }, automatic ? "Next attempt" : `Ready for a retry at ${pointInTime(view.until, serverNow())}`),
      h("span", { class: "time num" })),
    h("div", { class: "bar-track", "aria-hidden": "true" }, h("span")));
}

function card(view) {
  const { lang, textLang = lang, symbol, tone, title, text } = wording(view, serverNow());
  const counts = view.until !== null && !view.due;
  return h("section", { class: "card open", "aria-label": title },
    h("div", { class: "card-head" },
      h("span", { class: `ico ${tone}` }, icon(symbol)),
      h("h2", { lang }, title),
      h("span", { class: "age num" }, counts ? moment(view.wait.since, serverNow()) : ""),
      h("p", { lang: textLang }, text)),
    h("div", { class: "card-body" },
      counts ? countdown(view) : waitingFacts(view),
      remedyList(mainAction(view.turn), view),
      view.kept ? keptLine(view.kept) : null),
    operators(view.turn.suspension?.modelFailure ?? view.wait.failure),
    acts(view));
}

/** The card as a view that is drawn anew when anything but the time changes. */
export function cardView() {
  let element = h("section", { class: "card open" });
  let shape = "";
  let current = null;

  function tick() {
    if (!current) return;
    const now = serverNow();
    const due = current.until !== null && now >= current.until;
    if (due !== current.due) { update(current); return; }
    const since = element.querySelector(".since dd");
    if (since) say(since, `${long(now - current.wait.since)}, since ${moment(current.wait.since, now)}`);
    const time = element.querySelector(".count .time");
    if (!time) return;
    say(time, left(current.until - now));
    const share = (now - current.wait.since) / Math.max(1, current.until - current.wait.since);
    element.querySelector(".bar-track span").style.width = `${Math.round(Math.min(1, Math.max(0, share)) * 100)}%`;
  }

  function update(view) {
    const due = view.until !== null && serverNow() >= view.until;
    current = { ...view, due };
    const { on, ...rest } = current;
    const next = JSON.stringify(rest);
    if (next !== shape) {
      shape = next;
      element = swap(element, card(current));
    }
    tick();
  }

  return {
    get element() { return element; },
    update,
    tick,
    /** A card that is over leaves no button behind. */
    close() { current = null; shape = ""; element.replaceChildren(); element.hidden = true; },
  };
}
