"""In a process that serves others, no path that a caller names is opened."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore import local_files
from lore.capture import native_files
from lore.memory import Memory
from lore.projects import ProjectFinder
from lore.tasks import continuity_file, git_state, ledgers
from tests.fakes import FakeEmbedder


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a repository with everything that Lore reads in one."""
    made = tmp_path / "person" / "code"
    (made / ".git" / "refs").mkdir(parents=True)
    (made / ".git" / "objects").mkdir()
    (made / ".git" / "HEAD").write_text("ref: refs/heads/harbor\n")
    (made / ".git" / "config").write_text('[remote "origin"]\n url = https://h/harbor.git\n')
    (made / "package.json").write_text('{"dependencies": {"redis": "1"}}')
    (made / "AGENTS.md").write_text("Always use UTC.\n")
    return made


def test_a_repository_is_a_name_only(folder: Path):
    inner = str(folder / "inner")
    place = ProjectFinder().find(inner)
    assert place is not None
    assert place.remote == "h/harbor"
    with local_files.withhold():
        place = ProjectFinder().find(inner)
        assert place is not None
        assert (place.path, place.remote, place.aliases) == (inner, "", ())
        assert ProjectFinder().find_repository(inner) == ""
        assert git_state.read_git_state(inner).branch == ""
        assert ledgers.detect_tech_stack(str(folder)) == ()
    assert git_state.read_git_state(inner).branch == "harbor"


def test_symbolic_links_are_not_followed(folder: Path, tmp_path: Path):
    link = tmp_path / "link"
    link.symlink_to(folder)
    with local_files.withhold():
        place = ProjectFinder().find(str(link))
        assert place is not None
        assert place.path == str(link)


def test_files_of_agents_and_pages_are_not_read_or_written(folder: Path, tmp_path: Path):
    home = tmp_path / "person"
    assert native_files.find_files(home, [str(folder)])
    with (
        local_files.withhold(),
        Memory.open(tmp_path / "home", embedder=FakeEmbedder()) as memory,
    ):
        assert native_files.find_files(home, [str(folder)]) == []
        assert continuity_file.read_file(folder) is None
        assert memory.continuity.write(str(folder), force=True) is None
        transcript = folder / "projects" / "x.jsonl"
        transcript.parent.mkdir()
        transcript.write_text("{}\n")
        assert memory.capture_files([transcript]).added == 0
        assert memory.sessions.estimate_capture([transcript]).files == 0
    assert not (folder / "CONTINUITY.md").exists()


def test_it_ends_with_the_last_who_withholds():
    with local_files.withhold():
        with local_files.withhold():
            pass
        assert local_files.are_withheld()
    assert not local_files.are_withheld()
