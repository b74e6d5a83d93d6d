"""Settings: what can be configured, and the only reader of environment and configuration files.

A value comes from the environment (`LORE_…`), else the project's `.lore.json`, else the
user's `config.toml`, else the default. A project file may not set what reaches outside the
project.
"""

from __future__ import annotations

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, get_type_hints

from lore.errors import InvalidInput, UnknownSetting

PROJECT_FILE = ".lore.json"
USER_FILE = "config.toml"

Value = str | int | float | bool


def _setting(
    default: Value, doc: str, *, project: bool = False, choices: tuple[str, ...] = ()
) -> Any:
    """Describe one setting; `project` says that a project file may set it."""
    return field(
        default=default, metadata={"doc": doc, "project": project, "choices": choices}
    )


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; the key `embed.model` is the field `embed_model`."""

    home: Path = field(
        default=Path("~/.lore"), metadata={"doc": "Folder that holds everything Lore keeps."}
    )
    db_path: str = _setting("", "Database file; empty for memory.db in the home.")
    embed_provider: str = _setting(
        "local",
        "Who computes vectors; anything but local and none is an explicit choice.",
        choices=("local", "fastembed", "openai", "voyage", "none"),
    )
    embed_model: str = _setting(
        "all-MiniLM-L6-v2", "Model name as the provider knows it."
    )
    embed_model_path: str = _setting("", "Folder with model files; empty to look for them.")
    embed_precision: str = _setting(
        "float32",
        "int8 is quicker and changes 6 to 11 % of the neighbours.",
        choices=("float32", "int8"),
    )
    embed_threads: int = _setting(1, "Threads of the local model; 0 for all cores.")
    embed_idle_unload_s: float = _setting(600.0, "Unload the model after so long unused.")
    embed_download: bool = _setting(False, "Allow fastembed to download a model.")
    embed_base_url: str = _setting("", "Address of an OpenAI-compatible embedding service.")
    embed_api_key: str = _setting("", "Access key of the hosted embedding service.")
    embed_dimension: int = _setting(0, "Dimension of a hosted model; 0 to ask the model.")
    search_recipe: str = _setting(
        "learned",
        "How keyword and vector scores are fused.",
        project=True,
        choices=("learned", "weighted", "rrf"),
    )
    search_fts_weights: str = _setting(
        "6,2,3", "Keyword weights of a fragment's summary, content and kind.", project=True
    )
    recall_budget_tokens: int = _setting(
        1500, "Tokens that one recall may return.", project=True
    )
    recall_max_hits: int = _setting(15, "Most hits that one recall returns.", project=True)
    recall_standing_tokens: int = _setting(
        400, "Tokens of standing instructions beside a recall.", project=True
    )
    store_busy_timeout_s: float = _setting(
        60.0, "How long a writer waits for another process before it gives up."
    )

    @property
    def database(self) -> Path:
        """Return the path of the database file."""
        return Path(self.db_path).expanduser() if self.db_path else self.home / "memory.db"

    @property
    def models(self) -> Path:
        """Return the folder of model files."""
        return self.home / "models"

    @property
    def backups(self) -> Path:
        """Return the folder of automatic backups."""
        return self.home / "backups"


@dataclass(frozen=True, slots=True)
class SettingValue:
    """One setting as it stands: its value and where that came from."""

    key: str
    value: Value
    source: str
    doc: str
    default: Value
    env: str


@dataclass(frozen=True, slots=True)
class Loaded:
    """Settings in force, with the source of each value."""

    settings: Settings
    values: tuple[SettingValue, ...]


def key_of(name: str) -> str:
    """Return the key of a field: `embed_model` is `embed.model`, `home` stays."""
    group, _, rest = name.partition("_")
    return f"{group}.{rest}" if rest and name != "db_path" else name


def load(
    environ: Mapping[str, str] | None = None,
    *,
    home: Path | None = None,
    project_dir: Path | None = None,
) -> Loaded:
    """Read all sources and return the settings in force."""
    environ = os.environ if environ is None else environ
    chosen_home = home or Path(environ.get("LORE_HOME") or "~/.lore")
    chosen_home = chosen_home.expanduser().absolute()
    user = _flatten(_read_toml(chosen_home / USER_FILE))
    project = _flatten(_read_json(project_dir / PROJECT_FILE)) if project_dir else {}
    _refuse_unknown(user, USER_FILE)
    _refuse_unknown(project, PROJECT_FILE)
    changed: dict[str, Any] = {"home": chosen_home}
    described = [
        SettingValue(
            "home",
            str(chosen_home),
            "argument" if home else "environment" if environ.get("LORE_HOME") else "default",
            _doc(_fields()["home"]),
            "~/.lore",
            "LORE_HOME",
        )
    ]
    for name, spec in _fields().items():
        if name == "home":
            continue
        value, source = _pick(name, spec, (environ, project, user))
        changed[name] = value
        described.append(
            SettingValue(key_of(name), value, source, _doc(spec), _default(spec), _env(name))
        )
    return Loaded(replace(Settings(), **changed), tuple(described))


def write_user_setting(home: Path, key: str, raw: str) -> None:
    """Set one key in the user's configuration file, keeping the other lines as they are."""
    name = _field_name(key)
    if name in ("home", "db_path"):
        msg = f"'{key}' is set by the environment only ({_env(name)})."
        raise UnknownSetting(msg)
    value = _convert(name, raw, f"'{key}'")
    path = home / USER_FILE
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    line = f'"{key}" = {json.dumps(value)}'
    kept = [old for old in lines if old.split("=", 1)[0].strip().strip('"') != key]
    text = "\n".join([line, *kept]) + "\n"
    tomllib.loads(text)
    part = path.with_suffix(".part")
    part.write_text(text, "utf-8")
    part.chmod(0o600)
    part.replace(path)


def _fields() -> dict[str, Field[Any]]:
    return {spec.name: spec for spec in fields(Settings)}


def _doc(spec: Field[Any]) -> str:
    return str(spec.metadata["doc"])


def _default(spec: Field[Any]) -> Value:
    assert spec.default is not MISSING
    return spec.default  # type: ignore[no-any-return]  # a Field keeps its default untyped


def _env(name: str) -> str:
    return f"LORE_{name.upper()}"


def _field_name(key: str) -> str:
    for name in _fields():
        if key_of(name) == key:
            return name
    msg = f"There is no setting '{key}'."
    raise UnknownSetting(msg, hint="'lore config' lists them all.")


def _pick(
    name: str, spec: Field[Any], sources: tuple[Mapping[str, Any], ...]
) -> tuple[Value, str]:
    environ, project, user = sources
    key = key_of(name)
    if environ.get(_env(name)):
        return _convert(name, environ[_env(name)], _env(name)), "environment"
    if key in project:
        if not spec.metadata.get("project"):
            msg = f"'{key}' may not be set by a project's {PROJECT_FILE}."
            raise UnknownSetting(msg, hint=f"Set it in {USER_FILE} or as {_env(name)}.")
        return _convert(name, project[key], f"'{key}' in {PROJECT_FILE}"), PROJECT_FILE
    if key in user:
        return _convert(name, user[key], f"'{key}' in {USER_FILE}"), USER_FILE
    return _default(spec), "default"


def _convert(name: str, raw: Any, where: str) -> Value:
    kind = get_type_hints(Settings)[name]
    try:
        value = _parse(kind, raw)
    except ValueError as error:
        msg = f"{where}: {raw!r} is not {_article(kind)}."
        raise InvalidInput(msg) from error
    choices = _fields()[name].metadata.get("choices", ())
    if choices and value not in choices:
        msg = f"{where}: {value!r} is none of {', '.join(choices)}."
        raise InvalidInput(msg)
    return value


def _parse(kind: type, raw: Any) -> Value:
    if kind is bool:
        lowered = str(raw).lower()
        if lowered in ("1", "true", "yes", "on"):
            return True
        if lowered in ("0", "false", "no", "off"):
            return False
        raise ValueError
    if kind is int:
        return int(str(raw))
    if kind is float:
        return float(str(raw))
    if not isinstance(raw, str):
        raise ValueError  # noqa: TRY004 - one kind of refusal for every type
    return raw


def _article(kind: type) -> str:
    names = {bool: "true or false", int: "a whole number", float: "a number"}
    return names.get(kind, "a text")


def _flatten(tree: Mapping[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, Mapping):
            flat.update(_flatten(value, f"{prefix}{key}."))
        else:
            flat[f"{prefix}{key}"] = value
    return flat


def _refuse_unknown(flat: Mapping[str, Any], where: str) -> None:
    known = {key_of(name) for name in _fields()}
    for key in flat:
        if key not in known:
            msg = f"{where} sets '{key}', which is no setting."
            raise UnknownSetting(msg, hint="'lore config' lists them all.")


def _read_toml(path: Path) -> Mapping[str, Any]:
    try:
        return tomllib.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        msg = f"{path} is not valid TOML: {error}"
        raise InvalidInput(msg) from error


def _read_json(path: Path) -> Mapping[str, Any]:
    try:
        tree = json.loads(path.read_text("utf-8"))
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return {}
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        msg = f"{path} is not valid JSON: {error}"
        raise InvalidInput(msg) from error
    if not isinstance(tree, dict):
        msg = f"{path} does not hold a JSON object."
        raise InvalidInput(msg)
    return tree
