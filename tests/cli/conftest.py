"""Running `lore` in this process and in others, on a home with a few things in it."""

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest
from typer.testing import CliRunner

from lore.cli import main
from lore.errors import LoreError
from lore.memory import Memory
from lore.settings import load
from tests import BYTECODE

UNSET = "(unset)"
PROGRAM = (sys.executable, "-c", "from lore.cli import main; main()")


@dataclass(frozen=True)
class Outcome:
    """What a run left: exit code, output and complaint."""

    code: int
    out: str
    err: str

    def fails_with(self, code: int) -> "Outcome":
        """Check that the run failed as documented: a line or two on stderr, no traceback."""
        assert self.code == code, self
        assert self.err.startswith("lore: "), self
        assert len(self.err.rstrip("\n").split("\n")) <= 2, self
        assert "Traceback" not in self.err
        assert not self.out
        return self

    def works(self) -> "Outcome":
        """Check that the run succeeded."""
        assert self.code == 0, self
        return self


@dataclass(frozen=True)
class Lore:
    """The command line in this process, for one home."""

    home: Path

    def __call__(
        self, *arguments: str, stdin: bytes = b"", env: dict[str, str] | None = None
    ) -> Outcome:
        usual = {
            "HOME": str(self.home.parent),
            "LORE_HOME": str(self.home),
            "LORE_EMBED_PROVIDER": "none",
        }
        environ = {**usual, **(env or {})}
        with CliRunner().isolation(input=stdin, env=environ) as (out, err, _):
            with pytest.raises(SystemExit) as left:
                main(list(arguments))
            sys.stdout.flush()
            sys.stderr.flush()
            code = left.value.code
            assert isinstance(code, int)
            return Outcome(code, out.getvalue().decode(), err.getvalue().decode())

    def export(self) -> set[str]:
        """Return every record that is in the memory, without what reading changes."""
        lines = self("export").works().out.splitlines()[1:]
        records = (line for line in lines if not line.startswith('{"record":"seal"'))
        return {line.split('"access_count"')[0] for line in records}


@dataclass(frozen=True)
class Seeded(Lore):
    """A home with a parent, a child and an older version."""

    parent: str = ""
    child: str = ""


def environment(home: Path | str | None, **changes: str) -> dict[str, str]:
    """Return an environment as in an installation: compiled once, with no other settings."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith("LORE_") and name not in ("PYTHONDONTWRITEBYTECODE", "NO_COLOR")
    }
    given = {"LORE_EMBED_PROVIDER": "none", "PYTHONPYCACHEPREFIX": str(BYTECODE), "PAGER": "cat"}
    if home is not None:
        given["LORE_HOME"] = str(home)
    merged = {**kept, **given, **changes}
    return {name: value for name, value in merged.items() if value != UNSET}


def run_process(
    *arguments: str | bytes,
    home: Path | str | None = None,
    stdin: bytes = b"",
    env: dict[str, str] | None = None,
    cwd: Path | None = None,
) -> Outcome:
    """Run the command line in a process of its own."""
    done = subprocess.run(
        [*PROGRAM, *arguments],
        input=stdin,
        capture_output=True,
        env=environment(home, **(env or {})),
        cwd=cwd,
        timeout=60,
        check=False,
    )
    return Outcome(done.returncode, done.stdout.decode(), done.stderr.decode())


@pytest.fixture
def lore(tmp_path: Path) -> Lore:
    """Return the command line on a home that does not exist yet."""
    return Lore(tmp_path / "home")


@pytest.fixture(scope="session")
def seed(tmp_path_factory: pytest.TempPathFactory) -> Seeded:
    """Return a home with a few fragments; only to be copied."""
    home = tmp_path_factory.mktemp("seed") / "home"
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=home).settings
    with Memory.open(config=config) as memory:
        parent = memory.store("Deploys go through ops/deploy.sh on Tuesdays", kind="workflow")
        child = memory.store("The staging server is called heron", parent_id=parent)
        memory.knowledge.update(parent, "Deploys go through ops/deploy.sh on Thursdays")
    return Seeded(home, parent, child)


@pytest.fixture
def seeded(seed: Seeded, tmp_path: Path) -> Seeded:
    """Return the command line on a home of its own with a few fragments in it."""
    home = tmp_path / "home"
    shutil.copytree(seed.home, home)
    return Seeded(home, seed.parent, seed.child)


@pytest.fixture(scope="session")
def documented_codes() -> set[int]:
    """Return every exit code that the documentation names."""

    def codes(kind: type[LoreError]) -> set[int]:
        return {kind.exit_code}.union(*(codes(below) for below in kind.__subclasses__()))

    return {0, 130} | codes(LoreError)
