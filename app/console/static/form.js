// The card of a call that waits for its reader: a form made from its frozen JSON Schema, or a question
// that is answered in words. What was filled in stays until the server has it.

import { cancelButtons, why } from "./acts.js";
import { keyOf } from "./answers.js";
import { actionFor, answerBefore, code, commandButton, frame, whyNot } from "./cardparts.js";
import { keptLine } from "./cards.js";
import { h, refill } from "./dom.js";
import { answerAsJson, fieldset } from "./fields.js";
import { fieldsOf } from "./schema.js";
import { marked } from "./text.js";
import { waitTitle } from "./waittitles.js";
import { count } from "./words.js";

const SEND = { command: "USER_INPUT", label: "Send answers", doing: "Sending", kind: "primary" };

/** An answer in words, where there is no form. */
function inWords() {
  const one = fieldset([{ name: "text", label: "Your answer", hint: "", isRequired: true, example: "", kind: "long" }]);
  return {
    ...one,
    read() {
      const { value, problems } = one.read();
      return problems ? { problems } : { value: value.text };
    },
    find: () => one.find(["text"]),
  };
}

function made(wait) {
  if (!wait.schema) return inWords();
  const fields = fieldsOf(wait.schema);
  return fields ? fieldset(fields) : answerAsJson();
}

/** Forms that were begun: whoever looks elsewhere and comes back finds what was filled in. */
const begun = new Map();
const MOST_BEGUN = 20;

/** What the answer to `wait` is made with. */
function fieldsFor({ turn, wait }) {
  const key = `${turn.turnId} ${keyOf(wait)}`;
  const fields = begun.get(key) ?? made(wait);
  begun.delete(key);
  begun.set(key, fields);
  if (begun.size > MOST_BEGUN) begun.delete(begun.keys().next().value);
  return fields;
}

const body = (wait, value) =>
  wait.schema
    ? { command: "USER_INPUT", callId: wait.callId, data: value }
    : { command: "USER_INPUT", callId: wait.callId, text: value };

/** The list of what is wrong; each entry leads to its field. */
function summary(problems) {
  const entries = problems.map(({ one, text }) => {
    const label = one?.element.querySelector("label, legend, span")?.firstChild?.textContent;
    const words = [...(label ? [h("b", {}, label), ": "] : []), ...marked(text)];
    return h("li", {}, one ? h("button", { type: "button", onclick: () => one.focusable.focus() }, ...words) : h("span", {}, ...words));
  });
  return h("div", { class: "summary-err", role: "alert", tabindex: "-1" },
    h("b", {}, `${count(problems.length, "field needs", "fields need")} another look`), h("ul", {}, ...entries));
}

/** The view of one form; `view` is described in waitcards.js. */
export function formView(first) {
  const { wait } = first;
  const card = frame({
    tag: "form", symbol: wait.schema ? "form" : "message", title: waitTitle(wait), since: wait.requestedAt,
    text: [wait.message ? marked(wait.message) : wait.askedBy === "tool" ? [code(wait.toolName), " goes on with your answers."] : null],
  });
  const fields = fieldsFor(first);
  const form = h("div", { class: "form" }, ...fields.elements);
  const wrong = h("div", {});
  const kept = h("div", {});
  const facts = h("dl", { class: "facts" }, answerBefore(wait));
  let current = first;
  let shape = "";
  let errors = null;
  card.element.noValidate = true;
  card.body.append(wrong, form, ...(facts.childElementCount ? [facts] : []), kept);

  card.element.addEventListener("submit", (event) => {
    event.preventDefault();
    send(card.element.querySelector("[data-command=USER_INPUT]")?.offsetWidth ?? 0);
  });

  function send(width) {
    const action = actionFor(current.turn, "USER_INPUT", wait);
    if (current.act.sending || !action?.enabled) return;
    const found = fields.read();
    tell(found.problems ?? []);
    if (!found.problems) current.answer(body(wait, found.value), width);
  }

  /** Shows what is wrong where it is wrong, and leads the reader there. */
  function tell(problems) {
    fields.clear();
    const placed = problems.map(({ path, text }) => ({ one: path && fields.find(path), text }));
    for (const { one, text } of placed) one?.show(text);
    const list = placed.length ? summary(placed) : null;
    refill(wrong, list);
    wrong.hidden = list === null;
    list?.focus();
  }

  function draw() {
    const action = actionFor(current.turn, "USER_INPUT", wait);
    const { act, cancel } = current;
    // A question in words is answered where words are written, if there is such a place.
    const isBelow = current.isBelow && !wait.schema;
    form.hidden = isBelow;
    refill(kept, current.kept ? keptLine(current.kept) : null);
    kept.hidden = kept.childElementCount === 0;
    const usual = isBelow ? "Answer below." : wait.schema ? "Checked against the form as it was when it was asked." : null;
    const said = act.problem ?? whyNot(action) ?? usual;
    refill(card.acts,
      action && !cancel?.asking && !isBelow ? commandButton({ ...SEND, label: wait.schema ? SEND.label : "Send answer" }, { action, act }, send) : null,
      cancel && !act.sending ? cancelButtons(cancel) : [],
      action && said && !cancel?.asking ? why(said) : null);
    card.tick();
  }

  wrong.hidden = true;
  return {
    element: card.element,
    tick: card.tick,
    update(view) {
      current = view;
      const next = JSON.stringify([view.turn.actions, view.act, view.cancel, view.kept, view.isBelow]);
      if (next === shape) return;
      shape = next;
      draw();
      if (view.act.errors !== errors) {
        errors = view.act.errors;
        tell(errors ?? []);
      }
    },
  };
}
