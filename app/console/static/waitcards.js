// Which card a wait has. A card is made once per wait and updated with a view of it:
//
//   turn       the turn as the server last told it
//   wait       what it waits for: an entry of `turn.waits`
//   act        what is on its way or went wrong (answers.js)
//   answer     (body, width) => sends an answer
//   approvals  who has decided about this call before
//   claim      who has taken a call that is outside
//   effect     of the tool, where it is known
//   kept       what is stored of the turn, where it is known
//   cancel     what cancelling the turn needs (acts.js), on the card that offers it
//   isBelow    whether the composer below answers it
//   elsewhere  opens the conversation, where the card is not in it

import { approvalView } from "./approval.js";
import { externalView } from "./external.js";
import { formView } from "./form.js";
import { parkedView } from "./parked.js";
import { questionView } from "./question.js";

const CARDS = { TOOL_APPROVAL: approvalView, EXTERNAL_TOOL: externalView, USER_INPUT: formView };

/** The card of a wait for somebody; null for what waits for a model, a time or a person's go. */
export function cardOf(view) {
  const { suspensionType, callId, stage } = view.wait;
  if (stage === "recovery") return parkedView(view);
  const make = suspensionType === "USER_INPUT" && !callId ? questionView : CARDS[suspensionType];
  return make ? make(view) : null;
}
