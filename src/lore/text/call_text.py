"""Call text: tool calls and tool results as readable text."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from itertools import groupby, pairwise
from typing import Any, Literal, NamedTuple

from lore.lazy_dataclass import dataclass
from lore.text import sentences
from lore.text.regex import PatternFile

_re = PatternFile("call_text")

ActionKind = Literal["run", "read", "edit", "write", "look", "fetch", "other"]
Check = Literal["", "test", "lint", "build"]

TARGET_CHARS = 120
_COMMAND_CHARS = 2_000
"""Characters of a command that are parsed; an inline script adds nothing."""

_ACTIONS: dict[str, ActionKind] = {
    **dict.fromkeys(
        ("bash", "shell", "exec_command", "local_shell", "local_shell_call", "container.exec",
         "run_shell_command", "run_terminal_cmd", "execute_command", "terminal"), "run"),
    **dict.fromkeys(("read", "view", "read_file", "readfile", "open_file", "notebookread"), "read"),
    **dict.fromkeys(
        ("edit", "multiedit", "notebookedit", "apply_patch", "patch", "str_replace", "replace",
         "str_replace_based_edit_tool", "str_replace_editor", "edit_file"), "edit"),
    **dict.fromkeys(("write", "write_file", "create_file", "save_file"), "write"),
    **dict.fromkeys(("grep", "glob", "ls", "list", "search", "lsp", "list_directory"), "look"),
    **dict.fromkeys(
        ("webfetch", "websearch", "web_fetch", "web_search", "fetch", "google_web_search"), "fetch"
    ),
}  # fmt: skip
"""The tools of Claude Code, Codex, opencode and Gemini CLI, in lower case."""

COMMAND_FIELDS = ("command", "cmd", "script")
FILE_FIELDS = ("file_path", "filePath", "path", "absolute_path", "notebook_path", "filename")
_TARGET_FIELDS = (
    "pattern", "url", "query", "description", "skill", "name", "title", "subject", "question",
    "prompt", "id",
)  # fmt: skip

_CHECKS: tuple[Check, ...] = ("test", "lint", "build")


@dataclass(frozen=True, slots=True)
class Call:
    """One parsed tool call."""

    tool: str
    action: ActionKind
    target: str
    command: str = ""
    checks: tuple[Check, ...] = ()
    read: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    created: tuple[str, ...] = ()

    @property
    def check(self) -> Check:
        """Return the first check of a command; one command may test and lint."""
        return self.checks[0] if self.checks else ""

    @property
    def keys(self) -> tuple[str, ...]:
        """Return the keys that retries of the same call share, one for each check."""
        return self.checks or (f"{self.action}:{self.target}",)

    @property
    def related_keys(self) -> frozenset[str]:
        """Return the keys that a differently worded retry shares: programs or a file."""
        if self.command:
            steps = () if self.checks else _re.step.split(self.target)
            return frozenset(_program(step) for step in steps if not _re.read_only.match(step))
        if self.changed:
            return frozenset(f"change {file}" for file in self.changed)
        if self.read:
            name = self.read[0].rsplit("/", 1)[-1]
            return frozenset((f"read {name.lstrip('.').split('.')[0]}",))
        return frozenset((self.tool,)) if self.action == "look" else frozenset()


def read_call(name: str, text: str) -> Call:
    """Parse a tool call from its name and its input, JSON or not."""
    tool = name or "tool"
    inputs = input_fields(text)
    action = _action(tool)
    if action == "run":
        return _run(tool, command_line(inputs) if inputs else text)
    if action == "edit" and (
        patch := _patch(tool, first_text_field(inputs, ("input", "patch")) or text)
    ):
        return patch
    file = first_text_field(inputs, FILE_FIELDS)
    if file and action in ("read", "edit", "write"):
        if inputs.get("command") == "view":
            action = "read"
        return Call(
            tool, action, sentences.one_line(file, TARGET_CHARS),
            read=(file,) if action == "read" else (),
            changed=(file,) if action != "read" else (),
            created=(file,) if action == "write" or inputs.get("command") == "create" else (),
        )  # fmt: skip
    target = first_text_field(inputs, _TARGET_FIELDS) or file or ("" if inputs else text)
    return Call(tool, action, sentences.one_line(target, TARGET_CHARS))


def _action(tool: str) -> ActionKind:
    return _ACTIONS.get(tool.lower().rsplit("__", 1)[-1], "other")


def input_fields(text: str) -> dict[str, Any]:
    """Return the fields of a call's input, or none if it is no JSON object."""
    if not text.lstrip().startswith("{"):
        return {}
    try:
        inputs = json.loads(text)
    except (ValueError, RecursionError):
        return {}
    return inputs if isinstance(inputs, dict) else {}


def first_text_field(inputs: Mapping[str, Any], names: tuple[str, ...]) -> str:
    """Return the first of the fields that holds text."""
    texts = (inputs[name] for name in names if isinstance(inputs.get(name), str))
    return next((text for text in texts if text.strip()), "")


def command_line(inputs: Mapping[str, Any]) -> str:
    """Return the command line; Codex passes a list, often with a shell around it."""
    for name in COMMAND_FIELDS:
        value = inputs.get(name)
        if isinstance(value, list) and value:
            words = [str(word) for word in value]
            return (
                words[-1]
                if words[0].rsplit("/", 1)[-1] in ("bash", "sh", "zsh")
                else " ".join(words)
            )
        if isinstance(value, str):
            return value
    return ""


def _run(tool: str, command: str) -> Call:
    patch = _patch(tool, command) if "*** Begin Patch" in command else None
    if patch:
        return patch
    command = command[:_COMMAND_CHARS]
    bare = bare_command(command)
    target = sentences.one_line(bare, TARGET_CHARS)
    return Call(tool, "run", target, command=command, checks=_checks(bare[:400]))


def _checks(command: str) -> tuple[Check, ...]:
    """Return the checks that a command runs; one that only mentions tests runs none."""
    steps = [step for step in _re.step.split(command) if not _re.only_mentions.match(step)]
    return tuple(kind for kind in _CHECKS if any(map(getattr(_re, f"runs_{kind}").search, steps)))


def _program(command: str) -> str:
    """Return the program of a command, with its subcommand if that is a word."""
    words = command.split()[:2]
    return " ".join(word for place, word in enumerate(words) if not place or _re.verb.match(word))


def bare_command(command: str) -> str:
    """Return a command without the directory, environment and pipes around it."""
    bare = command.lstrip()
    while wrapper := _re.wrapped.match(bare):
        bare = bare[wrapper.end() :]
    first = bare.split("\n", 1)[0]
    return _re.piped.split(first, maxsplit=1)[0].strip() or first.strip()


def shown_command(command: str) -> str:
    """Return a command in one line with its directory, without what filters its output."""
    first = command.strip().split("\n", 1)[0]
    return sentences.one_line(_re.piped.split(first, maxsplit=1)[0].strip() or first, MESSAGE_CHARS)


def _patch(tool: str, text: str) -> Call | None:
    changes = _re.patched.findall(text)
    if not changes:
        return None
    files = tuple(dict.fromkeys(path.strip() for _, path in changes))
    created = tuple(path.strip() for verb, path in changes if verb == "Add")
    target = sentences.one_line(", ".join(files), TARGET_CHARS)
    return Call(tool, "edit", target, changed=files, created=created)


BRIEF_LINES = 6
"""Lines shown of each side of an edit and of a written file, in brief output."""

_OLD = ("old_string", "oldString", "old_str", "old_text")
_NEW = ("new_string", "newString", "new_str", "new_text", "new_source")
_CONTENT = ("content", "file_text", "contents")
_PATCH = ("input", "patch", "patchText")
_PATCH_SIGNS = ("*** Begin Patch", "*** Update File:", "*** Add File:", "*** Delete File:")
_SEARCH_FIELDS = ("pattern", "query", "url")
_OPTION_FIELDS = (
    "description", "timeout", "timeout_ms", "yield_time_ms", "max_output_tokens", "type",
    "run_in_background", "login", "workdir", "justification", "sandbox_permissions",
    "replace_all", "replaceAll", "dangerouslyDisableSandbox",
)  # fmt: skip
"""Fields that say how a command or an edit is done, not what it does."""


def format_call(name: str, text: str, *, brief: bool = False) -> str:
    """Return a tool call as readable text; input that is no JSON object stays as it is."""
    inputs = input_fields(text)
    body = _format_fields(inputs, brief=brief) if inputs else text
    return f"[{name or 'tool'}] {body}".rstrip()


def _format_fields(inputs: Mapping[str, Any], *, brief: bool) -> str:
    file = first_text_field(inputs, FILE_FIELDS)
    patch = first_text_field(inputs, _PATCH)
    if any(sign in patch for sign in _PATCH_SIGNS):
        return _with_rest(patch.strip("\n"), inputs, _PATCH)
    if file:
        return _format_file_call(file, inputs, brief=brief)
    command = command_line(inputs)
    if command:
        return _with_rest(command.strip("\n"), inputs, COMMAND_FIELDS)
    return _format_search(inputs)


def _format_file_call(file: str, inputs: Mapping[str, Any], *, brief: bool) -> str:
    listed = inputs.get("edits")
    edits = [edit for edit in listed if isinstance(edit, dict)] if isinstance(listed, list) else []
    changed = [line for edit in (inputs, *edits) for line in _changed(edit, brief=brief)]
    written = _lines("", first_text_field(inputs, _CONTENT), brief=brief)
    if not changed and not written:
        return _format_search(inputs)
    listed_as = ("edits",) if edits else ()
    shown = (*FILE_FIELDS, *_OLD, *_NEW, *_CONTENT, *COMMAND_FIELDS, *listed_as)
    return _with_rest("\n".join([file, *changed, *written]), inputs, shown)


def _changed(edit: Mapping[str, Any], *, brief: bool) -> Iterator[str]:
    yield from _lines("- ", first_text_field(edit, _OLD), brief=brief)
    yield from _lines("+ ", first_text_field(edit, _NEW), brief=brief)


def _lines(sign: str, text: str, *, brief: bool) -> list[str]:
    lines = text.strip("\n").split("\n") if text else []
    shown = lines[:BRIEF_LINES] if brief else lines
    more = [f"{sign}… {len(lines) - len(shown)} more lines"] if len(lines) > len(shown) else []
    return [*(f"{sign}{line}" for line in shown), *more]


def _format_search(inputs: Mapping[str, Any]) -> str:
    """Return what was searched for and where, then every other field on its own line."""
    sought = first_text_field(inputs, _SEARCH_FIELDS)
    place = first_text_field(inputs, FILE_FIELDS)
    text = f"{sought} in {place}" if sought and place else sought or place
    shown = [
        next((field for field in fields if inputs.get(field) == value), "")
        for fields, value in ((_SEARCH_FIELDS, sought), (FILE_FIELDS, place))
        if value
    ]
    return _with_rest(text, inputs, tuple(shown), how=())


def _with_rest(
    text: str,
    inputs: Mapping[str, Any],
    shown: tuple[str, ...],
    *,
    how: tuple[str, ...] = _OPTION_FIELDS,
) -> str:
    rest = [
        f"{field}: {_value(value)}"
        for field, value in inputs.items()
        if field not in shown and field not in how and value not in (None, "", [], {})
    ]
    return "\n".join(line for line in (text, *rest) if line)


def _value(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


class ValueChange(NamedTuple):
    """A line in which an edit put another value: the line before and after it.

    Of a command that sets a value, `new` is the command and `old` the name of the option.
    """

    file: str
    old: str
    new: str


_MOST_VALUE_WORDS, _MOST_LINE_CHARS, _MOST_CHANGES = 3, 160, 20


def find_value_changes(name: str, text: str) -> list[ValueChange]:
    """Return the lines of an edit, a patch or a 'sed' command in which only a value changes.

    Also the commands that set an option to a number, but none that only read or check something.
    """
    call = read_call(name, text)
    if call.command:
        return [] if call.checks else list(_values_of_command(call.command))
    if call.action != "edit":
        return []
    shown = format_call(name, text)
    file = call.changed[0] if call.changed else shown.partition("] ")[2].split(":", 1)[0].strip()
    changed = [(one["sign"], one["line"].strip()) for one in _re.changed_line.finditer(shown)]
    runs = [(sign, [line for _, line in run]) for sign, run in groupby(changed, key=lambda x: x[0])]
    return [
        ValueChange(file, old, new)
        for (sign, removed), (_, added) in pairwise(runs)
        if sign == "-" and len(removed) == len(added)
        for old, new in zip(removed, added, strict=True)
        if _is_value_change(old, new)
    ][:_MOST_CHANGES]


def discards_edits(call: Call) -> bool:
    """Return whether a command takes edits of files back, as 'git restore' does."""
    return bool(_re.discarding.search(call.command))


def _values_of_command(command: str) -> Iterator[ValueChange]:
    for one in _re.substitution.finditer(command):
        if _is_value_change(one["old"], one["new"]):
            yield ValueChange("", one["old"], one["new"])
    for step in _re.step.split(command[:_COMMAND_CHARS]):
        if len(step) <= _MOST_LINE_CHARS and not _re.read_only.match(step):
            for one in _re.numeric_option.finditer(step):
                yield ValueChange("", one["name"], step.strip())


def _is_value_change(old: str, new: str) -> bool:
    """Return whether two lines differ in a short value and share the name of it."""
    if max(len(old), len(new)) > _MOST_LINE_CHARS:
        return False
    was, now = _re.value_word.findall(old), _re.value_word.findall(new)
    begin = _common_words(was, now)
    end = _common_words(was[begin:][::-1], now[begin:][::-1])
    values = was[begin : len(was) - end], now[begin : len(now) - end]
    has_name = any(word[0].isalpha() for word in was[:begin])
    return has_name and all(0 < len(value) <= _MOST_VALUE_WORDS for value in values)


def _common_words(one: list[str], other: list[str]) -> int:
    """Return how many words two lists begin with in common."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


Verdict = Literal["ok", "failed", "refused"]

MESSAGE_CHARS = 160
_HEAD, _TAIL = 3_000, 3_000
"""Errors stand at the beginning or the end of an output."""


def classify_result(call: Call, text: str, *, failed: bool) -> Verdict:
    """Return how a call went, judged by its result."""
    head = text[:_HEAD]
    if _re.not_run.search(head[:400]):
        return "refused"
    if failed or _re.failed.match(head):
        return "failed"
    if call.check and _re.check_failed.search(_ends(text)):
        return "failed"
    return "ok"


def error_line(text: str) -> str:
    """Return the line of an output that says what went wrong."""
    lines = [_re.tag.sub("", line).strip() for line in _ends(text).splitlines()]
    lines = [line for line in lines if line and not _re.noise.match(line[:400])]
    telling = next((line for line in lines if _re.error_words.search(line[:400])), None)
    return sentences.one_line(telling or (lines[0] if lines else ""), MESSAGE_CHARS)


_SHOWING: frozenset[ActionKind] = frozenset(("read", "look", "edit", "write", "fetch"))


def shows_text(tool: str) -> bool:
    """Return whether a tool shows files or pages: what they say about errors happened to nobody."""
    return _action(tool) in _SHOWING


def has_failed(text: str, *, failed: bool = False) -> bool:
    """Return whether a tool's result says that the call failed."""
    return failed or _re.failed.match(text[:_HEAD]) is not None


def is_error_message(line: str, *, failed: bool = False) -> bool:
    """Return whether a line of output is an error message, not code or prose about errors.

    If the call failed, any line with a word such as 'failed' or 'expected' may say why.
    """
    line = line[:400]
    if line.lstrip().startswith("<tool_use_error>"):
        return True
    if _re.file_line.match(line) or _re.code.search(line):
        return _re.check_failed.match(line) is not None
    pattern = _re.error_words if failed else _re.error_message
    return pattern.search(line) is not None


def _ends(text: str) -> str:
    return text if len(text) <= _HEAD + _TAIL else f"{text[:_HEAD]}\n{text[-_TAIL:]}"


def is_lore_tool(name: str) -> bool:
    """Return whether a tool is one of Lore's, by the name that an agent uses."""
    return "lore" in name and _re.lore_tool.fullmatch(name) is not None
