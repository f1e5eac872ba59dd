// The composer: says what sending will do, keeps the text until the server has it, and offers
// Send again when it has not. A turn at work is stopped here, and a paused one goes on from here.
// What is said to a turn at work waits: it is queued or steers, and is shown here until it is said.

import { actionOf, cancelButtons, mainButton, stopButton, why } from "./acts.js";
import { h } from "./dom.js";
import { icon } from "./icons.js";
import { link } from "./link.js";
import { modesOf, preview } from "./preview.js";
import { modeSwitch, waitingList } from "./queueing.js";
import { waits, works } from "./words.js";

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

const DOUBLE_CLICK_MS = 500;

export function composer(place, on) {
  const will = h("p", { class: "will", id: "will", hidden: true });
  const field = h("textarea", { id: "message", rows: "1", "aria-describedby": "will" });
  const modes = modeSwitch((mode) => choose(mode));
  const waiting = waitingList({ withdraw: (messageId) => on.withdraw(messageId) }, () => field);
  const hint = h("span", { class: "tiny quiet grow hide-s" }, "Shift Enter makes a new line");
  const final = h("span", { class: "row wrap final" });
  const pause = h("span", { class: "row" });
  const send = h("button", { type: "submit", class: "btn send", "aria-label": "Send" }, icon("send"));
  const again = h("button", { type: "submit", class: "btn", hidden: true }, icon("retry", "s"), "Send again");
  const bar = h("div", { class: "bar" }, modes.element, hint, final, h("span", { class: "grow" }), h("span", { class: "row" }, pause, again, send));
  const box = h("div", { class: "box" }, waiting.element, will, h("label", { class: "vh", for: "message" }, "Message"), field, bar);
  const form = h("form", { class: "composer", "aria-label": "Write a message" }, box);
  place.replaceChildren(form);

  const nothing = { turn: null, kept: { results: 0 }, tools: { running: 0, open: 0 }, act: { asking: false } };
  let state = { ...nothing, conversation: null };
  let chosen = []; // what the reader wants a message to do, last choice first
  let may = true;
  let when; // the way of what is sent now, as the thread takes it
  let actsShape = "";
  let command = ""; // what the button beside Send does
  let swappedAt = -DOUBLE_CLICK_MS;
  let willShape = "";

  function choose(mode) {
    chosen = [mode, ...chosen.filter((other) => other !== mode)];
    draw();
  }

  const modeAmong = (offered) => chosen.find((mode) => offered.includes(mode)) ?? offered[0];

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
      const [symbol, lead, sentence, tool] = parts;
      will.replaceChildren(icon(symbol, symbol === "run" ? "spin" : ""),
        h("span", {}, h("b", {}, lead), " ", tool ? h("code", {}, tool.code) : "", tool ? ` ${sentence}` : sentence));
    }
  }

  /** Stop pauses and stands beside Send; Cancel is final, and stands apart while a turn works. One that waits has it on its card. */
  function drawActs() {
    const { turn, act } = state;
    const atWork = Boolean(turn) && works(turn.status);
    const stop = turn?.held ? null : actionOf(turn, "PAUSE");
    const resume = actionOf(turn, "RESUME") ?? actionOf(turn, "RUN");
    const cancel = atWork && actionOf(turn, "CANCEL")?.enabled;
    const shape = JSON.stringify([turn?.status, stop, resume, cancel, turn?.pauseRequested, act, Boolean(state.problem)]);
    if (shape === actsShape) return;
    actsShape = shape;
    const focused = [final, pause].find((part) => part.contains(document.activeElement));
    const asking = act.asking && atWork;
    const problem = act.problem && atWork && !asking ? [why(act.problem)] : [];
    final.replaceChildren(
      ...(cancel ? cancelButtons({ asking, busy: act.cancelling, on, keep: turn.held ? "Keep it on hold" : "Let it work", problem: act.problem }) : []),
      ...problem);
    pause.replaceChildren(
      ...(stop && !asking && !turn.cancelRequested ? [stopButton(stop, { turn, stopping: act.stopping, width: act.width, on })] : []),
      ...(resume ? [mainButton(resume, { busy: act.busy, width: act.width, on, focus: "resume-here" })] : []));
    box.classList.toggle("slim", Boolean(turn) && waits(turn.status) && !state.problem && pause.childElementCount === 0 && modesOf(turn).length === 0);
    hint.hidden = Boolean(turn) && (atWork || waits(turn.status));
    const now = pause.querySelector("[data-command]")?.dataset.command ?? "";
    if (now !== command) {
      swappedAt = command && now ? performance.now() : -DOUBLE_CLICK_MS;
      command = now;
    }
    // What was pressed is gone; what stands in its place takes the focus.
    if (focused && !focused.contains(document.activeElement)) (focused.querySelector("button[data-focus]") ?? field).focus();
  }

  function draw() {
    const offered = link.away ? [] : modesOf(state.turn);
    const mode = modeAmong(offered);
    const next = preview({ ...state, mode });
    may = next.may;
    when = next.when;
    waiting.draw(state.turn, state.act.withdrawing);
    modes.draw(state.turn, offered, mode);
    drawWill(next.will, state.problem);
    drawActs();
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
    if (!blank() && may && !state.sending) on.send(field.value, when);
  });
  field.addEventListener("keydown", (event) => {
    const offered = modesOf(state.turn);
    if (event.altKey && event.code === "KeyQ" && offered.length > 0) {
      event.preventDefault();
      choose(offered.find((mode) => mode !== modeAmong(offered)));
    }
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
  // Stop and Resume stand in one place: the second half of a double click is meant for neither.
  pause.addEventListener("click", (event) => {
    if (performance.now() - swappedAt < DOUBLE_CLICK_MS) event.stopPropagation();
  }, true);
  final.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && state.act.asking) on.keep();
  });

  return {
    update(next) { state = { ...state, ...next }; draw(); },
    /** Another conversation is open: its own draft comes back. */
    open(conversation) {
      state = { ...nothing, conversation };
      chosen = [];
      field.value = drafts.read(conversation);
      fit();
      draw();
    },
    /** The server has the message. */
    sent(conversation) {
      drafts.write(state.conversation, "");
      drafts.write(conversation, "");
      state.conversation = conversation;
      chosen = chosen.filter((mode) => mode !== "instead"); // said once, and not of the next question
      field.value = "";
      fit();
      draw();
    },
    focus: () => field.focus(),
  };
}
