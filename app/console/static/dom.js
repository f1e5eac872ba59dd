// Builds elements. Text becomes text nodes and nothing else, so that no answer of a model, a tool
// or a person can become markup.

export function h(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) set(element, name, value);
  element.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return element;
}

function set(element, name, value) {
  if (value === null || value === undefined || value === false) return;
  if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
  else element.setAttribute(name, value === true ? "" : value);
}

/** Sets text only where it changed: a node that is written again loses the reader's selection. */
export function say(element, text) {
  if (element.textContent !== text) element.textContent = text;
}

/** Puts `fresh` in the place of `old`; the focus what was folded open and what was typed stay where they were. */
export function swap(old, fresh) {
  const focused = old.contains(document.activeElement)
    ? document.activeElement.getAttribute("data-focus")
    : null;
  for (const known of old.querySelectorAll("details[data-fold]")) {
    const same = fresh.querySelector(`details[data-fold="${known.dataset.fold}"]`);
    if (same) same.open = known.open;
  }
  for (const known of old.querySelectorAll("input[data-keep]")) {
    const same = fresh.querySelector(`input[data-keep="${known.dataset.keep}"]`);
    if (same) same.value = known.value;
  }
  old.replaceWith(fresh);
  if (focused) fresh.querySelector(`[data-focus="${focused}"]`)?.focus({ preventScroll: true });
  return fresh;
}

/** Fills `place` anew; a control that is there again keeps the focus. */
export function refill(place, ...children) {
  const focused = place.contains(document.activeElement) ? document.activeElement.getAttribute("data-focus") : null;
  place.replaceChildren(...children.flat().filter((child) => child !== null && child !== undefined));
  if (focused) place.querySelector(`[data-focus="${focused}"]`)?.focus({ preventScroll: true });
}

const region = document.getElementById("status");

/** Says it once to those who listen instead of looking. */
export function announce(text) {
  region.textContent = "";
  // A region that is emptied and filled in one go is not read when the text is the same as before.
  setTimeout(() => { region.textContent = text; }, 60);
}
