"""The command `lore config`: show settings with their sources, or change one."""

from __future__ import annotations

import json as json_module
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from lore.cli.options import Json
from lore.cli.output import dim, notice, one_line, print_columns, print_json
from lore.errors import InvalidInput, UnknownSetting

if TYPE_CHECKING:
    from lore.settings import Loaded, SettingValue


def _setting_keys() -> list[str]:
    from lore.settings import Settings, key_of

    return [key_of(spec.name) for spec in fields(Settings)]


def config(
    context: Context,
    key: Annotated[
        str, Argument(help="One setting.", show_default=False, autocompletion=_setting_keys)
    ] = "",
    value: Annotated[str | None, Argument(help="Its new value.", show_default=False)] = None,
    unset: Annotated[
        bool, Option("--unset", help="Remove it from the user's config.toml.")
    ] = False,
    json: Json = False,
) -> None:
    """Show all settings with their sources, or set one.

    A new value is written to config.toml; its other lines stay as they are.
    """
    from lore.settings import write_user_setting

    loaded = _load(context)
    notice(loaded.warning)
    if unset and (value is not None or not key):
        msg = "--unset takes the name of one setting and no value."
        raise InvalidInput(msg)
    if value is not None or unset:
        path = write_user_setting(loaded.settings.home, key, value)
        loaded = _load(context)
        notice(f"Updated {path}.")
        _tell_of_daemon(loaded.settings.home, key)
    shown = [
        replace(setting, value="(set)") if setting.secret and setting.value else setting
        for setting in loaded.values
        if not key or setting.key == key
    ]
    if not shown:
        raise UnknownSetting(f"There is no setting '{key}'.", hint="'lore config' lists them all.")
    if json:
        print_json(shown)
        return
    print_columns(
        (s.key, one_line(_said(s.value), 60), dim(s.source), _explained(s)) for s in shown
    )
    if (value is not None or unset) and shown[0].source not in ("config.toml", "default"):
        first = shown[0]
        source = first.env if first.source == "environment" else first.source
        notice(f"The value from {source} overrides the one just written.")


def _tell_of_daemon(home: Path, key: str) -> None:
    """Say that a running daemon has to be restarted for a changed setting."""
    from lore.daemon.daemon_lock import find_holder

    if find_holder(home) and key == "daily_budget":
        notice("The new limit applies to agents from their next request.")
    elif find_holder(home):
        notice("Restart the daemon to apply this: 'lore down', then 'lore up --detach'.")


def _load(context: Context) -> Loaded:
    from lore.settings import load

    return load(home=context.obj, project_dir=Path.cwd())


def _said(value: object) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, list | tuple):
        return json_module.dumps(value, ensure_ascii=False)
    return "–" if value in ("", None) else str(value)


def _explained(setting: SettingValue) -> str:
    return one_line(f"{setting.doc} ({setting.allowed})" if setting.allowed else setting.doc, 300)
