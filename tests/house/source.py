"""The project's own files, parsed once."""

import ast
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
_FOLDERS = ("app", "docs", "openapi", "scripts", "tests", ".ci")
_NOT_TEXT = {".gz", ".http", ".png", ".pyc"}
_BY_OTHERS = {"requirements.txt", "requirements-dev.txt"}
"""Written by a tool, and of a form of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A Python file of the application."""

    path: str
    """From the root, such as `app/turn/decide.py`."""
    tree: ast.Module
    lines: Sequence[str]

    def at(self, node: ast.AST) -> str:
        """Where to look, as editors understand it."""
        return f"{self.path}:{getattr(node, 'lineno', 1)}"

    def is_in(self, *folders: str) -> bool:
        return self.path.startswith(folders)


@cache
def modules() -> tuple[Module, ...]:
    """Every Python file under app/, migrations left out: Alembic writes their form."""
    paths = sorted((ROOT / "app").rglob("*.py"))
    found = [_module(path) for path in paths if "migrations/versions" not in str(path)]
    return tuple(found)


def _module(path: Path) -> Module:
    text = path.read_text()
    return Module(path=str(path.relative_to(ROOT)), tree=ast.parse(text), lines=text.splitlines())


def nodes() -> Iterator[tuple[Module, ast.AST]]:
    """Every node of every module."""
    for module in modules():
        for node in ast.walk(module.tree):
            yield module, node


@cache
def texts() -> tuple[tuple[str, str], ...]:
    """Every text file that belongs to the project, with what it says."""
    paths = [path for folder in _FOLDERS for path in (ROOT / folder).rglob("*")]
    paths += [path for path in ROOT.iterdir() if path.name not in _BY_OTHERS]
    return tuple(
        (str(path.relative_to(ROOT)), path.read_text(errors="replace"))
        for path in sorted(paths)
        if path.is_file() and _is_ours(path)
    )


def _is_ours(path: Path) -> bool:
    parts = path.relative_to(ROOT).parts
    return path.suffix not in _NOT_TEXT and "__pycache__" not in parts and parts[0] != ".git"
