// What stands where content would be: nothing yet, loading, not found, not loaded, not signed in.

import { h } from "./dom.js";
import { art, icon } from "./icons.js";
import { inWords } from "./words.js";

const pane = (...children) => h("div", { class: "empty" }, ...children);

const newButton = (kind = "") => h("a", { class: `btn ${kind}`, href: "#new" }, icon("plus", "s"), "New conversation");

export const firstVisit = (withButton) =>
  pane(art("begun"), h("h2", {}, "No conversations yet"),
    h("p", {}, "Write to the agent. You can close this page at any time; its work goes on."),
    withButton ? newButton("primary") : null);

export const blank = () =>
  pane(art("begun"), h("h2", {}, "A new conversation"),
    h("p", {}, "Write to the agent. You can close this page at any time; its work goes on."));

export function pickOne(waiting) {
  const number = inWords(waiting);
  const text = waiting === 0
    ? "Nothing waits. What was done in each of them is kept."
    : `${number[0].toUpperCase()}${number.slice(1)} of them ${waiting === 1 ? "waits" : "wait"} for something. What was done so far is kept, however long it takes.`;
  return pane(art("waiting"), h("h2", {}, "Pick a conversation"), h("p", {}, text), newButton());
}

export const notFound = () =>
  pane(h("h2", {}, "No such conversation"), h("p", {}, "It does not exist, or it belongs to someone else."),
    h("a", { class: "btn", href: "#" }, "All conversations"));

/** The page could not read; what the server keeps is not touched by that. */
export function notLoaded(what, error, again) {
  const reference = error?.requestId ? [" Reference ", h("code", {}, error.requestId), "."] : [];
  return pane(art("cut"), h("h2", {}, `${what} could not be loaded`),
    h("p", {}, "The turns themselves are stored and not affected.", ...reference),
    h("button", { type: "button", class: "btn primary", onclick: again }, icon("retry", "s"), "Load again"));
}

export const loading = () =>
  h("div", { class: "col loading", role: "status", "aria-busy": "true" },
    h("span", { class: "vh" }, "Loading"), ...Array.from({ length: 6 }, () => h("div", { class: "sk" })));

/** `submit(code)` answers with what was wrong, or with null. */
export function signIn(place, problem, submit) {
  const wrong = h("p", { class: "err", role: "alert", id: "code-wrong" });
  const field = h("input", { class: "input mono", id: "code", name: "code", autocomplete: "off", spellcheck: "false", required: true, "aria-describedby": "code-wrong" });
  const button = h("button", { type: "submit", class: "btn primary" }, "Sign in");
  const show = (text) => {
    wrong.replaceChildren(...(text ? [icon("warn"), text] : []));
    if (text) field.setAttribute("aria-invalid", "true");
    else field.removeAttribute("aria-invalid");
  };
  const form = h("form", {
    async onsubmit(event) {
      event.preventDefault();
      button.setAttribute("aria-busy", "true");
      // The whole address may be pasted as well.
      show(await submit(field.value.trim().replace(/^.*#login=/u, "")));
      button.removeAttribute("aria-busy");
      field.focus();
    },
  }, h("label", { class: "field", for: "code" }, "Code", field), wrong, button);
  place.replaceChildren(pane(art("begun"), h("h1", {}, "Sign in"),
    h("p", {}, "Open the address that the server printed when it started, or paste its code here."), form));
  show(problem);
}
