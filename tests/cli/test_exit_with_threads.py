"""A process ends cleanly though its threads are in the midst of something."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from lore.embed.models import find_model, find_weights
from lore.settings import Settings

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
def test_threads_within_the_model_do_not_abort_the_process(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", BUSY, str(tmp_path)], capture_output=True, text=True, timeout=120
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "over\n", "")
