"""Rules for turns that wait for a person or for somebody outside.

a command on a call       no call waits for anybody outside yet, so it fits no state: refused as
                          one at work, as another wait, or as ended (T94, T95, T63)
"""

from app.turn import events as e
from app.turn import inputs as i
from app.turn.decide_requests import does_not_fit
from app.turn.state import Turn

_NAMES: dict[type[i.CallCommand], str] = {
    i.ApproveTool: "APPROVE_TOOL",
    i.RejectTool: "REJECT_TOOL",
    i.GiveToolResult: "TOOL_RESULT",
    i.GiveToolError: "TOOL_ERROR",
}


def call_commanded(turn: Turn, given: i.CallCommand) -> tuple[e.Event, ...]:
    """Refused by the turn's state, whatever call it names.

    Raises:
        TurnNotBlocked, WrongCommand, TurnTerminal: always one of them.
    """
    raise does_not_fit(turn, _NAMES[type(given)])
