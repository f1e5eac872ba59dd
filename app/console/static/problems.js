// What went wrong, in the words of the server where it answered.

import { Refused, Unreachable } from "./api.js";

/** What a reader is told: { title, detail, code, requestId }. */
export function problemOf(error) {
  if (error instanceof Unreachable) return { title: "No answer.", detail: "The server cannot be reached.", code: "", requestId: "" };
  if (!(error instanceof Refused)) throw error;
  return { title: sentence(error.title), detail: sentence(error.detail), code: error.code, requestId: error.requestId ?? "" };
}

function sentence(text) {
  if (text === "") return "";
  const isName = /^[a-z]+[.A-Z_]/u.test(text); // of a field, which is written as it is
  return `${isName ? text[0] : text[0].toUpperCase()}${text.slice(1)}${/[.!?。]$/u.test(text) ? "" : "."}`;
}
