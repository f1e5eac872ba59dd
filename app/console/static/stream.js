// Follows the events of one turn: reads, remembers how far it came, and comes back by itself.
// Reading by fetch instead of EventSource shows statuses (401, 404, 204) and the server's clock.

import { noteClock } from "./api.js";
import { link } from "./link.js";

const SILENCE_MS = 45_000; // the server sends a heartbeat every 15 s
// Often at first, when a server is only starting again; later there is no hurry.
const DELAYS_MS = [300, 1_000, 2_000, 2_000, 2_000, 3_000, 3_000, 3_000, 5_000, 5_000, 10_000, 15_000];

/** Cuts a stream of text into server-sent events. Lines end with LF, CRLF or CR. */
export function parser() {
  let rest = "";
  let event = {};
  return function feed(text) {
    rest += text;
    const found = [];
    // A CR at the very end may be the first half of a CRLF.
    const lines = /\r$/.test(rest) ? [rest] : rest.split(/\r\n|\n|\r/);
    rest = lines.pop();
    for (const line of lines) {
      if (line !== "") field(event, line);
      else {
        if (event.data !== undefined) found.push(event);
        event = {};
      }
    }
    return found;
  };
}

function field(event, line) {
  const colon = line.indexOf(":");
  if (colon === 0) return; // a comment: the heartbeat
  const name = colon < 0 ? line : line.slice(0, colon);
  const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
  event[name] = name === "data" && event.data !== undefined ? `${event.data}\n${value}` : value;
}

/**
 * Follows `turnId` from the beginning until it ends or `stop()` is called.
 * `onEvents(envelopes)` gets what arrived together; `onEnd()` is called when nothing more will come,
 * `onRefused(status)` when the server does not let us read.
 */
export function follow(turnId, { onEvents, onEnd, onRefused }) {
  let lastId = null;
  let tries = 0;
  let stopped = false;
  let wake = () => {};
  let abort = new AbortController();

  async function open() {
    const sentAt = Date.now();
    const headers = lastId === null ? {} : { "Last-Event-ID": lastId };
    const response = await fetch(`/turns/${encodeURIComponent(turnId)}/events?after=0`, {
      headers: { Accept: "text/event-stream", ...headers },
      cache: "no-store",
      signal: abort.signal,
    });
    noteClock(response, sentAt);
    return response;
  }

  async function read(body) {
    const reader = body.pipeThrough(new TextDecoderStream()).getReader();
    const feed = parser();
    for (;;) {
      const watchdog = setTimeout(() => abort.abort(), SILENCE_MS);
      const { value, done } = await reader.read().finally(() => clearTimeout(watchdog));
      if (done || stopped) return;
      tries = 0;
      link.found();
      const events = feed(value);
      const known = events.findLast((event) => event.id);
      if (known) lastId = known.id;
      if (events.length) hand(events);
    }
  }

  /** A mistake of ours must be seen, and not pass for a broken connection. */
  function hand(events) {
    try {
      onEvents(events.map((event) => JSON.parse(event.data)));
    } catch (mistake) {
      reportError(mistake);
    }
  }

  /** One connection. Says "end" when nothing more will come. */
  async function once() {
    abort = new AbortController();
    const response = await open();
    if (response.status === 204) return "end";
    if (response.ok) {
      link.found();
      await read(response.body);
      return "again";
    }
    if (response.status >= 500) return "lost";
    if (!stopped) onRefused(response.status);
    return "refused";
  }

  async function run() {
    while (!stopped) {
      // A broken connection is expected here: the turn does not need this page, nor it the turn.
      const how = await once().catch(() => "lost");
      if (stopped || how === "refused") return;
      if (how === "end") { onEnd(); return; }
      const delay = how === "again" && tries === 0 ? 0 : DELAYS_MS[Math.min(tries, DELAYS_MS.length - 1)];
      if (how === "lost") link.lost(Date.now() + delay);
      tries += 1;
      await new Promise((resolve) => { wake = resolve; setTimeout(resolve, delay); });
    }
  }

  run();
  return {
    tryNow: () => wake(),
    stop() { stopped = true; abort.abort(); wake(); },
  };
}
