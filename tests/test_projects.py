"""Which project a folder belongs to, told from real repositories."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from lore import projects
from lore.capture.message_capture import Conversation, capture
from lore.projects import ProjectFinder, normalize_remote
from lore.store import project_rows
from lore.store.project_rows import ProjectLocation
from tests.fakes import NOON
from tests.transcripts import text_message

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git makes the samples")


def git(folder: Path, *arguments: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        ["git", "-c", "user.name=A", "-c", "user.email=a@b", "-c", "protocol.file.allow=always",
         *arguments],
        cwd=folder, check=True, capture_output=True,
        env={"PATH": os.environ["PATH"], "HOME": str(folder), "GIT_CONFIG_NOSYSTEM": "1"},
    )  # fmt: skip


def repository(folder: Path, remote: str = "") -> Path:
    git(folder, "init", "-q")
    git(folder, "commit", "-q", "--allow-empty", "-m", "first")
    if remote:
        git(folder, "remote", "add", "origin", remote)
    return folder


def place(folder: Path | str, home: Path | None = None) -> ProjectLocation:
    found = ProjectFinder(home or Path("/nowhere")).find(str(folder))
    assert found is not None
    return found


def number(database, folder: Path | str) -> int:
    found = place(folder)
    return int(database.write(lambda db: project_rows.ensure_project_at(db, found, now=NOON)))


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/ada/engine",
        "https://github.com/ada/engine.git",
        "https://github.com/ada/engine/",
        "https://GitHub.com/ada/engine.git",
        "https://ada:secret@github.com/ada/engine.git",
        "https://ada:p@ssw0rd@github.com/ada/engine",
        "https://ada:p/ss@w0rd@github.com/ada/engine",
        "https://x-access-token:ghp_1234@github.com:443/ada/engine.git?token=1#x",
        "http://github.com:80/ada/engine",
        "ssh://git@github.com/ada/engine.git",
        "ssh://git@github.com:22/ada/engine.git",
        "git://github.com:9418/ada/engine.git",
        "git+ssh://git@github.com:22/ada/engine.git",
        "git@github.com:ada/engine.git",
        "git@github.com:/ada/engine.git",
        "github.com:ada/engine",
    ],
)
def test_the_forms_of_one_address_are_one(url: str):
    assert normalize_remote(url) == "github.com/ada/engine"


@pytest.mark.parametrize(
    "url",
    [
        "https://github.com/bob/engine",
        "https://gitlab.com/ada/engine",
        "https://github.com:8443/ada/engine",
        "https://github.com/ada/engine-2",
        "https://github.com/Ada/engine",
    ],
)
def test_other_addresses_are_others(url: str):
    assert normalize_remote(url) != "github.com/ada/engine"


@needs_git
def test_worktrees_and_folders_inside_share_the_project(tmp_path, database):
    main = repository(tmp_path / "engine")
    git(main, "worktree", "add", "-q", "../engine-fix")
    (main / "src" / "deep").mkdir(parents=True)
    (tmp_path / "engine-fix" / "docs").mkdir()
    folders = [main, main / "src" / "deep", tmp_path / "engine-fix", tmp_path / "engine-fix/docs"]
    assert {place(folder).path for folder in folders} == {str(main)}
    assert len({number(database, folder) for folder in folders}) == 1


@needs_git
def test_clones_with_one_remote_share_and_forks_do_not(tmp_path, database):
    one = repository(tmp_path / "one", "git@github.com:ada/engine.git")
    two = repository(tmp_path / "two", "https://github.com/ada/engine")
    fork = repository(tmp_path / "fork", "https://github.com/bob/engine")
    assert number(database, one) == number(database, two)
    assert number(database, fork) != number(database, one)
    with database.read() as db:
        assert project_rows.find_project(db, str(two)) == project_rows.find_project(db, str(one))


@needs_git
def test_a_clone_of_a_local_repository_is_that_repository(tmp_path):
    first = repository(tmp_path / "first")
    git(tmp_path, "clone", "-q", str(first), "second")
    git(tmp_path, "clone", "-q", f"file://{tmp_path}/second", "third")
    git(tmp_path, "clone", "-q", "--bare", str(first), "bare.git")
    git(tmp_path, "clone", "-q", "bare.git", "fourth")
    for name in ("second", "third", "bare.git", "fourth"):
        assert place(tmp_path / name).path == str(first), name


@needs_git
def test_repositories_that_are_each_other_s_remotes_come_to_an_end(tmp_path):
    repository(tmp_path / "a", "../b")
    repository(tmp_path / "b", "../a")
    assert place(tmp_path / "a").path in (str(tmp_path / "a"), str(tmp_path / "b"))


@needs_git
def test_a_bare_repository_is_its_own_folder_and_so_are_its_worktrees(tmp_path):
    git(tmp_path, "init", "-q", "--bare", "tool.git")
    found = place(tmp_path / "tool.git")
    assert (found.path, found.name) == (str(tmp_path / "tool.git"), "tool")
    git(repository(tmp_path / "first"), "push", "-q", str(tmp_path / "tool.git"), "HEAD:main")
    git(tmp_path / "tool.git", "worktree", "add", "-q", "../tree", "main")
    assert place(tmp_path / "tree").path == found.path
    assert place(tmp_path / "tool.git" / "refs").path == found.path


@needs_git
def test_a_submodule_is_a_project_of_its_own(tmp_path):
    part = repository(tmp_path / "part", "https://host/part")
    whole = repository(tmp_path / "whole", "https://host/whole")
    git(whole, "submodule", "--quiet", "add", str(part), "libs/part")
    assert place(whole).remote == "host/whole"
    assert place(whole / "libs" / "part").remote == "host/part"  # a clone of a local repository
    git(whole / "libs" / "part", "remote", "set-url", "origin", "https://host/other")
    found = place(whole / "libs" / "part")
    assert (found.path, found.remote) == (str(whole / "libs" / "part"), "host/other")


@needs_git
def test_a_repository_that_gets_a_remote_stays_the_project(tmp_path, database):
    main = repository(tmp_path / "engine")
    before = number(database, main)
    git(main, "remote", "add", "origin", "https://host/engine")
    assert number(database, main) == before
    assert number(database, repository(tmp_path / "clone", "https://host/engine")) == before


@needs_git
def test_another_repository_in_a_former_one_s_folder_is_another_project(tmp_path, database):
    former = number(database, repository(tmp_path / "app", "https://host/old"))
    shutil.rmtree(tmp_path / "app")
    now = number(database, repository(tmp_path / "app", "https://host/new"))
    assert now != former
    with database.read() as db:
        assert project_rows.find_project(db, str(tmp_path / "app")) == now


@needs_git
def test_a_worktree_that_is_gone_is_known_by_its_path(tmp_path, database):
    main = repository(tmp_path / "engine")
    git(main, "worktree", "add", "-q", "../fix")
    seen = number(database, tmp_path / "fix")
    shutil.rmtree(tmp_path / "fix")
    assert place(tmp_path / "fix").gone
    assert number(database, tmp_path / "fix") == seen


@needs_git
def test_a_worktree_whose_registration_was_pruned_is_still_of_the_repository(tmp_path):
    main = repository(tmp_path / "engine")
    git(main, "worktree", "add", "-q", "../fix")
    shutil.rmtree(main / ".git" / "worktrees")
    assert place(tmp_path / "fix").path == str(main)


def test_folders_without_git_are_themselves_and_share_nothing(tmp_path, database):
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
    assert place(tmp_path / "a").path == str(tmp_path / "a")
    assert number(database, tmp_path / "a") != number(database, tmp_path / "b")
    gone = place("/code/gone/long ago")
    assert (gone.path, gone.name, gone.gone) == ("/code/gone/long ago", "long ago", True)


@needs_git
def test_the_home_folder_and_the_root_are_no_projects(tmp_path):
    home = repository(tmp_path / "home", "https://host/dotfiles")
    (home / "notes").mkdir()
    seen = ProjectFinder(home)
    assert seen.find(str(home)) is None
    assert seen.find("/") is None
    assert seen.find("") is None
    notes = seen.find(str(home / "notes"))
    assert notes is not None
    assert (notes.path, notes.remote) == (str(home / "notes"), "")


def test_a_link_to_a_folder_is_the_folder(tmp_path):
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert place(tmp_path / "link").path == str(tmp_path / "real")
    assert str(tmp_path / "link") in place(tmp_path / "link").aliases


@pytest.mark.parametrize("content", [b"", b"gitdir:", b"gitdir: /nowhere", b"\xff\0", b"x" * 99])
def test_a_broken_git_file_leaves_the_folder_by_itself(tmp_path, content):
    (tmp_path / ".git").write_bytes(content)
    assert place(tmp_path).path == str(tmp_path)


def test_a_pipe_in_place_of_the_configuration_is_not_read(tmp_path):
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main")
    os.mkfifo(tmp_path / ".git" / "config")
    assert place(tmp_path) == ProjectLocation(str(tmp_path), "", tmp_path.name)


@pytest.mark.parametrize(
    "text",
    [
        '[remote "origin"]\n\turl = https://host/a.git\n',
        '[core]\nbare = false\n[Remote "origin"] URL = "https://host/a" ; said twice\n',
        '# x\n[remote "up"]\r\n  url = https://host/a # the only one\r\n',
        '[remote "up"]\nurl = https://host/b\n[remote "origin"]\nurl=https://host/a\nurl=/c\n',
    ],
)
def test_a_configuration_is_read_as_git_reads_it(tmp_path, text):
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/main")
    (tmp_path / ".git" / "config").write_text(text)
    assert place(tmp_path).remote == "host/a"


def test_a_folder_is_looked_up_once(tmp_path):
    seen = ProjectFinder(Path("/nowhere"))
    first = seen.find(str(tmp_path))
    (tmp_path / ".git" / "refs").mkdir(parents=True)
    (tmp_path / ".git" / "HEAD").write_text("")
    assert seen.find(str(tmp_path)) is first


def test_a_name_is_a_project_too(database):
    assert database.write(lambda db: projects.ensure_project(db, "", None, now=NOON)) is None
    n = database.write(lambda db: projects.ensure_project(db, "engine", None, now=NOON))
    with database.read() as db:
        assert project_rows.find_project(db, "engine") == n


@needs_git
def test_messages_of_a_worktree_belong_to_the_repository(tmp_path, database):
    main = repository(tmp_path / "engine")
    git(main, "worktree", "add", "-q", "../fix")
    for session, folder in (("a", main), ("b", tmp_path / "fix")):
        talk = Conversation(session, project=str(folder))
        capture(database, talk, [text_message("user", "hi")])
    with database.read() as db:
        assert [p.path for p in project_rows.all_projects(db).values()] == [str(main)]
