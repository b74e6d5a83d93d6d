"""Files by which a desktop starts the tray icon: an autostart entry, and an app for macOS."""

from __future__ import annotations

import plistlib
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from lore.config_files import replace_file
from lore.errors import DaemonError, InvalidInput, NotFound

MARK: Final = "# Written by 'lore tray --autostart on'; '--autostart off' removes it."
"""Only a file with this line is changed or removed."""

ENTRY_NAME: Final = "lore-tray.desktop"

_ENTRY = """\
{mark}
[Desktop Entry]
Type=Application
Name=Lore
Comment=Memory of AI agents: its state, and a menu to control it
Exec={command}
Terminal=false
X-GNOME-Autostart-enabled=true
"""

BUNDLE_NAME: Final = "Lore.app"
BUNDLE_ID: Final = "dev.lore.tray"
_PROGRAM: Final = "lore-tray"
_PICTURE: Final = "lore.icns"

_ICNS_TYPES: Final[Mapping[int, bytes]] = {128: b"ic07", 256: b"ic08", 512: b"ic09"}
"""Types of PNG pictures in an icon file of macOS, by size."""


@dataclass(frozen=True, slots=True)
class AutostartEntry:
    """An entry that starts the tray icon at login: its path and its content."""

    path: Path
    text: str

    def is_written(self) -> bool:
        """Return whether the entry exists and was written by Lore."""
        try:
            return MARK in self.path.read_text("utf-8")
        except FileNotFoundError:
            return False
        except (OSError, ValueError) as error:
            raise DaemonError(f"{self.path} cannot be read.") from error

    def write(self) -> None:
        """Write the file; one that somebody else wrote is left alone."""
        if self.path.exists() and not self.is_written():
            msg = f"{self.path} exists and was not written by Lore."
            raise InvalidInput(msg, hint="Move it away first.")
        self.path.parent.mkdir(parents=True, exist_ok=True)
        replace_file(self.path, self.text.encode())
        self.path.chmod(0o644)

    def remove(self) -> None:
        """Remove the file, if Lore wrote it."""
        if not self.is_written():
            raise NotFound(f"There is no entry of Lore's at {self.path}.")
        self.path.unlink()


def autostart_entry(
    command: Sequence[str], environ: Mapping[str, str], user_home: Path
) -> AutostartEntry:
    """Describe the autostart entry of this user, by the XDG specifications."""
    _refuse_control_characters(command)
    config = environ.get("XDG_CONFIG_HOME", "")
    folder = Path(config) if config.startswith("/") else user_home / ".config"
    text = _ENTRY.format(mark=MARK, command=" ".join(map(_quote, command)))
    return AutostartEntry(folder / "autostart" / ENTRY_NAME, text)


def _quote(word: str) -> str:
    """Return a word quoted for Exec: characters of shells and of the file itself are escaped."""
    quoted = re.sub(r'(["`$\\])', r"\\\1", word).replace("%", "%%")
    return '"' + quoted.replace("\\", "\\\\") + '"'


def _refuse_control_characters(command: Sequence[str]) -> None:
    if re.search(r"[\x00-\x1f\x7f]", " ".join(command)):
        msg = "A path with control characters cannot stand in such a file."
        raise InvalidInput(msg, hint="Use a home with a plain path.")


def write_bundle(
    folder: Path, command: Sequence[str], version: str, pictures: Mapping[int, bytes]
) -> Path:
    """Write an app for macOS that shows the tray icon, into a folder; return its path.

    `pictures` has its icon as PNG by size. An app of Lore that is there is replaced; anything else
    is left alone.
    """
    _refuse_control_characters(command)
    bundle = folder / BUNDLE_NAME
    contents = bundle / "Contents"
    if bundle.exists() and not _is_ours(contents / "Info.plist"):
        msg = f"{bundle} exists and was not made by Lore."
        raise InvalidInput(msg, hint="Name another folder, or move it away first.")
    for part in ("MacOS", "Resources"):
        (contents / part).mkdir(parents=True, exist_ok=True)
    (contents / "Info.plist").write_bytes(plistlib.dumps(_info(version)))
    (contents / "PkgInfo").write_bytes(b"APPL????")
    (contents / "Resources" / _PICTURE).write_bytes(icns_of(pictures))
    program = contents / "MacOS" / _PROGRAM
    program.write_text(f"#!/bin/sh\nexec {shlex.join(command)}\n", "utf-8")
    program.chmod(0o755)
    return bundle


def _info(version: str) -> dict[str, object]:
    return {
        "CFBundleIdentifier": BUNDLE_ID,
        "CFBundleName": "Lore",
        "CFBundleDisplayName": "Lore",
        "CFBundleExecutable": _PROGRAM,
        "CFBundleIconFile": _PICTURE,
        "CFBundlePackageType": "APPL",
        "CFBundleInfoDictionaryVersion": "6.0",
        "CFBundleShortVersionString": version,
        "CFBundleVersion": version,
        "LSMinimumSystemVersion": "12.0",
        "LSUIElement": True,  # an icon in the menu bar, none in the Dock
        "NSHighResolutionCapable": True,
    }


def icns_of(pictures: Mapping[int, bytes]) -> bytes:
    """Return PNG pictures as an icon file of macOS: a type, a length and the data of each."""
    parts = b"".join(
        _ICNS_TYPES[size] + (8 + len(png)).to_bytes(4) + png
        for size, png in sorted(pictures.items())
    )
    return b"icns" + (8 + len(parts)).to_bytes(4) + parts


def _is_ours(info: Path) -> bool:
    try:
        return bool(plistlib.loads(info.read_bytes()).get("CFBundleIdentifier") == BUNDLE_ID)
    except (OSError, ValueError, plistlib.InvalidFileException):
        return False
