// The composer: says what sending will do, keeps the text until the server has it, and offers
// Send again when it has not.

import { cancelButtons } from "./cards.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { link } from "./link.js";
import { reasonOf, waits, works } from "./words.js";

/** The text is kept in this browser, so that a closed page loses no sentence. */
const drafts = {
  key: (conversation) => `turnkeeper.draft.${conversation ?? "new"}`,
  read(conversation) {
    try { return localStorage.getItem(this.key(conversation)) ?? ""; } catch { return ""; }
  },
  write(conversation, text) {
    try {
      if (text) localStorage.setItem(this.key(conversation), text);
      else localStorage.removeItem(this.key(conversation));
    } catch { /* a browser that keeps nothing is no reason to stop */ }
  },
};

const TOO_LONG = new Set(["INPUT_CONTEXT", "TOTAL_CONTEXT"]);

function together(kept) {
  if (!kept.results) return "The agent reads your message and the turn goes on.";
  return `The agent reads your message together with the ${kept.results === 1 ? "result" : `${kept.results} results`}; no tool runs again.`;
}

/** What sending would do now: [icon, lead, sentence, placeholder], and whether it may. */
function preview({ turn, kept }) {
  if (link.away) return { may: false, will: ["away", "Not connected.", "Your text is kept; send it when the line is back."] };
  const message = turn?.actions?.find((action) => action.command === "MESSAGE");
  if (turn && works(turn.status) && !message?.enabled) {
    return { may: false, will: ["run", "The agent is working.", reasonOf(message) || "Your text is kept here; send it when this turn has ended."] };
  }
  if (!turn || !waits(turn.status)) return { may: true, will: null };
  if (message && !message.enabled) return { may: false, will: ["waits", "Not now.", reasonOf(message)] };
  if (TOO_LONG.has(turn.suspension?.modelFailure?.tokenLimitPhase)) {
    return { may: true, hint: "Send anyway", will: ["warn", "This makes it longer.", "The conversation is already too long for the model."] };
  }
  return { may: true, hint: "Send a message instead of retrying", will: ["splice", "Sending goes on with this turn.", together(kept)] };
}

export function composer(place, on) {
  const will = h("p", { class: "will", id: "will", hidden: true });
  const field = h("textarea", { id: "message", rows: "1", "aria-describedby": "will" });
  const hint = h("span", { class: "tiny quiet grow hide-s" }, "Shift Enter makes a new line");
  const extra = h("span", { class: "row wrap" });
  const send = h("button", { type: "submit", class: "btn send", "aria-label": "Send" }, icon("send"));
  const again = h("button", { type: "submit", class: "btn", hidden: true }, icon("retry", "s"), "Send again");
  const bar = h("div", { class: "bar" }, hint, h("span", { class: "grow" }), extra, again, send);
  const box = h("div", { class: "box" }, will, h("label", { class: "vh", for: "message" }, "Message"), field, bar);
  const form = h("form", { class: "composer", "aria-label": "Write a message" }, box);
  place.replaceChildren(form);

  let state = { turn: null, kept: { results: 0 }, conversation: null };
  let may = true;
  let extraShape = "";
  let willShape = "";

  const blank = () => field.value.trim() === "";

  function fit() {
    if (CSS.supports("field-sizing", "content")) return;
    field.style.height = "auto";
    field.style.height = `${Math.min(field.scrollHeight, 180)}px`;
  }

  function drawWill(parts, problem) {
    const shape = JSON.stringify([parts, problem]);
    if (shape === willShape) return;
    willShape = shape;
    will.hidden = !parts && !problem;
    will.classList.toggle("bad", Boolean(problem));
    if (problem) {
      const small = [problem.code, problem.requestId].filter(Boolean).map((text) => h("code", {}, ` ${text}`));
      will.setAttribute("role", "alert");
      will.replaceChildren(icon("warn"), h("span", {}, h("b", {}, problem.title), ` ${problem.detail} Your text is kept.`, ...small));
    } else if (parts) {
      will.removeAttribute("role");
      will.replaceChildren(icon(parts[0], parts[0] === "run" ? "spin" : ""), h("span", {}, h("b", {}, parts[1]), ` ${parts[2]}`));
    }
  }

  /** A turn at work is cancelled from here; one that waits has the button on its card. */
  function drawCancel() {
    const { turn, asking, cancelling, cancelProblem } = state;
    const offered = turn && works(turn.status) && turn.actions?.some((action) => action.command === "CANCEL" && action.enabled);
    const shape = JSON.stringify([Boolean(offered), asking, cancelling, cancelProblem]);
    if (shape === extraShape) return;
    const focused = extra.contains(document.activeElement);
    extraShape = shape;
    extra.replaceChildren(...(offered ? cancelButtons({ asking, busy: cancelling, on, keep: "Let it work", problem: cancelProblem }) : []));
    if (focused) (extra.querySelector("[data-focus=cancel]") ?? field).focus();
  }

  function draw() {
    const next = preview(state);
    may = next.may;
    const waiting = state.turn && waits(state.turn.status);
    box.classList.toggle("slim", Boolean(waiting) && !state.problem);
    hint.hidden = Boolean(waiting) || Boolean(state.asking);
    drawWill(next.will, state.problem);
    drawCancel();
    field.placeholder = next.hint ?? "Message the agent";
    field.readOnly = Boolean(state.sending);
    again.hidden = !state.problem;
    const off = blank() || !may || state.sending;
    for (const button of [send, again]) {
      if (off) button.setAttribute("aria-disabled", "true");
      else button.removeAttribute("aria-disabled");
    }
    send.classList.toggle("primary", !off);
    send.setAttribute("aria-busy", String(Boolean(state.sending)));
  }

  form.addEventListener("submit", (event) => {
    event.preventDefault();
    if (!blank() && may && !state.sending) on.send(field.value);
  });
  field.addEventListener("keydown", (event) => {
    // Enter that ends a composition (Chinese, Japanese) chooses a word; it does not send.
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    event.preventDefault();
    form.requestSubmit();
  });
  field.addEventListener("input", () => {
    drafts.write(state.conversation, field.value);
    fit();
    on.edited();
    draw();
  });
  extra.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.asking) on.keep();
  });

  return {
    update(next) { state = { ...state, ...next }; draw(); },
    /** Another conversation is open: its own draft comes back. */
    open(conversation) {
      state = { turn: null, kept: { results: 0 }, conversation };
      field.value = drafts.read(conversation);
      fit();
      draw();
    },
    /** The server has the message. */
    sent(conversation) {
      drafts.write(state.conversation, "");
      drafts.write(conversation, "");
      state.conversation = conversation;
      field.value = "";
      fit();
      draw();
    },
    focus: () => field.focus(),
  };
}
