// Text that arrives in pieces, each with its offset in code points: it is filled in by offset,
// so that a repeated, overlapping or early piece does no harm.

export class Pieces {
  text = "";
  length = 0;
  #early = [];

  /** True when this added something. */
  add(offset, piece) {
    const before = this.length;
    this.#put(offset, piece);
    for (let i = 0; i < this.#early.length; i += 1) {
      const [at, text] = this.#early[i];
      if (at > this.length) continue;
      this.#early.splice(i, 1);
      this.#put(at, text);
      i = -1;
    }
    return this.length > before;
  }

  #put(offset, piece) {
    if (offset > this.length) {
      this.#early.push([offset, piece]);
      return;
    }
    const fresh = [...piece].slice(this.length - offset);
    this.text += fresh.join("");
    this.length += fresh.length;
  }

  /** Withdraws everything from `offset` on: that attempt was lost. */
  discard(offset) {
    this.replace([...this.text].slice(0, offset).join(""));
  }

  replace(text) {
    this.text = text;
    this.length = [...text].length;
    this.#early = [];
  }
}
