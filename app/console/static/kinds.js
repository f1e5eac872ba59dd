// What the kinds of events mean to the page as a whole.

const ENDS = new Set([
  "TURN_COMPLETED", "TURN_FAILED", "TURN_CANCELLED",
  "MAX_ITERATIONS_REACHED", "MAX_STEPS_REACHED", "BUDGET_EXCEEDED",
]);
const NEWS = new Set([
  ...ENDS, "TURN_STARTED", "TURN_SUSPENDED", "RETRY_SCHEDULED", "TURN_RESUMED", "TURN_PAUSED",
  "TOOL_APPROVAL_REQUESTED", "TOOL_APPROVAL_DECIDED", "TOOL_INPUT_REQUESTED", "TOOL_INPUT_RECEIVED",
  "EXTERNAL_TOOL_REQUESTED", "EXTERNAL_TOOL_COMPLETED", "EXTERNAL_TOOL_FAILED", "WAIT_EXPIRED",
  "CANCELLATION_REQUESTED", "PAUSE_REQUESTED", "INPUT_QUEUED", "INPUT_PROMOTED", "INPUT_WITHDRAWN",
]);
const TEXT = new Set(["MODEL_TEXT", "MODEL_REASONING"]);

/** The last event of its turn. */
export const endsTurn = (event) => ENDS.has(event.type);

/** It changes status, actions or message: the turn itself has to be read again. */
export const isNews = (event) => NEWS.has(event.type);

/** A turn that was ready is at work now. */
export const isBegin = (event) => event.type === "STEP_STARTED";

/** Live text carries no number of its own. */
export const isText = (event) => TEXT.has(event.type);
