"""Messages of opencode: the same in its database and in the folder of older versions."""

from __future__ import annotations

from dataclasses import replace
from datetime import datetime
from typing import Any

import orjson

from lore import clock
from lore.capture.adapters import asides, blocks, fields, payloads, tools
from lore.capture.transcripts import Context
from lore.records import NewMessage, Origin, Part

AGENT = "opencode"

_SILENT = frozenset("step-start step-finish snapshot patch retry compaction agent".split())
"""Parts for the program itself."""

_UNTITLED = ("New session - ", "Child session - ")
_MOST_FILES = 200

Record = dict[str, Any]


def parsed(data: Any) -> Record:
    """Return the object that a column or a file holds, or an empty one."""
    try:
        return fields.table(orjson.loads(data))
    except (orjson.JSONDecodeError, TypeError):
        return {}


def context(session: str, parent: str, title: str, folder: str, version: str) -> Context:
    """Return the context of a session; a title that opencode made up from the time is none."""
    named = "" if title.startswith(_UNTITLED) else title
    return Context(session, parent, named, folder, version=version)


def finished(record: Record) -> bool:
    """Tell whether a message is as it will stay."""
    if record.get("role") != "assistant":
        return True
    return bool(record.get("error") or fields.table(record.get("time")).get("completed"))


class Teller:
    """Tells the messages of one session, in order, and counts what it does not know."""

    def __init__(self, context: Context) -> None:
        self.context = context
        self.messages: list[NewMessage] = []
        self.unknown: dict[str, int] = {}
        self._at: datetime | None = None

    def add(self, id: str, record: Record, parts: list[tuple[str, Record]]) -> None:
        """Tell one message with its parts."""
        self._at = self._moment(fields.table(record.get("time")).get("created"))
        role = record.get("role")
        if role == "user":
            self._ask(id, [part for _, part in parts])
        elif role == "assistant":
            self._answer(record, parts)
        else:
            name = f"role {fields.text(role)[:40]}"
            self.unknown[name] = self.unknown.get(name, 0) + 1

    def _moment(self, value: Any) -> datetime:
        return fields.moment(value) or self._at or clock.now()

    def _ask(self, id: str, records: list[Record]) -> None:
        parts: list[Part] = []
        for record in records:
            kind = fields.text(record.get("type"))
            if kind == "text":
                beside = bool(record.get("synthetic") or record.get("ignored"))
                parts += blocks.typed(fields.text(record.get("text")), aside=beside)
            elif kind == "file":
                parts.append(_file(record))
            elif kind == "subtask":
                parts += blocks.typed(fields.text(record.get("prompt")), aside=True)
            elif kind not in _SILENT:
                parts.append(blocks.opaque(record))
        if parts:
            asked = NewMessage("user", (), self._moment(None), id)
            if self.context.parent:
                asked = replace(asked, speaker="agent", origin="assistant")
            self.messages.append(asides.from_person(asked, parts))

    def _answer(self, record: Record, records: list[tuple[str, Record]]) -> None:
        """Tell an answer: a message for each part, the usage with the first."""
        first = len(self.messages)
        for own, part in records:
            kind = fields.text(part.get("type"))
            if kind == "tool":
                self._call(own, part)
            elif kind == "patch":
                self._remember(fields.text(name) for name in fields.items(part.get("files")))
            elif kind not in _SILENT:
                said = (_file(part, "tool"),) if kind == "file" else blocks.spoken(part, {})
                at = self._moment(fields.table(part.get("time")).get("start"))
                if said and record.get("summary") is True:
                    beside = tuple(asides.aside(each.text, "summary") for each in said)
                    self.messages.append(NewMessage("system", beside, at, own, origin="tool"))
                elif said:
                    self.messages.append(NewMessage("assistant", said, at, own))
        model = fields.text(record.get("modelID"))
        usage = _usage(record.get("tokens"))
        for i in range(first, len(self.messages)):
            if self.messages[i].role == "assistant":
                self.messages[i] = replace(self.messages[i], model=model, usage=usage)
                usage = {}

    def _call(self, id: str, part: Record) -> None:
        state = fields.table(part.get("state"))
        times = fields.table(state.get("time"))
        invalid = part.get("tool") == "invalid"
        given = state.get("input")
        name, said = part.get("tool"), given
        if invalid:  # of a tool that is not there only the name is kept, and an error
            name, said = fields.table(given).get("tool"), ""
        call = blocks.call(name, said, part.get("callID"))
        at = self._moment(times.get("start"))
        self.messages.append(NewMessage("assistant", (call,), at, id))
        self._remember(tools.files(given))
        status = state.get("status")
        if status not in ("completed", "error"):
            return
        text = fields.text(state.get("error" if status == "error" else "output"))
        code = fields.table(state.get("metadata")).get("exit")
        failed = status == "error" or invalid or code not in (None, 0)
        parts = blocks.result(text, call.name, call.call_id, failed=failed)
        attached = (fields.table(each) for each in fields.items(state.get("attachments")))
        parts += tuple(_file(each, parts[0].origin) for each in attached)
        at = self._moment(times.get("end")) if times.get("end") else at
        self.messages.append(NewMessage("tool", parts, at, f"{id}:result", origin=parts[0].origin))

    def _remember(self, names: Any) -> None:
        files = fields.bounded(names, self.context.files, _MOST_FILES)
        self.context = replace(self.context, files=files)


def _file(record: Record, origin: Origin | None = None) -> Part:
    sort = fields.text(record.get("mime"))
    kind = "image" if sort.startswith("image/") else "document"
    return payloads.reference({**record, "type": kind, "source": None}, origin)


def _usage(value: Any) -> dict[str, int]:
    """Return the tokens of an answer under the names that the other agents use."""
    told = fields.table(value)
    cache = fields.table(told.get("cache"))
    return fields.counts({
        "input_tokens": told.get("input"),
        "output_tokens": told.get("output"),
        "reasoning_tokens": told.get("reasoning"),
        "cache_read_input_tokens": cache.get("read"),
        "cache_creation_input_tokens": cache.get("write"),
    })
