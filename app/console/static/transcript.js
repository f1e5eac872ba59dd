// The transcript: keeps the drawn steps in step with the lines, and the reader at the end if that
// is where the reader was.

import { h } from "./dom.js";
import { showsEnd, stepView } from "./steps.js";
import { works } from "./words.js";

const NEAR_END = 80;

/** These show more than their own step: what the turn says as well. */
const FOLLOWS = new Set(["wait", "ask", "end", "calls"]);

/** A turn that nobody has taken over yet says what its step was lost to. */
const lostTo = ({ status, stoppedBy }) => (status === "READY" && (stoppedBy === "crash" || stoppedBy === "shutdown") ? stoppedBy : null);

/** Steps as they are drawn: with the sign of work at the end, without an end that needs no word. */
function shown(line, turn) {
  const steps = line.steps.filter((step) => step.kind !== "end" || showsEnd(step));
  const last = steps.at(-1);
  const busy = last?.live || line.tools.running > 0;
  if (turn && works(turn.status) && line.ended === null && !line.openWait && !busy) {
    const asked = turn.held ? "held" : turn.cancelRequested ? "cancelling" : turn.pauseRequested ? "stopping" : lostTo(turn);
    const phase = asked ?? line.phase;
    steps.push({ key: "work", kind: "work", rev: `${phase}${line.phaseSince}`, phase, since: line.phaseSince });
  }
  return steps;
}

export function transcript(scroller) {
  const column = h("div", { class: "col" });
  const turns = new Map();
  let atEnd = true;
  scroller.replaceChildren(column);
  const stay = () => { if (atEnd) scroller.scrollTop = scroller.scrollHeight; };
  const look = () => { atEnd = scroller.scrollHeight - scroller.scrollTop - scroller.clientHeight < NEAR_END; };
  scroller.addEventListener("scroll", look);
  // The composer grows and phones turn: who was at the end stays there.
  const watch = new ResizeObserver(stay);
  watch.observe(scroller);

  function section(line) {
    let known = turns.get(line);
    if (!known) {
      known = { article: h("article", { class: "turn", "aria-label": "Agent" }), views: new Map() };
      turns.set(line, known);
    }
    return known;
  }

  function draw(line, context) {
    const { article, views } = section(line);
    const steps = shown(line, context.turn);
    const wanted = new Set(steps.map((step) => step.key));
    for (const [key, view] of views) {
      if (!wanted.has(key)) { keepFocus(view.element); view.element.remove(); views.delete(key); }
    }
    let place = article.firstElementChild;
    steps.forEach((step, i) => {
      const first = i === 0 && step.kind === "said";
      let view = views.get(step.key);
      if (!view) {
        view = stepView(step, { ...context, first });
        views.set(step.key, view);
      }
      const stamp = `${step.rev}${FOLLOWS.has(step.kind) ? context.stamp : ""}`;
      if (view.stamp !== stamp) {
        const hadFocus = view.element.contains(document.activeElement);
        view.update(step, context);
        view.stamp = stamp;
        if (hadFocus && !view.element.contains(document.activeElement)) scroller.focus({ preventScroll: true });
      }
      if (first) {
        if (view.element.parentNode !== column) column.insertBefore(view.element, article);
      } else if (view.element === place) place = place.nextElementSibling;
      else article.insertBefore(view.element, place);
    });
    article.hidden = article.childElementCount === 0;
  }

  /** What goes away must not take the focus into nowhere. */
  function keepFocus(element) {
    if (element.contains(document.activeElement)) scroller.focus({ preventScroll: true });
  }

  return {
    /** `entries` are [line, context], oldest first. */
    render(entries) {
      for (const [line, context] of entries) {
        const { article } = section(line);
        if (article.parentNode !== column) column.append(article);
        draw(line, context);
      }
      stay();
    },
    tick() {
      for (const { views } of turns.values()) for (const view of views.values()) view.tick?.();
    },
    toEnd() { atEnd = true; stay(); },
    close() { watch.disconnect(); scroller.removeEventListener("scroll", look); },
  };
}
