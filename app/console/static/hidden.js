// Characters that hide: control, format, direction and tag characters, and whatever else a reader
// would not see. Each is shown as a mark with its short name, or its number where it has none.

import { h } from "./dom.js";

// A tab and a line feed do what a reader expects, where text is laid out as it was written.
const HIDES = /(?![\t\n])[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const HIDES_ON_A_LINE = /[\p{Cc}\p{Cf}\p{Cs}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const TURNS = /[\u061C\u200E\u200F\u202A-\u202E\u2066-\u2069]/u;

/** code point -> [short name, long name]. */
const NAMES = {
  0x00: ["NUL", "null"], 0x08: ["BS", "backspace"], 0x09: ["TAB", "tab"], 0x0A: ["LF", "line feed"],
  0x0D: ["CR", "carriage return"], 0x1B: ["ESC", "escape"], 0x7F: ["DEL", "delete"], 0x85: ["NEL", "next line"],
  0xAD: ["SHY", "soft hyphen"], 0x61C: ["ALM", "Arabic letter mark"],
  0x200B: ["ZWSP", "zero width space"], 0x200C: ["ZWNJ", "zero width non-joiner"], 0x200D: ["ZWJ", "zero width joiner"],
  0x200E: ["LRM", "left-to-right mark"], 0x200F: ["RLM", "right-to-left mark"],
  0x2028: ["LS", "line separator"], 0x2029: ["PS", "paragraph separator"],
  0x202A: ["LRE", "left-to-right embedding"], 0x202B: ["RLE", "right-to-left embedding"],
  0x202C: ["PDF", "pop directional formatting"],
  0x202D: ["LRO", "left-to-right override"], 0x202E: ["RLO", "right-to-left override"],
  0x2060: ["WJ", "word joiner"],
  0x2066: ["LRI", "left-to-right isolate"], 0x2067: ["RLI", "right-to-left isolate"],
  0x2068: ["FSI", "first strong isolate"], 0x2069: ["PDI", "pop directional isolate"],
  0xFEFF: ["BOM", "byte order mark"],
};

function mark(character) {
  const code = character.codePointAt(0);
  const number = `U+${code.toString(16).toUpperCase().padStart(4, "0")}`;
  const [short, long = ""] = NAMES[code] ?? [number];
  return h("span", { class: "ctl", title: `${number} ${long}`.trim() }, short);
}

/**
 * The text as nodes, each hidden character as a mark. `spells(character, before, after)` says of one
 * that it belongs to the spelling; on a line of its own, tabs and line feeds are marked as well.
 */
export function marks(text, { spells = () => false, onALine = false } = {}) {
  const nodes = [];
  let from = 0;
  for (const match of text.matchAll(onALine ? HIDES_ON_A_LINE : HIDES)) {
    const end = match.index + match[0].length;
    const before = [...text.slice(Math.max(match.index - 2, 0), match.index)].at(-1) ?? "";
    const after = [...text.slice(end, end + 2)][0] ?? "";
    if (spells(match[0], before, after)) continue;
    if (match.index > from) nodes.push(document.createTextNode(text.slice(from, match.index)));
    nodes.push(mark(match[0]));
    from = end;
  }
  nodes.push(document.createTextNode(text.slice(from)));
  return nodes;
}

/** How many characters of the text hide, and how many of those turn the reading direction. */
export function hiding(text) {
  const found = text.match(HIDES_ON_A_LINE) ?? [];
  return { hidden: found.length, turning: found.filter((character) => TURNS.test(character)).length };
}
