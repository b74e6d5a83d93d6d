"""Starting and stopping: quickly, quietly, and with the right code."""

import json
import os
import pty
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.main import get_command_from_info

from lore import __version__
from tests.call_count import count_calls
from tests.cli.conftest import PROGRAM, Lore, Seeded, environment, run_process
from tests.waiting import eventually

HEAVY = {
    "numpy", "apsw", "onnxruntime", "tokenizers", "rich", "orjson", "numkong", "pydantic",
    "starlette", "uvicorn", "anyio", "mcp",
}  # fmt: skip
"""What takes longest to import of all that Lore is made of."""

NEEDLESS = {
    "lore.memory", "lore.records", "lore.settings", "lore.store", "tempfile",
    "http.client", "importlib.resources", "urllib.request", "asyncio", "sqlite3",
}  # fmt: skip
"""What some commands need, and a list of all commands does not; the records alone took a fifth."""


def loaded_by(home: Path, *arguments: str, **env: str) -> set[str]:
    """Return the modules that a command has imported when it ends."""
    script = (
        "import sys, json, atexit; from lore.cli import main\n"
        "atexit.register(lambda: print(json.dumps(list(sys.modules)), file=sys.stderr))\n"
        f"main({list(arguments)!r})"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        check=True,
        env=environment(home, **env),
    )
    return set(json.loads(done.stderr.splitlines()[-1]))


def heavy_of(loaded: set[str]) -> set[str]:
    return HEAVY & {name.split(".")[0] for name in loaded}


def test_help_imports_nothing_that_it_does_not_show(tmp_path: Path):
    loaded = loaded_by(tmp_path, "--help")
    assert not heavy_of(loaded)
    assert not NEEDLESS & loaded


def test_completion_loads_nothing_heavy(tmp_path: Path):
    assert not heavy_of(loaded_by(tmp_path, "config", "recall.max_hits", "7", "--json"))


def test_a_question_imports_nothing_that_it_does_not_use(seeded: Seeded):
    loaded = loaded_by(seeded.home, "--home", str(seeded.home), "recall", "how do we deploy?")
    assert "lore.recall.answer" in loaded
    assert not {"numpy.ma", "importlib.resources", "socket", "tokenizers"} & loaded


def test_the_version_is_shown():
    assert run_process("--version").works().out == f"lore {__version__}\n"


@pytest.mark.parametrize("name", ["recall", "import", "open", "run", "key"])
def test_a_command_is_found_by_its_name_not_its_function(name: str):
    told = run_process("--home", "/code/none", name, "--help").works()
    assert told.out.startswith(f"Usage: lore {name} ")


@pytest.mark.parametrize("words", [("stats",), ("owner", "list"), ("task", "list"), ("key",)])
def test_a_command_is_created_without_the_others(lore: Lore, words: tuple[str, ...]):
    with count_calls(get_command_from_info) as created:
        lore(*words)
    assert 0 < len(created) < 20


def test_the_shell_completes_commands_and_values():
    words = {"_LORE_COMPLETE": "complete_bash", "COMP_WORDS": "lore rec", "COMP_CWORD": "1"}
    assert run_process(env=words).out.split() == ["recall"]
    words |= {"COMP_WORDS": "lore remember --kind anti", "COMP_CWORD": "3"}
    assert run_process(env=words).out.split() == ["anti_pattern"]
    words |= {"COMP_WORDS": "lore config recall.m", "COMP_CWORD": "2"}
    assert run_process(env=words).out.split() == ["recall.max_hits"]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_completion_script_is_printed(shell: str):
    script = run_process(env={"_LORE_COMPLETE": f"source_{shell}"}).works().out
    assert "_LORE_COMPLETE" in script


def test_a_closed_pipe_is_quiet(lore: Lore):
    for place in range(40):
        lore("remember", f"note {place} " + "with many words " * 500).works()
    environ = environment(lore.home)
    for command in (["export"], ["roots", "--limit", "1000"], ["search", "note", "--json"]):
        process = subprocess.Popen(
            [*PROGRAM, *command], env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout
        assert process.stderr
        process.stdout.read(10)
        process.stdout.close()
        told = process.stderr.read().decode()
        process.stderr.close()
        assert process.wait(20) in (0, 1)
        assert "Traceback" not in told
        assert "BrokenPipe" not in told


def test_ctrl_c_exits_with_130(lore: Lore):
    environ = environment(lore.home)
    process = subprocess.Popen(
        [*PROGRAM, "import", "-"],
        env=environ,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    eventually((lore.home / "memory.db").exists)
    time.sleep(0.3)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=20)
    assert process.returncode == 130
    assert not out
    assert b"Interrupted" in err
    assert b"Traceback" not in err


def on_terminal(home: Path, *arguments: str, **env: str) -> str:
    """Run a command with a terminal as its output and return what it wrote there."""
    leader, follower = pty.openpty()
    environ = environment(home, **{"TERM": "xterm-256color", **env})
    with subprocess.Popen(
        [*PROGRAM, *arguments], env=environ, stdout=follower, stderr=follower, stdin=follower
    ) as process:
        os.close(follower)
        written = b""
        while True:
            try:
                data = os.read(leader, 65_536)
            except OSError:
                break
            if not data:
                break
            written += data
        process.wait(20)
    os.close(leader)
    return written.decode()


def test_a_person_is_told_of_a_new_memory_once(tmp_path: Path):
    home = tmp_path / "moved"
    text = "The gate opens at six."
    first = on_terminal(home, "remember", text)
    assert f"A new memory was created in {home}." in "".join(first.splitlines())
    assert "new memory" not in on_terminal(home, "remember", "The gate closes at ten.")
    assert "new memory" not in run_process("remember", text, home=tmp_path / "piped").works().err


def test_colour_is_for_terminals_only_and_can_be_disabled(seeded: Seeded):
    assert "\x1b[1m" in on_terminal(seeded.home, "recall", "heron")
    assert "\x1b" not in on_terminal(seeded.home, "recall", "heron", NO_COLOR="1")
    assert "\x1b" not in on_terminal(seeded.home, "recall", "heron", TERM="dumb")
    assert "\x1b" not in on_terminal(seeded.home, "recall", "heron", "--json")
    assert "\x1b" not in run_process("recall", "heron", home=seeded.home).works().out


def test_stored_escapes_do_not_act_on_a_terminal(lore: Lore):
    id_ = lore("remember", "-", stdin="danger \x9b31m \x1b[2J end".encode()).works().out.strip()
    for command in (("read", id_), ("read", id_, "--json"), ("export", "-")):
        shown = on_terminal(lore.home, *command, NO_COLOR="1")
        assert "danger" in shown
        assert "\x9b" not in shown
        assert "\x1b" not in shown


def test_an_export_without_a_file_does_not_fill_a_terminal(seeded: Seeded):
    shown = on_terminal(seeded.home, "export")
    assert "heron" not in shown
    assert "'lore export FILE' writes a file" in shown
    assert "heron" in run_process("export", home=seeded.home).works().out


def test_recall_by_meaning_with_the_real_model(tmp_path: Path):
    environ = {"LORE_EMBED_PROVIDER": "local"}
    run_process("remember", "The cat sleeps on the sofa", home=tmp_path, env=environ).works()
    run_process("remember", "Invoices are sent on Fridays", home=tmp_path, env=environ).works()
    out = run_process("recall", "feline nap", "--limit", "1", home=tmp_path, env=environ).out
    assert "sofa" in out
