// The fields of a form as elements. Each has `element`, `focusable`, `read()` and `show(problem)`:
// `read()` gives `{ value }`, nothing for a field that was left out, or `{ problem }`.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { marked } from "./text.js";

let serial = 0;

const EXACT = "This number has more digits than can be sent exactly.";
const LEFT_OUT = {};

/** What stands around a control: its label, what it is for, and what is wrong with it. */
function framed(field, control, { label = "label", beside = null } = {}) {
  const id = `field-${serial += 1}`;
  const optional = field.isRequired ? null : h("span", { class: "quiet" }, " optional");
  const problem = h("p", { class: "err", id: `${id}-problem`, hidden: true });
  const hint = field.hint && !beside ? h("p", { class: "hint", id: `${id}-hint` }, ...marked(field.hint)) : null;
  control.id = id;
  control.setAttribute("aria-describedby", `${hint ? `${id}-hint ` : ""}${id}-problem`);
  if (field.isRequired && control.matches("input, select, textarea")) control.setAttribute("aria-required", "true");
  const name = label === "label"
    ? h("label", { for: id }, ...marked(field.label), optional)
    : h(label, {}, ...marked(field.label), optional);
  return {
    element: h(label === "legend" ? "fieldset" : "div", { class: "field" }, name, beside ?? control, problem, hint),
    focusable: control,
    show(text) {
      problem.hidden = !text;
      problem.replaceChildren(...(text ? [icon("warn"), h("span", {}, ...marked(text))] : []));
      if (text) control.setAttribute("aria-invalid", "true");
      else control.removeAttribute("aria-invalid");
    },
  };
}

const needed = (field) => (field.isRequired ? { problem: "This is needed." } : LEFT_OUT);
const start = (value) => (typeof value === "string" || typeof value === "number" ? String(value) : "");

function typed(field, control, read) {
  control.value = start(field.initial);
  return { ...framed(field, control), read: () => (control.value.trim() === "" ? needed(field) : read(control.value)) };
}

const line = (field, attributes) => h("input", { class: "input", autocomplete: "off", placeholder: field.example || null, ...attributes });
const lines = (field, rows) => h("textarea", { class: "input", rows, placeholder: field.example || null });

const NUMBER = /^-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?$/u;

function number(text) {
  const value = Number(text.trim());
  if (!NUMBER.test(text.trim()) || !Number.isFinite(value)) return { problem: "Write a number." };
  return Number.isInteger(value) && !Number.isSafeInteger(value) ? { problem: EXACT } : { value };
}

function json(text) {
  try {
    return { value: JSON.parse(text) };
  } catch {
    return { problem: "Write it as JSON." };
  }
}

function choice(field) {
  const blank = !field.isRequired || field.initial === undefined;
  const options = field.options.map((option, i) =>
    h("option", { value: String(i), selected: option === field.initial }, typeof option === "string" ? option : JSON.stringify(option)));
  const control = h("select", { class: "input" }, blank ? h("option", { value: "" }, "") : null, ...options);
  return { ...framed(field, control), read: () => (control.value === "" ? needed(field) : { value: field.options[Number(control.value)] }) };
}

function box(text, isChecked) {
  const input = h("input", { type: "checkbox", checked: isChecked });
  return [input, h("label", { class: "check" }, input, h("span", {}, ...marked(text)))];
}

function yes(field) {
  const [input, label] = box(field.hint || "Yes", field.initial === true);
  return { ...framed(field, input, { label: "span", beside: label }), read: () => ({ value: input.checked }) };
}

function choices(field) {
  const chosen = Array.isArray(field.initial) ? field.initial : [];
  const boxes = field.options.map((option) => box(typeof option === "string" ? option : JSON.stringify(option), chosen.includes(option)));
  const group = h("div", { class: "checks", tabindex: "-1" }, ...boxes.map(([, label]) => label));
  return {
    ...framed(field, group, { label: "legend" }),
    read: () => ({ value: field.options.filter((_, i) => boxes[i][0].checked) }),
  };
}

function several(field) {
  const control = lines({ ...field, example: field.example || "One per line" }, 3);
  control.value = Array.isArray(field.initial) ? field.initial.filter((one) => typeof one === "string").join("\n") : "";
  const read = () => control.value.split("\n").map((one) => one.trim()).filter(Boolean);
  return { ...framed(field, control), read: () => (read().length ? { value: read() } : needed(field)) };
}

function written(field) {
  const control = lines({ ...field, example: field.example || "JSON" }, 4);
  control.classList.add("mono");
  control.value = (field.initial ?? null) === null ? "" : JSON.stringify(field.initial, null, 2);
  return { ...framed(field, control), read: () => (control.value.trim() === "" ? needed(field) : json(control.value)) };
}

function fixed(field) {
  const value = h("output", { class: "mono", tabindex: "-1" }, ...marked(JSON.stringify(field.value)));
  return { ...framed(field, value), read: () => ({ value: field.value }) };
}

function group(field) {
  const inner = fieldset(field.fields);
  const frame = framed(field, h("div", { class: "form", tabindex: "-1" }, ...inner.elements), { label: "legend" });
  frame.element.classList.add("group");
  return { ...frame, inner, read: () => (field.isRequired || inner.isTouched() ? inner.read() : LEFT_OUT) };
}

const KINDS = {
  text: (field) => typed(field, line(field, { type: field.input }), (value) => ({ value })),
  long: (field) => typed(field, lines(field, 3), (value) => ({ value })),
  date: (field) => typed(field, line(field, { type: "date" }), (value) => ({ value })),
  integer: (field) => typed(field, line(field, { inputmode: "numeric" }), number),
  number: (field) => typed(field, line(field, { inputmode: "decimal" }), number),
  yes, choice, choices, lines: several, json: written, fixed, group,
};

/** Fields that are read together: `read()` gives the object, or the problems by place. */
export function fieldset(fields) {
  const made = fields.map((field) => ({ field, ...KINDS[field.kind](field) }));
  const at = new Map(made.map((one) => [one.field.name, one]));
  const before = () => JSON.stringify(made.map((one) => one.read()));
  const untouched = before();
  return {
    elements: made.map((one) => one.element),
    isTouched: () => before() !== untouched,
    read() {
      const values = [];
      const problems = [];
      for (const { field, read } of made) {
        const found = read();
        if (found.problem) problems.push({ path: [field.name], text: found.problem });
        else if (found.problems) problems.push(...found.problems.map(({ path, text }) => ({ path: [field.name, ...path], text })));
        else if (Object.hasOwn(found, "value")) values.push([field.name, found.value]);
      }
      return problems.length ? { problems } : { value: Object.fromEntries(values) };
    },
    /** The field that a place in the answer belongs to: the innermost there is, or null. */
    find([name, ...rest]) {
      const one = at.get(name);
      if (!one) return null;
      return (one.inner && rest.length > 0 && one.inner.find(rest)) || one;
    },
    clear() {
      for (const one of made) { one.show(""); one.inner?.clear(); }
    },
  };
}

/** The whole answer as JSON, for a schema that is no list of fields. */
export function answerAsJson() {
  const one = written({ name: "", label: "Your answer, as JSON", hint: "", isRequired: true, example: "" });
  return {
    elements: [one.element],
    read() {
      const found = one.read();
      return found.problem ? { problems: [{ path: [], text: found.problem }] } : found;
    },
    find: () => one,
    clear: () => one.show(""),
  };
}
