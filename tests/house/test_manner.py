"""The manner of the house: sizes, names, docstrings, words."""

import ast
import os
import re
import subprocess

import pytest

from tests.house.source import PACKAGE, ROOT, Module, modules

LONGEST_FILE = 500
LONGEST_FUNCTION = 60
BROAD_EXCEPTS = 5
"""Daemon tick, phase runner, gateway's recording side, tool wrapper, ASGI handler."""

EMPTY_FILE_NAMES = re.compile(
    r"^(utils?|helpers?|misc|common|base|core|manager|types|constants|engine|service)\.py$"
)
EMPTY_CLASS_NAMES = re.compile(
    r"(Manager|Helper|Utils?|Handler|Processor|Orchestrator|Factory|Impl|\wService|Engine|Base)$"
)
NOT_OUR_WORDS = {
    "workspace", "salience", "memories", "retrieve", "retrieval_engine", "compress", "ingest",
    "invalidate", "touch", "tier", "memory_node", "topic", "relation", "subtopic",
}  # fmt: skip
"""The right column of the glossary, as far as a word has no other meaning in code."""

SAID_BY_OTHERS = {
    ("src/lore/capture/adapters/archives.py", "compress"): "zipfile's",
    ("src/lore/config_files.py", "touch"): "pathlib's",
    ("src/lore/gateway/glancing.py", "tier"): "OpenAI's",
}
EVERY = pytest.mark.parametrize("module", modules(), ids=lambda m: m.name)


@EVERY
def test_a_module_has_a_docstring_that_begins_with_one_sentence(module: Module):
    told = ast.get_docstring(module.tree)
    assert told
    assert re.match(r"^[^\n]+[.!?:]$", told.split("\n")[0]), told.split("\n")[0]


def test_a_benchmark_can_be_read_in_one_sitting():
    for path in (ROOT / "benchmarks").rglob("*.py"):
        assert path.read_text("utf-8").count("\n") <= LONGEST_FILE, path


@EVERY
def test_a_file_can_be_read_in_one_sitting(module: Module):
    assert module.text.count("\n") <= LONGEST_FILE


@EVERY
def test_a_function_is_short(module: Module):
    for function in module.functions():
        body = function.body[1:] if ast.get_docstring(function) else function.body
        size = (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0
        assert size <= LONGEST_FUNCTION, f"{module.name}:{function.lineno} {function.name}"


@EVERY
def test_names_say_something(module: Module):
    assert not EMPTY_FILE_NAMES.match(module.path.name)
    for found in module.classes():
        assert not EMPTY_CLASS_NAMES.search(found.name), f"{module.name}: {found.name}"


def test_broad_excepts_stand_at_the_boundaries_only():
    found = []
    for module in modules():
        for node in ast.walk(module.tree):
            if isinstance(node, ast.ExceptHandler):
                caught = ast.unparse(node.type) if node.type else "everything"
                reraises = any(isinstance(inner, ast.Raise) for inner in ast.walk(node))
                if caught in ("Exception", "BaseException", "everything") and not reraises:
                    found.append(f"{module.name}:{node.lineno}")
    assert len(found) <= BROAD_EXCEPTS, found


def identifiers(tree: ast.AST) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.Attribute):
            names.add(node.attr)
    return names


@EVERY
def test_each_concept_has_one_word(module: Module):
    for name in identifiers(module.tree):
        words = {word for word in re.split(r"_+|(?<=[a-z])(?=[A-Z])", name) if word}
        used = {word.lower() for word in words} & NOT_OUR_WORDS
        used -= {word for word in used if (module.name, word) in SAID_BY_OTHERS}
        assert not used, f"{module.name}: {name}"


def tracked() -> list[str]:
    done = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        return [str(path.relative_to(ROOT)) for path in PACKAGE.rglob("*") if path.is_file()]
    return done.stdout.split("\n")


def test_no_file_names_a_machine_or_a_registry():
    places = ["/" + "root/", "/" + "work/main", "/" + "work/shared", "/" + "home/runner"]
    hosts = [
        "pypi." + "org",
        "pythonhosted" + ".org",
        "artifact" + "ory",
        "localhost:" + "3141",
    ]
    host = os.uname().nodename
    names = [*places, *hosts, *([host] if len(host) > 6 else [])]
    found = []
    for name in tracked():
        path = ROOT / name
        if not path.is_file() or path.suffix in (".gz", ".npz", ".onnx", ".bin", ".png"):
            continue
        text = path.read_text("utf-8", "replace")
        found += [f"{name}: {bad}" for bad in names if bad in text]
    assert not found
