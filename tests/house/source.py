"""The source files of the package, read once for the rules of the house."""

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2]
PACKAGE = ROOT / "src" / "lore"


@dataclass(frozen=True)
class Module:
    """One source file with its text and its tree."""

    path: Path
    text: str
    tree: ast.Module

    @property
    def name(self) -> str:
        return str(self.path.relative_to(ROOT))

    def functions(self) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield node

    def classes(self) -> Iterator[ast.ClassDef]:
        for node in ast.walk(self.tree):
            if isinstance(node, ast.ClassDef):
                yield node


@cache
def modules() -> tuple[Module, ...]:
    loaded = []
    for path in sorted(PACKAGE.rglob("*.py")):
        text = path.read_text("utf-8")
        loaded.append(Module(path, text, ast.parse(text)))
    return tuple(loaded)
