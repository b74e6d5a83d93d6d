"""The exit code of every command for what is unknown, empty or missing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lore.embed.models import find_model, find_weights
from lore.settings import Settings
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
def test_a_missing_item_exits_with_3(seeded: Seeded, command: str):
    seeded(*arguments(seeded, command)).fails_with(3)


@pytest.mark.parametrize("command", EMPTY)
def test_an_empty_argument_exits_with_2(seeded: Seeded, command: str):
    seeded(*arguments(seeded, command)).fails_with(2)


BUSY = """
import sys, threading
from pathlib import Path
from lore.cli.agent_commands import exit_with_threads
from lore.embed import open_embedder
from lore.settings import load

embedder = open_embedder(load({}, home=Path(sys.argv[1])).settings).embedder
at_work = threading.Event()

def embed():
    while True:
        embedder.embed(["what was decided about the harbour"] * 8)
        at_work.set()

for _ in range(3):
    threading.Thread(target=embed, daemon=True).start()
at_work.wait()
print("over")
exit_with_threads()
"""


def has_weights() -> bool:
    model = find_model("local", "all-MiniLM-L6-v2")
    assert model
    return find_weights(Settings(home=Path("/nonexistent")), model) is not None


@pytest.mark.skipif(not has_weights(), reason="the weights of the model are not installed")
def test_running_model_threads_do_not_abort_the_exit(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", BUSY, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
