// What a wait is called, by its form's title or its tool's name and never in the model's words; and
// whether a message answers it.

export function waitTitle(wait) {
  const tool = wait.toolName ?? "a tool";
  switch (wait.suspensionType) {
    case "TOOL_APPROVAL":
      if (wait.stage === "recovery") return `What became of ${tool}?`;
      return wait.title ?? `Approve ${tool}`;
    case "EXTERNAL_TOOL": return wait.title ?? `With an outside tool: ${tool}`;
    case "USER_INPUT":
      if (wait.title) return wait.title;
      return wait.askedBy === "tool" ? `${tool} needs your answers` : "The agent asks you something";
    default: return "";
  }
}

/** The call whose result the next message becomes (turn semantics T76): the model asks, and nothing else waits. */
export function answeredByMessage({ status, waits = [] }) {
  const [wait, ...others] = waits;
  const asks = wait?.suspensionType === "USER_INPUT" && wait.callId && wait.askedBy === "model";
  return status === "WAITING_FOR_USER" && asks && others.length === 0 ? wait : null;
}
