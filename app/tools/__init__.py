"""Tools made of plain Python functions: `from app.tools import NotDone, ToolContext, tool`."""

from app.ports import Ask, Done, NeedsApproval, NeedsInput, ToolContext
from app.tools.errors import NotDone, ToolDeclarationError
from app.tools.external import ExternalTool, external_tool
from app.tools.local import LocalTool, tool
from app.tools.user_input import request_user_input
from app.turn.agent import WaitPolicy

__all__ = [
    "Ask",
    "Done",
    "ExternalTool",
    "LocalTool",
    "NeedsApproval",
    "NeedsInput",
    "NotDone",
    "ToolContext",
    "ToolDeclarationError",
    "WaitPolicy",
    "external_tool",
    "request_user_input",
    "tool",
]
