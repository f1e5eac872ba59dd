// What is stored of a turn, counted from the steps of its line.

const wordsOf = (step) => (step ? step.pieces.text.split(/\s+/u).filter(Boolean).length : 0);

export function keptOf(steps, results) {
  // Of the answers that broke off, the one that the last wait is about. One that was stopped is written
  // anew, and its last words may not have been stored.
  const since = steps.findLastIndex((step) => step.kind === "wait" && !step.open && step.by !== "TURN_PAUSED");
  const partial = steps.slice(since + 1).findLast((step) => step.kind === "text" && step.partial === "broken");
  return { messages: steps.filter((step) => step.kind === "said").length, results, words: wordsOf(partial) };
}
