// What every button that sends a command shares.

/** Marks a button that was pressed; it says something shorter or longer and keeps its width. */
export function hold(button, busy, width) {
  if (busy) button.setAttribute("aria-busy", "true");
  if (busy && width) button.style.minWidth = `${width}px`;
  return button;
}

/** Reasons of the server's for which the same again does not help; it may be pressed all the same. */
export const HOPELESS = new Set(["unlikely_to_help", "limit_reached"]);
