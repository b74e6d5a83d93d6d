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
from dataclasses import Field, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple, get_type_hints

from lore import config_files
from lore.errors import InvalidInput, NotFound, UnknownSetting
from lore.lazy_dataclass import dataclass

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
MAYBE_ADDRESS = Rule(pattern=rf"(?:{ADDRESS.pattern})?", form=ADDRESS.form)
QDRANT = Rule(
    pattern=r":memory:|https?://[^\s?#@]+",
    form="an address that begins with http, without a password",
)
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
        "codex-cli",
        "gemini-cli",
        "opencode-cli",
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
        default=Path("~/.lore"),
        metadata={"doc": "Folder of the memory: database, indexes, settings and logs."},
    )
    db_path: str = _setting("", "Path of the database file; empty: memory.db in the home.")
    capture_redact: bool = _setting(default=True, doc="Redact secrets before anything is stored.")
    capture_redact_patterns: tuple[str, ...] = _setting(
        (), "Patterns of additional secrets.", PATTERNS
    )
    capture_redact_allow: tuple[str, ...] = _setting(
        (), "Patterns of text that is never redacted.", PATTERNS
    )
    capture_exclude: tuple[str, ...] = _setting(
        (), "Globs of folders whose sessions are never stored; 'codex:GLOB' for one agent."
    )
    capture_native: bool = _setting(
        default=True, doc="Read the memories and instruction files that agents keep themselves."
    )
    recall_everywhere: bool = _setting(
        default=False, doc="Whether agents search all projects at once, not their own first."
    )
    embed_provider: str = _setting(
        "local",
        "Provider of embeddings; 'none' searches by keywords only.",
        Rule(choices=("local", "fastembed", "openai", "voyage", "none")),
    )
    embed_model: str = _setting("lore-mini", "Name of the embedding model at its provider.")
    embed_model_path: str = _setting(
        "", "Folder of the model files; empty: search the usual folders."
    )
    embed_precision: str = _setting(
        "float32", "Precision of the local model; int8 is faster and less exact.", PRECISIONS
    )
    embed_threads: int = _setting(
        1, "Number of threads of the local model; 0: one per core.", Rule(least=0, most=1024)
    )
    embed_idle_unload_s: float = _setting(
        600.0, "Unload the model after this many idle seconds.", NOT_NEGATIVE
    )
    embed_download: bool = _setting(default=False, doc="Allow fastembed to download a model.")
    embed_base_url: str = _setting("", "Base URL of an OpenAI-compatible embedding API.")
    embed_api_key: str = _setting("", "API key of the embedding provider.")
    embed_dimension: int = _setting(
        0,
        "Dimension of the vectors of a hosted model; 0: ask the provider.",
        Rule(least=0, most=65_536),
    )
    chat_provider: str = _setting(
        "offline", "Provider of the summarizer; 'offline' uses rules only.", CHATS
    )
    chat_model: str = _setting("", "Name of the chat model; empty: the provider's default.")
    chat_base_url: str = _setting("", "Base URL of the chat API; empty: the provider's own.")
    chat_api_key: str = _setting(
        "", "API key of the chat provider; empty: read the provider's usual variable."
    )
    chat_timeout_s: float = _setting(
        120.0, "Time limit in seconds for one complete chat response.", Rule(least=1, most=3600)
    )
    chat_calls_per_day: int = _setting(
        200, "Maximum number of calls of an agent's command (…-cli) per UTC day.", NOT_NEGATIVE
    )
    distill_idle_s: float = _setting(
        60.0, "Distill a session after this many idle seconds.", WITHIN_A_DAY
    )
    curate_idle_s: float = _setting(
        300.0, "Extract knowledge after this many idle seconds.", WITHIN_A_DAY
    )
    consolidate_interval_s: float = _setting(
        7_200.0, "Seconds between consolidation cycles.", WITHIN_A_MONTH
    )
    daily_budget: float | None = _setting(
        None,
        "Daily limit in US dollars (UTC day) for agents and background work; unset: no limit.",
        NOT_NEGATIVE,
    )
    background_daily_budget: float = _setting(
        1.0, "Daily limit in US dollars for background work alone.", NOT_NEGATIVE
    )
    prices: tuple[str, ...] = _setting(
        (), "Prices of models; they override the built-in lists.", PRICES
    )
    search_recipe: str = _setting(
        "learned",
        "How to combine keyword and vector scores.",
        Rule(choices=("learned", "weighted", "rrf")),
        project=True,
    )
    search_fts_weights: str = _setting(
        "6,2,3",
        "Keyword weights of the summary, content and kind of a fragment.",
        THREE_NUMBERS,
        project=True,
    )
    recall_budget_tokens: int = _setting(
        1500,
        "Maximum number of tokens of a recall; the best three hits are always returned.",
        Rule(least=1),
        project=True,
    )
    recall_max_hits: int = _setting(
        15, "Maximum number of hits of a recall.", Rule(least=1, most=1000), project=True
    )
    recall_standing_tokens: int = _setting(
        400,
        "Maximum number of tokens of standing instructions in a recall.",
        NOT_NEGATIVE,
        project=True,
    )
    distill_segment_tokens: int = _setting(
        16_384,
        "Maximum number of tokens to distill at once; offline uses fewer.",
        SEGMENT,
        project=True,
    )
    distill_meta_threshold: int = _setting(
        20, "Merge the logs of a session when there are this many.", Rule(least=6), project=True
    )
    capture_poll_interval_s: float = _setting(
        30.0,
        "Seconds between checks of transcript files by the daemon.",
        Rule(least=1, most=86_400),
    )
    mcp_profile: str = _setting(
        "core",
        "Tools that MCP lists; full adds those for links, layers, handoffs, skills and strategies.",
        Rule(choices=("core", "full")),
    )
    mcp_aliases: bool = _setting(
        default=False, doc="Also offer MCP tools under the names that other memory servers use."
    )
    mcp_structured: bool = _setting(
        default=False, doc="Also return MCP results as data; some agents then ignore the text."
    )
    mcp_start: bool = _setting(
        default=True, doc="Start the daemon when an agent needs memory and no daemon runs."
    )
    inject_on: bool = _setting(
        default=True,
        doc="Add relevant memory to prompts, through hooks or the gateway.",
    )
    inject_budget_tokens: int = _setting(
        400, "Maximum number of tokens to add to a prompt.", Rule(least=80, most=4000)
    )
    inject_within_ms: int = _setting(
        180,
        "Time limit in milliseconds for memory in hooks; longer at the start of a session.",
        Rule(least=20, most=4_000),
    )
    inject_threshold: float = _setting(
        0.6,
        "Minimum probability that memory answers a prompt or matters for it, to be added to it.",
        Rule(least=0, most=1),
    )
    inject_invite: bool = _setting(
        default=True, doc="Invite the agent once a session to store what it decided and learned."
    )
    tasks_continuity: bool = _setting(
        default=False,
        doc="Write the working state of sessions to CONTINUITY.md in every project's folder.",
    )
    tasks_continuity_folders: tuple[str, ...] = _setting(
        (), "Globs of folders in which CONTINUITY.md is written, if not in all."
    )
    store_url: str = _setting(
        "", "Address of a PostgreSQL database (postgresql://…); empty: a SQLite file in the home."
    )
    store_owner: str = _setting(
        "", "Whose memory it is on a PostgreSQL database; nobody else's can be read."
    )
    store_connections: int = _setting(
        32,
        "Connections of a process to a PostgreSQL database, all owners together.",
        Rule(least=4, most=10_000),
    )
    store_vector_cache_mb: int = _setting(
        256,
        "Memory of a process for the vectors of those who search most on PostgreSQL; 0: none.",
        Rule(least=0, most=1_000_000),
    )
    store_busy_timeout_s: float = _setting(
        60.0, "Seconds to wait for the write lock of another process.", WITHIN_A_DAY
    )
    vectors_engine: str = _setting(
        "local",
        "Where vectors are searched: beside the database (local), or in a Qdrant server.",
        Rule(choices=("local", "qdrant")),
    )
    vectors_url: str = _setting(
        "", "Address of the Qdrant server; ':memory:' is one in the process, for tests.", QDRANT
    )
    vectors_api_key: str = _setting("", "API key of the Qdrant server.")

    context_strategy: str = _setting(
        "gradient",
        "How the gateway compacts long prompts; off: never.",
        Rule(choices=("gradient", "tiered", "off")),
    )
    context_rule: str = _setting(
        "horizon",
        "Whether compaction must pay off over the expected turns (horizon) or the next turn"
        " (seed).",
        Rule(choices=("horizon", "seed")),
    )
    context_target_usd_per_turn: float = _setting(
        0.10,
        "Shorten prompts when a turn costs more US dollars than this; 0: no limit.",
        NOT_NEGATIVE,
    )
    context_max_layer0_tokens: int = _setting(
        0, "Shorten prompts above this many tokens; 0: decide by cost.", NOT_NEGATIVE
    )

    server_host: str = _setting("127.0.0.1", "Address that the server listens on.")
    server_port: int = _setting(
        3207, "Port of the server; if it is 0 or in use: any free port.", PORT
    )
    server_allowed_hosts: tuple[str, ...] = _setting(
        (), "Additional host names that the server accepts."
    )
    server_max_body_bytes: int = _setting(
        8_000_000, "Maximum size of a request body in bytes.", BODY
    )
    server_requests_per_minute: int = _setting(
        6_000, "Requests per minute and key; 0: unlimited.", NOT_NEGATIVE
    )
    server_open_memories: int = _setting(
        128, "Memories that 'lore serve' has open at a time.", Rule(least=4, most=10_000)
    )
    server_idle_close_s: float = _setting(
        300.0, "Close a memory of 'lore serve' after this many idle seconds.", WITHIN_A_DAY
    )
    server_owner_metrics: bool = _setting(
        default=False, doc="Metrics of 'lore serve' by owner too, each named by a hash."
    )
    team_quorum: int = _setting(
        2, "Approvals that a new team needs for a publication.", Rule(least=1, most=1_000)
    )
    sync_target: str = _setting(
        "", "Where 'lore sync' goes by itself: an http(s) address, or 'HOST:' for ssh."
    )
    sync_api_key: str = _setting("", "Access key for the server that is synced with.")
    sync_interval_s: float = _setting(
        0.0, "Seconds between syncs by the daemon; 0: only 'lore sync' does it.", WITHIN_A_DAY
    )
    sync_ssh: str = _setting("ssh", "Command that reaches the other machine, with its options.")
    sync_remote: str = _setting("lore", "Command of Lore on the other machine, for sync by ssh.")
    sync_insecure: bool = _setting(
        default=False, doc="Allow sync over http, unencrypted, with another machine."
    )
    telemetry_endpoint: str = _setting(
        "",
        "Address of an OpenTelemetry collector (OTLP over HTTP) that gets traces; empty: none.",
        MAYBE_ADDRESS,
    )
    gateway_on: bool = _setting(
        default=True, doc="Run the gateway: forward agents' requests to their model providers."
    )
    gateway_anthropic_url: str = _setting(
        "https://api.anthropic.com", "Base URL of the Anthropic API.", ADDRESS
    )
    gateway_openai_url: str = _setting(
        "https://api.openai.com", "Base URL of the OpenAI API.", ADDRESS
    )
    gateway_chatgpt_url: str = _setting(
        "https://chatgpt.com/backend-api/codex",
        "Base URL for Codex when it is logged in with a ChatGPT account.",
        ADDRESS,
    )
    gateway_gemini_url: str = _setting(
        "https://generativelanguage.googleapis.com", "Base URL of the Gemini API.", ADDRESS
    )
    gateway_memory: bool = _setting(
        default=True, doc="Use memory in the gateway; off: forward unchanged and only record costs."
    )
    gateway_recall: str = _setting(
        "auto",
        "Offer the recall tool to models; auto: only if the client has no tools of Lore.",
        Rule(choices=("auto", "on", "off")),
    )
    gateway_within_ms: int = _setting(
        150,
        "Time limit in milliseconds for memory; after it, forward the request unchanged.",
        Rule(least=20, most=4_000),
    )
    gateway_max_body_bytes: int = _setting(
        64_000_000, "Maximum size of a forwarded request in bytes.", BODY
    )

    def __post_init__(self) -> None:
        """Expand `~` in the home: nothing may write to a folder of that name."""
        object.__setattr__(self, "home", Path(os.path.expanduser(self.home)))  # noqa: PTH111 - raises if there is no home folder

    @property
    def database(self) -> Path:
        """Return the path of the database file; on PostgreSQL, the name of local files beside."""
        usual = "postgres" if self.store_url else "memory.db"
        return self.home / _expanded(self.db_path) if self.db_path else self.home / usual

    @property
    def models(self) -> Path:
        """Return the folder of model files."""
        return self.home / "models"

    @property
    def agent_chats(self) -> Path:
        """Return the folder that agents' commands run in; its sessions are never captured."""
        return self.home / "agent-chats"

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
        return self.key.endswith(("api_key", "store.url"))


@dataclass(frozen=True, slots=True)
class Loaded:
    """The current settings, with the source of each value."""

    settings: Settings
    values: tuple[SettingValue, ...]
    warning: str = ""


def telemetry_variables() -> dict[str, str]:
    """Return the environment variables of OpenTelemetry."""
    return {name: value for name, value in os.environ.items() if name.startswith("OTEL_")}


def key_of(name: str) -> str:
    """Return the key of a field: `embed_model` is `embed.model`, `home` stays."""
    group, _, rest = name.partition("_")
    return f"{group}.{rest}" if rest and name not in _WITHOUT_GROUP else name


_DEFAULTS = Settings()
_FIELDS: dict[str, Field[Any]] = {spec.name: spec for spec in fields(Settings)}
_NAMES = {key_of(name): name for name in _FIELDS}
"""The names of fields by key."""


@cache
def _kinds() -> dict[str, Any]:
    return get_type_hints(Settings)


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
    environ, user, outdated = _without_old_threshold(environ, user)
    project, warning = _read_project(project_dir / PROJECT_FILE) if project_dir else ({}, "")
    warning = " ".join(filter(None, (outdated, warning)))
    source = "argument" if home else "environment" if environ.get("LORE_HOME") else "default"
    described = [
        SettingValue(
            "home",
            str(chosen_home),
            source,
            _FIELDS["home"].metadata["doc"],
            "~/.lore",
            "LORE_HOME",
        )
    ]
    changed: dict[str, Any] = {"home": chosen_home}
    for name, spec in _FIELDS.items():
        if name == "home":
            continue
        value, source = _pick(name, (environ, project, user))
        if name == "db_path" and value and source == "environment":
            value = str(_expanded(str(value)).absolute())
        if name == "chat_api_key" and not value:
            value, source = _usual_key(str(changed["chat_provider"]), environ) or (value, source)
        changed[name] = value
        described.append(_described(name, spec, value, source))
    return Loaded(replace(_DEFAULTS, **changed), tuple(described), warning)


def _without_old_threshold(
    environ: Mapping[str, str], user: dict[str, Any]
) -> tuple[Mapping[str, str], dict[str, Any], str]:
    """Drop an `inject.threshold` of the former scale, 0 to 100, and say so.

    It was a strength, and is a probability now: a value above 1 cannot be meant.
    """
    key, variable = "inject.threshold", _env("inject_threshold")
    old = [
        f"{name} = {raw}"
        for name, raw in ((variable, environ.get(variable)), (key, user.get(key)))
        if _is_old_threshold(raw)
    ]
    if not old:
        return environ, user, ""
    default = _DEFAULTS.inject_threshold
    warning = (
        f"{' and '.join(old)}: the threshold is a probability between 0 and 1 now;"
        f" the default {default} is used. 'lore config {key} {default}' sets it."
    )
    return (
        {
            name: raw
            for name, raw in environ.items()
            if name != variable or not _is_old_threshold(raw)
        },
        {name: raw for name, raw in user.items() if name != key or not _is_old_threshold(raw)},
        warning,
    )


def _is_old_threshold(raw: object) -> bool:
    try:
        return 1 < float(str(raw)) <= 100
    except ValueError:
        return False


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
        return {}, f"{error} The file is ignored."
    values: dict[str, Value] = {}
    wrong: list[str] = []
    for key, raw in flat.items():
        try:
            _refuse_unknown([key], str(path))
            values[key] = _project_value(key, raw, path)
        except InvalidInput as error:
            wrong.append(f"{error} The setting is ignored.")
    return values, " ".join(wrong[:_MOST_WARNINGS])


def _project_value(key: str, raw: object, path: Path) -> Value:
    name = _field_name(key)
    if not _FIELDS[name].metadata["project"]:
        raise UnknownSetting(f"{path} sets '{key}', which only the user may set.")
    return _convert(name, raw, f"'{key}' in {path}")


def _described(name: str, spec: Field[Any], value: Value, source: str) -> SettingValue:
    rule: Rule = spec.metadata["rule"]
    return SettingValue(
        key_of(name),
        value,
        source,
        spec.metadata["doc"],
        getattr(_DEFAULTS, name),
        _env(name),
        spec.metadata["project"],
        ", ".join(rule.choices) or rule.form or rule.span(),
    )


def environment(environ: Mapping[str, str] | None = None) -> Mapping[str, str]:
    """Return the variables of this process, unless others are given."""
    return os.environ if environ is None else environ


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
    from lore import toml_edit  # only a change of the file needs its patterns

    name = _field_name(key)
    if name == "home":
        raise UnknownSetting(f"'{key}' is set by the environment only ({_env(name)}).")
    value = None if raw is None else _convert(name, raw, f"'{key}'")
    path = home / USER_FILE
    before = config_files.flatten(config_files.read_toml(path))
    wanted = {other: value_before for other, value_before in before.items() if other != key}
    if value is not None:
        wanted[key] = list(value) if isinstance(value, tuple) else value
    text = toml_edit.set_line(config_files.read_text_or_empty(path), key, value)
    try:
        understood = config_files.flatten(tomllib.loads(text)) == wanted
    except ValueError:
        understood = False
    if not understood:
        msg = f"{path} has no single line that sets '{key}'."
        raise InvalidInput(msg, hint="Edit the file by hand.")
    config_files.write_atomic(path, text)
    return path


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
    if key in _NAMES:
        return _NAMES[key]
    raise UnknownSetting(f"There is no setting '{key}'.", hint="'lore config' lists them all.")


def _pick(name: str, sources: tuple[Mapping[str, Any], ...]) -> tuple[Value, str]:
    environ, project, user = sources
    key = key_of(name)
    if environ.get(_env(name)):
        return _convert(name, environ[_env(name)], _env(name)), "environment"
    if key in project:
        return project[key], PROJECT_FILE
    if key in user:
        return _convert(name, user[key], f"'{key}' in {USER_FILE}"), USER_FILE
    return getattr(_DEFAULTS, name), "default"


def _convert(name: str, raw: object, where: str) -> Value:
    kind = _kinds()[name]
    may_be_secret = name.endswith(("api_key", "_url", "endpoint", "target"))
    shown = "the given value" if may_be_secret else f"'{str(raw)[:60]}'"
    try:
        value = parse_value(kind, raw)
    except (TypeError, ValueError) as error:
        raise InvalidInput(f"{where}: {shown} is not {describe_type(kind)}.") from error
    rule: Rule = _FIELDS[name].metadata["rule"]
    wrong = rule.violation(value)
    if wrong:
        raise InvalidInput(f"{where}: {shown} {wrong}.")
    return value


def _refuse_unknown(keys: Iterable[str], where: str) -> None:
    for key in keys:
        if key == "home":
            msg = f"{where} sets 'home', which only the environment can (LORE_HOME)."
            raise UnknownSetting(msg)
        if key not in _NAMES:
            msg = f"{where} sets '{key}', which is not a setting."
            raise UnknownSetting(msg, hint="'lore config' lists them all.")
