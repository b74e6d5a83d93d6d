"""Imports form no cycle, so each module can be imported first."""

import ast
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter

from tests.house.source import PACKAGE, Module, modules


def test_modules_form_no_import_cycle():
    named = {_dotted(module): module for module in modules()}
    graph = {
        name: {one for one in _imported(module, named) if one != name}
        for name, module in named.items()
    }
    assert "lore.errors" in graph["lore.settings"]
    TopologicalSorter(graph).prepare()  # raises CycleError with the modules of the cycle


def _dotted(module: Module) -> str:
    path = module.path.relative_to(PACKAGE.parent).with_suffix("")
    return ".".join(path.parts).removesuffix(".__init__")


def _imported(module: Module, names: Collection[str]) -> Iterator[str]:
    """Yield what a module imports while it is loaded."""
    for node in _loaded(module.tree.body):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names if each.name in names)
        elif node.module and node.module in names:
            for each in node.names:
                below = f"{node.module}.{each.name}"
                yield below if below in names else node.module


def _loaded(body: list[ast.stmt]) -> Iterator[ast.Import | ast.ImportFrom]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node
        elif isinstance(node, ast.If | ast.Try | ast.With) and not _is_for_types(node):
            yield from _loaded(node.body)


def _is_for_types(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
