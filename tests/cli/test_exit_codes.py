"""The exit code of every command for what is unknown, empty or missing."""

import pytest

from tests.cli.conftest import Seeded

UNKNOWN = "00000000-0000-7000-8000-000000000000"

NOT_THERE = (
    "update UNKNOWN x", "delete UNKNOWN", "undo UNKNOWN", "undo UNKNOWN --redo",
    "undo UNKNOWN --dry-run", "link UNKNOWN PARENT", "link PARENT UNKNOWN",
    "supersede UNKNOWN PARENT", "supersede PARENT UNKNOWN", "forget UNKNOWN --yes",
    "forget UNKNOWN --dry-run", "forget --session none --yes", "forget --project none --yes",
    "read UNKNOWN", "session none", "explore UNKNOWN", "traverse UNKNOWN", "log UNKNOWN",
    "diff UNKNOWN", "diff CHILD", "why UNKNOWN", "remember x --parent UNKNOWN",
    "search x --parent UNKNOWN", "recall x --why-not UNKNOWN",
    "recall x --scope session --session none", "recall x --project none",
    "search x --project none", "sessions x --project none", "standing --project none",
    "roots --project none", "restore /none/x.db", "import /none/x", "backup /none/x/y.db",
    "export /none/x/y",
)  # fmt: skip
EMPTY = (
    "remember ''", "update PARENT ''", "recall ''", "search ''", "sessions ''", "read ''",
    "session ''", "explore ''", "traverse ''", "log ''", "diff ''", "why ''", "delete ''",
    "link '' PARENT", "supersede '' PARENT", "forget ''", "forget --match ''", "undo ''",
    "remember x --kind ''", "remember x --origin ''", "link PARENT CHILD --kind ''",
    "traverse PARENT --direction ''", "recall x --scope ''", "backup ''", "restore ''",
    "export ''", "import ''", "remember -", "recall -",
)  # fmt: skip


def arguments(seeded: Seeded, command: str) -> list[str]:
    names = {
        "UNKNOWN": UNKNOWN, "PARENT": seeded.parent, "CHILD": seeded.child, "''": "",
    }  # fmt: skip
    return [names.get(word, word) for word in command.split()]


@pytest.mark.parametrize("command", NOT_THERE)
def test_what_is_not_there_exits_with_3(seeded: Seeded, command: str):
    seeded(*arguments(seeded, command)).fails_with(3)


@pytest.mark.parametrize("command", EMPTY)
def test_what_is_empty_exits_with_2(seeded: Seeded, command: str):
    seeded(*arguments(seeded, command)).fails_with(2)
