"""The command `lore config`."""

import json
import tomllib
from pathlib import Path

from lore.daemon import daemon_lock
from tests.cli.conftest import Lore, Seeded, run_process
from tests.fakes import NOON


def test_every_setting_is_shown_with_value_source_and_doc(lore: Lore):
    out = lore("config", env={"LORE_RECALL_MAX_HITS": "7"}).works().out
    row = next(line for line in out.splitlines() if line.startswith("recall.max_hits"))
    assert row.split()[:3] == ["recall.max_hits", "7", "environment"]
    assert "Maximum number of hits" in row
    assert not lore.home.exists()


def test_a_secret_is_never_shown(lore: Lore):
    lore("config", "embed.api_key", "sk-canary").works()
    for command in (("config",), ("config", "--json"), ("config", "embed.api_key")):
        outcome = lore(*command).works()
        assert "sk-canary" not in outcome.out + outcome.err
        assert "(set)" in outcome.out


def test_a_written_value_takes_effect(lore: Lore):
    lore("config", "recall.max_hits", "3").works()
    (shown,) = json.loads(lore("config", "recall.max_hits", "--json").works().out)
    assert (shown["value"], shown["source"]) == (3, "config.toml")


def test_config_says_that_a_running_daemon_must_be_restarted(lore: Lore):
    assert "daemon" not in lore("config", "recall.max_hits", "3").works().err
    held = daemon_lock.take_lock(lore.home, now=NOON, version="1")
    try:
        assert "'lore down'" in lore("config", "recall.max_hits", "4").works().err
        assert "'lore down'" in lore("config", "recall.max_hits", "--unset").works().err
        assert "next request" in lore("config", "daily_budget", "10").works().err
        assert "daemon" not in lore("config").works().err
    finally:
        held.release()


def test_unset_removes_a_value(lore: Lore):
    lore("config", "recall.max_hits", "3").works()
    lore("config", "recall.max_hits", "--unset").works()
    (shown,) = json.loads(lore("config", "recall.max_hits", "--json").works().out)
    assert (shown["value"], shown["source"]) == (15, "default")


def test_an_empty_value_is_written(lore: Lore):
    lore("config", "embed.base_url", "http://localhost").works()
    lore("config", "embed.base_url", "").works()
    assert tomllib.loads((lore.home / "config.toml").read_text())["embed"]["base_url"] == ""


def test_config_says_that_the_environment_overrides_a_value(lore: Lore):
    outcome = lore("config", "recall.max_hits", "3", env={"LORE_RECALL_MAX_HITS": "9"}).works()
    assert "LORE_RECALL_MAX_HITS overrides" in outcome.err


def test_unknown_settings_and_invalid_values_are_refused(lore: Lore):
    lore("config", "nonsense").fails_with(2)
    lore("config", "nonsense", "5").fails_with(2)
    lore("config", "home", "/tmp").fails_with(2)
    lore("config", "recall.max_hits", "many").fails_with(2)
    lore("config", "recall.max_hits", "-1").fails_with(2)
    lore("config", "embed.precision", "int4").fails_with(2)
    lore("config", "search.fts_weights", "a,b,c").fails_with(2)
    lore("config", "embed.idle_unload_s", "nan").fails_with(2)
    assert not (lore.home / "config.toml").exists()


def test_a_broken_file_is_named_and_left_as_it_is(lore: Lore):
    lore.home.mkdir()
    for broken in ("recall.max_hits = \n", "[", "\x00", "a = " + "[" * 5000, "nonsense = 1"):
        (lore.home / "config.toml").write_text(broken)
        for command in (("config",), ("config", "embed.threads", "2"), ("remember", "x")):
            assert "config.toml" in lore(*command).fails_with(2).err
        assert (lore.home / "config.toml").read_text() == broken


def test_values_of_the_wrong_type_are_named(lore: Lore):
    lore.home.mkdir()
    for wrong in (
        "[recall]\nmax_hits = 'many'",
        "recall.max_hits = [1]",
        "recall.max_hits = true",
    ):
        (lore.home / "config.toml").write_text(wrong)
        assert "recall.max_hits" in lore("config").fails_with(2).err


def test_a_broken_project_file_stops_no_command(seeded: Seeded, tmp_path: Path):
    (tmp_path / ".lore.json").write_text("{")
    for command in (("recall", "heron"), ("read", seeded.child), ("remember", "x"), ("config",)):
        outcome = run_process(*command, home=seeded.home, cwd=tmp_path).works()
        assert outcome.err.count(".lore.json") == 1
    assert not run_process("read", seeded.child, home=seeded.home).works().err
