"""The tray icon in front of a real panel: a StatusNotifierWatcher on a session bus of its own.

Qt offers tray icons on a screen only: Xvfb is one that nobody sees.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import pytest

from lore import clock
from lore.daemon import daemon_lock, process, status_file
from lore.daemon.status_file import PASSING, Status, TaskStatus
from lore.tray.tray_state import view_of
from tests.cli.conftest import environment
from tests.waiting import PATIENCE_S

pytest.importorskip("dbus_fast", reason="needs dbus-fast")
pytest.importorskip("PySide6.QtWidgets", reason="needs the extra 'tray'", exc_type=ImportError)

from tests.tray.panel import Panel, open_panel

PROBE = "from PySide6.QtWidgets import QApplication as A; print(A(['x']).platformName())"


@dataclass(frozen=True)
class Desktop:
    """A session bus and a screen."""

    bus: str
    env: dict[str, str]

    def show(self, home: Path, *options: str) -> subprocess.Popen[bytes]:
        """Start `lore tray` for a home; what it complains of is in a file beside."""
        words = [sys.executable, "-m", "lore.cli", "--home", str(home), "tray", *options]
        env = environment(None, **self.env, HOME=str(home.parent))
        with (home.parent / "complaints").open("ab") as complaints:
            return subprocess.Popen(words, env=env, stderr=complaints)


@contextmanager
def announced(name: str, *words: str) -> Iterator[str]:
    """Run a program and yield the line that it writes when it is ready; `FD` stands for where."""
    if shutil.which(name) is None:
        pytest.skip(f"{name} is not installed")
    reading, writing = os.pipe()
    arguments = [word.replace("FD", str(writing)) for word in words]
    program = subprocess.Popen([name, *arguments], pass_fds=[writing], stderr=subprocess.DEVNULL)
    os.close(writing)
    try:
        with os.fdopen(reading) as lines:
            yield lines.readline().strip()
    finally:
        program.terminate()
        program.wait()


@pytest.fixture
def desktop(tmp_path: Path) -> Iterator[Desktop]:
    bus = announced("dbus-daemon", "--session", "--nofork", "--nopidfile", "--print-address=FD")
    screen = announced("Xvfb", "-displayfd", "FD", "-nolisten", "tcp", "-screen", "0", "320x240x24")
    with bus as address, screen as display:
        env = {
            "DBUS_SESSION_BUS_ADDRESS": address,
            "DISPLAY": f":{display}",
            "WAYLAND_DISPLAY": "",
            "QT_QPA_PLATFORM": "xcb;offscreen",
            "XDG_CURRENT_DESKTOP": "KDE",
        }
        probe = subprocess.run(
            [sys.executable, "-c", PROBE],
            env={**os.environ, **env},
            capture_output=True,
            check=False,
        )
        if probe.stdout.strip() != b"xcb":
            pytest.skip("Qt has no X11: it needs libxcb-cursor0, libxcb-icccm4, libxcb-keysyms1")
        yield Desktop(address, env)


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    home = tmp_path / "home"
    yield home
    process.stop(home, force=True)


def use(
    desktop: Desktop,
    home: Path,
    script: Callable[[Panel], Awaitable[None]],
    *options: str,
    quits: bool = False,
) -> int:
    """Show the icon, use it by a script, end it unless that `quits`, and return its exit code."""

    async def run() -> int:
        async with open_panel(desktop.bus) as panel:
            tray = desktop.show(home, *options)
            try:
                await panel.find_item()
                await script(panel)
                if not quits:
                    tray.send_signal(signal.SIGTERM)
                await panel.eventually(lambda: tray.poll() is not None)
                return tray.returncode
            finally:
                tray.kill()
                tray.wait()

    return asyncio.run(run())


def test_the_menu_starts_a_daemon_and_stops_it(desktop: Desktop, home: Path):
    async def script(panel: Panel) -> None:
        labels = [one.label for one in await panel.menu()]
        assert labels[1:] == [
            "Start Lore",
            "Capture now",
            "Consolidate now",
            "Sync (no target is set)",
            "Open explorer (start Lore first)",
            "Show log",
            "Quit",
        ]
        stopped = await panel.picture()
        assert stopped
        await panel.choose("Start Lore")
        await panel.eventually(lambda: status_file.read(home).running)
        await panel.eventually(lambda: _has(panel, "Open explorer"))
        assert await panel.picture() != stopped
        await panel.choose("Stop Lore")
        await panel.eventually(lambda: _has(panel, "Start Lore"))
        assert not status_file.read(home).running
        assert await panel.picture() == stopped
        assert panel.notifications.texts == []

    assert use(desktop, home, script) == 0


async def _has(panel: Panel, label: str) -> bool:
    return any(one.label == label and one.is_enabled for one in await panel.menu())


def test_the_icon_follows_the_status_and_an_error_is_notified_with_a_next_step(
    desktop: Desktop, home: Path
):
    home.mkdir()
    lock = daemon_lock.take_lock(home, now=clock.now(), version="0")
    failing = TaskStatus("capture", 30, failures=1, last_error="The disk is full.")
    statuses = [
        Status(state="idle"),
        Status(state="capturing"),
        Status(state="consolidating"),
        Status(state="syncing"),
        Status(state="idle", chores=(failing,)),
    ]

    async def script(panel: Panel) -> None:
        pictures = [await panel.picture()]  # no status yet: the daemon starts
        for status in statuses:
            write(status)
            await panel.eventually(partial(_shows, panel, status))
            pictures.append(await panel.picture())
        assert len(set(pictures[1:])) == len(statuses)
        await panel.eventually(lambda: panel.notifications.texts)
        write(Status(state=PASSING, last_error="Not a database."))
        await panel.eventually(lambda: len(panel.notifications.texts) == 2)
        full, damaged = panel.notifications.texts
        assert "The disk is full." in full
        assert "lore logs" in full
        assert "Not a database." in damaged
        assert "lore doctor" in damaged
        write(Status(state="idle"))
        await panel.eventually(partial(_shows, panel, Status(state="idle")))
        lock.release()  # as if it was killed: it wrote no end
        await panel.eventually(lambda: len(panel.notifications.texts) == 3)
        assert "ended unexpectedly" in panel.notifications.texts[2]

    def write(status: Status) -> None:
        status_file.write(home, replace(status, running=True, pid=os.getpid()))

    assert use(desktop, home, script) == 0


async def _shows(panel: Panel, status: Status) -> bool:
    sentence = view_of(replace(status, running=True)).sentence
    return (await panel.menu())[0].label == sentence


def test_the_menu_opens_the_explorer_and_consolidates(desktop: Desktop, home: Path, tmp_path: Path):
    browser, opened = tmp_path / "browser", tmp_path / "opened"
    browser.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    browser.chmod(0o755)
    surfing = replace(desktop, env={**desktop.env, "BROWSER": str(browser)})

    async def script(panel: Panel) -> None:
        await panel.choose("Open explorer")
        await panel.eventually(lambda: opened.exists() and "://" in opened.read_text())
        await panel.choose("Consolidate now")
        await panel.eventually(lambda: panel.notifications.texts)
        assert "cycle is done" in panel.notifications.texts[0]

    assert use(surfing, home, script, "--start") == 0


def test_what_a_command_did_is_notified(desktop: Desktop, home: Path):
    async def script(panel: Panel) -> None:
        await panel.choose("Capture now")
        await panel.eventually(lambda: panel.notifications.texts)
        assert "0 messages stored" in panel.notifications.texts[0]
        await panel.choose("Show log")
        await panel.eventually(lambda: len(panel.notifications.texts) > 1)
        assert "Start Lore" in panel.notifications.texts[1]

    assert use(desktop, home, script) == 0


def test_with_start_the_daemon_runs_and_goes_on_after_quitting(desktop: Desktop, home: Path):
    async def script(panel: Panel) -> None:
        await panel.eventually(lambda: _has(panel, "Stop Lore"))
        await panel.choose("Quit")

    assert use(desktop, home, script, "--start", quits=True) == 0
    assert status_file.read(home).running


def test_a_second_icon_of_a_home_is_refused(desktop: Desktop, home: Path):
    async def script(panel: Panel) -> None:
        second = desktop.show(home)
        await panel.eventually(lambda: second.poll() is not None)
        assert second.returncode == 12
        assert "shown already" in (home.parent / "complaints").read_text()

    assert use(desktop, home, script) == 0


def test_without_a_panel_it_says_so_and_exits_as_documented(desktop: Desktop, home: Path):
    tray = desktop.show(home)
    assert tray.wait(PATIENCE_S) == 16
    assert "no place for tray icons" in (home.parent / "complaints").read_text()


def test_it_waits_for_a_panel_that_starts_later(desktop: Desktop, home: Path):
    async def run() -> None:
        tray = desktop.show(home, "--wait", "60")
        async with open_panel(desktop.bus) as panel:
            await panel.find_item()
            await panel.choose("Quit")
            await panel.eventually(lambda: tray.poll() is not None)
        assert tray.returncode == 0

    asyncio.run(run())
