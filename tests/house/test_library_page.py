"""The page on the library: every block of it runs, in order."""

import re
import subprocess
import sys
from pathlib import Path

from lore.memory import Memory
from tests.cli.conftest import environment

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "library.md").read_text("utf-8")
BLOCKS = re.findall(r"^```python\n(.*?)^```", PAGE, re.DOTALL | re.MULTILINE)


def test_every_block_of_the_library_page_runs(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", "\n".join(BLOCKS)],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=environment(None, HOME=str(tmp_path)),
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "2 ['From now on we use pnpm.']" in done.stdout
    assert "Deploys go through ops/deploy.sh, blue/green, on Tuesdays |" in done.stdout
    assert "InvalidInput recall() takes a text as 'query', not None." in done.stdout
    assert "1 2 0 {} ()" in done.stdout, "a file is read once"
    assert "From now on we use pnpm. unknown" in done.stdout
    assert "['The mirror is at mirror.example']\n[]" in done.stdout
    assert "\n1 ()\n" in done.stdout


def test_the_library_page_names_the_methods_of_the_memory(tmp_path: Path):
    named = set(re.findall(r"(?:[Mm]emory\.|`)(\w+)\(?", PAGE))
    wanted = "open store store_all capture update delete undo redo recall search read explore "
    wanted += "traverse roots log why messages sessions find_sessions standing forget backup export"
    wanted += " capture_files estimate_capture episode episodes revoke embed_waiting import_lines"
    wanted += " remember around"
    assert {*wanted.split(), "ask"} <= named
    with Memory.open(tmp_path) as memory:
        assert all(hasattr(memory, name) for name in wanted.split())


def test_the_readme_leads_to_the_library_page():
    assert "(docs/library.md)" in (ROOT / "README.md").read_text("utf-8")
