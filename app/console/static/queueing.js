// What the next message does where that is a choice, and the messages that wait.

import { actionOf } from "./acts.js";
import { h, swap } from "./dom.js";
import { icon } from "./icons.js";
import { reasonOf } from "./words.js";

/** mode -> [action, label, icon]. The first two are for a turn at work, as `whenRunning` takes them. */
const MODES = {
  queue: ["QUEUE", "Queue", "queue"],
  steer: ["STEER", "Steer", "steer"],
  answer: ["MESSAGE", "Answer", "message"],
  instead: ["REPLAN_WITH_MESSAGE", "Do something else", "steer"],
};

/** The server's word on a message that waits so. */
export const waitingAction = (turn, mode) => actionOf(turn, MODES[mode][0]);

/** Which of the modes offered the next message has. */
export function modeSwitch(onChange) {
  const radios = Object.entries(MODES).map(([mode, [, label, symbol]]) => {
    const input = h("input", { type: "radio", name: "mode", value: mode, onchange: () => onChange(mode) });
    return [mode, input, h("label", {}, input, icon(symbol, "s"), label)];
  });
  const element = h("fieldset", { class: "seg", hidden: true },
    h("legend", { class: "vh" }, "What this message does"), ...radios.map(([, , label]) => label));
  return {
    element,
    draw(turn, offered, chosen) {
      element.hidden = offered.length < 2;
      for (const [mode, input, label] of radios) {
        const action = waitingAction(turn, mode);
        label.hidden = !offered.includes(mode);
        input.checked = mode === chosen;
        label.title = action && !action.enabled ? reasonOf(action) : "";
      }
    },
  };
}

function waitingRow({ messageId, mode, content }, withdrawing, on) {
  const [, label, symbol] = MODES[mode];
  const busy = withdrawing === messageId;
  const text = typeof content === "string" ? content : content.map((part) => part.text ?? `[image ${part.url}]`).join(" ");
  return h("li", { class: "row" },
    icon(symbol, "quiet"),
    h("span", { class: "grow said-later", title: text }, h("span", { class: "vh" }, `${label}: `), text),
    h("button", {
      type: "button", class: "btn plain", "data-focus": `withdraw-${messageId}`, "aria-label": `Withdraw: ${text.slice(0, 60)}`,
      "aria-disabled": busy ? "true" : null, "aria-busy": busy ? "true" : null,
      onclick: () => { if (!busy) on.withdraw(messageId); },
    }, "Withdraw"));
}

/** What waits, in order; each may be taken back as long as it has not been said. */
export function waitingList(on, onEmptied) {
  let element = h("ul", { class: "queue", "aria-label": "Messages that wait", hidden: true });
  let shape = "[]";
  return {
    get element() { return element; },
    draw(turn, withdrawing) {
      const queue = turn?.queue ?? [];
      const next = JSON.stringify([queue, withdrawing]);
      if (next === shape) return;
      shape = next;
      const focused = element.contains(document.activeElement);
      const rows = queue.map((queued) => waitingRow(queued, withdrawing, on));
      element = swap(element, h("ul", { class: "queue", "aria-label": "Messages that wait", hidden: rows.length === 0 }, ...rows));
      // The row that was pressed is gone; the focus must not fall into nowhere.
      if (focused && !element.contains(document.activeElement)) (element.querySelector("button") ?? onEmptied()).focus();
    },
  };
}
