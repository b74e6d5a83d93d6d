"""The demo: seven weeks of conversations digested, three answers, and what to do next."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

from lore.cli.demo import QUESTIONS
from tests.cli.conftest import PROGRAM, UNSET, Lore, environment, run_process


def test_the_demo_digests_and_answers_with_the_real_model(tmp_path: Path):
    unset = {"LORE_EMBED_PROVIDER": UNSET, "UV_RUN_RECURSION_DEPTH": UNSET}
    environ = environment(None, HOME=str(tmp_path), **unset)
    done = subprocess.run(
        [*PROGRAM, "demo"], env=environ, capture_output=True, text=True, check=True
    )
    assert done.stdout.count("\n? ") == 3
    (first, second, third) = done.stdout.split("\n? ")[1:]
    assert "`WORKER_MAX_ATTEMPTS` = 4" in first
    assert "FOR UPDATE SKIP LOCKED" in second
    assert "ix_bookings_marina_starts_id" in third
    assert "335, word for word" in done.stdout
    assert "24, one for each conversation" in done.stdout
    assert "$0.00" in done.stdout
    assert done.stdout.endswith("\n   lore setup\n")
    assert "lore read" not in done.stdout  # there is nothing left to read
    assert "lore standing" not in done.stdout
    assert not (tmp_path / ".lore").exists()


def test_a_kept_demo_is_a_digested_memory(lore: Lore, tmp_path: Path):
    kept = tmp_path / "kept"
    told = lore("demo", "--keep", str(kept), env={"UV_RUN_RECURSION_DEPTH": "1"}).works().out
    assert f'\n   uv run lore --home {kept} recall "which date library' in told
    assert told.endswith("\n   uv run lore setup\n")
    stats = json.loads(run_process("stats", "--json", home=kept).works().out)
    assert (stats["sessions"], stats["messages"], stats["distillations"]) == (24, 335, 24)
    assert stats["fragments"] > 24
    assert json.loads(run_process("consolidate", "--history", "--json", home=kept).works().out)
    assert "luxon" in run_process("recall", "which date library do we use?", home=kept).out
    assert not lore.home.exists()


def test_the_demo_as_json_has_summary_and_answers(lore: Lore):
    told = json.loads(lore("demo", "--json").works().out)
    assert [answer["question"] for answer in told["answers"]] == list(QUESTIONS)
    assert told["kept"]["digested"]["distillations"] == 24
    assert told["kept"]["kinds"]["preference"] >= len(told["kept"]["rules"]) > 0
    assert told["kept"]["spent_usd"] == 0


def test_the_demo_never_calls_the_configured_chat(lore: Lore):
    chosen = {"LORE_CHAT_PROVIDER": "openai", "LORE_CHAT_BASE_URL": "http://127.0.0.1:9"}
    done = lore("demo", "--json", env=chosen).works()
    assert json.loads(done.out)["kept"]["digested"]["distillations"] == 24
    assert not done.err


def test_the_demo_refuses_a_folder_with_a_memory(lore: Lore):
    lore("remember", "Deploys go through ops/deploy.sh").works()
    before = lore.export()
    lore("demo", "--keep", str(lore.home)).fails_with(2)
    assert lore.export() == before
