"""Settings: what can be configured, read from environment and configuration files.

A value comes from the environment (`LORE_…`), else the project's `.lore.json`, else the user's
`config.toml`, else the default. A project file may not set what reaches outside the project. Errors
in it are reported and ignored, because it comes with the project.
"""

from __future__ import annotations

import json
import math
import os
import re
import tomllib
from collections.abc import Iterable, Iterator, Mapping, MutableMapping
from contextlib import contextmanager, suppress
from dataclasses import MISSING, Field, dataclass, field, fields, replace
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from lore import config_files, toml_edit
from lore.errors import InvalidInput, NotFound, UnknownSetting

Value = str | int | float | bool | tuple[str, ...] | None
"""None is the default of a setting without a value."""

_MAYBE_FLOAT = float | None

UNWRITABLE = re.compile("[\0\ud800-\udfff]")
"""Characters that neither UTF-8 text nor a path can hold."""


class Rule(NamedTuple):
    """Constraints on a value beyond its type."""

    choices: tuple[str, ...] = ()
    least: float = -math.inf
    most: float = math.inf
    pattern: str = ""
    form: str = ""

    def violation(self, value: Value) -> str:
        """Return what is wrong with a value, or an empty text."""
        if self.choices and value not in self.choices:
            return f"is none of {', '.join(self.choices)}"
        texts = value if isinstance(value, tuple) else (str(value),)
        if self.pattern and not all(re.fullmatch(self.pattern, text) for text in texts):
            return f"is not {self.form}"
        if isinstance(value, int | float) and not self.least <= value <= self.most:
            return f"is not {self.span()}"
        return ""

    def span(self) -> str:
        """Return the range of a number for a message."""
        if self.most < math.inf:
            return f"between {self.least:g} and {self.most:g}"
        return f"at least {self.least:g}" if self.least > -math.inf else ""


NO_RULE = Rule()
NOT_NEGATIVE = Rule(least=0)
WITHIN_A_DAY = Rule(least=0, most=86_400)
WITHIN_A_MONTH = Rule(least=60, most=2_592_000)
SEGMENT = Rule(least=1_024, most=16_384)
PORT = Rule(least=0, most=65_535)
BODY = Rule(least=1_000, most=1_000_000_000)
ADDRESS = Rule(pattern=r"https?://[^\s?#]+", form="an address that begins with http")
PRECISIONS = Rule(choices=("float32", "int8"))
PATTERNS = Rule(form="a list of re2 patterns")

CHATS = Rule(
    choices=(
        "offline",
        "anthropic",
        "openai",
        "openrouter",
        "ollama",
        "vllm",
        "gemini",
        "claude-cli",
    )
)
THREE_NUMBERS = Rule(
    pattern=r"\d+(\.\d+)?(,\d+(\.\d+)?){2}", form="three numbers with commas between them"
)
PRICES = Rule(
    pattern=r"\S+( (input|output|cache_read|cache_write|cache_write_1h|window)=\d+(\.\d+)?)+",
    form='texts such as "my-model input=3 output=15 cache_read=0.3 window=200000"',
)
"""In US dollars per million tokens; the window in tokens."""


def parse_value(kind: type, raw: object) -> Value:
    """Parse a raw value as a type; raise `TypeError` or `ValueError` if that fails."""
    if kind is bool:
        lowered = str(raw).lower()
        if lowered in ("1", "true", "yes", "on"):
            return True
        if lowered in ("0", "false", "no", "off"):
            return False
        raise ValueError
    if kind is int:
        return int(str(raw))
    if kind is float or kind == _MAYBE_FLOAT:
        number = float(str(raw))
        if not math.isfinite(number):
            raise ValueError
        return number
    if kind not in (str, Path):
        return tuple(_texts(raw))
    return _text(raw)


def _text(raw: object) -> str:
    if not isinstance(raw, str) or UNWRITABLE.search(raw):
        raise ValueError
    return raw


def _texts(raw: object) -> list[str]:
    """Parse a list of texts; a text that is no JSON list becomes a list of one."""
    if isinstance(raw, str):
        with suppress(ValueError, RecursionError):
            parsed = json.loads(raw)
            raw = parsed if isinstance(parsed, list) else raw
    listed = [raw] if isinstance(raw, str) else raw
    if not isinstance(listed, list):
        raise TypeError
    return [_text(text) for text in listed if text]


def describe_type(kind: type) -> str:
    """Return the name of a type for a message."""
    if kind == _MAYBE_FLOAT:
        return describe_type(float)
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "a text"}
    return names.get(kind, "a list of texts")


PROJECT_FILE = ".lore.json"
USER_FILE = "config.toml"

_MOST_WARNINGS = 3
"""The most warnings at once; the next appear when these are fixed."""

USUAL_KEYS = {
    "anthropic": "ANTHROPIC_API_KEY",
    "gemini": "GEMINI_API_KEY",
    "openai": "OPENAI_API_KEY",
    "openrouter": "OPENROUTER_API_KEY",
}
"""The usual environment variables of API keys, read only for the chosen provider."""

_BLAS_TIMEOUT, _AT_ONCE = "OPENBLAS_THREAD_TIMEOUT", "4"
"""The variable for how long threads of numpy's OpenBLAS spin, in clock ticks as a power of two."""

_WITHOUT_GROUP = ("db_path", "daily_budget")


def _setting(default: Value, doc: str, rule: Rule = NO_RULE, *, project: bool = False) -> Any:
    """Return the field of one setting; `project` allows project files to set it."""
    return field(default=default, metadata={"doc": doc, "project": project, "rule": rule})


@dataclass(frozen=True, slots=True)
class Settings:
    """Every setting with its default; the key `embed.model` is the field `embed_model`."""

    home: Path = field(
        default=Path("~/.lore"), metadata={"doc": "Folder that holds everything Lore keeps."}
    )
    db_path: str = _setting("", "Database file; empty for memory.db in the home.")
    capture_redact: bool = _setting(default=True, doc="Replace secrets before anything is written.")
    capture_redact_patterns: tuple[str, ...] = _setting((), "What else is a secret.", PATTERNS)
    capture_redact_allow: tuple[str, ...] = _setting((), "What is no secret.", PATTERNS)
    embed_provider: str = _setting(
        "local",
        "Who computes vectors; anything but local and none is an explicit choice.",
        Rule(choices=("local", "fastembed", "openai", "voyage", "none")),
    )
    embed_model: str = _setting("all-MiniLM-L6-v2", "Model name as the provider knows it.")
    embed_model_path: str = _setting("", "Folder with model files; empty to look for them.")
    embed_precision: str = _setting("float32", "int8 is quicker and less exact.", PRECISIONS)
    embed_threads: int = _setting(
        1, "Threads of the local model; 0 for all cores.", Rule(least=0, most=1024)
    )
    embed_idle_unload_s: float = _setting(600.0, "Unload a model unused so long.", NOT_NEGATIVE)
    embed_download: bool = _setting(default=False, doc="Allow fastembed to download a model.")
    embed_base_url: str = _setting("", "Address of an OpenAI-compatible embedding service.")
    embed_api_key: str = _setting("", "Access key of the hosted embedding service.")
    embed_dimension: int = _setting(
        0, "Dimension of a hosted model; 0 to ask the model.", Rule(least=0, most=65_536)
    )
    chat_provider: str = _setting(
        "offline", "Who digests; anything but offline is an explicit choice.", CHATS
    )
    chat_model: str = _setting("", "Model name as the provider knows it; empty for its usual one.")
    chat_base_url: str = _setting("", "Address of the chat's service; empty for the provider's.")
    chat_api_key: str = _setting(
        "", "Access key of the chat; empty for the one in the provider's usual variable."
    )
    chat_timeout_s: float = _setting(
        120.0, "How long one answer of a chat may take, to its end.", Rule(least=1, most=3600)
    )
    distill_idle_s: float = _setting(60.0, "Quiet so long, a session is distilled.", WITHIN_A_DAY)
    curate_idle_s: float = _setting(300.0, "Quiet so long, it is curated.", WITHIN_A_DAY)
    consolidate_interval_s: float = _setting(7_200.0, "How often a cycle runs.", WITHIN_A_MONTH)
    daily_budget: float | None = _setting(
        None, "US dollars that a day (UTC) may cost, agents and all; none: any.", NOT_NEGATIVE
    )
    background_daily_budget: float = _setting(
        1.0, "US dollars of it that background work may spend.", NOT_NEGATIVE
    )
    prices: tuple[str, ...] = _setting((), "Prices of models, before those of the lists.", PRICES)
    search_recipe: str = _setting(
        "learned",
        "How keyword and vector scores are fused.",
        Rule(choices=("learned", "weighted", "rrf")),
        project=True,
    )
    search_fts_weights: str = _setting(
        "6,2,3",
        "Keyword weights of a fragment's summary, content and kind.",
        THREE_NUMBERS,
        project=True,
    )
    recall_budget_tokens: int = _setting(
        1500,
        "Tokens that one recall may return; the best three hits come even if they cost more.",
        Rule(least=1),
        project=True,
    )
    recall_max_hits: int = _setting(
        15, "Most hits that one recall returns.", Rule(least=1, most=1000), project=True
    )
    recall_standing_tokens: int = _setting(
        400, "Tokens of standing instructions beside a recall.", NOT_NEGATIVE, project=True
    )
    distill_segment_tokens: int = _setting(
        16_384, "Tokens that are distilled together; offline takes fewer.", SEGMENT, project=True
    )
    distill_meta_threshold: int = _setting(
        20, "So many logs of a session become one.", Rule(least=6), project=True
    )
    capture_poll_interval_s: float = _setting(
        30.0, "How often the daemon looks at transcript files.", Rule(least=1, most=86_400)
    )
    mcp_profile: str = _setting(
        "core",
        "Which tools MCP lists; full adds those that draw edges by hand.",
        Rule(choices=("core", "full")),
    )
    mcp_aliases: bool = _setting(
        default=False, doc="Serve tools by MCP under the names of other memory servers, too."
    )
    mcp_structured: bool = _setting(
        default=False, doc="Serve results by MCP as data, too; some agents then drop the text."
    )
    mcp_start: bool = _setting(
        default=True, doc="Start the daemon when an agent asks for memory and none runs."
    )
    inject_on: bool = _setting(
        default=True,
        doc="Put memory into prompts that it clearly concerns, by hooks or the gateway.",
    )
    inject_budget_tokens: int = _setting(
        400, "Tokens that one prompt may be given.", Rule(least=80, most=4000)
    )
    inject_within_ms: int = _setting(
        180,
        "How long an agent waits for memory before it goes on without; longer as a session begins.",
        Rule(least=20, most=4_000),
    )
    inject_threshold: float = _setting(
        2.5, "How clearly memory has to concern a prompt.", Rule(least=0, most=100)
    )
    store_busy_timeout_s: float = _setting(
        60.0, "How long a writer waits for another process before it gives up.", WITHIN_A_DAY
    )

    context_strategy: str = _setting(
        "gradient",
        "How the gateway shortens long prompts; off: never.",
        Rule(choices=("gradient", "tiered", "off")),
    )
    context_rule: str = _setting(
        "horizon",
        "By what a shorter prompt has to pay off: the turns to come, or the next one.",
        Rule(choices=("horizon", "seed")),
    )
    context_target_usd_per_turn: float = _setting(
        0.10, "What a turn may cost before prompts are shortened; 0: any.", NOT_NEGATIVE
    )
    context_max_layer0_tokens: int = _setting(
        0, "From so many tokens on prompts are shortened; 0: by their cost.", NOT_NEGATIVE
    )

    server_host: str = _setting("127.0.0.1", "Address that the server is bound to.")
    server_port: int = _setting(3207, "Its port; 0, or one that is taken: any.", PORT)
    server_allowed_hosts: tuple[str, ...] = _setting((), "Other names it may be called by.")
    server_max_body_bytes: int = _setting(8_000_000, "Largest body of a request.", BODY)
    server_requests_per_minute: int = _setting(6_000, "Of one key; 0: any number.", NOT_NEGATIVE)
    gateway_on: bool = _setting(
        default=True, doc="Pass requests of agents on to their models, beside the other doors."
    )
    gateway_anthropic_url: str = _setting(
        "https://api.anthropic.com", "Where requests to Claude are passed on to.", ADDRESS
    )
    gateway_openai_url: str = _setting(
        "https://api.openai.com", "Where requests in OpenAI's formats are passed on to.", ADDRESS
    )
    gateway_chatgpt_url: str = _setting(
        "https://chatgpt.com/backend-api/codex",
        "Where those of a Codex that is logged in with an account are.",
        ADDRESS,
    )
    gateway_gemini_url: str = _setting(
        "https://generativelanguage.googleapis.com", "Where those to Gemini are.", ADDRESS
    )
    gateway_memory: bool = _setting(
        default=True, doc="Let memory take part; off: every byte passes as it is, and is paid for."
    )
    gateway_recall: str = _setting(
        "auto",
        "Let models search memory by themselves; auto: where the client has no tools of Lore.",
        Rule(choices=("auto", "on", "off")),
    )
    gateway_within_ms: int = _setting(
        150,
        "How long a request waits for memory before it is passed on as it came.",
        Rule(least=20, most=4_000),
    )
    gateway_max_body_bytes: int = _setting(64_000_000, "Largest prompt that is passed on.", BODY)

    @property
    def database(self) -> Path:
        """Return the path of the database file."""
        return self.home / _expanded(self.db_path) if self.db_path else self.home / "memory.db"

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
    """A setting with its value, the source of the value, and its constraints."""

    key: str
    value: Value
    source: str
    doc: str
    default: Value
    env: str
    project: bool = False
    allowed: str = ""

    @property
    def secret(self) -> bool:
        """Return whether the value must not be shown."""
        return self.key.endswith("api_key")


@dataclass(frozen=True, slots=True)
class Loaded:
    """The current settings, with the source of each value."""

    settings: Settings
    values: tuple[SettingValue, ...]
    warning: str = ""


def key_of(name: str) -> str:
    """Return the key of a field: `embed_model` is `embed.model`, `home` stays."""
    group, _, rest = name.partition("_")
    return f"{group}.{rest}" if rest and name not in _WITHOUT_GROUP else name


def load(
    environ: Mapping[str, str] | None = None,
    *,
    home: Path | None = None,
    project_dir: Path | None = None,
) -> Loaded:
    """Read all sources and return the current settings."""
    environ = os.environ if environ is None else environ
    chosen_home = _expanded(home or environ.get("LORE_HOME") or "~/.lore").absolute()
    user = config_files.flatten(config_files.read_toml(chosen_home / USER_FILE))
    _refuse_unknown(user, USER_FILE)
    project, warning = _read_project(project_dir / PROJECT_FILE) if project_dir else ({}, "")
    source = "argument" if home else "environment" if environ.get("LORE_HOME") else "default"
    described = [
        SettingValue(
            "home", str(chosen_home), source, _doc(_fields()["home"]), "~/.lore", "LORE_HOME"
        )
    ]
    changed: dict[str, Any] = {"home": chosen_home}
    for name, spec in _fields().items():
        if name == "home":
            continue
        value, source = _pick(name, spec, (environ, project, user))
        if name == "db_path" and value and source == "environment":
            value = str(_expanded(str(value)).absolute())
        if name == "chat_api_key" and not value:
            value, source = _usual_key(str(changed["chat_provider"]), environ) or (value, source)
        changed[name] = value
        described.append(_described(name, spec, value, source))
    return Loaded(replace(Settings(), **changed), tuple(described), warning)


def _usual_key(provider: str, environ: Mapping[str, str]) -> tuple[str, str] | None:
    """Return the API key of the chosen provider from its usual variable, with that variable."""
    variable = USUAL_KEYS.get(provider, "")
    key = environ.get(variable, "").strip()
    return (key, variable) if key else None


def _read_project(path: Path) -> tuple[dict[str, Value], str]:
    """Return the valid settings of a project file and a warning about the others."""
    try:
        flat = config_files.flatten(config_files.read_json(path))
    except InvalidInput as error:
        return {}, f"{error} The file is left out."
    kept: dict[str, Value] = {}
    wrong: list[str] = []
    for key, raw in flat.items():
        try:
            _refuse_unknown([key], str(path))
            kept[key] = _project_value(key, raw, path)
        except InvalidInput as error:
            wrong.append(f"{error} It is left out.")
    return kept, " ".join(wrong[:_MOST_WARNINGS])


def _project_value(key: str, raw: object, path: Path) -> Value:
    name = _field_name(key)
    if not _fields()[name].metadata["project"]:
        msg = f"{path} sets '{key}', which a project may not."
        raise UnknownSetting(msg)
    return _convert(name, raw, f"'{key}' in {path}")


def _described(name: str, spec: Field[Any], value: Value, source: str) -> SettingValue:
    rule: Rule = spec.metadata["rule"]
    return SettingValue(
        key_of(name),
        value,
        source,
        _doc(spec),
        _default(spec),
        _env(name),
        bool(spec.metadata["project"]),
        ", ".join(rule.choices) or rule.form or rule.span(),
    )


def wants_colour(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether a terminal may get color."""
    environ = os.environ if environ is None else environ
    return not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def runs_by_uv(environ: Mapping[str, str] | None = None) -> bool:
    """Return whether `uv run` started this process."""
    environ = os.environ if environ is None else environ
    return "UV_RUN_RECURSION_DEPTH" in environ


@contextmanager
def resting_threads(environ: MutableMapping[str, str] | None = None) -> Iterator[None]:
    """Let numpy's idle threads sleep, if numpy is loaded in this context.

    Otherwise they spin for a tenth of a second, a seventh of the time of a command. A value of the
    user is respected, and child processes do not inherit this one.
    """
    environ = os.environ if environ is None else environ
    if _BLAS_TIMEOUT in environ:
        yield
        return
    environ[_BLAS_TIMEOUT] = _AT_ONCE
    try:
        yield
    finally:
        del environ[_BLAS_TIMEOUT]


def write_user_setting(home: Path, key: str, raw: str | None) -> Path:
    """Set or remove one key in the user's file; other lines stay as they are."""
    name = _field_name(key)
    if name == "home":
        msg = f"'{key}' is set by the environment only ({_env(name)})."
        raise UnknownSetting(msg)
    value = None if raw is None else _convert(name, raw, f"'{key}'")
    path = home / USER_FILE
    before = config_files.flatten(config_files.read_toml(path))
    wanted = {other: kept for other, kept in before.items() if other != key}
    if value is not None:
        wanted[key] = list(value) if isinstance(value, tuple) else value
    text = toml_edit.set_line(config_files.read_text_or_empty(path), key, value)
    try:
        understood = config_files.flatten(tomllib.loads(text)) == wanted
    except ValueError:
        understood = False
    if not understood:
        msg = f"{path} is written in a way that leaves no single line for '{key}' to change."
        raise InvalidInput(msg, hint="Edit the file by hand.")
    config_files.write_atomic(path, text)
    return path


def _fields() -> dict[str, Field[Any]]:
    return {spec.name: spec for spec in fields(Settings)}


def _doc(spec: Field[Any]) -> str:
    return str(spec.metadata["doc"])


def _default(spec: Field[Any]) -> Value:
    assert spec.default is not MISSING
    return spec.default  # type: ignore[no-any-return]  # a Field keeps its default untyped


def _env(name: str) -> str:
    return f"LORE_{name.upper()}"


def _expanded(path: Path | str) -> Path:
    """Return a path with `~` expanded; refuse one that cannot hold a database."""
    if UNWRITABLE.search(str(path)):
        msg = "The path of the memory is not UTF-8 text."
        raise InvalidInput(msg, hint="LORE_HOME names another folder.")
    named = Path(path)
    is_below_none = named.parts[:1] == ("~",) and os.environ.get("HOME") == ""
    try:
        expanded = None if is_below_none else named.expanduser()
    except RuntimeError:
        expanded = None
    if expanded is None:  # without a name the home folder would be the root folder
        msg = f"{path} cannot be found: this user has no home folder."
        raise NotFound(msg, hint="LORE_HOME names the folder that Lore should use.")
    return expanded


def _field_name(key: str) -> str:
    for name in _fields():
        if key_of(name) == key:
            return name
    msg = f"There is no setting '{key}'."
    raise UnknownSetting(msg, hint="'lore config' lists them all.")


def _pick(name: str, spec: Field[Any], sources: tuple[Mapping[str, Any], ...]) -> tuple[Value, str]:
    environ, project, user = sources
    key = key_of(name)
    if environ.get(_env(name)):
        return _convert(name, environ[_env(name)], _env(name)), "environment"
    if key in project:
        return project[key], PROJECT_FILE
    if key in user:
        return _convert(name, user[key], f"'{key}' in {USER_FILE}"), USER_FILE
    return _default(spec), "default"


def _convert(name: str, raw: object, where: str) -> Value:
    kind = get_type_hints(Settings)[name]
    shown = "the given value" if name.endswith("api_key") else f"'{str(raw)[:60]}'"
    try:
        value = parse_value(kind, raw)
    except (TypeError, ValueError) as error:
        msg = f"{where}: {shown} is not {describe_type(kind)}."
        raise InvalidInput(msg) from error
    rule: Rule = _fields()[name].metadata["rule"]
    wrong = rule.violation(value)
    if wrong:
        msg = f"{where}: {shown} {wrong}."
        raise InvalidInput(msg)
    return value


def _refuse_unknown(keys: Iterable[str], where: str) -> None:
    names = {key_of(name) for name in _fields()} - {"home"}
    for key in keys:
        if key == "home":
            msg = f"{where} sets 'home', which only the environment can (LORE_HOME)."
            raise UnknownSetting(msg)
        if key not in names:
            msg = f"{where} sets '{key}', which is no setting."
            raise UnknownSetting(msg, hint="'lore config' lists them all.")
