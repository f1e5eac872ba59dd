// The icons of the design, each a set of strokes in a box of 16.

const RING = "M13.8 8a5.8 5.8 0 1 1-11.6 0a5.8 5.8 0 1 1 11.6 0";

const PATHS = {
  away: "M2.5 13.5 13.5 2.5M3.8 6.4A8 8 0 0 1 8 5.2M12.2 6.4a8 8 0 0 0-1-.6M5.6 9a4 4 0 0 1 1.3-.8M10.4 9a4 4 0 0 0-.5-.4M8 11.8v.1",
  back: "M9.8 3.8 5.6 8l4.2 4.2",
  busy: "M2.5 2.8h11v3h-11zM2.5 6.6h11v3h-11zM2.5 10.4h11v3h-11zM5 4.3h.1M5 8.1h.1M5 11.9h.1",
  chat: "M2.5 3.5h11v7h-6l-3 2.5v-2.5h-2z",
  check: "m3.2 8.4 3.1 3.1 6.5-7",
  chev: "m6.2 3.8 4 4.2-4 4.2",
  clock: `${RING}M8 4.8V8l2.2 1.4`,
  cut: "M2 8h3.2M10.8 8H14M6 11.5l1.2-7M8.8 11.5 10 4.5",
  done: `${RING}M5.4 8.2l1.8 1.8 3.4-3.8`,
  ext: "M6.5 3.5H3.2v9.3h9.3V9.5M9 2.8h4.2V7M13 3 7.6 8.4",
  failed: `${RING}M6 6l4 4M10 6l-4 4`,
  form: "M4.4 2.2h7.2a1.6 1.6 0 0 1 1.6 1.6v8.4a1.6 1.6 0 0 1-1.6 1.6H4.4a1.6 1.6 0 0 1-1.6-1.6V3.8a1.6 1.6 0 0 1 1.6-1.6zM5.5 5.5h5M5.5 8h5M5.5 10.5h2.6",
  hourglass: "M4 2.3h8M4 13.7h8M4.8 2.3c0 3 6.4 3.6 6.4 5.7s-6.4 2.7-6.4 5.7M11.2 2.3c0 3-6.4 3.6-6.4 5.7s6.4 2.7 6.4 5.7",
  inbox: "M2 9.5 4 3.5h8l2 6v3.5H2zM2 9.5h3.5l1 1.5h3l1-1.5H14",
  info: `${RING}M8 7.4v3.4M8 5.2v.1`,
  message: "M2.5 3h11v7.5H8L5 13v-2.5H2.5zM5.2 6h5.6M5.2 8h3.5",
  pause: "M5.6 3.6v8.8M10.4 3.6v8.8",
  plus: "M8 3.2v9.6M3.2 8h9.6",
  quota: "M2.6 11.8a5.9 5.9 0 1 1 10.8 0M8 9.4 4.6 6.6M8.9 9.6a.9.9 0 1 1-1.8 0a.9.9 0 1 1 1.8 0",
  queue: "M2.5 4h11M2.5 8h11M2.5 12H8M12 10.2v3.6M10.2 12h3.6",
  rate: "M6 1.8h4M8 1.8v2M12.4 4.4l-1 1M13 9a5 5 0 1 1-10 0a5 5 0 1 1 10 0M8 6.4V9",
  retry: "M13 8a5 5 0 1 1-1.6-3.7M13 2.5v2.6h-2.6",
  run: "M8 2.2a5.8 5.8 0 1 1-5.5 4",
  send: "M8 13V3.4M4 7.2l4-4 4 4",
  shield: "M8 1.9 13 3.7v4.1c0 3-2 5.2-5 6.3-3-1.1-5-3.3-5-6.3V3.7zM5.7 7.9l1.7 1.7 3-3.2",
  splice: "M2 10h2.5M11.5 10H14M4.5 10c0-4.5 7-4.5 7 0M13.2 8l-1.7 2-2-1.6",
  steer: "M3 13V8.5a3 3 0 0 1 3-3h6.5M9.8 2.6l2.9 2.9-2.9 2.9",
  stop: "M5.2 4h5.6a1.2 1.2 0 0 1 1.2 1.2v5.6a1.2 1.2 0 0 1-1.2 1.2H5.2A1.2 1.2 0 0 1 4 10.8V5.2A1.2 1.2 0 0 1 5.2 4z",
  think: "M5.6 11.3c-1.4-.9-2.3-2.3-2.3-4a4.7 4.7 0 0 1 9.4 0c0 1.7-.9 3.1-2.3 4zM6 13.6h4",
  tokens: "M2.5 3.5v9M13.5 3.5v9M4.8 8h6.4M6.6 6 4.6 8l2 2M9.4 6l2 2-2 2",
  tool: "M9.6 6.4 3.4 12.6M10.2 2.8a3 3 0 0 0-1.6 4.6a3 3 0 0 0 4.6-1.6l-2 .9-1.6-1.6z",
  unknown: "M6.4 6.5a1.6 1.6 0 1 1 2.4 1.4c-.6.3-.8.6-.8 1.1M8 10.9v.1",
  user: "M10.7 5.4a2.7 2.7 0 1 1-5.4 0a2.7 2.7 0 1 1 5.4 0M2.8 13.6c.6-2.6 2.6-4 5.2-4s4.6 1.4 5.2 4",
  waits: `${RING}M6.4 6v4M9.6 6v4`,
  warn: "M8 2.4 14 13H2zM8 6.6v3M8 11.2v.1",
  x: "m4 4 8 8M12 4l-8 8",
};

const SVG = "http://www.w3.org/2000/svg";

function stroke(d, dashes) {
  const path = document.createElementNS(SVG, "path");
  path.setAttribute("d", d);
  if (dashes) path.setAttribute("stroke-dasharray", dashes);
  return path;
}

/** One icon; `classes` says its size and colour. Always decoration: the word stands beside it. */
export function icon(name, classes = "") {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", `i ${classes}`.trim());
  svg.setAttribute("viewBox", "0 0 16 16");
  svg.setAttribute("aria-hidden", "true");
  if (name === "unknown") svg.append(stroke(RING, "2.4 1.6"));
  svg.append(stroke(PATHS[name]));
  return svg;
}

/** The pictures of the empty states: the line, begun, waiting, or cut. */
const ART = {
  begun: [["M4 20h96"], ["M23.5 20a3.5 3.5 0 1 1-7 0a3.5 3.5 0 1 1 7 0", "hole"]],
  waiting: [
    ["M4 20h30M70 20h30"],
    ["M40 20h2M49 20h2M58 20h2M64 20h1", "c-wait"],
    ["M37.5 20a3.5 3.5 0 1 1-7 0a3.5 3.5 0 1 1 7 0", "hole"],
    ["M73.5 20a3.5 3.5 0 1 1-7 0a3.5 3.5 0 1 1 7 0", "hole"],
  ],
  cut: [["M4 20h40M60 20h40"], ["m47 26 3-12M54 26l3-12", "c-fail"]],
};

export function art(name) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "art");
  svg.setAttribute("viewBox", "0 0 104 40");
  svg.setAttribute("aria-hidden", "true");
  for (const [d, kind] of ART[name]) {
    const path = stroke(d);
    if (kind) path.setAttribute("class", kind);
    svg.append(path);
  }
  return svg;
}
