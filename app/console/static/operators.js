// The section of a failure that operators see: who was asked, what they said, and where to look further.

import { h } from "./dom.js";
import { icon } from "./icons.js";
import { long } from "./words.js";

const fact = (name, value) => h("div", {}, h("dt", {}, name), h("dd", {}, value));
const code = (text) => h("code", {}, text);

const REDACTED = "[redacted]";

/** What a provider said; what was taken out of it is shown as such. */
function said(text) {
  const parts = text.split(REDACTED).flatMap((part, i) => (i ? [h("span", { class: "tag" }, "redacted"), part] : [part]));
  return h("pre", { class: "code" }, ...parts);
}

const topUp = (url) =>
  h("div", {}, h("a", { class: "btn", href: url, target: "_blank", rel: "noopener noreferrer" }, icon("ext", "s"), "Add credit at the provider"));

/** For operators only: a user's failure holds none of this, and then there is no section. */
export function operators(failure) {
  if (!failure || failure.exceptionType === undefined) return null;
  const facts = [
    failure.provider && fact("Provider", failure.provider),
    failure.model && fact("Model", code(failure.model)),
    fact("HTTP", failure.httpStatus ? String(failure.httpStatus) : "none"),
    failure.errorCode && fact("Code", code(failure.errorCode)),
    failure.errorType && failure.errorType !== failure.errorCode && fact("Type", code(failure.errorType)),
    failure.exceptionType && fact("Exception", code(failure.exceptionType)),
    failure.tokenLimitPhase && fact("Phase", code(failure.tokenLimitPhase)),
    fact("Stated wait", typeof failure.retryAfterMillis === "number" ? long(failure.retryAfterMillis) : "none"),
    failure.modelAttempt && fact("Request", `${failure.modelAttempt} of this turn`),
    fact("Failure", code(failure.failureId)),
    failure.errorRef && fact("Ref", code(failure.errorRef)),
  ];
  // Where there is something to be done, it is not hidden.
  return h("details", { class: "ops", "data-fold": "ops", open: Boolean(failure.topUpUrl) },
    h("summary", { class: "lab", "data-focus": "ops" }, icon("user", "s"), "Operators only", icon("chev", "s chev")),
    h("div", { class: "inner" },
      h("dl", { class: "facts" }, ...facts.filter(Boolean)),
      failure.message ? said(failure.message) : null,
      failure.topUpUrl ? topUp(failure.topUpUrl) : null));
}
