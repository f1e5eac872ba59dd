// Text of models, tools and people on the page: paragraphs and code fences, nothing else. No link
// is made, no image is loaded, and characters that hide are shown.

import { h, say } from "./dom.js";
import { marks } from "./hidden.js";

// Joiners and variation selectors belong to the spelling of Persian, of Indic scripts and of emoji.
const JOINS = /[\u200C\u200D]/u;
const SELECTS = /[\uFE0E\uFE0F]/u;
const SPELLED = /[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F]/u;
const SELECTED = /[\p{Emoji}]/u;

/** The text as it is stored, each hidden character as a mark. */
export const marked = (text) => marks(text);

/** What a person wrote: joiners between letters or emoji are spelling and get no mark. */
export const said = (text) => marks(text, { spells });

const spells = (character, before, after) =>
  (JOINS.test(character) && SPELLED.test(before) && SPELLED.test(after)) || (SELECTS.test(character) && SELECTED.test(before));

/** Paragraphs and fenced code. A fence that is still open while the text streams is code already. */
export function blocks(text) {
  const found = [];
  let code = null;
  let lines = [];
  const flush = (kind) => {
    const body = lines.join("\n");
    if (kind === "pre" || body.trim() !== "") found.push({ kind, text: kind === "pre" ? body : body.trim() });
    lines = [];
  };
  for (const line of text.split("\n")) {
    const fence = /^ {0,3}(`{3,}|~{3,})/.exec(line)?.[1];
    if (code === null && fence) { flush("p"); code = fence; continue; }
    if (code !== null && fence && line.trim().startsWith(code)) { flush("pre"); code = null; continue; }
    if (code === null && line.trim() === "") flush("p");
    else lines.push(line);
  }
  flush(code === null ? "p" : "pre");
  return found;
}

const make = (kind) => (kind === "pre" ? h("pre", { class: "code" }) : h("p"));

/** Brings `element` up to `text`, touching only the blocks that differ. */
export function prose(element, text, { live = false } = {}) {
  const wanted = blocks(text);
  wanted.forEach((block, i) => {
    const old = element.children[i];
    if (old?.localName === block.kind) { say(old, block.text); return; }
    const fresh = make(block.kind);
    fresh.textContent = block.text;
    if (old) old.replaceWith(fresh);
    else element.append(fresh);
  });
  while (element.children.length > wanted.length) element.lastElementChild.remove();
  const caret = element.querySelector(".caret");
  if (live) {
    // A reader of the screen hears an answer once, when it is whole.
    element.setAttribute("aria-busy", "true");
    (element.lastElementChild ?? element.appendChild(h("p"))).append(caret ?? h("span", { class: "caret", "aria-hidden": "true" }));
  } else {
    element.removeAttribute("aria-busy");
    caret?.remove();
  }
}
