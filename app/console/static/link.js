// Whether the server can be reached, as far as this page knows, and the banner that says so.

import { h, say } from "./dom.js";
import { icon } from "./icons.js";
import { clock } from "./words.js";

const QUIET_MS = 3_000; // a short gap is nobody's business
const LONG_MS = 30_000;
const CAUGHT_UP_MS = 4_000;

let lostAt = null;
let nextTry = null;
let shown = false;
let foundAt = 0;
let place = null;
let state = "";
const retries = new Set();
const watchers = new Set();

export const link = {
  /** Where the banner goes. */
  mount(element) { place = element; state = ""; draw(); },
  /** `retry` is called when the reader presses "Try now". */
  onTryNow(retry) { retries.add(retry); },
  onChange(watcher) { watchers.add(watcher); },
  /** True once the gap is long enough to be told. */
  get away() { return lostAt !== null && Date.now() - lostAt >= QUIET_MS; },
  get down() { return lostAt !== null; },
  lost(tryAgainAt = null) {
    lostAt ??= Date.now();
    nextTry = tryAgainAt ?? nextTry;
    draw();
  },
  found() {
    if (lostAt === null) return;
    lostAt = null;
    nextTry = null;
    if (shown) foundAt = Date.now();
    shown = false;
    draw();
  },
};

function wanted(now) {
  if (lostAt !== null) {
    if (now - lostAt < QUIET_MS) return "";
    return now - lostAt < LONG_MS ? "reconnecting" : "offline";
  }
  return now - foundAt < CAUGHT_UP_MS ? "connected" : "";
}

const BANNERS = {
  reconnecting: () => [
    icon("run", "spin"),
    h("span", { class: "grow" }, h("b", {}, "Reconnecting."), ` What you see is complete up to ${clock(lostAt, true)}.`),
  ],
  offline: () => [
    icon("away"),
    h("span", { class: "grow" },
      h("b", {}, `No connection since ${clock(lostAt)}.`), " The turn goes on without you.",
      h("span", { class: "next num" })),
    h("button", { type: "button", class: "btn plain", onclick: () => retries.forEach((retry) => retry()) }, "Try now"),
  ],
  connected: () => [
    icon("splice", "c-ok"),
    h("span", {}, h("b", {}, "Connected."), " Nothing is missing."),
  ],
};

function draw() {
  if (!place) return;
  const now = Date.now();
  const want = wanted(now);
  if (want !== state) {
    state = want;
    place.replaceChildren(...(want ? [h("div", { class: "banner" }, ...BANNERS[want]())] : []));
    shown = want === "reconnecting" || want === "offline";
    watchers.forEach((watcher) => watcher());
  }
  const next = place.querySelector(".next");
  if (next) say(next, nextTry > now ? ` Next try in ${Math.ceil((nextTry - now) / 1000)} s.` : "");
}

setInterval(draw, 500);
