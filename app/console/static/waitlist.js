// What waits for the reader, over all conversations: asked for again and again, oldest first.

import { keyOf } from "./answers.js";
import { api } from "./api.js";
import { link } from "./link.js";

const EVERY_MS = 10_000;

/** One wait of one turn, as the address of its card names it. */
export const waitKey = ({ turnId, wait }) => `${turnId}~${keyOf(wait)}`;

export class WaitList {
  items = null;
  hasMore = false;
  error = null;
  #cursor = null;
  #older = [];
  #busy = false;
  #onChange;

  constructor(onChange) {
    this.#onChange = onChange;
    setInterval(() => { if (!document.hidden && (this.items || this.error)) this.refresh(); }, EVERY_MS);
    document.addEventListener("visibilitychange", () => { if (!document.hidden && this.items) this.refresh(); });
    link.onTryNow(() => this.refresh());
  }

  async refresh() {
    if (this.#busy) return;
    this.#busy = true;
    try {
      const page = await api.waits();
      const known = new Set(page.items.map(waitKey));
      this.#older = this.#older.filter((item) => !known.has(waitKey(item)));
      if (this.#older.length === 0) this.#cursor = page.nextCursor ?? null;
      this.#take([...page.items, ...this.#older]);
    } catch (error) {
      this.error = error;
    } finally {
      this.#busy = false;
    }
    this.#onChange();
  }

  async more() {
    const page = await api.waits(this.#cursor).catch(() => null);
    if (!page) return;
    this.#older = [...this.#older, ...page.items];
    this.#cursor = page.nextCursor ?? null;
    this.#take([...this.items, ...page.items]);
    this.#onChange();
  }

  #take(items) {
    this.items = items;
    this.hasMore = this.#cursor !== null;
    this.error = null;
  }
}
