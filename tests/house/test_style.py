"""Style of the source: sizes, names, docstrings, constants, and no patched tests."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from itertools import zip_longest

from tests.house.source import PACKAGE, ROOT, modules

MAX_FILE_LINES = 800
MAX_FUNCTION_LINES = 60
MAX_BROAD_EXCEPTS = 5
"""Daemon tick, phase runner, gateway's recording side, tool wrapper, ASGI handler."""

EMPTY_FILE_NAMES = re.compile(
    r"^(utils?|helpers?|misc|common|base|core|manager|types|constants|engine|service)\.py$"
)
EMPTY_CLASS_NAMES = re.compile(r"(Manager|Helper|Utils?|Processor|Orchestrator|Factory|Impl)$")
ING_NOUNS = {"embedding", "billing", "pricing", "ranking", "routing"}
VAGUE_NAMES = {"found", "told", "said", "kept", "given", "held"}
STORED_NAMES = {
    ("setup_commands", "found"), ("hooks", "told"), ("knowledge", "told"), ("gateway", "told"),
    ("answers", "given"), ("prompts", "given"),
}  # fmt: skip
"""Keys of stored or printed JSON, and a public keyword."""

SHARED_FILE_NAMES = {
    "__init__", "__main__", "anthropic", "app", "requests", "server", "streams", "summarizer",
    "budget", "digest", "episodes", "extraction", "knowledge", "ledger", "maintenance",
    "private_mode", "search", "sessions",
}  # fmt: skip
"""File names that mean the same in every package: an app, a server, or one concept by layer."""

NUMBERS_WITH_REASONS = ("context", "mcp", "memory", "http", "setup", "tools")
PATCHES = {"monkeypatch.setattr", "monkeypatch.setitem", "mock.patch", "mocker.patch"}


def test_a_module_has_a_docstring_that_begins_with_one_sentence():
    wrong = []
    for module in modules():
        text = ast.get_docstring(module.tree) or ""
        if not re.match(r"^[^\n]+[.!?:]$", text.split("\n")[0]):
            wrong.append(module.name)
    assert not wrong


def test_files_are_of_a_readable_size():
    paths = [m.path for m in modules()] + list((ROOT / "benchmarks").rglob("*.py"))
    assert not [p for p in paths if p.read_text("utf-8").count("\n") > MAX_FILE_LINES]


def test_functions_are_short():
    long = []
    for module in modules():
        for function in module.functions():
            body = function.body[1:] if ast.get_docstring(function) else function.body
            size = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
            if size > MAX_FUNCTION_LINES:
                long.append(f"{module.name}:{function.lineno} {function.name}")
    assert not long


def test_module_names_are_nouns():
    gerunds = [
        m.name
        for m in modules()
        if m.path.stem.endswith("ing") and m.path.stem.split("_")[-1] not in ING_NOUNS
    ]
    assert not gerunds


def test_a_file_name_has_one_meaning():
    places = defaultdict(list)
    for module in modules():
        if module.path.stem not in SHARED_FILE_NAMES:
            places[module.path.stem].append(module.name)
    assert not {name: paths for name, paths in places.items() if len(paths) > 1}


def test_names_are_specific():
    vague = [m.name for m in modules() if EMPTY_FILE_NAMES.match(m.path.name)]
    for module in modules():
        vague += [
            f"{module.name}: {each.name}"
            for each in module.classes()
            if EMPTY_CLASS_NAMES.search(each.name)
        ]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Name | ast.arg):
                name = node.id if isinstance(node, ast.Name) else node.arg
                if name in VAGUE_NAMES and (module.path.stem, name) not in STORED_NAMES:
                    vague.append(f"{module.name}:{node.lineno} {name}")
    assert not vague


def test_broad_excepts_are_at_the_named_boundaries_only():
    broad = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "everything"
                reraises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
                if caught in ("Exception", "BaseException", "everything") and not reraises:
                    broad.append(f"{module.name}:{node.lineno}")
    assert len(broad) <= MAX_BROAD_EXCEPTS, broad


def undocumented_numbers(body: list[ast.stmt]) -> Iterator[str]:
    """Yield the numeric constants of a module that no docstring follows."""
    for node, after in zip_longest(body, body[1:]):
        value = getattr(node, "value", None)
        if isinstance(node, ast.Assign | ast.AnnAssign) and value and is_number(value):
            documented = isinstance(after, ast.Expr) and isinstance(after.value, ast.Constant)
            if not documented:
                yield f"{node.lineno} {ast.unparse(node)}"


def is_number(value: ast.expr) -> bool:
    """Return whether a value is a number, a sum of numbers or a tuple of numbers."""
    if isinstance(value, ast.Tuple):
        return all(map(is_number, value.elts)) and bool(value.elts)
    if isinstance(value, ast.BinOp):
        return is_number(value.left) or is_number(value.right)
    if isinstance(value, ast.UnaryOp):
        return is_number(value.operand)
    return isinstance(value, ast.Constant) and type(value.value) in (int, float)


def test_a_numeric_constant_says_where_it_comes_from():
    missing = []
    for module in modules():
        if module.path.relative_to(PACKAGE).parts[0] in NUMBERS_WITH_REASONS:
            missing += [f"{module.name}:{n}" for n in undocumented_numbers(module.tree.body)]
    assert not missing


def test_an_undocumented_number_is_detected():
    text = "A = 5\nB = 24 * 3600.0\n\nC, D = 1, -2"
    assert len(list(undocumented_numbers(ast.parse(text).body))) == 3
    text = 'A = 5\n"""Fingers."""\nB = "x"\nC = len(B)'
    assert not list(undocumented_numbers(ast.parse(text).body))


def patches(tree: ast.AST) -> list[str]:
    """Return the calls and imports by which code replaces parts of the code under test."""
    places = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and ast.unparse(node) in PATCHES:
            places.append(f"{node.lineno} {ast.unparse(node)}")
        elif isinstance(node, ast.ImportFrom) and node.module == "unittest.mock":
            places.append(f"{node.lineno} {node.module}")
    return places


def test_tests_patch_nothing():
    patched = []
    for path in (ROOT / "tests").rglob("*.py"):
        text = path.read_text("utf-8")
        # each patch has one of these words, and most files have neither: parsing takes seconds
        if not re.search("patch|mock", text):
            continue
        tree = ast.parse(text)
        patched += [f"{path.relative_to(ROOT)}:{place}" for place in patches(tree)]
    assert not patched


def test_a_patch_is_detected():
    assert patches(ast.parse("monkeypatch.setattr(texts, 'LIMIT', 5)"))
    assert patches(ast.parse("from unittest.mock import patch"))
    assert not patches(ast.parse("monkeypatch.setenv('HOME', '/code')"))
