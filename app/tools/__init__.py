"""Tools made of plain Python functions: `from app.tools import NotDone, ToolContext, tool`."""

from app.ports import ToolContext
from app.tools.errors import NotDone, ToolDeclarationError
from app.tools.local import LocalTool, tool

__all__ = ["LocalTool", "NotDone", "ToolContext", "ToolDeclarationError", "tool"]
