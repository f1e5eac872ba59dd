// The public API over fetch: problems become `Refused`, a lost line becomes `Unreachable`,
// and every answer tells the server's clock.

import { link } from "./link.js";

/** The server said no, and why. */
export class Refused extends Error {
  constructor(status, problem, requestId) {
    super(problem.title ?? `HTTP ${status}`);
    this.status = status;
    this.code = problem.code ?? String(status);
    this.title = problem.title ?? "The server could not do this";
    this.detail = problem.detail ?? "";
    this.problem = problem;
    this.requestId = requestId;
  }
}

/** Nobody answered: whether the request arrived is not known. */
export class Unreachable extends Error {}

let signedOut = () => {};
/** `handler` is called when the server no longer knows who asks. */
export const onSignedOut = (handler) => { signedOut = handler; };

let skew = 0;

/** Now, by the server's clock. */
export const serverNow = () => Date.now() + skew;

/**
 * `Date` names a second, and a busy server writes that of the second before: whatever this allows
 * may be right, so the skew moves no further.
 */
export function noteClock(response, sentAt) {
  const second = Date.parse(response.headers.get("Date") ?? "");
  if (Number.isNaN(second)) return;
  skew = Math.min(Math.max(skew, second - Date.now()), second + 2000 - sentAt);
}

async function problemOf(response) {
  try {
    return await response.json();
  } catch {
    return {};
  }
}

const GATEWAY = new Set([502, 503, 504]);

async function call(method, path, body, key) {
  const sentAt = Date.now();
  let response;
  try {
    response = await fetch(path, {
      method,
      headers: {
        ...(body === undefined ? {} : { "Content-Type": "application/json" }),
        ...(key === undefined ? {} : { "Idempotency-Key": key }),
      },
      body: body === undefined ? undefined : JSON.stringify(body),
      cache: "no-store",
    });
  } catch (cause) {
    link.lost();
    throw new Unreachable("No connection", { cause });
  }
  noteClock(response, sentAt);
  link.found();
  if (response.ok) return response.status === 204 ? null : response.json();
  const refusal = new Refused(response.status, await problemOf(response), response.headers.get("X-Request-Id"));
  if (GATEWAY.has(response.status) && refusal.code === String(response.status)) {
    throw new Unreachable("No answer", { cause: refusal });
  }
  if (response.status === 401 && path !== "/console/login") signedOut();
  throw refusal;
}

/** An id of our own. `randomUUID` exists on secure pages only, and a plain http host in a local network is none. */
export function newId() {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

const id = encodeURIComponent;
const query = (pairs) => {
  const given = Object.entries(pairs).filter(([, value]) => value !== null && value !== undefined);
  return given.length ? `?${new URLSearchParams(given)}` : "";
};

export const api = {
  login: (code) => call("POST", "/console/login", { code }),
  conversations: (cursor) => call("GET", `/conversations${query({ limit: 50, cursor })}`),
  conversation: (conversation) => call("GET", `/conversations/${id(conversation)}`),
  messages: (conversation, cursor) =>
    call("GET", `/conversations/${id(conversation)}/messages${query({ limit: 200, cursor })}`),
  send: (conversation, content, messageId, whenRunning) =>
    call("POST", `/conversations/${id(conversation)}/messages`, { content, messageId, whenRunning }),
  withdraw: (conversation, messageId) =>
    call("DELETE", `/conversations/${id(conversation)}/queue/${id(messageId)}`),
  turn: (turn) => call("GET", `/turns/${id(turn)}`),
  resume: (turn, command, failureId, changes) =>
    call("POST", `/turns/${id(turn)}/resume`, { command, ...(failureId ? { failureId } : {}), ...(changes ? { changes } : {}) }),
  /** `key` makes an answer that is sent again the same one. */
  answer: (turn, body, key) => call("POST", `/turns/${id(turn)}/resume`, body, key),
  replan: (turn, content, messageId) =>
    call("POST", `/turns/${id(turn)}/resume`, { command: "REPLAN_WITH_MESSAGE", message: { content, messageId } }),
  approvals: (turn) => call("GET", `/turns/${id(turn)}/approvals`),
  waits: (cursor) => call("GET", `/waits${query({ for: "me", limit: 100, cursor })}`),
  externalCalls: (tool) => call("GET", `/external-calls${query({ status: "open", tool, limit: 100 })}`),
  run: (turn) => call("POST", `/turns/${id(turn)}/run`, {}),
  pause: (turn) => call("POST", `/turns/${id(turn)}/pause`, {}),
  cancel: (turn) => call("POST", `/turns/${id(turn)}/cancel`, {}),
};
