// Ids of messages that wait, told from a turn's events; when the turn ends, they open the next one.

const HEARD = {
  TURN_STARTED: (ids, { queue = [] }) => queue.forEach(({ messageId }) => ids.add(messageId)),
  INPUT_QUEUED: (ids, { messageId }) => ids.add(messageId),
  INPUT_PROMOTED: (ids, { messageId }) => ids.delete(messageId),
  INPUT_WITHDRAWN: (ids, { messageId }) => ids.delete(messageId),
};

export class Queued extends Set {
  hear({ type, data }) {
    HEARD[type]?.(this, data ?? {});
  }
}
