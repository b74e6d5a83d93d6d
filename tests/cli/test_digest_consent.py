"""Nothing is sent without consent: who is asked, once, and what is remembered."""

from __future__ import annotations

import os
import pty
import subprocess
from pathlib import Path

import pytest

from lore.settings import load
from tests.cli.conftest import PROGRAM, environment


@pytest.fixture
def person(tmp_path: Path) -> Path:
    """Return the home of a person who has Claude Code."""
    program = tmp_path / "person" / "bin" / "claude"
    program.parent.mkdir(parents=True)
    program.write_text("#!/bin/sh\nexit 1\n")
    program.chmod(0o700)
    return tmp_path / "person"


def variables(person: Path, **more: str) -> dict[str, str]:
    path = str(person / "bin")
    return environment(person / ".lore", HOME=str(person), PATH=path, **more)


def set_up(person: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run 'lore setup claude-code' without a terminal."""
    return subprocess.run(
        [*PROGRAM, "setup", "claude-code", *words], env=variables(person), check=False,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120,
    )  # fmt: skip


def set_up_on_a_terminal(person: Path, answer: str) -> str:
    """Run 'lore setup claude-code' on a terminal, answer, and return what it printed."""
    pid, terminal = pty.fork()
    if pid == 0:
        program = [*PROGRAM, "setup", "claude-code"]
        os.execve(program[0], program, variables(person))
    os.write(terminal, answer.encode())
    printed = b""
    try:
        while piece := os.read(terminal, 65_536):
            printed += piece
    except OSError:
        pass  # the end of a terminal
    os.waitpid(pid, 0)
    os.close(terminal)
    return printed.decode()


def provider(person: Path) -> str:
    return load({}, home=person / ".lore").settings.chat_provider


def is_stored(person: Path) -> bool:
    file = person / ".lore" / "config.toml"
    return file.exists() and "provider" in file.read_text()


def test_nobody_is_asked_without_a_terminal(person):
    done = set_up(person)
    assert done.returncode == 0, done.stderr
    assert "May Lore" not in done.stdout + done.stderr
    assert not is_stored(person)


@pytest.mark.parametrize(
    ("answer", "chosen"), [("y\n", "claude-cli"), ("n\n", "offline"), ("\n", "offline")]
)
def test_a_person_is_asked_once_and_the_answer_is_remembered(person, answer, chosen):
    printed = set_up_on_a_terminal(person, answer)
    assert printed.count("May Lore digest your conversations with 'claude -p'") == 1
    assert "a few calls for each session" in " ".join(printed.split())
    assert is_stored(person)
    assert provider(person) == chosen
    assert "May Lore" not in set_up_on_a_terminal(person, "y\n")
    assert provider(person) == chosen


def test_options_answer_for_scripts(person):
    assert set_up(person, "--chat").returncode == 0
    assert provider(person) == "claude-cli"
    assert set_up(person, "--no-chat", "--json").returncode == 0
    assert provider(person) == "offline"


def test_an_agent_that_is_not_installed_cannot_digest(person):
    (person / "bin" / "claude").unlink()
    done = set_up(person, "--chat")
    assert done.returncode == 2
    assert "can digest conversations" in done.stderr
    assert not is_stored(person)
    assert "May Lore" not in set_up_on_a_terminal(person, "y\n")
