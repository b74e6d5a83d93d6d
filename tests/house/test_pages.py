"""Docs match the code: links and file names exist, every package is described."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from lore.daemon.periodic_tasks import periodic_tasks
from lore.settings import load
from tests.house.source import PACKAGE, ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
DECISIONS = sorted((DOCS / "adr").glob("*.md"))
FOLDERS = (ROOT, PACKAGE.parent, PACKAGE)

LONGEST_DECISION = 45
"""Lines: a decision is half a page, and with its price a little more."""


def words_of(page: Path) -> set[str]:
    """Return the first column of a page's tables, without the marks of code."""
    rows = re.findall(r"^\| ([^|]+) \|", page.read_text("utf-8"), re.MULTILINE)
    return {word.strip("` ") for row in rows for word in row.split(",")}


def test_links_lead_to_files():
    for page in PAGES:
        targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
        missing = [target for target in targets if not (page.parent / target).exists()]
        assert not missing, page


def test_source_files_that_pages_name_exist():
    known = {path.name for path in PACKAGE.rglob("*.py")}
    for page in PAGES:
        text = re.sub(r"```console.*?```", "", page.read_text("utf-8"), flags=re.DOTALL)
        named = set(re.findall(r"`([\w/]+\.py)`", text))
        missing = [
            name
            for name in named
            if not any((folder / name).is_file() for folder in FOLDERS) and name not in known
        ]
        assert not missing, page


def test_every_package_is_in_the_architecture():
    packages = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert packages - {"__init__"} <= words_of(DOCS / "architecture.md")


def test_every_periodic_task_is_documented_in_order():
    page = (DOCS / "reference" / "daemon.md").read_text("utf-8")
    text = re.findall(
        r"^\| `(\w+)` \|", page.split("## Periodic tasks")[1].split("##")[0], re.MULTILINE
    )
    chosen = {"LORE_SYNC_TARGET": "laptop:", "LORE_SYNC_INTERVAL_S": "300"}  # it is off by default
    assert text == [task.name for task in periodic_tasks(load(chosen).settings)]


def test_packages_are_in_the_architecture_in_import_order():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (layers,) = [one["layers"] for one in contracts["contracts"] if one["type"] == "layers"]
    heights = {package: at for at, layer in enumerate(layers) for package in layer.split(" | ")}
    rows = re.findall(
        r"^\| `(\w+)` \|", (DOCS / "architecture.md").read_text("utf-8"), re.MULTILINE
    )
    listed = [heights[package] for package in rows]
    assert listed == sorted(listed)
    assert set(rows) == set(heights)


@pytest.mark.parametrize(
    "sign", ["Path.home()", "os.environ", "os.getcwd()"], ids=["home", "environment", "folder"]
)
def test_the_architecture_names_who_reads_the_environment(sign: str):
    text = (DOCS / "architecture.md").read_text("utf-8")
    readers = [
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if sign in path.read_text()
    ]
    assert readers
    named = [f"`{reader.removesuffix('.py')}`" for reader in readers if "/" not in reader]
    named += [f"`{reader}`" for reader in readers if "/" in reader]
    assert [name for name in named if name not in text] == []


def test_decisions_are_numbered_without_gaps_and_by_their_titles():
    numbers = [int(path.name[:3]) for path in DECISIONS]
    assert numbers == list(range(1, len(DECISIONS) + 1))
    for number, path in zip(numbers, DECISIONS, strict=True):
        assert path.read_text("utf-8").startswith(f"# {number}. "), path.name


def test_a_decision_gives_its_reasons_on_half_a_page():
    for path in DECISIONS:
        text = path.read_text("utf-8")
        assert "**Context.**" in text, path
        assert "**Decision.**" in text, path
        assert text.count("\n") <= LONGEST_DECISION, path


def test_the_readme_is_short():
    assert len((ROOT / "README.md").read_text("utf-8").split()) <= 900


def test_the_glossary_defines_each_word_once():
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    words = [word.strip() for row in rows for word in row.split(",")]
    assert [word for word, times in Counter(words).items() if times > 1] == []
