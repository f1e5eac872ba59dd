// Text of models, tools and people on the page: paragraphs and code fences, nothing else. No link
// is made, no image is loaded, and characters that hide are shown.

import { h, say } from "./dom.js";

// C0 (without tab and line feed), C1, zero width, direction and tag characters.
const HIDDEN = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200B-\u200F\u2028-\u202E\u2060-\u2069\uFEFF\u{E0000}-\u{E007F}]/gu;

const codePoint = (character) => `U+${character.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}`;

// Joiners belong to the spelling of Persian, of Indic scripts and of emoji families.
const JOINERS = /[\u200C\u200D]/u;
const SPELLED = /[\p{L}\p{M}\p{Extended_Pictographic}\p{Emoji_Modifier}\uFE0F]/u;

/** The text as it is stored, each hidden character as a mark. */
export const marked = (text) => marks(text, () => false);

/** What a person wrote: joiners between letters or emoji are spelling and get no mark. */
export const said = (text) =>
  marks(text, (character, before, after) => JOINERS.test(character) && SPELLED.test(before) && SPELLED.test(after));

function marks(text, isSpelling) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(HIDDEN)) {
    const end = match.index + match[0].length;
    const before = [...text.slice(Math.max(match.index - 2, 0), match.index)].at(-1) ?? "";
    const after = [...text.slice(end, end + 2)][0] ?? "";
    if (isSpelling(match[0], before, after)) continue;
    if (match.index > from) nodes.push(document.createTextNode(text.slice(from, match.index)));
    nodes.push(h("span", { class: "ctl" }, codePoint(match[0])));
    from = end;
  }
  nodes.push(document.createTextNode(text.slice(from)));
  return nodes;
}

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
