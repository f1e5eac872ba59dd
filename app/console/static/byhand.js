// The fields in which somebody says by hand what came of a call.

import { h } from "./dom.js";
import { icon } from "./icons.js";

const BYTES = new TextEncoder();

export const size = (bytes) => (bytes >= 1024 ? `${Math.floor(bytes / 1024)} KB` : `${bytes} bytes`);

/** A text is a result as it is, unless it reads as JSON. */
function outputOf(text) {
  try { return JSON.parse(text) ?? text; } catch { return text; }
}

/** The fields of an answer by hand: `read()` gives the body, or null after it has shown what is missing. */
export function byHand(wait, command) {
  const field = (label, control) => h("label", { class: "field" }, label, control);
  const missing = h("p", { class: "err", role: "alert", hidden: true });
  const tell = (text, control) => {
    missing.hidden = false;
    missing.replaceChildren(icon("warn"), text);
    control.focus();
    return null;
  };
  const text = h("textarea", { class: "input mono", rows: "3", "data-focus": "by-hand" });
  const problem = h("input", { class: "input mono", value: "failed", autocomplete: "off", "data-focus": "code" });
  const isResult = command === "TOOL_RESULT";
  return {
    elements: isResult
      ? [field("The result, as JSON or as text; the agent reads it", text), missing]
      : [field("Code", problem), field("What went wrong; the agent reads it", text), missing],
    focus: () => text.focus(),
    read() {
      missing.hidden = true;
      if (text.value.trim() === "") return tell(isResult ? "Write the result." : "Say what went wrong.", text);
      if (!isResult && problem.value.trim() === "") return tell("Give it a code.", problem);
      if (!isResult) return { command, callId: wait.callId, code: problem.value.trim(), message: text.value.trim() };
      if (wait.maxResultBytes && BYTES.encode(text.value).length > wait.maxResultBytes) return tell(`Longer than ${size(wait.maxResultBytes)}.`, text);
      return { command, callId: wait.callId, output: outputOf(text.value) };
    },
  };
}

export const MODES = {
  TOOL_RESULT: { label: "Send this result", doing: "Sending" },
  TOOL_ERROR: { label: "Report this error", doing: "Reporting", kind: "danger" },
};
