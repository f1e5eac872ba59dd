// Where the page is, as its address says: #c=CONVERSATION, #new, #inbox or #inbox=WAIT.

/** What the address says after `#name=`, or null; an address that was cut is no reason to stop. */
export function inHash(name) {
  const found = location.hash.startsWith(`#${name}=`) ? location.hash.slice(name.length + 2) : "";
  try {
    return found === "" ? null : decodeURIComponent(found);
  } catch {
    return found;
  }
}

export const conversationAddress = (conversationId) => `#c=${encodeURIComponent(conversationId)}`;
export const waitAddress = (key) => `#inbox=${encodeURIComponent(key)}`;

export function place() {
  const wait = inHash("inbox");
  return {
    conversation: inHash("c"),
    isNew: location.hash === "#new",
    isInbox: location.hash === "#inbox" || wait !== null,
    wait,
  };
}
