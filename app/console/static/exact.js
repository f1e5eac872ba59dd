// The exact text of what is approved or handed out: as a table where it is a JSON object, and as it
// is stored. Nothing is trimmed, reformatted or hidden.

import { h } from "./dom.js";
import { hiding, marks } from "./hidden.js";
import { icon } from "./icons.js";
import { membersOf } from "./members.js";
import { marked } from "./text.js";
import { count } from "./words.js";

const onALine = (text) => marks(text, { onALine: true });

/** A text is shown as it reads, anything else as it is written. */
const readable = ({ raw, type }) => (type === "string" ? `"${JSON.parse(raw)}"` : raw);

function table(members) {
  const rows = members.map((member) => h("tr", {},
    h("th", { scope: "row" }, h("div", {}, ...onALine(member.name))),
    h("td", {}, h("bdi", {}, ...onALine(readable(member))), h("span", { class: "ty" }, member.type))));
  return h("table", { class: "args" }, h("caption", { class: "vh" }, "Exact arguments"), h("tbody", {}, ...rows));
}

const warning = (...parts) => h("p", { class: "warn" }, icon("warn", "s"), h("span", {}, ...parts));

function hiddenIn(where, text) {
  const { hidden, turning } = hiding(text);
  if (hidden === 0) return null;
  const turns = turning === 0 ? "" : turning === hidden
    ? ` ${hidden === 1 ? "It changes" : "They change"} the reading direction.`
    : ` ${turning === 1 ? "One of them changes" : `${turning} of them change`} the reading direction.`;
  return warning(count(hidden, "invisible character", "invisible characters"), " in ", where, ` ${hidden === 1 ? "is shown as a mark" : "are shown as marks"}.${turns}`);
}

function warnings(members, text) {
  if (members === null) return [hiddenIn("this text", text)];
  const code = (name) => h("code", {}, ...onALine(name));
  const names = members.map((member) => member.name);
  const twice = [...new Set(names.filter((name, i) => names.indexOf(name) !== i))];
  return [
    ...members.map((member) => hiddenIn(code(member.name), readable(member))),
    hiddenIn("the names", [...new Set(names)].join("")),
    ...twice.map((name) => warning(code(name), " is there more than once.")),
  ];
}

/** The view of one text; it is made once, so that what the reader chose stays. */
export function exact(text) {
  const members = membersOf(text);
  const raw = h("pre", { class: "code exact", hidden: Boolean(members?.length) }, ...marked(text));
  if (!members?.length) return h("div", { class: "exactly" }, raw, ...warnings(members, text).filter(Boolean));
  const panel = h("div", { class: "panel" }, table(members));
  const button = h("button", {
    type: "button", class: "btn plain small", "aria-pressed": "false",
    onclick: () => {
      raw.hidden = !raw.hidden;
      panel.hidden = !raw.hidden;
      button.setAttribute("aria-pressed", String(!raw.hidden));
    },
  }, "As stored");
  return h("div", { class: "exactly" }, panel, raw, button, ...warnings(members, text).filter(Boolean));
}
