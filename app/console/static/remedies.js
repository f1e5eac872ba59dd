// What may be changed with a retry, as a card offers it: the server's word (`changes` and `models` of
// the action), with a title and its price.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { HOPELESS, hold } from "./pressing.js";

/** How many turns before this one are kept, of `earlier`; the model would be given the others no longer. */
const toKeep = (earlier) => (earlier > 6 ? 6 : Math.floor(earlier / 2));

const turns = (n) => (n === 1 ? "the last turn" : `the last ${n} turns`);

const TOKENS = 1_000;
const MOST_TOKENS = 1_000_000_000;

function shorten() {
  return {
    key: "compact", title: "Shorten the history, then retry", label: "Shorten", changes: { compact: true },
    price: "Older messages are summed up. Nothing stored is changed.",
  };
}

function keep(earlier) {
  const n = toKeep(earlier);
  return {
    key: "keepTurns", title: n ? `Keep only ${turns(n)} before this one` : "Leave out what came before this turn",
    label: n ? `Keep ${n}` : "Leave out", changes: { keepTurns: n },
    price: "The agent no longer sees what came before.",
  };
}

/** How long an answer may be is asked, since nobody has said how long it was to be. */
function answer() {
  return {
    key: "maxOutputTokens", title: "Ask for a shorter answer", label: "Ask", number: TOKENS,
    price: "At most so many tokens for an answer; 1,000 are about 750 words.",
    changesOf: (tokens) => ({ maxOutputTokens: tokens }),
  };
}

function other(model, takesMore) {
  return {
    key: `model:${model}`, title: "Retry with another model", price: model, label: "Switch", changes: { model }, isModel: true,
    ...(takesMore ? { title: "Retry with a model that may take more" } : {}),
  };
}

/** What may be changed with the action, most helpful first; `earlier`: how many turns came before. */
export function remediesOf(action, earlier = 0) {
  if (action?.command !== "RETRY_MODEL" || !action.enabled) return [];
  const may = new Set(action.changes ?? []);
  const models = may.has("model") ? action.models ?? [] : [];
  const takesMore = action.reason === "unlikely_to_help" && (action.helps ?? []).includes("other_model");
  return [
    may.has("compact") ? shorten() : null,
    may.has("maxOutputTokens") ? answer() : null,
    ...models.map((model) => other(model, takesMore)),
    may.has("keepTurns") && earlier > 0 ? keep(earlier) : null,
  ].filter(Boolean);
}

/** Where the same again does not help they stand in the card; else another model is asked for first. */
export const areOpen = (action, { choosing }) => HOPELESS.has(action?.reason) || Boolean(choosing);

/** The number as it was typed; null where it is none that the server would take. */
function numberIn(input) {
  const n = /^[0-9]+$/u.test(input.value.trim()) ? Number(input.value) : 0;
  return n >= 1 && n <= MOST_TOKENS ? n : null;
}

function row(one, { action, isFirst, busy, pressed, width, on }) {
  const mine = busy && pressed === one.key;
  const input = one.number === undefined ? null : h("input", {
    class: "input num", type: "text", inputmode: "numeric", maxlength: "10", value: String(one.number),
    "aria-label": "Tokens at most", "data-focus": `${one.key}:number`, "data-keep": one.key,
    oninput: () => input.removeAttribute("aria-invalid"),
  });
  const press = () => {
    if (busy) return;
    const n = input && numberIn(input);
    if (input && n === null) { input.setAttribute("aria-invalid", "true"); input.focus(); return; }
    on.resume(action, button.offsetWidth, { changes: one.changes ?? one.changesOf(n), pressed: one.key });
  };
  const button = h("button", {
    type: "button", class: `btn ${isFirst ? "primary" : ""}`.trim(), "data-focus": one.key, "data-change": one.key,
    "aria-disabled": busy ? "true" : null, "aria-label": one.isModel ? `Switch to ${one.price}` : `${one.label}: ${one.title}`, onclick: press,
  }, mine ? icon("run", "s spin") : null, one.label);
  const price = one.isModel ? h("code", {}, one.price) : one.price;
  return h("li", {}, h("span", {}, h("b", {}, one.title), h("small", {}, price)), input, hold(button, mine, width));
}

/** The list of what would help; null where there is nothing to be chosen. */
export function remedyList(action, view) {
  const all = remediesOf(action, view.earlier);
  if (!all.length || !areOpen(action, view) || view.asking) return null;
  const leads = HOPELESS.has(action.reason);
  return h("ul", { class: "helps", "aria-label": "What may be changed" },
    ...all.map((one, i) => row(one, { ...view, action, isFirst: leads && i === 0 })));
}

/** Opens the choice of another model, where the card does not show it anyway. */
export function chooseButton(action, view) {
  if (HOPELESS.has(action?.reason) || view.busy || !remediesOf(action, view.earlier).length) return null;
  return h("button", {
    type: "button", class: "btn", "data-focus": "choose", "aria-expanded": view.choosing ? "true" : "false",
    onclick: () => view.on.choose(!view.choosing),
  }, "Retry with another model");
}

/** What a press on one of them does, while it is on its way. */
export function changingNow({ turn, pressed, earlier }) {
  const one = pressed && remediesOf(turn.actions.find((action) => action.command === "RETRY_MODEL"), earlier).find(({ key }) => key === pressed);
  if (!one) return null;
  if (one.isModel) return `Asking ${one.price} instead.`;
  return {
    compact: "Summing up what came before, then asking the model again.",
    keepTurns: "Asking the model again without what came before.",
    maxOutputTokens: "Asking the model again for a shorter answer.",
  }[one.key];
}
