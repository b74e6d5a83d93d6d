"""Links to the explorer: only on a terminal that shows them, while a daemon runs."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.cli.links import link, width
from lore.cli.terminal import shows_links
from lore.daemon import daemon_lock
from lore.proxy.address import find_address
from tests.cli.conftest import run_process
from tests.homes import keep_handshake

LINK = re.compile(r"\x1b\]8;;(http://[^\x1b]+)\x1b\\([^\x1b]+)\x1b\]8;;\x1b\\")


@pytest.mark.parametrize(
    ("environ", "shown"),
    [
        ({}, False),
        ({"TERM": "xterm-256color"}, False),
        ({"TERM_PROGRAM": "iTerm.app"}, True),
        ({"TERM": "xterm-kitty"}, True),
        ({"VTE_VERSION": "7600"}, True),
        ({"VTE_VERSION": "4200"}, False),
        ({"WT_SESSION": "1"}, True),
        ({"WT_SESSION": "1", "TMUX": "/tmp/x"}, False),
        ({"TERM": "dumb", "WT_SESSION": "1"}, False),
        ({"TERM": "dumb", "FORCE_HYPERLINK": "1"}, True),
        ({"WT_SESSION": "1", "FORCE_HYPERLINK": "0"}, False),
    ],
)
def test_links_are_shown_by_terminals_that_know_them(environ: dict[str, str], shown: bool):
    assert shows_links(environ) is shown


@given(st.text(st.characters(exclude_characters="\x1b"), max_size=30))
def test_a_link_is_as_wide_as_its_text(text: str):
    assert width(link("http://127.0.0.1:1/fragments/1", text)) == len(text)


def on_terminal(home: Path, *arguments: str, **environ: str) -> str:
    """Return what a command prints on a terminal."""
    controller, terminal = pty.openpty()
    env = {**os.environ, "LORE_HOME": str(home), "TERM": "xterm-kitty", "CI": "", **environ}
    program = [sys.executable, "-m", "lore.cli", *arguments]
    with subprocess.Popen(program, stdout=terminal, stdin=terminal, env=env) as process:
        os.close(terminal)
        shown = b""
        with contextlib.suppress(OSError):  # the end of a terminal is an error on Linux
            while part := os.read(controller, 65_536):
                shown += part
        assert process.wait() == 0
    os.close(controller)
    return shown.decode()


@pytest.fixture
def up(tmp_path: Path) -> Iterator[Path]:
    """A home whose daemon runs."""
    home = tmp_path / "home"
    env = {"HOME": str(tmp_path), "LORE_SERVER_PORT": "0"}
    keep_handshake(home)
    run_process("up", "--detach", home=home, env=env).works()
    yield home
    holder = daemon_lock.find_holder(home)
    if holder is not None:
        os.kill(holder.pid, signal.SIGKILL)


def test_ids_link_to_the_explorer_while_a_daemon_runs(up: Path):
    id_ = run_process("remember", "The port is 8080", home=up).works().out.strip()
    assert "\x1b" not in id_
    address = find_address(str(up))
    assert address
    page = f"{address.url}/fragments/{id_}"
    for command in (["search", "port"], ["recall", "port"], ["read", id_]):
        links = LINK.findall(on_terminal(up, *command))
        assert page in [url for url, _ in links], command
        assert "\x1b" not in run_process(*command, home=up).works().out
    assert not LINK.search(on_terminal(up, "search", "port", FORCE_HYPERLINK="0"))


def test_nothing_links_without_a_daemon(tmp_path: Path):
    home = tmp_path / "home"
    run_process("remember", "The port is 8080", home=home).works()
    assert not LINK.search(on_terminal(home, "search", "port"))
