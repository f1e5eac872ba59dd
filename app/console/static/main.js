// The page: who is signed in, which conversation is open, and who is told when something changes.

import { Refused, api, onSignedOut } from "./api.js";
import { composer } from "./composer.js";
import { contextOf, contextOfOld } from "./context.js";
import { conversations } from "./conversations.js";
import { h, say } from "./dom.js";
import { icon } from "./icons.js";
import { inbox } from "./inbox.js";
import { link } from "./link.js";
import * as panes from "./panes.js";
import { conversationAddress, inHash, place } from "./place.js";
import { Thread } from "./thread.js";
import { transcript } from "./transcript.js";
import { wordsOf } from "./words.js";

const at = (id) => document.getElementById(id);
const chat = at("chat");

at("new").append(icon("plus"));
at("rail-chat").prepend(icon("chat"));
at("rail-inbox").prepend(icon("inbox"));

// ---- the open conversation ----

const title = h("h1", {});
const sub = h("p", { class: "sub" });
const chip = h("span", { class: "chip", hidden: true });
const banner = h("div", { role: "status" });
const scroller = h("div", { class: "scroll", tabindex: "0", role: "log", "aria-live": "off", "aria-label": "Transcript" });
// Hidden until it is known who writes and where to.
const foot = h("div", { hidden: true });
at("main").append(
  h("div", {},
    h("header", { class: "thread-head" },
      h("a", { class: "btn plain icon back", href: "#", "aria-label": "Back to conversations" }, icon("back")),
      title, sub, chip),
    banner),
  scroller, foot);
link.mount(banner);

let pane = "";
let drawn = null;
let chipShape = "";

const thread = new Thread(redraw, (turn) => {
  list.patch(turn.conversationId, turn);
  list.refresh();
  waiting.refresh();
});

const on = {
  send: (text, when) => send(text, when),
  withdraw: (messageId) => thread.commands.withdraw(messageId),
  edited: () => thread.edited(),
  resume: (action, width, more) => thread.commands.resume(action, width, more),
  pause: (width) => thread.commands.pause(width),
  askCancel: () => thread.commands.ask(true),
  keep: () => thread.commands.ask(false),
  choose: (choosing) => thread.commands.choose(choosing),
  cancel: () => thread.commands.cancel(),
};
const writing = composer(foot, on);

async function send(text, when) {
  const conversation = await thread.send(text, when);
  if (conversation === null) return;
  writing.sent(conversation);
  drawn?.toEnd();
  if (place().conversation !== conversation) history.replaceState(null, "", conversationAddress(conversation));
  list.select(conversation);
  list.refresh();
}

/** A pane stands where the transcript would; made only when it changes. */
function show(name, make) {
  if (pane === name) return;
  pane = name;
  drawn?.close();
  drawn = null;
  scroller.replaceChildren(make());
}

function titleOf(item) {
  if (item) return item.title || "New conversation";
  if (thread.conversationId !== null) return "Conversation";
  return selected ? "New conversation" : "Turnkeeper";
}

function drawHead() {
  const item = list.find(thread.conversationId);
  say(title, titleOf(item));
  if (at("inbox").hidden) document.title = selected ? `${title.textContent} · Turnkeeper` : "Turnkeeper";
  const version = thread.turn?.agentVersion ?? "";
  say(sub, thread.turn ? `${thread.turn.agentId} ${version.length > 12 ? version.slice(0, 8) : version}`.trim() : item?.agentId ?? "");
  const status = thread.turn?.status ?? "";
  const held = thread.turn?.held === true;
  const shape = `${status}${held}`;
  chip.hidden = !status;
  if (shape === chipShape || !status) return;
  chipShape = shape;
  const [word, symbol, tone] = wordsOf(status, held);
  chip.className = `chip ${tone}`;
  chip.replaceChildren(icon(symbol, symbol === "run" ? "spin" : ""), word);
}

function drawTranscript() {
  if (pane !== "transcript") {
    pane = "transcript";
    drawn = transcript(scroller);
  }
  const entries = thread.lines.map((line) => [line, contextOfOld(line)]);
  if (thread.line && thread.turn) entries.push([thread.line, contextOf(thread, on)]);
  drawn.render(entries);
}

const PANES = {
  loading: () => panes.loading(),
  missing: () => panes.notFound(),
  failed: () => panes.notLoaded("This conversation", thread.error, () => thread.open(thread.conversationId)),
};

function drawMiddle() {
  if (thread.state in PANES) show(thread.state, PANES[thread.state]);
  else if (thread.state === "blank" && selected) show("new", () => (list.empty ? panes.firstVisit(false) : panes.blank()));
  else if (thread.state === "blank") show(list.empty ? "none" : `pick${list.waiting}`, () => (list.empty ? h("div") : panes.pickOne(list.waiting)));
  else if (!thread.settled) show("loading", PANES.loading);
  else if (!thread.line && thread.lines.length === 0) show("new", panes.blank);
  else drawTranscript();
}

function draw() {
  drawHead();
  drawMiddle();
  foot.hidden = !selected || ["missing", "failed", "loading"].includes(thread.state);
  writing.update({
    turn: thread.turn, kept: thread.line?.kept ?? { results: 0 }, tools: thread.line?.tools ?? { running: 0, open: 0 },
    sending: thread.sending, problem: thread.sendProblem, act: thread.commands.act,
  });
}

// Many pieces may arrive between two frames; they are drawn together.
let due = false;
function redraw() {
  if (due) return;
  due = true;
  const go = () => { due = false; draw(); };
  // A page in the background gets no frames and has to be right when it comes back.
  if (document.hidden) setTimeout(go, 250);
  else requestAnimationFrame(go);
}

// ---- which conversation ----

const list = conversations(at("list"), (items) => {
  const item = items.find((one) => one.conversationId === thread.conversationId);
  const newest = item?.activeTurn;
  // Somebody else began a turn here, in another tab or by the API.
  if (newest && thread.state === "ready" && !thread.sending && newest.turnId !== thread.turn?.turnId) thread.catchUp();
  redraw();
});

let selected = false; // something is open, be it a conversation that is still to be begun

// ---- what waits for the reader ----

const count = at("rail-count");
const waiting = inbox(at("inbox"), (text) => {
  count.hidden = text === "";
  say(count.querySelector(".n"), text);
});

function mark(link, isHere) {
  if (isHere) link.setAttribute("aria-current", "page");
  else link.removeAttribute("aria-current");
}

function route() {
  const { conversation, isNew, isInbox, wait } = place();
  selected = conversation !== null || isNew;
  at("inbox").hidden = !isInbox;
  chat.hidden = isInbox;
  mark(at("rail-chat"), !isInbox);
  mark(at("rail-inbox"), isInbox);
  chat.classList.toggle("at-list", !selected);
  list.select(conversation);
  if (conversation === null) thread.close();
  if (conversation !== thread.conversationId || conversation === null) {
    writing.open(conversation);
    if (conversation !== null) thread.open(conversation);
  }
  if (isInbox) waiting.open(wait);
  else waiting.close();
  draw();
  if (isInbox) document.title = "Waiting for me · Turnkeeper";
  if (isNew) writing.focus();
}

// ---- signing in ----

function signIn(problem) {
  at("app").hidden = true;
  at("signin").hidden = false;
  panes.signIn(at("signin"), problem, async (code) => {
    const wrong = await login(code);
    if (wrong === null) start();
    return wrong;
  });
}

/** Says what was wrong, or null. */
async function login(code) {
  try {
    await api.login(code);
    return null;
  } catch (error) {
    if (error instanceof Refused && error.status < 500) return "This code is wrong or was used before. The server prints a new one when it starts.";
    return "The server cannot be reached. Try again in a moment.";
  }
}

async function start() {
  at("signin").hidden = true;
  at("app").hidden = false;
  await list.refresh();
  if (at("app").hidden) return;
  waiting.refresh();
  // Who comes for the first time can write at once.
  if (location.hash === "" && list.empty) history.replaceState(null, "", "#new");
  route();
}

async function boot() {
  const code = inHash("login");
  if (code !== null) {
    // The code is of use once; it must not stay in the address or the history.
    history.replaceState(null, "", location.pathname);
    loginProblem = await login(code);
  }
  await start();
}

let loginProblem = null;
onSignedOut(() => { thread.close(); signIn(loginProblem); loginProblem = null; });
link.onChange(redraw);
link.onTryNow(() => thread.tryNow());
addEventListener("hashchange", route);
at("new").addEventListener("click", () => writing.focus());
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault(); // the address says where the page is, and must go on saying it
  document.querySelector("main:not([hidden])").focus();
});
setInterval(() => { drawn?.tick(); if (thread.turn && thread.line) thread.beside.look(thread.turn); }, 1_000);
boot();
