// Every word that stands for a state, and how times and durations are written.

/** status -> [word, icon, tone]; the tone is the class of the chip and of the icon's colour. */
export const STATUS = {
  READY: ["Ready", "clock", ""],
  RUNNING: ["Running", "run", "run"],
  RETRY_SCHEDULED: ["Trying again by itself", "clock", "wait"],
  WAITING_FOR_MODEL: ["Waiting for model", "waits", "wait"],
  WAITING_FOR_USER: ["Waiting for you", "form", "wait"],
  WAITING_FOR_APPROVAL: ["Waiting for approval", "shield", "wait"],
  WAITING_FOR_TOOL: ["Waiting for an outside tool", "ext", "ext"],
  PAUSED: ["Paused", "pause", "wait"],
  COMPLETED: ["Completed", "done", "ok"],
  FAILED: ["Failed", "failed", "fail"],
  CANCELLED: ["Cancelled", "cut", ""],
  MAX_ITERATIONS_REACHED: ["Limit reached", "cut", ""],
  MAX_STEPS_REACHED: ["Limit reached", "cut", ""],
  BUDGET_EXCEEDED: ["Limit reached", "cut", ""],
};

/** A turn that is READY and begins only when somebody says so. */
const HELD = ["On hold", "pause", "wait"];

const WAITS = /^(WAITING_|RETRY_SCHEDULED|PAUSED)/;

export const wordsOf = (status, held = false) => (held ? HELD : STATUS[status] ?? [status, "info", ""]);
export const waits = (status) => WAITS.test(status ?? "");
export const works = (status) => status === "READY" || status === "RUNNING";
export const active = (status) => works(status) || waits(status);

/** failure type -> icon of its card. */
export const FAILURE_ICON = {
  QUOTA_EXCEEDED: "quota",
  RATE_LIMITED: "rate",
  TOKEN_LIMIT_EXCEEDED: "tokens",
  OVERLOADED: "busy",
  UNAVAILABLE: "away",
};

/** state of a tool call -> [word, icon, icon's colour, class of the row]. */
export const CALL = {
  requested: ["Not started", "clock", "quiet", ""],
  running: ["Running", "run", "c-run spin", "running"],
  again: ["Failed, tried again", "retry", "c-wait", "again"],
  approval: ["Waiting for approval", "shield", "c-wait", "asks"],
  input: ["Waiting for your answer", "form", "c-wait", "asks"],
  outside: ["With an outside tool", "ext", "c-ext", "outside"],
  aside: ["Asks when its turn comes", "waits", "c-wait", "asks"],
  parked: ["Outcome unknown", "unknown", "c-wait", "unknown"],
  lost: ["Not seen to end", "unknown", "c-wait", "asks"],
  completed: ["Done", "done", "c-ok", "done"],
  error: ["Failed", "failed", "c-fail", "failed"],
  not_started: ["Not run", "cut", "quiet", "interrupted"],
  interrupted: ["Interrupted", "cut", "quiet", "interrupted"],
  superseded: ["Interrupted", "cut", "quiet", "interrupted"],
  skipped: ["Skipped, not run", "steer", "quiet", "skipped"],
  cancelled: ["Cancelled", "cut", "quiet", "interrupted"],
  unknown: ["Outcome unknown", "unknown", "c-wait", "unknown"],
  rejected: ["Rejected", "x", "quiet", "rejected"],
  expired: ["Expired", "hourglass", "quiet", "interrupted"],
};

/** What a call that did not simply run has to say for itself. */
export const CALL_STORY = {
  not_started: "Not run.",
  superseded: "Not run. A message replaced this step.",
  skipped: "Not run. A message that steers came before it began.",
  cancelled: "Stopped together with the turn.",
  rejected: "Not run. The agent was told why.",
  expired: "Nobody answered in time. The agent was told so.",
  parked: "This call had begun when its worker was lost. It is not run again until somebody says what became of it.",
  lost: "This call had begun when its worker was lost. When the turn goes on, the rule of its tool says what becomes of it.",
  unknown:
    "This call had begun when its worker was lost. It may or may not have taken effect, so it was not run again. The agent was told.",
};

/** Why an action is not enabled; a reason that has no words here is shown as it came. */
const REASONS = {
  not_due: "It is not due yet.",
  agent_version_unavailable: "The version of the agent that this turn belongs to is not installed.",
  already_requested: "It was asked for already.",
  queue_full: "As many messages wait as may. Withdraw one, or wait.",
  being_cancelled: "The turn is being cancelled; a queued message opens the next one.",
  wait_expired: "Its time is over; an answer is no longer taken.",
  form_waits: "A form waits for its answers.",
  requester_may_not_approve: "Whoever asked for it may not approve it.",
  at_work: "Your text is kept here; send it when this turn has ended or is stopped.",
};
export const reasonOf = (action) => REASONS[action?.reason] ?? action?.message ?? action?.reason ?? "";

/** A limit of a turn, by the name its agent gives it -> what it limits. */
const LIMITS = {
  max_iterations: "model calls",
  max_steps: "steps",
  max_duration: "time",
  max_input_tokens: "tokens read",
  max_output_tokens: "tokens written",
  max_total_tokens: "tokens",
  max_tool_calls: "tool calls",
};
export const limitName = (limit) => LIMITS[limit] ?? limit;

/** "200,410 of 200,000 tokens", "10 min of 10 min". */
export function usedOf({ limit, used, allowed }) {
  if (limit === "max_duration") return `${long(used * 1000)} of ${long(allowed * 1000)}`;
  return `${used.toLocaleString("en")} of ${allowed.toLocaleString("en")} ${limitName(limit)}`;
}

export const count = (n, one, many) => `${n} ${n === 1 ? one : many}`;

const NUMBERS = ["no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve"];
export const inWords = (n) => NUMBERS[n] ?? String(n);

/** "1st", "2nd", "3rd", "11th". */
export function ordinal(n) {
  const teen = n % 100 >= 11 && n % 100 <= 13;
  return `${n}${(!teen && { 1: "st", 2: "nd", 3: "rd" }[n % 10]) || "th"}`;
}

const two = (n) => String(n).padStart(2, "0");
const MONTHS = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
const midnight = (ms) => new Date(ms).setHours(0, 0, 0, 0);

/** Whole days between two moments by the calendar of the reader, summer time or not. */
export const daysAgo = (ms, now) => Math.round((midnight(now) - midnight(ms)) / 86_400_000);

export function clock(ms, seconds = false) {
  const at = new Date(ms);
  return `${two(at.getHours())}:${two(at.getMinutes())}${seconds ? `:${two(at.getSeconds())}` : ""}`;
}

const NEAR = { "-1": "tomorrow", 1: "yesterday" };

/** "14:02", "yesterday, 16:10", "tomorrow, 13:47", "11 Aug, 16:10". */
export function moment(ms, now) {
  const days = daysAgo(ms, now);
  return days === 0 ? clock(ms) : `${NEAR[days] ?? dayOf(ms)}, ${clock(ms)}`;
}

export const dayOf = (ms) => `${new Date(ms).getDate()} ${MONTHS[new Date(ms).getMonth()]}`;

/** "412 ms", "1.94 s", "28 s", "28 min", "1 h 26 min", "3 d 2 h". */
export function duration(ms) {
  const t = Math.max(0, ms);
  if (t < 1000) return `${Math.round(t)} ms`;
  if (t < 9_995) return `${(t / 1000).toFixed(2)} s`;
  return long(t);
}

/** As `duration`, in whole seconds: for what is still counting. */
export function long(ms) {
  const s = Math.floor(Math.max(0, ms) / 1000);
  if (s < 60) return `${s} s`;
  const min = Math.floor(s / 60);
  if (min < 60) return `${min} min`;
  const hours = Math.floor(min / 60);
  if (hours < 24) return `${hours} h ${min % 60} min`;
  return `${Math.floor(hours / 24)} d ${hours % 24} h`;
}

/** As `long`, for what is over: a wait of 0 s would be none. */
export const span = (ms) => (ms < 1000 ? "less than 1 s" : long(ms));

/** "14:21:30"; of another day "tomorrow, 09:00". */
export const pointInTime = (ms, now) => (daysAgo(ms, now) === 0 ? clock(ms, true) : moment(ms, now));

/** "0:42", "61:07", "3 d 2 h": what is left of a countdown. */
export function left(ms) {
  const s = Math.ceil(Math.max(0, ms) / 1000);
  if (s >= 7200) return long(s * 1000);
  return `${Math.floor(s / 60)}:${two(s % 60)}`;
}

/** The server's message is a title sentence and then an explanation, in the caller's language. */
export function titleAndRest(message) {
  const end = /[.!?](?=\s)|[。！？]/u.exec(message);
  if (!end) return [message.replace(/[.。]$/u, ""), ""];
  const cut = end.index + end[0].length;
  return [message.slice(0, cut).replace(/[.。]$/u, ""), message.slice(cut).trim()];
}

const HAN = /\p{Script=Han}/u;
/** Tells a screen reader in which tongue to read what the server wrote. */
export const langOf = (text) => (HAN.test(text) ? "zh-Hans" : null);
