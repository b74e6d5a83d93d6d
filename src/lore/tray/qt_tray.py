"""The tray icon on the screen: Qt shows what `tray_state` derives, and runs what is chosen."""

from __future__ import annotations

import fcntl
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from PySide6.QtCore import (
    QBuffer,
    QByteArray,
    QIODevice,
    QObject,
    QRectF,
    QSocketNotifier,
    Qt,
    QTimer,
    QUrl,
    Signal,
)
from PySide6.QtGui import QAction, QDesktopServices, QIcon, QImage, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer
from PySide6.QtWidgets import QApplication, QMenu, QSystemTrayIcon

from lore.config_files import make_private_folder
from lore.daemon import status_file
from lore.daemon.log_file import LOG_FILE
from lore.errors import AlreadyRunning, TrayUnavailable
from lore.tray.tray_icon import SIZES, draw
from lore.tray.tray_state import (
    COMMANDS,
    SEPARATOR,
    Action,
    CommandResult,
    Problem,
    State,
    View,
    failure_of,
    find_news,
    summary_of,
    view_of,
)

POLL_MS = 2_000
"""The daemon writes its status at most every 2 s; reading it takes well under a millisecond."""

TRAY_LOCK_FILE = "tray.lock"

SHOWN_MS = 10_000
"""How long a notification is asked to stay."""

Run = Callable[[Path, Action], CommandResult]
OpenFile = Callable[[Path], bool]


def run_command(home: Path, action: Action) -> CommandResult:
    """Run the command of `lore` behind an action, and wait for it."""
    words = [sys.executable, "-m", "lore.cli", "--home", str(home), *COMMANDS[action]]
    try:
        ended = subprocess.run(  # noqa: S603 - our own program
            words, stdin=subprocess.DEVNULL, capture_output=True, check=False
        )
    except OSError as error:
        return CommandResult(1, err=f"lore: {error.strerror}.")
    out, err = (text.decode("utf-8", "replace") for text in (ended.stdout, ended.stderr))
    return CommandResult(ended.returncode, out, err)


def open_file(path: Path) -> bool:
    """Open a file in the program that the desktop has for it."""
    return QDesktopServices.openUrl(QUrl.fromLocalFile(str(path)))


class TrayIcon(QObject):
    """The icon of one home: follows the daemon's status, and runs the actions of its menu."""

    ended = Signal(str, object)
    """A command has ended: its action and its result, from another thread."""

    def __init__(
        self,
        home: Path,
        run: Run = run_command,
        opener: OpenFile = open_file,
        *,
        can_sync: bool = False,
    ) -> None:
        super().__init__()
        self._home = home
        self._can_sync = can_sync
        self._run = run
        self._open_file = opener
        self._in_progress: Action | None = None
        self._failure: Problem | None = None
        self._view: View | None = None
        self._icons: dict[State, QIcon] = {}
        self._menu = QMenu()
        self._icon = QSystemTrayIcon(self)
        self._icon.setContextMenu(self._menu)
        self._icon.activated.connect(self._on_click)
        self.ended.connect(self._on_end)
        self._timer = QTimer(self)
        self._timer.timeout.connect(self.refresh)

    def show(self) -> None:
        """Show the icon and follow the daemon."""
        self.refresh()
        self._icon.show()
        self._timer.start(POLL_MS)

    def refresh(self) -> None:
        """Read the status, and show what has changed."""
        status = status_file.read(self._home)
        view = view_of(status, self._in_progress, self._failure, can_sync=self._can_sync)
        before, self._view = self._view, view
        if view == before:
            return
        if before is None or view.state != before.state:
            self._icon.setIcon(self._icon_of(view.state))
        if before is None or view.sentence != before.sentence:
            self._icon.setToolTip(view.sentence)
        if before is None or view.menu != before.menu:
            self._fill_menu(view)
        stopped = self._in_progress is not None or status_file.has_stopped(self._home)
        if news := find_news(before, view, was_stopped=stopped):
            self._notify(news)

    def perform(self, action: Action) -> None:
        """Do what an entry of the menu says; commands run in a thread of their own."""
        if action == "quit":
            QApplication.quit()
        elif action == "logs":
            self._show_log()
        elif action in COMMANDS and self._in_progress is None:
            self._in_progress, self._failure = action, None
            self.refresh()
            threading.Thread(target=self._work, args=(action,), daemon=True).start()

    def _work(self, action: Action) -> None:
        self.ended.emit(action, self._run(self._home, action))

    def _on_end(self, action: Action, result: CommandResult) -> None:
        self._in_progress = None
        self._failure = failure_of(action, result)
        self.refresh()
        if summary := summary_of(action, result):
            icon = QSystemTrayIcon.MessageIcon.Information
            self._icon.showMessage("Lore", summary, icon, SHOWN_MS)

    def _on_click(self, reason: QSystemTrayIcon.ActivationReason) -> None:
        is_double = reason == QSystemTrayIcon.ActivationReason.DoubleClick
        if is_double and self._view is not None:
            entry = next(one for one in self._view.menu if one.action == "explore")
            if entry.is_enabled:
                self.perform("explore")

    def _show_log(self) -> None:
        path = self._home / LOG_FILE
        if not path.exists():
            self._notify(Problem("There is no log yet.", "'Start Lore' creates it."))
        elif not self._open_file(path):
            self._notify(Problem("The log could not be opened.", "'lore logs' shows it."))

    def _notify(self, problem: Problem) -> None:
        text = f"{problem.message}\n{problem.next_step}"
        self._icon.showMessage("Lore", text, QSystemTrayIcon.MessageIcon.Warning, SHOWN_MS)

    def _fill_menu(self, view: View) -> None:
        """Fill the menu anew, or change its entries in place so that an open menu stays open."""
        actions = self._menu.actions()
        if len(actions) != len(view.menu):
            self._menu.clear()
            for entry in view.menu:
                if entry == SEPARATOR:
                    self._menu.addSeparator()
                else:
                    item = self._menu.addAction("")
                    item.triggered.connect(lambda *_, item=item: self._choose(item))
            actions = self._menu.actions()
        for item, entry in zip(actions, view.menu, strict=True):
            if entry != SEPARATOR:
                item.setText(entry.label.replace("&", "&&"))  # a single one marks a shortcut
                item.setEnabled(entry.is_enabled)
                item.setData(entry.action)

    def _choose(self, item: QAction) -> None:
        action: Action | None = item.data()
        if action is not None:
            self.perform(action)

    def _icon_of(self, state: State) -> QIcon:
        if state not in self._icons:
            self._icons[state] = paint(state)
        return self._icons[state]


def paint(state: State) -> QIcon:
    """Return the icon of a state in the sizes that panels ask for."""
    icon = QIcon()
    for size in SIZES:
        icon.addPixmap(QPixmap.fromImage(_render(state, size)))
    return icon


def paint_png(state: State, size: int) -> bytes:
    """Return the icon of a state as a PNG picture; this needs no screen."""
    buffer = QBuffer()
    buffer.open(QIODevice.OpenModeFlag.WriteOnly)
    _render(state, size).save(buffer, "PNG")  # type: ignore[call-overload]  # its stubs have str here
    return bytes(buffer.data().data())


def _render(state: State, size: int) -> QImage:
    image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
    image.fill(Qt.GlobalColor.transparent)
    painter = QPainter(image)
    QSvgRenderer(QByteArray(draw(state).encode())).render(painter, QRectF(0, 0, size, size))
    painter.end()
    return image


def serve(
    home: Path,
    *,
    platform: str = "",
    wait_s: float = 0.0,
    start: bool = False,
    can_sync: bool = False,
) -> None:
    """Show the icon until the user quits; raise if the desktop has no place for it.

    `platform` lists what Qt tries, in order.
    """
    words = ["lore", *(["-platform", platform] if platform else [])]
    with _only_icon(home):
        _serve(home, words, wait_s, start=start, can_sync=can_sync)


def _serve(home: Path, words: list[str], wait_s: float, *, start: bool, can_sync: bool) -> None:
    app = QApplication(words)
    app.setApplicationName("lore")
    app.setApplicationDisplayName("Lore")
    app.setQuitOnLastWindowClosed(False)
    _wait_for_host(app, wait_s)
    tray = TrayIcon(home, can_sync=can_sync)
    tray.show()
    if start and not status_file.read(home).running:
        tray.perform("start")
    with _quit_on_signals(app):
        app.exec()


@contextmanager
def _only_icon(home: Path) -> Iterator[None]:
    """Hold the lock of the icon of a home, since a second one would be of no use."""
    make_private_folder(home)
    with (home / TRAY_LOCK_FILE).open("a") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            msg = "The tray icon of this memory is shown already."
            raise AlreadyRunning(msg, hint="'Quit' in its menu ends it.") from None
        yield


def _wait_for_host(app: QApplication, wait_s: float) -> None:
    """Wait for a panel with a tray: at login it may start later than this program."""
    until = time.monotonic() + wait_s
    while not QSystemTrayIcon.isSystemTrayAvailable():
        left_s = until - time.monotonic()
        if left_s <= 0:
            raise _no_host(app.platformName())
        time.sleep(min(left_s, 0.5))
        app.processEvents()


def _no_host(platform: str) -> TrayUnavailable:
    if platform == "offscreen":
        return TrayUnavailable(
            "Qt found no screen to show a tray icon on.",
            hint="Run it in a desktop session; for X11, Qt also needs libxcb-cursor0.",
        )
    return TrayUnavailable(
        "This desktop has no place for tray icons.",
        hint="GNOME needs the extension AppIndicator; 'lore status' shows the same in a terminal.",
    )


@contextmanager
def _quit_on_signals(app: QApplication) -> Iterator[None]:
    """Quit on Ctrl-C and SIGTERM at once: Python handles signals only when it runs."""
    reading, writing = socket.socketpair()
    os.set_blocking(writing.fileno(), False)
    numbers = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    former = {number: signal.signal(number, lambda *_: app.quit()) for number in numbers}
    before = signal.set_wakeup_fd(writing.fileno(), warn_on_full_buffer=False)
    notifier = QSocketNotifier(reading.fileno(), QSocketNotifier.Type.Read)
    notifier.activated.connect(lambda *_: reading.recv(64))
    try:
        yield
    finally:
        notifier.setEnabled(False)
        signal.set_wakeup_fd(before)
        for number, handler in former.items():
            signal.signal(number, handler)
        reading.close()
        writing.close()
