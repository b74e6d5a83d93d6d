from __future__ import annotations

import json
import os
import stat

import pytest

from lore.errors import InvalidInput
from lore.setup import config_changes
from lore.setup.agents import AGENTS, get_agent
from tests.setup.files import FILES, as_on_windows, write

LORE = ("/code/bin/lore",)
EVERY = pytest.mark.parametrize("name", [agent.name for agent in AGENTS])


class Person:
    """A home with the files of agents, and a home of Lore."""

    def __init__(self, place, *names):
        self.place = place / "person"
        self.lore = place / "lore"
        self.place.mkdir()
        self.held = write(self.place, names)

    def plan(self, name, *, undo=False, command=LORE):
        agent = get_agent(name)
        planned = config_changes.plan_undo if undo else config_changes.plan
        return agent, planned(self.lore, agent, agent.edits(self.place, command))

    def set_up(self, name, **how):
        agent, changes = self.plan(name, **how)
        config_changes.apply(self.lore, agent, changes, undo=False)
        return changes

    def undo(self, name):
        agent, changes = self.plan(name, undo=True)
        config_changes.apply(self.lore, agent, changes, undo=True)
        return changes

    def is_as_before(self):
        return all(path.read_bytes() == content for path, content in self.held.items())


@EVERY
def test_undo_restores_the_bytes(name, tmp_path):
    person = Person(tmp_path, name)
    assert not config_changes.is_set_up(person.set_up(name))
    assert not person.is_as_before()
    person.undo(name)
    assert person.is_as_before()
    assert not list((person.lore / config_changes.FOLDER).iterdir())


@EVERY
def test_undo_restores_the_bytes_of_unusual_files(name, tmp_path):
    person = Person(tmp_path, name)
    for path in person.held:
        person.held[path] = as_on_windows(path.read_text()) + b"\r\n\r\n"
        path.write_bytes(person.held[path])
    person.set_up(name)
    assert all(path.read_bytes().startswith(b"\xef\xbb\xbf") for path in person.held)
    person.undo(name)
    assert person.is_as_before()


@EVERY
def test_a_repeated_setup_is_undone_once(name, tmp_path):
    person = Person(tmp_path, name)
    person.set_up(name)
    assert config_changes.is_set_up(person.set_up(name))
    person.undo(name)
    assert person.is_as_before()
    assert config_changes.is_set_up(person.undo(name))
    assert person.is_as_before()


@EVERY
def test_undo_removes_files_that_setup_created(name, tmp_path):
    person = Person(tmp_path)
    changes = person.set_up(name)
    assert all(change.path.exists() for change in changes)
    person.undo(name)
    assert not [change.path for change in changes if change.path.exists()]


@EVERY
def test_a_plan_changes_nothing(name, tmp_path):
    person = Person(tmp_path, name)
    _, changes = person.plan(name)
    assert all(list(change.diff()) for change in changes)
    assert person.is_as_before()
    assert not person.lore.exists()


@EVERY
def test_undo_keeps_later_changes_of_the_user(name, tmp_path):
    person = Person(tmp_path, name)
    person.set_up(name)
    for path, before in person.held.items():
        mark = "# mine, later\n" if path.suffix == ".toml" else "\n// mine, later\n"
        text = path.read_text()
        path.write_text(mark + text if path.suffix == ".toml" else text + mark)
        person.held[path] = (
            mark.encode() + before if path.suffix == ".toml" else before + mark.encode()
        )
    person.undo(name)
    assert person.is_as_before()


@pytest.mark.parametrize("mark", ["", "\n// mine, later\n"])
@pytest.mark.parametrize("again", [False, True])
def test_undo_edits_the_recorded_file_even_if_another_exists(tmp_path, mark, again):
    person = Person(tmp_path)
    commented = person.place / ".config" / "opencode" / "opencode.jsonc"
    commented.parent.mkdir(parents=True)
    commented.write_text('{ "theme": "dark" } // mine\n')
    before = commented.read_text()
    person.set_up("opencode")
    assert "lore" in commented.read_text()
    commented.write_text(commented.read_text() + mark)
    usual = commented.with_suffix(".json")
    usual.write_text('{ "theme": "light" }\n')
    if again:
        person.set_up("opencode")
        assert "lore" in usual.read_text()
    person.undo("opencode")
    assert commented.read_text() == before + mark
    assert usual.read_text() == '{ "theme": "light" }\n'
    assert not list((person.lore / config_changes.FOLDER).iterdir())


def test_files_that_undo_did_not_reach_stay_recorded(tmp_path):
    person = Person(tmp_path, "codex")
    person.set_up("codex")
    record = person.lore / config_changes.FOLDER / "codex.json"
    kept = json.loads(record.read_text())
    strange = str(person.place / "unheard.toml")
    kept["files"][strange] = next(iter(kept["files"].values()))
    record.write_text(json.dumps(kept))
    person.undo("codex")
    assert person.is_as_before()
    assert list(json.loads(record.read_text())["files"]) == [strange]


def test_undo_without_a_record_removes_lores_entries(tmp_path):
    person = Person(tmp_path, "codex")
    person.set_up("codex")
    (person.lore / config_changes.FOLDER / "codex.json").unlink()
    person.undo("codex")
    assert person.is_as_before()


@pytest.mark.parametrize("record", [b"", b"{", b"[]", b'{"files": {"x": 1}}', b"\xff"])
def test_an_unreadable_record_is_ignored(tmp_path, record):
    person = Person(tmp_path, "codex")
    person.set_up("codex")
    (person.lore / config_changes.FOLDER / "codex.json").write_bytes(record)
    person.undo("codex")
    assert person.is_as_before()


def test_undo_after_a_second_setup_keeps_changes_of_the_user(tmp_path):
    person = Person(tmp_path, "codex")
    person.set_up("codex", command=("/code/old/lore",))
    path = next(path for path in person.held if path.suffix == ".toml")
    path.write_text(path.read_text().replace("gpt-5.5", "gpt-6"))
    person.set_up("codex")
    person.undo("codex")
    assert path.read_bytes() == person.held[path].replace(b"gpt-5.5", b"gpt-6")


def test_one_broken_file_of_two_leaves_both_as_they_are(tmp_path):
    person = Person(tmp_path, "claude-code")
    broken = person.place / ".claude" / "settings.json"
    broken.write_text('{ "hooks": ')
    person.held[broken] = broken.read_bytes()
    with pytest.raises(InvalidInput, match=r"settings\.json"):
        person.set_up("claude-code")
    assert person.is_as_before()
    assert not person.lore.exists()


@pytest.mark.parametrize("content", [b"\xff\xfe{\0}\0", b"\x80"])
def test_a_binary_file_is_refused_by_name(tmp_path, content):
    person = Person(tmp_path)
    path = person.place / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.write_bytes(content)
    with pytest.raises(InvalidInput, match=r"settings\.json"):
        person.set_up("gemini")
    assert path.read_bytes() == content


def test_a_folder_in_place_of_a_file_is_refused(tmp_path):
    person = Person(tmp_path)
    (person.place / ".cursor" / "mcp.json").mkdir(parents=True)
    with pytest.raises(InvalidInput, match=r"mcp\.json"):
        person.set_up("cursor")


@pytest.mark.parametrize("undo", [False, True])
def test_a_pipe_in_place_of_a_file_is_refused_without_blocking(tmp_path, undo):
    person = Person(tmp_path)
    path = person.place / ".cursor" / "mcp.json"
    path.parent.mkdir()
    os.mkfifo(path)
    with pytest.raises(InvalidInput, match=r"mcp\.json is not a regular file"):
        person.plan("cursor", undo=undo)
    assert path.is_fifo()


def test_a_link_stays_a_link(tmp_path):
    person = Person(tmp_path)
    kept = tmp_path / "dotfiles" / "gemini.json"
    kept.parent.mkdir()
    kept.write_text(FILES["gemini"][".gemini/settings.json"])
    path = person.place / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(kept)
    person.set_up("gemini")
    assert path.is_symlink()
    assert "lore" in kept.read_text()
    person.undo("gemini")
    assert path.is_symlink()
    assert kept.read_text() == FILES["gemini"][".gemini/settings.json"]


def test_a_dangling_link_leads_to_the_new_file(tmp_path):
    person = Person(tmp_path)
    path = person.place / ".gemini" / "settings.json"
    path.parent.mkdir()
    path.symlink_to(tmp_path / "dotfiles.json")
    person.set_up("gemini")
    assert path.is_symlink()
    assert "lore" in (tmp_path / "dotfiles.json").read_text()


@pytest.mark.parametrize("mode", [0o600, 0o644, 0o444])
def test_permissions_stay(tmp_path, mode):
    person = Person(tmp_path, "gemini")
    (path,) = person.held
    path.chmod(mode)
    person.set_up("gemini")
    assert stat.S_IMODE(path.stat().st_mode) == mode
    person.undo("gemini")
    assert stat.S_IMODE(path.stat().st_mode) == mode


def test_new_files_and_records_are_private(tmp_path):
    person = Person(tmp_path)
    person.set_up("gemini")
    for path in (person.place / ".gemini/settings.json", person.lore / "setup/gemini.json"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_the_next_run_completes_an_interrupted_setup(tmp_path):
    person = Person(tmp_path, "claude-code")
    agent, changes = person.plan("claude-code")
    config_changes.apply(person.lore, agent, changes, undo=False)
    second = changes[1].path
    second.write_bytes(person.held[second])  # as if it had not been written yet
    assert not config_changes.is_set_up(person.plan("claude-code")[1])
    person.set_up("claude-code")
    assert config_changes.is_set_up(person.plan("claude-code")[1])
    person.undo("claude-code")
    assert person.is_as_before()


@pytest.mark.parametrize("written", [0, 1])
def test_a_repeated_interrupted_setup_is_undone_to_the_byte(tmp_path, written):
    person = Person(tmp_path)
    for path in (person.place / ".claude.json", person.place / ".claude" / "settings.json"):
        path.parent.mkdir(exist_ok=True)
        path.write_text('{"hooks": {"Stop": [{"hooks": [{"command": "lore hook Stop"}]}, {}]}}')
        person.held[path] = path.read_bytes()
    for change in person.set_up("claude-code")[written:]:
        change.path.write_bytes(person.held[change.path])  # as if it had not been written yet
    person.set_up("claude-code")
    person.undo("claude-code")
    assert person.is_as_before()


@EVERY
def test_a_repeated_interrupted_first_setup_leaves_no_file_after_undo(name, tmp_path):
    person = Person(tmp_path)
    changes = person.set_up(name)
    changes[-1].path.unlink()  # as if it had not been written yet
    person.set_up(name)
    person.undo(name)
    assert not [change.path for change in changes if change.path.exists()]


@EVERY
def test_undo_removes_a_created_file_that_the_agent_rewrote(name, tmp_path):
    person = Person(tmp_path)
    changes = person.set_up(name)
    for change in changes:
        change.path.write_bytes(change.path.read_bytes() + b"\n")
    person.set_up(name)
    for change in changes:
        change.path.write_bytes(change.path.read_bytes() + b"\n")
    person.undo(name)
    assert not [change.path for change in changes if change.path.exists()]


@EVERY
def test_undo_does_not_recreate_a_removed_file(name, tmp_path):
    person = Person(tmp_path, name)
    for change in person.set_up(name):
        change.path.unlink()
    changes = person.set_up(name)
    assert all(change.path.exists() for change in changes)
    person.undo(name)
    assert not [change.path for change in changes if change.path.exists()]


def test_the_next_run_completes_an_interrupted_undo(tmp_path):
    person = Person(tmp_path, "claude-code")
    person.set_up("claude-code")
    first = next(iter(person.held))
    first.write_bytes(person.held[first])  # as if only this one had been undone
    person.undo("claude-code")
    assert person.is_as_before()


def test_an_unwritable_file_is_reported_and_the_other_can_be_undone(tmp_path):
    person = Person(tmp_path, "claude-code")
    agent, changes = person.plan("claude-code")
    folder = person.place / ".claude"
    folder.rename(person.place / "elsewhere")
    folder.write_text("A file is no folder, for root neither.")
    with pytest.raises(InvalidInput, match=r"settings\.json") as refused:
        config_changes.apply(person.lore, agent, changes, undo=False)
    assert "'lore setup claude-code --undo'" in refused.value.hint
    folder.unlink()
    (person.place / "elsewhere").rename(folder)
    person.undo("claude-code")
    assert person.is_as_before()


def test_a_diff_shows_what_is_added(tmp_path):
    person = Person(tmp_path, "codex")
    _, (server, hooks) = person.plan("codex")
    assert "+[mcp_servers.lore]" in [line for line in server.diff() if line.startswith("+")]
    assert any("hook SessionStart" in line for line in hooks.diff() if line.startswith("+"))


def test_no_temporary_file_is_left(tmp_path):
    person = Person(tmp_path, "claude-code")
    person.set_up("claude-code")
    person.undo("claude-code")
    assert sorted(path.name for path in person.place.iterdir()) == [".claude", ".claude.json"]
    assert [path.name for path in (person.place / ".claude").iterdir()] == ["settings.json"]


def test_the_record_has_the_original_content(tmp_path):
    person = Person(tmp_path, "codex")
    person.set_up("codex")
    kept = json.loads((person.lore / config_changes.FOLDER / "codex.json").read_text())
    assert list(kept["files"]) == [str(path) for path in person.held]


OWN = {
    "claude-code": '{\n  "mcpServers": {\n    "lore": { "command": "folklore" }\n  }\n}\n',
    "codex": '[mcp_servers.lore]\ncommand = "folklore" # mine\n\n[mcp_servers.lore.env]\nA = "b"\n',
    "opencode": '{ "mcp": { "lore": { "type": "remote", /* mine */ "url": "x" } } }\n',
    "cursor": '{ "mcpServers": { "lore": null } }',
    "gemini": '{ "mcpServers": { "lore": { "httpUrl": "x" }, "docs": {} } }\n',
}
"""What a person has who calls something else by the name of Lore."""


def with_own(tmp_path, name):
    """Return a person who has something else by the name of Lore, and the path of that."""
    person = Person(tmp_path)
    path = get_agent(name).edits(person.place, LORE)[0].path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(OWN[name])
    person.held[path] = path.read_bytes()
    return person, path


def add_a_remark(person, path):
    """Change a file as its owner or the agent might, and expect that after an undo."""
    mark = b"# later\n" if path.suffix == ".toml" else b"// later\n"
    path.write_bytes(mark + path.read_bytes())
    before = person.held[path]
    person.held[path] = mark + (b"\n" if path.suffix == ".toml" else b"") + before


@EVERY
def test_undo_restores_a_former_entry_in_a_changed_file(name, tmp_path):
    person, path = with_own(tmp_path, name)
    person.set_up(name)
    add_a_remark(person, path)
    person.undo(name)
    assert person.is_as_before()


@EVERY
def test_a_former_entry_survives_a_second_setup(name, tmp_path):
    person, path = with_own(tmp_path, name)
    person.set_up(name, command=("/code/old/lore", "--home", "/code/x"))
    add_a_remark(person, path)
    person.set_up(name)
    person.undo(name)
    assert person.is_as_before()


@EVERY
def test_a_later_entry_of_the_user_is_kept(name, tmp_path):
    person = Person(tmp_path)
    path = person.set_up(name)[0].path
    path.write_text(OWN[name])
    person.held[path] = path.read_bytes()
    person.set_up(name)
    person.undo(name)
    assert person.is_as_before()


@EVERY
def test_a_second_undo_keeps_the_restored_entry(name, tmp_path):
    person, _ = with_own(tmp_path, name)
    person.set_up(name)
    person.undo(name)
    assert config_changes.is_set_up(person.undo(name))
    assert person.is_as_before()


@EVERY
def test_undo_without_a_record_keeps_foreign_entries(name, tmp_path):
    person = Person(tmp_path)
    person.held = {
        change.path: change.after for change in person.set_up(name, command=("lore", "-v"))
    }
    (person.lore / config_changes.FOLDER / f"{name}.json").unlink()
    assert config_changes.is_set_up(person.undo(name))
    assert person.is_as_before()


def test_user_hooks_that_run_lore_are_restored(tmp_path):
    person = Person(tmp_path)
    path = person.place / ".claude" / "settings.json"
    path.parent.mkdir()
    own = {"hooks": [{"type": "command", "command": "lore hook Stop", "timeout": 60}]}
    path.write_text(json.dumps({"hooks": {"Stop": [own]}}))
    person.set_up("claude-code")
    path.write_text(json.dumps({"model": "opus", **json.loads(path.read_text())}))
    person.undo("claude-code")
    assert json.loads(path.read_text()) == {"model": "opus", "hooks": {"Stop": [own]}}
