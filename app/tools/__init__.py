"""Tools made of plain Python functions: `from app.tools import Ask, NotDone, ToolContext, tool`."""

from app.ports import Ask, ToolContext
from app.tools.errors import NotDone, ToolDeclarationError
from app.tools.local import LocalTool, tool

__all__ = ["Ask", "LocalTool", "NotDone", "ToolContext", "ToolDeclarationError", "tool"]
