// Reads a JSON object as text: its members in their order, each value as it was written. A parser
// would round long numbers and drop a name that occurs twice.

const STRING = /"(?:[^"\\]|\\.)*"/uy;
const PLAIN = /[^\s,}\]]+/uy;
const BLANK = /\s*/uy;

function typeOf(raw) {
  const kinds = { '"': "string", "{": "object", "[": "array", t: "boolean", f: "boolean", n: "null" };
  return kinds[raw[0]] ?? (/^-?\d+$/u.test(raw) ? "integer" : "number");
}

/** `[{ name, raw, type }]`, or null where the text is no JSON object. */
export function membersOf(text) {
  try {
    const value = JSON.parse(text);
    if (value === null || typeof value !== "object" || Array.isArray(value)) return null;
  } catch {
    return null;
  }
  // From here on it is known to be an object.
  let at = 0;
  const take = (pattern) => {
    pattern.lastIndex = at;
    const found = pattern.exec(text)[0];
    at += found.length;
    return found;
  };
  const skip = () => take(BLANK);
  const value = () => {
    if (text[at] === '"') return take(STRING);
    if (text[at] !== "{" && text[at] !== "[") return take(PLAIN);
    const from = at;
    let depth = 0;
    do {
      if (text[at] === '"') { take(STRING); continue; }
      if (text[at] === "{" || text[at] === "[") depth += 1;
      if (text[at] === "}" || text[at] === "]") depth -= 1;
      at += 1;
    } while (depth > 0);
    return text.slice(from, at);
  };
  const members = [];
  skip();
  at += 1;
  for (skip(); text[at] !== "}"; skip()) {
    if (text[at] === ",") { at += 1; skip(); }
    const name = JSON.parse(take(STRING));
    skip();
    at += 1; // the colon
    skip();
    const raw = value();
    members.push({ name, raw, type: typeOf(raw) });
  }
  return members;
}
