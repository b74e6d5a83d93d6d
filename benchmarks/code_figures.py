"""Count what makes a source tree easy or hard to find one's way in, without running it.

Everything is read from the syntax trees of the files; `journeys.py` counts the files that a call
passes through. Most figures are shares, so that trees of different sizes can be compared:

    python benchmarks/code_figures.py --src ../httpx/httpx

* Lines are all lines of a file: code, comments, docstrings and blank lines.
* A module is a Python file that is not an `__init__.py`. A package counts only as a part of the
  import graph.
* The length of a function runs from its `def` to its last line. Methods and nested functions count.
* A broad except catches everything: `except:`, `except Exception` or `except BaseException`, alone
  or in a tuple. It is blind if its block raises nothing.
* The import graph has an edge from a module to each module of the tree that it imports by name:
  `from package import module` and `from package.module import name` both lead to the module.
  An import inside a function is lazy. Lazy imports and those for type checkers are left out of
  cycles first, and then added.
* An importer of a module is any other module of the tree that imports it, lazily or for type
  checkers as well.
* A function that is called once from elsewhere is defined at the top of a module, the tree refers
  to it exactly once, and that is in another file. An import or a re-export alone is no reference.
* A gerund is a module name whose last word ends in -ing, unless it is one of `NOUNS`. The raw share
  has no exceptions.
* Docstring words are those of modules, classes and functions, and of the strings below constants
  and fields that document them.
* Vague names are `VAGUE_NAMES` that a function binds: by assignment, in a loop, by `with` or `:=`.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from itertools import chain
from pathlib import Path
from typing import Any

LONG_FUNCTION_LINES = 60
LARGE_FILE_LINES = 300
HUGE_FILE_LINES = 800

VAGUE_NAMES = ("found", "told", "said", "kept", "given", "held", "known")

NOUNS = frozenset(
    "billing embedding encoding listing logging mapping pricing ranking ring routing setting"
    " spring string thing timing warning".split()
)
"""Words in -ing that name a thing in the documentation of other projects, or are no verb forms."""

BROAD = frozenset({"Exception", "BaseException"})

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
DOCUMENTED = (ast.Module, ast.ClassDef, *FUNCTIONS)

_TELL = re.compile(r"\b(?:tell|tells|told)\b", re.IGNORECASE)
_TELLS = re.compile(r"\btells\b", re.IGNORECASE)


@dataclass(frozen=True)
class Module:
    """A source file with its dotted name and its syntax tree."""

    path: Path
    name: str
    text: str

    @cached_property
    def tree(self) -> ast.Module:
        """Parse the file."""
        return ast.parse(self.text, str(self.path))

    @property
    def is_package(self) -> bool:
        """Return whether the file is an `__init__.py`."""
        return self.path.name == "__init__.py"

    @property
    def lines(self) -> int:
        """Return the number of lines."""
        return len(self.text.splitlines())


@dataclass(frozen=True)
class Import:
    """One name that a module binds by an import statement."""

    alias: str
    module: str
    name: str = ""
    """The name inside the module; empty if the module itself is bound."""
    is_lazy: bool = False
    is_for_types: bool = False


Imports = Mapping[str, list[Import]]


def read_modules(folder: Path) -> list[Module]:
    """Read all Python files below a folder; the name of the folder is the package."""
    modules = []
    for path in sorted(folder.rglob("*.py")):
        parts = (folder.name, *path.relative_to(folder).with_suffix("").parts)
        name = ".".join(parts).removesuffix(".__init__")
        modules.append(Module(path, name, path.read_text("utf-8")))
    return modules


def read_imports(modules: Iterable[Module]) -> dict[str, list[Import]]:
    """Return what each module imports from the tree."""
    listed = list(modules)
    names = {module.name for module in listed}
    return {module.name: list(_find_imports(module, names)) for module in listed}


def _find_imports(module: Module, names: set[str]) -> Iterator[Import]:
    for node, is_lazy, is_for_types in _walk_imports(module.tree.body):
        for each in node.names:
            alias = each.asname or each.name
            target, name = each.name, ""
            if isinstance(node, ast.ImportFrom):
                source = _absolute(module, node)
                target = f"{source}.{each.name}"
                if target not in names:
                    target, name = source, each.name
            elif not each.asname and "." in alias:  # `import a.b` loads a.b and binds a
                top = alias.partition(".")[0]
                yield Import(top, top, "", is_lazy, is_for_types)
            if target in names:
                yield Import(alias, target, name, is_lazy, is_for_types)


def _absolute(module: Module, node: ast.ImportFrom) -> str:
    """Return the dotted name of the module that a `from` names."""
    if not node.level:
        return node.module or ""
    parts = module.name.split(".")
    above = parts[: len(parts) - node.level + module.is_package]
    return ".".join([*above, node.module] if node.module else above)


def _walk_imports(
    body: Iterable[ast.AST], *, is_lazy: bool = False, is_for_types: bool = False
) -> Iterator[tuple[ast.Import | ast.ImportFrom, bool, bool]]:
    for node in body:
        if isinstance(node, ast.Import | ast.ImportFrom):
            yield node, is_lazy, is_for_types
        elif isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            yield from _walk_imports(node.body, is_lazy=is_lazy, is_for_types=True)
            yield from _walk_imports(node.orelse, is_lazy=is_lazy, is_for_types=is_for_types)
        else:
            yield from _walk_imports(
                ast.iter_child_nodes(node),
                is_lazy=is_lazy or isinstance(node, FUNCTIONS),
                is_for_types=is_for_types,
            )


def find_cycles(imports: Imports, *, lazy: bool = False, types: bool = False) -> list[list[str]]:
    """Return the modules that import one another in a circle, the largest circle first."""
    graph = {
        name: {
            one.module
            for one in listed
            if (types or not one.is_for_types) and (lazy or not one.is_lazy) and one.module != name
        }
        for name, listed in imports.items()
    }
    back: dict[str, set[str]] = defaultdict(set)
    for name, targets in graph.items():
        for target in targets:
            back[target].add(name)
    order: list[str] = []
    seen: set[str] = set()
    for name in graph:
        order += _finish_order(name, graph, seen)
    seen, cycles = set(), []
    for name in reversed(order):
        component = _finish_order(name, back, seen)
        if len(component) > 1:
            cycles.append(sorted(component))
    return sorted(cycles, key=len, reverse=True)


def _finish_order(start: str, graph: Mapping[str, set[str]], seen: set[str]) -> list[str]:
    """Walk the unseen nodes below a node depth first; return them as they are finished."""
    if start in seen:
        return []
    seen.add(start)
    finished, stack = [], [(start, iter(sorted(graph.get(start, ()))))]
    while stack:
        node, targets = stack[-1]
        following = next((one for one in targets if one not in seen), None)
        if following is None:
            finished.append(node)
            stack.pop()
        else:
            seen.add(following)
            stack.append((following, iter(sorted(graph.get(following, ())))))
    return finished


def count_importers(modules: Iterable[Module], imports: Imports) -> dict[str, int]:
    """Return how many other modules import each module; packages are left out."""
    importers: dict[str, set[str]] = defaultdict(set)
    for name, listed in imports.items():
        for one in listed:
            if one.module != name:
                importers[one.module].add(name)
    return {each.name: len(importers[each.name]) for each in modules if not each.is_package}


@dataclass
class References(ast.NodeVisitor):
    """Counts in one module which functions of the tree it refers to; local names hide others."""

    module: str
    definitions: Mapping[str, set[str]]
    """The functions at the top of each module."""
    imports: Imports
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    _scopes: list[set[str]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._bound = {one.alias: one for one in self.imports[self.module]}

    def visit_FunctionDef(self, node: FunctionNode) -> None:
        """Visit a function with its own names."""
        self._visit_scope(node, _local_names(node))

    visit_AsyncFunctionDef = visit_FunctionDef  # noqa: N815 - as ast names it

    def visit_Lambda(self, node: ast.Lambda) -> None:
        """Visit a lambda with its arguments."""
        self._visit_scope(node, {each.arg for each in ast.walk(node) if isinstance(each, ast.arg)})

    def _visit_scope(self, node: ast.AST, names: set[str]) -> None:
        self._scopes.append(names)
        self.generic_visit(node)
        self._scopes.pop()

    def visit_Name(self, node: ast.Name) -> None:
        """Count a name that is imported or defined here."""
        if isinstance(node.ctx, ast.Load) and not self._is_local(node.id):
            bound = self._bound.get(node.id)
            if bound is None:
                self._count(self.module, node.id)
            elif bound.name:
                self._count(bound.module, bound.name)

    def visit_Attribute(self, node: ast.Attribute) -> None:
        """Count a name that is looked up in a module."""
        module = self._find_module(node.value)
        if module:
            self._count(module, node.attr)
        else:
            self.generic_visit(node)

    def _is_local(self, name: str) -> bool:
        return any(name in scope for scope in self._scopes)

    def _find_module(self, node: ast.expr) -> str:
        """Return the module that an expression stands for, if it is one."""
        if isinstance(node, ast.Name) and not self._is_local(node.id):
            bound = self._bound.get(node.id)
            return bound.module if bound and not bound.name else ""
        if isinstance(node, ast.Attribute):
            above = self._find_module(node.value)
            return f"{above}.{node.attr}" if f"{above}.{node.attr}" in self.imports else ""
        return ""

    def _count(self, module: str, name: str) -> None:
        """Count a function where it is defined, through any re-exports."""
        followed = {(module, name)}
        while name not in self.definitions.get(module, ()):
            onward = [one for one in self.imports.get(module, ()) if one.alias == name]
            if not onward or (onward[0].module, onward[0].name) in followed:
                return
            module, name = onward[0].module, onward[0].name
            followed.add((module, name))
        self.counts[module, name] += 1


def _local_names(function: FunctionNode) -> set[str]:
    """Return the names that a function binds, other than by imports."""
    names, outer = set(), set()
    for node in ast.walk(function):
        if isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            names.add(node.id)
        elif isinstance(node, FUNCTIONS) and node is not function:
            names.add(node.name)
        elif isinstance(node, ast.Global | ast.Nonlocal):
            outer.update(node.names)
    return names - outer


def find_called_once_elsewhere(
    modules: Iterable[Module], imports: Imports
) -> tuple[list[str], int]:
    """Return the functions that one other file uses once, and how many functions there are."""
    listed = list(modules)
    definitions = {
        module.name: {node.name for node in module.tree.body if isinstance(node, FUNCTIONS)}
        for module in listed
    }
    total: Counter[tuple[str, str]] = Counter()
    elsewhere: set[tuple[str, str]] = set()
    for module in listed:
        references = References(module.name, definitions, imports)
        references.visit(module.tree)
        total += references.counts
        elsewhere |= {one for one in references.counts if one[0] != module.name}
    once = sorted(".".join(one) for one in elsewhere if total[one] == 1)
    return once, sum(map(len, definitions.values()))


def is_broad(handler: ast.ExceptHandler) -> bool:
    """Return whether an except clause catches everything."""
    caught = handler.type.elts if isinstance(handler.type, ast.Tuple) else [handler.type]
    return any(one is None or (isinstance(one, ast.Name) and one.id in BROAD) for one in caught)


def read_docstrings(tree: ast.Module) -> Iterator[str]:
    """Return the docstrings of a file, and the strings that document constants and fields."""
    bodies = (node.body for node in ast.walk(tree) if isinstance(node, DOCUMENTED))
    for child in chain.from_iterable(bodies):
        match child:
            case ast.Expr(value=ast.Constant(value=str(text))):
                yield text


def count_vague_names(tree: ast.Module) -> Counter[str]:
    """Count how often functions bind a vague name."""
    functions = (node for node in ast.walk(tree) if isinstance(node, FUNCTIONS))
    inside = {node for function in functions for node in ast.walk(function)}
    names = (node for node in inside if isinstance(node, ast.Name) and node.id in VAGUE_NAMES)
    return Counter(node.id for node in names if isinstance(node.ctx, ast.Store))


def is_gerund(stem: str) -> bool:
    """Return whether a module is named by a verb form in -ing."""
    word = stem.rpartition("_")[2]
    return word.endswith("ing") and word not in NOUNS


def share(part: int, whole: int, per: int = 100) -> float:
    """Return a share in percent, or a count for each `per`."""
    return round(per * part / whole, 2) if whole else 0.0


def measure_size(src: Path, modules: list[Module]) -> dict[str, Any]:
    """Return numbers of files and lines, also of tests and benchmarks in the same repository."""
    root = src.parents[1] if src.parent.name == "src" else src.parent
    trees = {"src": modules} | {name: read_modules(root / name) for name in ("tests", "benchmarks")}
    lines = [module.lines for module in modules]
    figures: dict[str, Any] = {
        "over_300_percent": share(sum(n > LARGE_FILE_LINES for n in lines), len(lines)),
        "over_800_percent": share(sum(n > HUGE_FILE_LINES for n in lines), len(lines)),
    }
    for name, tree in trees.items():
        figures[f"{name}_files"] = len(tree)
        figures[f"{name}_lines"] = sum(module.lines for module in tree)
    return figures


def measure_functions(modules: list[Module], lines: int) -> dict[str, Any]:
    """Return figures of functions and excepts."""
    nodes = [node for module in modules for node in ast.walk(module.tree)]
    functions = [node for node in nodes if isinstance(node, FUNCTIONS)]
    long = [
        one for one in functions if (one.end_lineno or 0) - one.lineno + 1 > LONG_FUNCTION_LINES
    ]
    broad = [node for node in nodes if isinstance(node, ast.ExceptHandler) and is_broad(node)]
    blind = [one for one in broad if not any(isinstance(node, ast.Raise) for node in ast.walk(one))]
    return {
        "functions": len(functions),
        "long_functions_percent": share(len(long), len(functions)),
        "broad_excepts_per_1000_lines": share(len(broad), lines, 1000),
        "blind_excepts_per_1000_lines": share(len(blind), lines, 1000),
    }


def measure_imports(modules: list[Module]) -> dict[str, Any]:
    """Return figures of what imports and calls what."""
    imports = read_imports(modules)
    loaded, lazy = find_cycles(imports), find_cycles(imports, lazy=True)
    every = find_cycles(imports, lazy=True, types=True)
    importers = count_importers(modules, imports)
    single = sorted(name for name, count in importers.items() if count == 1)
    once, functions = find_called_once_elsewhere(modules, imports)
    return {
        "largest_cycle": max(map(len, loaded), default=0),
        "largest_cycle_with_lazy": max(map(len, lazy), default=0),
        "largest_cycle_with_types": max(map(len, every), default=0),
        "top_functions": functions,
        "called_once_elsewhere_percent": share(len(once), functions),
        "one_importer_percent": share(len(single), len(importers)),
        "cycles": every,
        "called_once_elsewhere": once,
        "one_importer": single,
    }


def measure_words(modules: list[Module]) -> dict[str, Any]:
    """Return figures of names and docstrings."""
    stems = [module.path.stem for module in modules if not module.is_package]
    gerunds = sorted(stem for stem in stems if is_gerund(stem))
    repeated = {stem: n for stem, n in Counter(stems).most_common() if n > 1}
    text = " ".join(one for module in modules for one in read_docstrings(module.tree))
    words, tell, tells = len(text.split()), len(_TELL.findall(text)), len(_TELLS.findall(text))
    vague = sum((count_vague_names(module.tree) for module in modules), Counter[str]())
    return {
        "modules": len(stems),
        "gerunds_percent": share(len(gerunds), len(stems)),
        "ing_percent": share(sum(stem.endswith("ing") for stem in stems), len(stems)),
        "repeated_names": len(repeated),
        "files_with_repeated_names_percent": share(sum(repeated.values()), len(stems)),
        "docstring_words": words,
        "tell_per_1000_docstring_words": share(tell, words, 1000),
        "tell_told_per_1000_docstring_words": share(tell - tells, words, 1000),
        "vague_names": vague.total(),
        "vague_names_by_name": {name: vague[name] for name in VAGUE_NAMES},
        "repeated_names_listed": repeated,
        "gerunds": gerunds,
    }


LABELS = {
    "src_files": "files in src",
    "src_lines": "lines in src",
    "tests_files": "files in tests",
    "tests_lines": "lines in tests",
    "benchmarks_files": "files in benchmarks",
    "benchmarks_lines": "lines in benchmarks",
    "over_300_percent": f"files over {LARGE_FILE_LINES} lines, %",
    "over_800_percent": f"files over {HUGE_FILE_LINES} lines, %",
    "long_functions_percent": f"functions over {LONG_FUNCTION_LINES} lines, %",
    "broad_excepts_per_1000_lines": "broad excepts per 1,000 lines",
    "blind_excepts_per_1000_lines": "  of these without a raise (blind)",
    "largest_cycle": "largest import cycle, modules",
    "largest_cycle_with_lazy": "  with imports in functions",
    "largest_cycle_with_types": "  with imports for type checkers, too",
    "called_once_elsewhere_percent": "functions called once, from another file, %",
    "one_importer_percent": "modules with one importer, %",
    "gerunds_percent": "module names that are gerunds, %",
    "ing_percent": "  that end in -ing, %",
    "repeated_names": "module names that occur more than once",
    "files_with_repeated_names_percent": "  files with such a name, %",
    "tell_per_1000_docstring_words": "'tell/tells/told' per 1,000 docstring words",
    "tell_told_per_1000_docstring_words": "  'tell/told' alone",
    "vague_names": "vague local names bound",
}


def show(figures: Mapping[str, Any]) -> None:
    """Print the figures as a table, and the names behind some of them."""
    for key, label in LABELS.items():
        print(f"{label:46} {figures[key]:>10,}")
    by_name = figures["vague_names_by_name"].items()
    print("\nvague local names:", ", ".join(f"{name} {count}" for name, count in by_name))
    repeated = figures["repeated_names_listed"].items()
    print("names that occur more than once:", ", ".join(f"{name} {n}" for name, n in repeated))
    for cycle in figures["cycles"]:
        print("import cycle:", " ".join(cycle))


def main() -> None:
    """Measure one source tree and print the figures."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    usual = Path(__file__).resolve().parents[1] / "src" / "lore"
    options.add_argument("--src", type=Path, default=usual, help="the folder of the package")
    options.add_argument("--json", action="store_true", help="print JSON, with all names listed")
    chosen = options.parse_args()
    src = chosen.src.resolve()
    modules = read_modules(src)
    if not modules:
        options.error(f"--src must be a folder with Python files, not {str(chosen.src)!r}")
    size = measure_size(src, modules)
    figures = {
        **size,
        **measure_functions(modules, size["src_lines"]),
        **measure_imports(modules),
        **measure_words(modules),
    }
    if chosen.json:
        print(json.dumps(figures, indent=1))
    else:
        show(figures)


if __name__ == "__main__":
    main()
