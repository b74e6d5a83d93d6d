"""The pages that people write: links lead somewhere, files exist, every room has its line."""

import re
import tomllib
from collections import Counter
from pathlib import Path

import pytest

from lore.daemon.chores import chores_of
from lore.memory import Memory
from lore.settings import load
from tests.house.source import PACKAGE, ROOT

DOCS = ROOT / "docs"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted(DOCS.rglob("*.md"))]
DECISIONS = sorted((DOCS / "adr").glob("*.md"))
EVERY = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
FOLDERS = (ROOT, PACKAGE.parent, PACKAGE)

LONGEST_DECISION = 45
"""Lines: a decision is half a page, and with its price a little more."""


def words_of(page: Path) -> set[str]:
    """Return the first column of a page's tables, without the marks of code."""
    rows = re.findall(r"^\| ([^|]+) \|", page.read_text("utf-8"), re.MULTILINE)
    return {word.strip("` ") for row in rows for word in row.split(",")}


@EVERY
def test_a_link_leads_to_a_file(page: Path):
    targets = re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", page.read_text("utf-8"))
    assert [target for target in targets if not (page.parent / target).exists()] == []


@EVERY
def test_a_source_file_that_is_named_is_there(page: Path):
    named = set(re.findall(r"`([\w/]+\.py)`", page.read_text("utf-8")))
    known = {path.name for path in PACKAGE.rglob("*.py")}
    missing = [
        name
        for name in named
        if not any((folder / name).is_file() for folder in FOLDERS) and name not in known
    ]
    assert missing == []


def test_every_room_has_a_line_in_the_architecture():
    rooms = {
        path.stem
        for path in PACKAGE.iterdir()
        if path.suffix == ".py" or (path / "__init__.py").is_file()
    }
    assert rooms - {"__init__"} <= words_of(DOCS / "architecture.md")


def test_every_chore_of_the_daemon_is_on_its_page_in_its_order():
    page = (DOCS / "reference" / "daemon.md").read_text("utf-8")
    told = re.findall(r"^\| `(\w+)` \|", page.split("## Chores")[1].split("##")[0], re.MULTILINE)
    assert told == [chore.name for chore in chores_of(load({}).settings)]


def test_rooms_stand_in_the_architecture_in_the_order_of_their_imports():
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["tool"]["importlinter"]
    (layers,) = [one["layers"] for one in contracts["contracts"] if one["type"] == "layers"]
    heights = {room: at for at, layer in enumerate(layers) for room in layer.split(" | ")}
    rows = re.findall(
        r"^\| `(\w+)` \|", (DOCS / "architecture.md").read_text("utf-8"), re.MULTILINE
    )
    listed = [heights[room] for room in rows]
    assert listed == sorted(listed)
    assert set(rows) == set(heights)


@pytest.mark.parametrize(
    "sign", ["Path.home()", "os.environ", "os.getcwd()"], ids=["home", "environment", "folder"]
)
def test_the_architecture_names_who_reads_what_the_process_is_given(sign: str):
    told = (DOCS / "architecture.md").read_text("utf-8")
    readers = [
        str(path.relative_to(PACKAGE)) for path in PACKAGE.rglob("*.py") if sign in path.read_text()
    ]
    assert readers
    named = [f"`{reader.removesuffix('.py')}`" for reader in readers if "/" not in reader]
    named += [f"`{reader}`" for reader in readers if "/" in reader]
    assert [name for name in named if name not in told] == []


@pytest.mark.parametrize("name", ["glossary.md", "adr/017-memory-as-desks.md", "architecture.md"])
def test_every_desk_of_the_memory_is_named(name: str):
    told = (DOCS / name).read_text("utf-8").lower()
    desks = [kind.__name__.lower() for kind in Memory.__bases__]
    assert len(desks) == 11, "glossary and ADR 17 say how many there are"
    assert [desk for desk in desks if desk not in told] == []


def test_decisions_are_numbered_without_gaps_and_by_their_titles():
    numbers = [int(path.name[:3]) for path in DECISIONS]
    assert numbers == list(range(1, len(DECISIONS) + 1))
    for number, path in zip(numbers, DECISIONS, strict=True):
        assert path.read_text("utf-8").startswith(f"# {number}. "), path.name


@pytest.mark.parametrize("path", DECISIONS, ids=lambda path: path.stem)
def test_a_decision_says_why_it_was_taken_on_half_a_page(path: Path):
    text = path.read_text("utf-8")
    assert "**Context.**" in text
    assert "**Decision.**" in text
    assert text.count("\n") <= LONGEST_DECISION


def test_the_glossary_tells_each_word_once():
    rows = re.findall(r"^\| ([^|]+) \|", (DOCS / "glossary.md").read_text("utf-8"), re.MULTILINE)
    words = [word.strip() for row in rows for word in row.split(",")]
    assert [word for word, times in Counter(words).items() if times > 1] == []


def test_the_glossary_has_the_words_of_the_code():
    wanted = "bridge caller door endpoint gate grant hook injection ticket tool "
    wanted += "adapter alias aside candidate channel chore claim desk digest draft home mark "
    wanted += "notice opaque outcome payload receipt redaction speaker stretch tombstone upkeep "
    wanted += "watermark"
    assert set(wanted.split()) <= words_of(DOCS / "glossary.md")
