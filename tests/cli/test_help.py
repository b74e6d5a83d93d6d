"""Help: one screen, hints for unknown commands, and what people type."""

from pathlib import Path

import pytest

from lore.cli import app, help_text
from lore.proxy import status_line
from tests.cli.conftest import Lore, Seeded
from tests.cli.test_start import heavy_of, loaded_by, on_terminal
from tests.house.reference import command_names


def test_help_fits_a_screen_and_cuts_no_line(lore: Lore):
    out = lore("--help").works().out
    assert len(out.splitlines()) <= 40
    assert max(map(len, out.splitlines())) <= 80
    assert "…" not in out
    assert "..." not in out


def test_help_has_every_command_in_one_group():
    listed = [name for names in help_text.GROUPS.values() for name in names]
    commands = {path.split()[1] for path in command_names() if " " in path}
    assert sorted(listed) == sorted(commands)


@pytest.mark.parametrize("words", [(), ("help",), ("-h",)])
def test_help_is_the_same_however_it_is_asked_for(lore: Lore, words: tuple[str, ...]):
    assert lore(*words).works().out == lore("--help").works().out


def test_help_explains_one_command(lore: Lore):
    assert lore("help", "recall").works().out == lore("recall", "--help").works().out
    assert lore("help", "key", "create").works().out.startswith("Usage: lore key create")
    lore("help", "nonsense").fails_with(2)


def test_the_version_has_a_short_option(lore: Lore):
    assert lore("-V").works().out == lore("--version").works().out


@pytest.mark.parametrize(
    ("word", "meant"),
    [("list", "sessions"), ("show", "read"), ("add", "remember"), ("recal", "recall")],
)
def test_an_unknown_command_gets_a_hint(lore: Lore, word: str, meant: str):
    assert f"'lore {meant}'" in lore(word).fails_with(2).err


def test_hints_name_commands_that_exist():
    commands = {app._name(info) for info in app.app.registered_commands}
    groups = {
        one.typer_instance.info.name for one in app.app.registered_groups if one.typer_instance
    }
    named = {name for names in help_text._MEANT.values() for name in names}
    assert named <= commands | groups | {"--version"}
    assert not set(help_text._MEANT) & commands


def test_words_need_no_quotes(seeded: Seeded):
    quoted = seeded("recall", "which staging server?").works().out
    assert seeded("recall", "which", "staging", "server?").works().out == quoted
    found = seeded("search", "staging server").works().out
    assert seeded("search", "staging", "server").works().out == found


LAMPS = ("harbour", "attic", "chapel", "tunnel", "garden", "bakery", "stable", "library")


def test_people_get_five_hits_of_six_lines(lore: Lore):
    for place in LAMPS:
        lines = "\n".join(f"{place} detail {line} {place * line}" for line in range(9))
        lore("remember", f"The {place} lamp burns kelp oil.\n{lines}").works()
    shown = lore("recall", "kelp", "oil", "lamp").works().out
    assert "\n5. " in shown
    assert "\n6. " not in shown
    assert " detail 4 " in shown
    assert " detail 5 " not in shown
    assert " detail 6 " in lore("recall", "kelp oil lamp", "--all").works().out
    assert "\n3. " not in lore("recall", "kelp oil lamp", "-n", "2").works().out


def test_filters_leave_out_other_hits(seeded: Seeded):
    assert "heron" in seeded("recall", "heron", "--kind", "fact").works().out
    assert seeded("recall", "heron", "--kind", "decision").works().out == "Nothing found.\n"
    assert "heron" in seeded("recall", "heron", "--since", "yesterday").works().out
    assert seeded("recall", "heron", "--until", "yesterday").works().out == "Nothing found.\n"
    assert seeded("recall", "heron", "--agent", "codex").works().out == "Nothing found.\n"
    seeded("recall", "heron", "--since", "no date").fails_with(2)


def test_long_output_goes_to_the_pager_of_a_terminal(lore: Lore):
    id_ = lore("remember", "\n".join(f"kelp {line}" for line in range(300))).works().out.strip()
    shown = on_terminal(lore.home, "read", id_, PAGER="sed s/kelp/SEAWEED/")
    assert "SEAWEED 299" in shown
    assert "kelp 299" in on_terminal(lore.home, "read", id_, PAGER="no-such-program")
    assert "kelp 299" in on_terminal(lore.home, "read", id_, PAGER="cat")
    assert "kelp 299" in on_terminal(lore.home, "read", id_, "--json", PAGER="sed s/kelp/SEAWEED/")
    assert "SEAWEED" not in on_terminal(lore.home, "roots", "--help", PAGER="sed s/a/SEAWEED/")


@pytest.mark.parametrize(
    ("prefix", "command"),
    [
        ("/home/ann/.local/share/uv/tools/agent-lore", "uv tool upgrade agent-lore"),
        ("/home/ann/.local/share/pipx/venvs/agent-lore", "pipx upgrade agent-lore"),
        ("/srv/venv", "/srv/venv/bin/python -m pip install --upgrade agent-lore"),
    ],
)
def test_the_upgrade_command_follows_the_installation(prefix: str, command: str):
    assert help_text.upgrade_command(prefix) == command


def test_the_status_line_is_one_line_and_loads_nothing(tmp_path: Path):
    loaded = loaded_by(tmp_path, "statusline")
    assert not heavy_of(loaded)
    assert not {"typer", "dataclasses", "lore.settings"} & loaded


@pytest.mark.parametrize(
    ("status", "line"),
    [
        ({"agents_usd": 1.5, "spent_usd": 0.25}, ["$1.75 today"]),
        ({"day_budget_usd": 20, "jobs_pending": 2}, ["$0.00 of $20.00 today", "2 jobs waiting"]),
        (
            {"chores": [{"name": "digest", "running": True, "done": 30, "total": 120}]},
            ["$0.00 today", "digest 25%"],
        ),
        ({"chores": "damaged", "agents_usd": "x"}, ["$0.00 today"]),
    ],
)
def test_the_status_line_shows_spend_and_progress(status: dict[str, object], line: list[str]):
    assert [status_line._spend(status), *status_line._work(status)] == line
