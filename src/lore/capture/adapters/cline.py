"""Cline and Roo Code: the messages of a task as they went to the API, in one JSON document."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Any

from lore.capture.adapter_protocol import Context, SessionChunk
from lore.capture.adapters import content_blocks, injected_text, json_fields
from lore.capture.adapters.json_fields import (
    Record,
    as_counts,
    as_datetime,
    as_dict,
    as_list,
    as_text,
)
from lore.records import NewMessage, Part

_HISTORY = "api_conversation_history.json"
_SESSION_ENDING = ".messages.json"
_ROO_FOLDER = "rooveterinaryinc.roo-cline"

_TYPED = re.compile(
    r"\s*<(task|feedback|answer|user_message|user_input)(?: [^<>\n]{0,100})?>\n?(.*?)\n?</\1>(.*)",
    re.DOTALL,
)
"""A block that begins with what a person typed; files that they named may follow it.

Only the beginning counts: tags further inside can be those of a file.
"""

_RESULT = re.compile(r"\[([\w-]{1,60})(?: for [^\n]{0,2000})?\] Result:\s*(.*)\Z", re.DOTALL)
"""The header of a tool's result, in versions that write calls as tags."""

_FOLDER = re.compile(r"# Current Work(?:ing|space) Directory \(([^()\n]{1,1000})\) Files")
_MODEL = re.compile(r"<model>([^<>\n]{1,100})</model>")
_SPOKEN = {
    "attempt_completion": "result", "ask_followup_question": "question",
    "plan_mode_respond": "response", "ask_question": "question",
}  # fmt: skip
"""Tools that say something to the person: what they say, and their results are the answers."""

_CALL = re.compile(
    r"<(thinking|execute_command|read_file|write_to_file|replace_in_file|search_files|list_files"
    r"|list_code_definition_names|browser_action|use_mcp_tool|access_mcp_resource|new_task"
    r"|load_mcp_documentation|web_fetch|web_search|apply_diff|insert_content|search_and_replace"
    r"|switch_mode|fetch_instructions|codebase_search|update_todo_list|condense|attempt_completion"
    r"|ask_followup_question|plan_mode_respond)>(.*?)</\1>",
    re.DOTALL,
)
"""Reasoning and calls that a model writes as tags in its text."""

_PARAMETER = re.compile(r"<([a-z_]{1,40})>\n?(.*?)\n?</\1>", re.DOTALL)
_USAGE = {
    "inputTokens": "input_tokens", "outputTokens": "output_tokens",
    "cacheReadTokens": "cache_read_input_tokens", "cacheWriteTokens": "cache_creation_input_tokens",
    "completion": "output_tokens", "cached": "cache_read_input_tokens",
}  # fmt: skip
_MOST_FILES = 200

State = dict[str, str]


@dataclass(slots=True)
class TaskAdapter:
    """The adapter for the tasks of Cline, or of Roo Code."""

    agent: str
    extension: str

    def find(self, home: Path) -> Iterator[Path]:
        """Return the tasks below a person's home folder."""
        for folder in json_fields.find_editor_folders(home):
            tasks = folder / "globalStorage" / self.extension / "tasks"
            yield from _histories(tasks)
        if self.agent == "cline":
            data = home / ".cline" / "data"
            yield from _histories(data / "tasks")
            yield from json_fields.find_files(data / "sessions", _SESSION_ENDING)

    def fits(self, path: Path, head: bytes) -> bool:
        """Return whether a file has the messages of a task, or of a session of newer versions."""
        if path.name == _HISTORY:
            is_roo = _ROO_FOLDER in path.parts or (path.parent / "history_item.json").is_file()
            return b'"role"' in head and is_roo == (self.extension == _ROO_FOLDER)
        is_session = path.name.endswith(_SESSION_ENDING) and b'"messages"' in head
        return is_session and self.agent == "cline"

    def read(self, path: Path, position: int) -> Iterator[SessionChunk]:
        """Yield the whole task; the position counts its messages.

        The document is rewritten with each step, and messages in the middle can be taken out: the
        keys are made of what they say.
        """
        del position
        document = json_fields.load_document(path)
        fields = as_dict(document)
        records = [
            as_dict(each) for each in as_list(fields.get("messages") if fields else document)
        ]
        context = _session_context(path, fields) if fields else _task_context(path)
        builder = _MessageBuilder(context, _times(path, len(records)))
        keys = json_fields.repeat_keys([each.get("role"), each.get("content")] for each in records)
        for i, (key, record) in enumerate(zip(keys, records, strict=True)):
            builder.add(record, key, i)
        if records:
            messages = tuple(builder.messages)
            yield SessionChunk(builder.context, messages, len(records), builder.unknown)


def _histories(tasks: Path) -> Iterator[Path]:
    return json_fields.find_files(tasks, _HISTORY)


def _task_context(path: Path) -> Context:
    """Return the context of a task; files beside its messages name its folder and what it is."""
    item = as_dict(json_fields.find_document(path.parent / "history_item.json"))
    return Context(
        session=path.parent.name,
        parent=as_text(item.get("parentTaskId")),
        title=as_text(item.get("task")).partition("\n")[0][:200],
        folder=as_text(item.get("workspace")),
    )


def _session_context(path: Path, fields: Record) -> Context:
    session = as_text(fields.get("sessionId")).strip() or path.name.removesuffix(_SESSION_ENDING)
    origin = as_dict(fields.get("origin"))
    manifest = as_dict(json_fields.find_document(path.parent / f"{path.parent.name}.json"))
    is_lead = as_text(fields.get("agent")) in ("", "lead")
    parent = as_text(origin.get("parentThreadId"))
    title = as_text(as_dict(manifest.get("metadata")).get("title")) if is_lead else ""
    return Context(
        session=session,
        parent=parent or ("" if is_lead else path.parent.name),
        title=title,
        folder=as_text(manifest.get("cwd")) or as_text(manifest.get("workspace_root")),
        version=as_text(origin.get("version")),
    )


def _times(path: Path, count: int) -> list[datetime]:
    """Return a time for each message: when the next thing was shown to the person.

    What is shown has a time, and the number of the last message before it.
    """
    began = as_datetime(path.parent.name) if path.parent.name.isdigit() else None
    last = began or json_fields.modified_at(path)
    shown = as_list(json_fields.find_document(path.parent / "ui_messages.json"))
    times: list[datetime | None] = [None] * count
    for each in map(as_dict, shown):
        index, at = each.get("conversationHistoryIndex"), as_datetime(each.get("ts"))
        if type(index) is int and 0 <= index < count and at and times[index] is None:
            times[index] = at
    filled: list[datetime] = []
    for at in times:
        last = at or last
        filled.append(last)
    return filled


class _MessageBuilder:
    """Builds the messages of one task, in order."""

    def __init__(self, context: Context, times: list[datetime]) -> None:
        self.context = context
        self.messages: list[NewMessage] = []
        self.unknown: Counter[str] = Counter()
        self._times = times
        self._state: State = {}
        self._model = ""

    def add(self, record: Record, key: str, place: int) -> None:
        """Add one message of the API."""
        at = as_datetime(record.get("ts")) or self._times[place]
        content = record.get("content")
        blocks = [content] if isinstance(content, str) else as_list(content)
        role = record.get("role")
        if role == "user":
            is_marker = bool(record.get("isSummary") or record.get("isTruncationMarker"))
            messages = self._asked(blocks, at, is_first=place == 0, is_marker=is_marker)
        elif role == "assistant":
            messages = self._answered(record, blocks, at)
        else:
            self.unknown[f"role {as_text(role)[:40]}"] += 1
            return
        if self.context.parent:
            messages = [injected_text.from_agent(each) for each in messages]
        self.messages += [
            replace(each, key=f"{key}:{i}" if i else key) for i, each in enumerate(messages)
        ]

    def _asked(
        self, blocks: list[Any], at: datetime, *, is_first: bool, is_marker: bool
    ) -> list[NewMessage]:
        """Return what was sent in a person's place: results, typed text, and injected text."""
        results: list[NewMessage] = []
        parts: list[Part] = []
        header = ""
        for block in blocks:
            fields = {"type": "text", "text": block} if isinstance(block, str) else as_dict(block)
            text = as_text(fields.get("text"))
            if fields.get("type") == "tool_result":
                answer, typed = self._result(fields)
                results.append(NewMessage("tool", answer, at, origin=answer[0].origin))
                parts += typed
            elif is_marker or text.lstrip().startswith("<environment_details>"):
                self._note(text)
                parts += content_blocks.user_parts([fields], aside=True)
            elif result := _RESULT.match(text):
                header = result[1]
                parts += self._tagged_result(result[2], header) if result[2].strip() else ()
            elif header and text:
                parts += self._tagged_result(text, header)
            else:
                parts += _typed(fields, text, is_first=is_first, after_result=bool(results))
        tagged = [part for part in parts if part.kind == "tool_result"]
        results += [NewMessage("tool", (part,), at, origin=part.origin) for part in tagged]
        rest = [part for part in parts if part.kind != "tool_result"]
        return [*results, *injected_text.user_messages(NewMessage("user", (), at), rest)]

    def _result(self, fields: Record) -> tuple[tuple[Part, ...], tuple[Part, ...]]:
        """Return a tool's result; if the tool asked the person, also what they answered."""
        name = self._state.get(f"call:{as_text(fields.get('tool_use_id'))}", "")
        parts = content_blocks.answer_parts(fields, self._state, fields.get("tool_use_id"))
        if name not in _SPOKEN:
            return parts, ()
        match = re.search(r"<(answer|feedback|user_message)>.*", parts[0].text, re.DOTALL)
        return parts, _typed({}, match[0], is_first=False, after_result=False) if match else ()

    def _tagged_result(self, text: str, name: str) -> tuple[Part, ...]:
        if name in _SPOKEN and (match := _TYPED.match(text)):
            return injected_text.split_typed(match[2])
        return content_blocks.result_parts(text, name, "")

    def _note(self, text: str) -> None:
        """Note the folder and the model that the program writes into the environment."""
        if not self.context.folder and (folder := _FOLDER.search(text)):
            self.context = replace(self.context, folder=folder[1])
        if model := _MODEL.search(text):
            self._model = model[1]

    def _answered(self, record: Record, blocks: list[Any], at: datetime) -> list[NewMessage]:
        info = as_dict(record.get("modelInfo"))
        model = as_text(info.get("modelId")) or as_text(info.get("id")) or self._model
        pieces = [content_blocks.reasoning_parts(as_text(record.get("reasoning_content")))]
        for block in blocks:
            pieces += self._pieces(block)
        counts = as_counts(record.get("metrics"))
        usage = {ours: counts[name] for name, ours in _USAGE.items() if name in counts}
        messages = [NewMessage("assistant", parts, at, model=model) for parts in pieces if parts]
        return [replace(messages[0], usage=usage), *messages[1:]] if messages else []

    def _pieces(self, block: Any) -> Iterator[tuple[Part, ...]]:
        fields = {"type": "text", "text": block} if isinstance(block, str) else as_dict(block)
        if fields.get("type") == "text":
            yield from self._split(as_text(fields.get("text")))
            return
        if fields.get("type") == "tool_use":
            spoken = _SPOKEN.get(as_text(fields.get("name")), "")
            arguments = as_dict(fields.get("input"))
            self._remember_files(arguments)
            yield injected_text.split_spoken(as_text(arguments.get(spoken)) if spoken else "")
        yield content_blocks.assistant_parts(fields, self._state)

    def _split(self, text: str) -> Iterator[tuple[Part, ...]]:
        """Yield the parts of a text in which reasoning and calls are tags."""
        at = 0
        for tag in _CALL.finditer(text):
            yield injected_text.split_spoken(text[at : tag.start()].strip())
            at = tag.end()
            arguments = dict(_PARAMETER.findall(tag[2]))
            if tag[1] == "thinking":
                yield content_blocks.reasoning_parts(tag[2].strip())
            elif tag[1] in _SPOKEN:
                yield injected_text.split_spoken(arguments.get(_SPOKEN[tag[1]], ""))
            else:
                self._remember_files(arguments)
                yield (content_blocks.call_part(tag[1], arguments or tag[2].strip(), ""),)
        yield injected_text.split_spoken(text[at:].strip() if at else text)

    def _remember_files(self, arguments: Record) -> None:
        names = content_blocks.files_of_call(arguments)
        files = json_fields.extend_bounded(names, self.context.files, _MOST_FILES)
        self.context = replace(self.context, files=files)


def _typed(fields: Record, text: str, *, is_first: bool, after_result: bool) -> tuple[Part, ...]:
    """Return a block in a person's place: typed text is in a tag, all else is the program's."""
    if typed := _TYPED.match(text):
        attached = injected_text.strip_data_uris(typed[3]).strip()
        more = (Part("document", attached, origin="tool"),) if attached else ()
        return (*injected_text.split_typed(typed[2]), *more)
    if is_first or not text:
        parts = content_blocks.user_parts([fields])
        return content_blocks.with_tool_origin(parts) if after_result else parts
    return content_blocks.user_parts([fields], aside=True)


cline = TaskAdapter("cline", "saoudrizwan.claude-dev")
roo_code = TaskAdapter("roo-code", _ROO_FOLDER)
