// Lines of turns that are over, made from the stored messages alone.

import { Line, textOf } from "./line.js";

const ROLES = {
  user(line, message, at) {
    line.say(message.messageId ?? message.position, textOf(message.content), at);
  },
  assistant(line, message, at) {
    const attemptId = `p${message.position}`;
    line.MODEL_STARTED({ attemptId }, null);
    if (message.reasoning) line.MODEL_REASONING({ attemptId, offset: 0, text: message.reasoning }, null);
    const text = textOf(message.content ?? "");
    if (text && message.stopReason === "INTERRUPTED") {
      line.MODEL_TEXT({ attemptId, offset: 0, text }, at);
      line.MODEL_FAILED({ attemptId }, at);
      return;
    }
    line.MODEL_COMPLETED({ attemptId, text }, null);
    for (const call of message.toolCalls ?? []) line.TOOL_REQUESTED(call, null);
  },
  tool(line, message) {
    line.TOOL_COMPLETED({ callId: message.callId, outcome: message.outcome, output: textOf(message.content ?? "") }, null);
  },
  question(line, message) {
    line.ask(message.position, textOf(message.content));
  },
  notice(line, message, at) {
    line.MESSAGE_ADDED({ role: "notice", content: message.content }, at);
  },
  closing(line, message, at) {
    line.remark("cut", "", textOf(message.content), at);
  },
};

/** messages in order of position -> Map of turnId -> Line, in the order the turns began. */
export function linesOf(messages) {
  const lines = new Map();
  for (const message of messages) {
    if (!lines.has(message.turnId)) lines.set(message.turnId, new Line(message.turnId));
    ROLES[message.role]?.(lines.get(message.turnId), message, Date.parse(message.createdAt));
  }
  return lines;
}
