"""Tests mirror the source: a file for each module, under its name, and the exceptions by name.

Both lists below are exact: a module or a test file that is added, renamed or mirrored later on
changes them, or fails here.
"""

from collections import defaultdict
from pathlib import Path

from tests.house.source import PACKAGE, ROOT

TESTS = ROOT / "tests"

APART = {"clients", "doors", "house", "stories", "trust"}
"""Folders of tests on the whole: real clients, installed doors, the house, lives, bad days."""

TESTED_BY_NEIGHBOURS = {
    ".": "config_files rules",
    "budget": "counters pressing",
    "capture": (
        "gathering peers rehearsing shapes slips staging transcript_files transcript_lines "
        "transcripts"
    ),
    "capture/adapters": ("blocks chatgpt claude_ai opencode_files opencode_messages places tools"),
    "cli": "app completion evaluation finding keeping knowledge looking model serving trust",
    "consolidate": "prune_edges prune_fragments",
    "curate": "means nearness working",
    "daemon": "attempts background chores",
    "embed": "embedder graph",
    "evals": "baselines recordings",
    "gateway": "boundary encodings exchanges questions refusals searching streaming",
    "gateway/wires": "arranging framing listening searches summing wire",
    "gateway/wires/anthropic": "expanding loading reading replies splicing writing",
    "gateway/wires/chat": "calls expanding reading replies splicing writing",
    "gateway/wires/gemini": "expanding reading replies splicing writing",
    "gateway/wires/responses": "expanding reading replies splicing writing",
    "llm": "anthropic bounded chat digester late ledger openai presets recording refusals replies",
    "llm/offline": "choices digester finding fixes orders reflecting told_settings tool_lines",
    "llm/prompts": "condensing extracting judging observing prompt telling",
    "recall": "beginnings graph pool presenting ranking remedies unasked",
    "mcp": "late",
    "memory": "holding",
    "records": "access answers dialogues digest kinds knowledge prompting spending talk upkeep",
    "store": (
        "access_keys conflicts consolidation copies echoes episodes foreign listing loading names "
        "origins session_figures shared surroundings turn_times turns vector_layout "
        "vector_snapshot writing"
    ),
    "text": (
        "fences secret_addresses secret_codes secret_commands secret_crowds secret_fitting "
        "secret_forms secret_habits secret_lines secret_names "
        "secret_place_patterns secret_raw_keys secret_reading secret_talk secret_values "
        "stories typed"
    ),
}
"""Modules that are reached through others of their room: a wire is tested as a whole."""

OF_SEVERAL = {
    "capture": "file_schedules killed_readers",
    "capture/adapters": "fuzz shared",
    "cli": "bad_days commands exit_codes hostile_text import start",
    "consolidate": "pruning stopping traces",
    "curate": "poisoning repeating",
    "daemon": "digest",
    "gateway": (
        "bills degrading faults google_sdk late_plans passing restarts sdks settling upstream"
    ),
    "gateway/wires": (
        "anthropic_expanding anthropic_prompts anthropic_replies anthropic_splicing chat_expanding "
        "chat_splicing collected gemini_splicing offering prompts replies responses_expanding "
        "responses_reading responses_splicing strays"
    ),
    "llm": "poisoning providers variants",
    "mcp": "conformance",
    "recall": "bounds",
    "server": "connections malformed together",
    "text": "regexes",
    "tools": "agreement hostile_text",
}
"""Test files on what no module decides alone."""


def names_below(root: Path, pattern: str) -> dict[str, set[str]]:
    """Return the names of files by the folder that they are in."""
    found: dict[str, set[str]] = defaultdict(set)
    for path in root.rglob(pattern):
        found[str(path.parent.relative_to(root))].add(path.stem.removeprefix("test_"))
    return found


MODULES = {
    room: names - {"__init__", "__main__"} for room, names in names_below(PACKAGE, "*.py").items()
}
TESTED = {
    room: names
    for room, names in names_below(TESTS, "test_*.py").items()
    if room.split("/")[0] not in APART
}


def listed(exceptions: dict[str, str]) -> set[str]:
    return {f"{room}/{name}" for room, names in exceptions.items() for name in names.split()}


def test_every_module_has_its_test_file():
    without = {
        f"{room}/{name}"
        for room, names in MODULES.items()
        for name in names - TESTED.get(room, set())
    }
    assert without == listed(TESTED_BY_NEIGHBOURS)


def test_every_test_file_is_named_after_its_module_or_package():
    broader = {
        f"{room}/{name}"
        for room, names in TESTED.items()
        for name in names - MODULES.get(room, set())
        if not (PACKAGE / room / name / "__init__.py").exists()
    }
    assert broader == listed(OF_SEVERAL)
