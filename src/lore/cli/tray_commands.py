"""The command of the tray icon."""

from __future__ import annotations

import os
import sys
from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

from typer import Context, Option

from lore.cli.help_text import DISTRIBUTION
from lore.cli.options import DryRun
from lore.cli.output import clean, load_settings, notice
from lore.cli.setup_commands import own_command
from lore.errors import InvalidInput, TrayUnavailable

_PANEL_S = 60
"""How long an autostarted icon waits for the panel of a desktop that is still starting."""


def tray(
    context: Context,
    start: Annotated[bool, Option("--start", help="Start the daemon too.")] = False,
    wait: Annotated[
        int, Option("--wait", min=0, max=600, help="Seconds to wait for a panel with a tray.")
    ] = 0,
    autostart: Annotated[
        Literal["on", "off"] | None,
        Option("--autostart", help="Show it at every login, or no longer.", show_default=False),
    ] = None,
    app: Annotated[
        Path | None, Option("--app", help="Make an app for macOS in this folder.")
    ] = None,
    dry_run: DryRun = False,
) -> None:
    """Show an icon with the state of the daemon and a menu to control it.

    It needs the extra 'tray'. Exit code 16 means that the extra or a place for the icon is missing.
    """
    settings = load_settings(context)
    home = settings.home
    if autostart is not None:
        _set_autostart(home, on=autostart == "on", dry_run=dry_run)
        return
    if dry_run:
        msg = "--dry-run needs --autostart."
        raise InvalidInput(msg, hint="'lore tray --autostart on --dry-run' shows the file.")
    if app is not None:
        _make_app(home, app)
        return
    _load_qt()
    from lore.tray.qt_tray import serve

    can_sync = bool(settings.sync_target)
    serve(home, platform=_platform(), wait_s=wait, start=start, can_sync=can_sync)


def _load_qt() -> None:
    """Import Qt, or raise with the command that installs what is missing."""
    try:
        for name in ("QtSvg", "QtWidgets"):  # the system may lack a library that one needs
            import_module(f"PySide6.{name}")
    except ModuleNotFoundError as error:
        msg = f"The tray icon needs PySide6: install '{DISTRIBUTION}[tray]'."
        raise TrayUnavailable(msg, hint=f"{_installer(sys.prefix)} installs it.") from error
    except ImportError as error:
        msg = f"Qt cannot be loaded: {error}."
        raise TrayUnavailable(msg, hint="Install that library of your system.") from error


def _installer(prefix: str) -> str:
    folders = Path(prefix).parts
    if "uv" in folders and "tools" in folders:
        return f"'uv tool install \"{DISTRIBUTION}[tray]\"'"
    if "pipx" in folders:
        return f"'pipx inject {DISTRIBUTION} PySide6-Essentials'"
    return f"'{prefix}/bin/python -m pip install PySide6-Essentials'"


def _platform() -> str:
    """Return the platforms that Qt is to try; offscreen is last, since Qt aborts without any."""
    environ = os.environ  # noqa: TID251 - of the desktop, not settings
    if sys.platform == "darwin" or environ.get("QT_QPA_PLATFORM"):
        return ""
    screens = {"WAYLAND_DISPLAY": "wayland", "DISPLAY": "xcb"}
    return ";".join([*(name for sign, name in screens.items() if environ.get(sign)), "offscreen"])


def _set_autostart(home: Path, *, on: bool, dry_run: bool) -> None:
    """Show the autostart entry and write it, or remove it."""
    from lore.tray.desktop_files import autostart_entry

    if sys.platform == "darwin":
        msg = "macOS starts apps at login by itself."
        raise InvalidInput(
            msg, hint="'lore tray --app ~/Applications' makes one; add it to the Login Items."
        )
    environ = os.environ  # noqa: TID251 - of the desktop, not settings
    command = [*own_command(home), "tray", "--start", "--wait", str(_PANEL_S)]
    entry = autostart_entry(command, environ, Path.home())
    if not on:
        if not entry.is_written():
            print(clean(f"There is no entry of Lore's at {entry.path}: nothing to remove."))
            return
        if not dry_run:
            entry.remove()
        print(clean(f"{entry.path} {'would be' if dry_run else 'is'} removed."))
        return
    notice(f"The file {'would be' if dry_run else 'is'} {entry.path}.")
    print(clean(entry.text), end="", flush=True)
    if not dry_run:
        entry.write()
        print("Lore is shown at every login. 'lore tray --autostart off' undoes this.")


def _make_app(home: Path, folder: Path) -> None:
    from lore import __version__
    from lore.tray.desktop_files import write_bundle

    _load_qt()
    from lore.tray.qt_tray import paint_png

    pictures = {size: paint_png("idle", size) for size in (128, 256, 512)}
    path = folder.expanduser().absolute()
    bundle = write_bundle(path, [*own_command(home), "tray", "--start"], __version__, pictures)
    print(clean(f"Made {bundle}. To undo it, delete it."))
