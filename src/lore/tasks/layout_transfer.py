"""Import and export of the `.loki` layout: its records as memories of a project, and back.

Whoever imports a folder of unknown origin gets its knowledge as a peer's: found by asking, never
given unasked. Its ledgers, handoffs and metrics then stay files, since those act. Everything that
is written goes through the redactor.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import UTC, datetime
from functools import cached_property, partial
from typing import Any

from lore import clock, payloads, projects
from lore.digest.episodes import parse_episode
from lore.errors import InvalidInput
from lore.projects import ProjectFinder
from lore.records import (
    EDGE_KINDS,
    TRUST,
    EdgeKind,
    Fragment,
    FragmentKind,
    LayoutImport,
    LayoutProblem,
    Origin,
)
from lore.redaction.redactor import Redactor, redact_tree
from lore.store import fragments, graph, handoff_rows, history, items, layout_rows
from lore.store.database import Connection, Database
from lore.store.fragments import NewFragment
from lore.store.handoff_rows import HandoffRow
from lore.store.history import ActionVerb, LinkSnapshot, RecordFields, UndoSnapshot, Wording
from lore.store.layout_rows import IMPORT, LAYOUT
from lore.tasks import loki_layout, skill_page
from lore.tasks.loki_layout import (
    FACT_NAMES,
    Json,
    Layout,
    LayoutRecord,
    RecordKind,
)
from lore.text import entities, sentences
from lore.text import episodes as episode_text
from lore.text.regex import compile_lazy

_KINDS: Mapping[RecordKind, FragmentKind] = {
    "episode": "episode",
    "pattern": "pattern",
    "anti_pattern": "anti_pattern",
    "learning": "anti_pattern",
    "skill": "skill",
    "fact": "fact",
}
_ACTING: tuple[RecordKind, ...] = ("ledger", "handoff")
_LISTS: Mapping[FragmentKind, str] = {
    "pattern": "memory/semantic/patterns.json",
    "anti_pattern": "memory/semantic/anti-patterns.json",
}
_FACTS = "memory/semantic/facts.json"
_MOST_ROWS = 10_000
_AT_END = 1_000_000
"""The place of a record in a list that it was not imported with."""


def import_layout(
    database: Database,
    files: Mapping[str, bytes],
    *,
    project: str,
    trusted: bool,
    redactor: Redactor,
) -> LayoutImport:
    """Store a layout as memories of a project, in one transaction.

    What is here already is skipped, what changed gets a new version, what was forgotten stays so.
    What is more trusted here than the import is never changed by it: that is refused and counted.
    One import is undone in one step, except that a file or a ledger that it changed stays changed.
    """
    layout = _redact(loki_layout.parse_layout(files), redactor)
    place = ProjectFinder().find(project) if project else None
    now = database.now()

    def work(db: Connection) -> LayoutImport:
        project_n = projects.ensure_project(db, project, place, now=now) if project else None
        importer = _Importer(db, project_n, trusted=trusted, now=now)
        return importer.store(layout)

    return database.write(work)


def _redact(layout: Layout, redactor: Redactor) -> Layout:
    records = tuple(
        replace(record, raw=redact_tree(redactor, record.raw)) for record in layout.records
    )
    files = {
        path: loki_layout.map_body(body, partial(redact_tree, redactor))
        for path, body in layout.files.items()
    }
    return replace(layout, records=records, files=files)


class _Importer:
    """Stores the records of a layout in one project."""

    def __init__(
        self, db: Connection, project_n: int | None, *, trusted: bool, now: datetime
    ) -> None:
        self._db = db
        self._project_n = project_n
        self._project_key = layout_rows.project_key(db, project_n)
        self._origin: Origin = "assistant" if trusted else "peer"
        self._trusted = trusted
        self._now = now
        stored = layout_rows.fragments_of_project(db, project_n)
        self._known = _by_layout(stored)
        self._by_id = {fragment.id: fragment for _, fragment in stored}
        self._has_own = any(imported_record(fragment) is None for _, fragment in stored)
        self._keeps_files = not trusted and _has_trusted_import(db, project_n, self._known)
        self._actions: list[tuple[ActionVerb, int, UndoSnapshot]] = []
        self._counts: Counter[str] = Counter()
        self._problems: list[LayoutProblem] = []

    def store(self, layout: Layout) -> LayoutImport:
        """Store everything, and return what became of it."""
        self._problems += layout.problems
        files = dict(layout.files)
        ids = {
            record.id: self._id(record)
            for record in layout.records
            if record.kind in _KINDS and record.id
        }
        known_errors = _told_errors(layout.records)
        for record in layout.records:
            if record.kind == "learning" and _error_of(record.raw) in known_errors:
                files[record.path] = loki_layout.keep_in_frame(files[record.path], record)
            elif record.kind in _KINDS and self._store_fragment(record, ids):
                continue
            elif record.kind in _ACTING and self._trusted:
                self._store_acting(record)
            else:
                files[record.path] = loki_layout.keep_record(files.get(record.path), record)
        self._link(layout, ids)
        if self._has_own:
            self._drop_known_links(files)
        with_records = {record.path for record in layout.records} if self._has_own else set()
        for path, body in files.items():
            if body != loki_layout.PLAIN_LIST or path not in with_records:
                self._store_file(path, body)
        history.record_actions(self._db, self._actions, now=self._now)
        return LayoutImport(
            **{name: self._counts[name] for name in
               ("added", "changed", "skipped", "forgotten", "refused", "files")},
            problems=tuple(self._problems), left_out=layout.left_out, trusted=self._trusted,
        )  # fmt: skip

    def _drop_known_links(self, files: dict[str, str]) -> None:
        """Drop the file of links if the memory has all of them: an export writes it anew."""
        stored = layout_rows.fragments_of_project(self._db, self._project_n)
        names = {fragment.id: _layout_name(fragment) for _, fragment in stored}
        links = _export_links(self._db, [n for n, _ in stored], names)
        if _are_known(loki_layout.text_of(files.get(loki_layout.LINKS, "{}")), links):
            del files[loki_layout.LINKS]

    def _store_file(self, path: str, body: str) -> None:
        """Keep a file; a peer's replaces none where a trusted import brought files."""
        left = None if self._is_forgotten(path) else layout_rows.cut_file(self._db, path, body)
        self._counts["forgotten"] += left != body
        former = layout_rows.find_file(self._db, self._project_n, path)
        if left is None or former == left:
            return
        if self._has_own and loki_layout.is_generated(body):
            return  # an export makes a summary of its own memories anew
        if former is not None and self._keeps_files:
            self._counts["refused"] += 1
            return
        layout_rows.put_file(self._db, self._project_n, path, left, now=self._now)
        self._counts["files"] += 1

    def _is_forgotten(self, path: str) -> bool:
        """Return whether a file was forgotten with its project."""
        id_ = layout_rows.file_id(self._project_key, path)
        return bool(history.find_tombstones(self._db, [id_]))

    def _is_above(self, fragment: Fragment) -> bool:
        """Return whether a fragment is more trusted than what this import brings."""
        return fragment.trust > TRUST[self._origin]

    def _id(self, record: LayoutRecord) -> str:
        known = self._known.get(_key(record))
        return known[1].id if known else layout_id(self._project_key, record)

    def _store_fragment(self, record: LayoutRecord, ids: Mapping[str, str]) -> bool:
        """Store a record as a fragment; return False if it is no valid one."""
        kind = _KINDS[record.kind]
        try:
            payload = read_payload(record, lambda name: ids.get(name, name))
        except InvalidInput as error:
            self._problems.append(LayoutProblem(record.path, str(error)))
            return False
        metadata = {LAYOUT: {"kind": record.kind, "path": record.path, "place": record.place,
                             "raw": record.raw}}  # fmt: skip
        content, summary = describe_record(record.kind, payload, record.raw)
        known = self._known.get(_key(record))
        if known:
            self._update(known, payload, metadata, (content, summary))
            return True
        id_ = layout_id(self._project_key, record)
        former_n = items.find_number(self._db, id_)
        if former_n is not None and self._was_undone(former_n):
            self._restore(former_n, kind, payload, metadata, (content, summary))
            return True
        if former_n is not None or history.find_tombstones(self._db, [id_]):
            self._counts["forgotten"] += 1
            return True
        confidence = payload.get("confidence")
        new = NewFragment(
            id_, content, summary, kind, min(self._now, _time(record.raw) or self._now),
            payload=payload, origin=self._origin, project_n=self._project_n, metadata=metadata,
            confidence=confidence if isinstance(confidence, float) else 0.7,
            mentions=entities.extract_mentions(content, title=summary),
        )  # fmt: skip
        n = fragments.add(self._db, new, now=self._now)
        self._actions.append(("store", n, UndoSnapshot(batch=IMPORT)))
        self._counts["added"] += 1
        return True

    def _update(
        self,
        known: tuple[int, Fragment],
        payload: Json,
        metadata: Json,
        wording: tuple[str, str],
    ) -> None:
        n, fragment = known
        if self._raw_of(fragment) == metadata[LAYOUT]["raw"]:
            self._counts["skipped"] += 1
            return
        if self._is_above(fragment):
            self._counts["refused"] += 1
            return
        fields = RecordFields(fragment.payload, fragment.metadata)
        former = Wording(fragment.content, fragment.summary, fields=fields)
        self._actions.append(("update", n, UndoSnapshot(wording=former, batch=IMPORT)))
        self._write(n, payload, metadata, wording)
        self._counts["changed"] += 1

    def _raw_of(self, fragment: Fragment) -> Any:
        """Return the record that an import brought, or that an export writes."""
        record = imported_record(fragment)
        return (record or _new_record(fragment, self._layout_name)).raw

    def _layout_name(self, id_: str) -> str:
        fragment = self._by_id.get(id_)
        return _layout_name(fragment) if fragment else id_

    def _write(self, n: int, payload: Json, metadata: Json, wording: tuple[str, str]) -> None:
        content, summary = wording
        layout_rows.update_record(self._db, n, payload=payload, metadata=metadata, now=self._now)
        if fragments.get(self._db, n).content != content:
            fragments.update(
                self._db, n, content=content, summary=summary, now=self._now,
                mentioned=entities.extract_mentions(content, title=summary),
                reason="imported again",
            )  # fmt: skip

    def _was_undone(self, n: int) -> bool:
        """Return whether a fragment is hidden because its import was undone."""
        actions = history.actions_of_fragment(self._db, n)
        is_undone = bool(actions) and actions[0].verb == "store"
        return is_undone and all(one.undone for one in actions if one.verb in ("store", "delete"))

    def _restore(
        self, n: int, kind: FragmentKind, payload: Json, metadata: Json, wording: tuple[str, str]
    ) -> None:
        """Store a record again whose import was undone, with the trust of this import."""
        fragments.set_attribution(self._db, n, self._origin, TRUST[self._origin], kind)
        fragments.set_deleted(self._db, n, None, now=self._now)
        self._write(n, payload, metadata, wording)
        self._actions.append(("store", n, UndoSnapshot(batch=IMPORT)))
        self._counts["added"] += 1

    def _store_acting(self, record: LayoutRecord) -> None:
        """Store a ledger or a handoff where agents find it."""
        raw = record.raw
        is_gone = self._is_forgotten(record.path)
        if is_gone or handoff_rows.is_forgotten(self._db, record.id, json.dumps(raw)):
            self._counts["forgotten"] += 1
            return
        at = min(self._now, _time(raw) or self._now)  # one of the future would never get old
        body = _acting_body(record.kind, raw)
        body |= layout_rows.describe_import(record.path, raw, at=at, now=self._now)
        if record.kind == "ledger":
            former = handoff_rows.find_ledger(self._db, self._project_n, str(raw["agent_id"]))
            is_known = former is not None and (
                _is_same_import(former.body, body) or self._ledgers.get(record.path) == raw
            )
            if not is_known:
                if former is not None:  # an undo of this import leaves it
                    del body[LAYOUT]["imported_at"]
                handoff_rows.put_ledger(
                    self._db, self._project_n, str(raw["agent_id"]), body, now=at
                )
        else:
            is_known = not self._handoffs.isdisjoint({("path", record.path), ("id", record.id)})
            if not is_known:
                sender, receiver = (_agent_name(raw.get(n)) for n in ("from_agent", "to_agent"))
                is_usable = bool(_PLAIN_ID.fullmatch(record.id))
                is_usable = is_usable and not handoff_rows.has_handoff(self._db, record.id)
                id_ = record.id if is_usable else layout_id(self._project_key, record)
                row = HandoffRow(id_, None, self._project_n, sender, receiver, body, at, None)
                handoff_rows.add_handoff(self._db, row)
        self._counts["skipped" if is_known else "added"] += 1

    @cached_property
    def _ledgers(self) -> dict[str, Any]:
        """The ledgers of the project as an export writes them, by path."""
        return {one.path: one.raw for one in _export_ledgers(self._db, self._project_n)}

    @cached_property
    def _handoffs(self) -> set[tuple[str, str]]:
        """By what the handoffs of the project are known again: their file, or else their id."""
        rows = handoff_rows.handoffs(self._db, self._project_n, limit=_MOST_ROWS)
        return {
            ("path", str(row.body[LAYOUT].get("path"))) if LAYOUT in row.body else ("id", row.id)
            for row in rows
        }

    def _link(self, layout: Layout, ids: Mapping[str, str]) -> None:
        for source, target, relation in _relations(layout):
            if relation == "superseded_by":
                source, target, relation = target, source, "supersedes"
            ends = [items.find_number(self._db, ids[name]) for name in (source, target)
                    if name in ids]  # fmt: skip
            if relation in EDGE_KINDS and len(ends) == 2 and ends[0] and ends[1]:
                self._add_edge(ends[0], ends[1], relation)

    def _add_edge(self, source: int, target: int, kind: EdgeKind) -> None:
        """Add an edge that is new, unless one of its ends is more trusted than the import."""
        if graph.find_edge(self._db, source, target, kind) is not None:
            return
        ends = fragments.by_number(self._db, [source, target])
        if any(self._is_above(fragment) for fragment in ends.values()):
            self._counts["refused"] += 1
            return
        graph.put_edge(self._db, source, target, kind, now=self._now)
        link = LinkSnapshot(target, kind)
        self._actions.append(("link", source, UndoSnapshot(link=link, batch=IMPORT)))


def layout_id(project_key: str, record: LayoutRecord) -> str:
    """Return an id that a record has in every import; ids sort by time."""
    own = f"{project_key}\0{record.kind}\0{_key(record)}"
    rest = hashlib.blake2b(own.encode("utf-8", "replace"), digest_size=10).hexdigest()
    at = _time(record.raw) or datetime(2020, 1, 1, tzinfo=UTC)
    ms = f"{max(0, clock.to_us(at) // 1000) & 0xFFFF_FFFF_FFFF:012x}"
    return f"{ms[:8]}-{ms[8:]}-7{rest[:3]}-8{rest[3:6]}-{rest[6:18]}"


def _key(record: LayoutRecord) -> tuple[str, str]:
    """Return by what a record is known again: its file, and its id or else its text there."""
    if record.place < 0:
        return record.path, ""
    own = record.raw.get("id") if isinstance(record.raw, dict) else None
    return record.path, own if isinstance(own, str) and own else json.dumps(record.raw)


def _by_layout(
    stored: Iterable[tuple[int, Fragment]],
) -> dict[tuple[str, str], tuple[int, Fragment]]:
    """Return fragments by what their records are known by, in their own export too."""
    listed = list(stored)
    names = {fragment.id: _layout_name(fragment) for _, fragment in listed}
    by_key = {}
    for n, fragment in sorted(listed, key=lambda pair: imported_record(pair[1]) is not None):
        record = imported_record(fragment) or _new_record(fragment, lambda id_: names.get(id_, id_))
        by_key[_key(record)] = (n, fragment)
    return by_key


def _has_trusted_import(
    db: Connection, project_n: int | None, known: Mapping[Any, tuple[int, Fragment]]
) -> bool:
    """Return whether a project has records that a trusted import brought."""
    bodies = [row.body for row in handoff_rows.ledgers(db, project_n, limit=_MOST_ROWS)]
    bodies += [row.body for row in handoff_rows.handoffs(db, project_n, limit=_MOST_ROWS)]
    return any(fragment.trust > TRUST["peer"] for _, fragment in known.values()) or any(
        LAYOUT in body for body in bodies
    )


def imported_record(fragment: Fragment) -> LayoutRecord | None:
    """Return the record that a fragment was imported from."""
    source = fragment.metadata.get(LAYOUT)
    if not isinstance(source, dict) or not isinstance(source.get("path"), str):
        return None
    return LayoutRecord(source["kind"], source["path"], source["raw"], source["place"])


def read_payload(record: LayoutRecord, own_id: loki_layout.IdMap) -> Json:
    """Return the payload of a record; raise `InvalidInput` if it is no valid one."""
    kind = _KINDS[record.kind]
    if record.kind == "fact":
        return {}
    if record.kind == "skill":
        return payloads.require_task_payload(kind, skill_page.parse_skill(record.raw).to_payload())
    return payloads.require_task_payload(
        kind, loki_layout.to_payload(record.kind, record.raw, own_id)
    )


def describe_record(kind: RecordKind, payload: Json, raw: Any) -> tuple[str, str]:
    """Return the text of a memory and its summary."""
    if kind == "episode":
        return episode_text.format_episode(parse_episode(payload)), _line(payload["goal"])
    if kind == "skill":
        page = skill_page.SkillPage.from_payload(payload)
        return skill_page.format_skill(page).strip(), _line(page.name)
    if kind == "fact":
        text = next(str(raw[name]) for name in FACT_NAMES if str(raw.get(name) or "").strip())
        return text, _line(text)
    if kind == "pattern":
        conditions = ", ".join(payload.get("conditions") or ())
        text = _rows(
            ("", payload["pattern"]), ("When: ", conditions),
            ("Do: ", payload.get("correct_approach")), ("Not: ", payload.get("incorrect_approach")),
        )  # fmt: skip
        return text, _line(payload["pattern"])
    text = _rows(
        ("", payload["what_fails"]), ("Why: ", payload.get("why")),
        ("Instead: ", payload.get("prevention")),
    )  # fmt: skip
    return text, _line(payload["what_fails"])


def _rows(*rows: tuple[str, Any]) -> str:
    return "\n".join(f"{name}{text}" for name, text in rows if text)


def _line(text: str) -> str:
    return sentences.one_line(text, 200)


def _time(raw: Any) -> datetime | None:
    names = ("timestamp", "last_checkpoint", "created_at", "date", "last_used")
    for name in names if isinstance(raw, dict) else ():
        try:
            moment = datetime.fromisoformat(raw[name])
        except (KeyError, TypeError, ValueError):
            continue
        moment = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
        if 1970 < moment.year < 9000:
            return moment
    return None


def _error_of(raw: Any) -> tuple[str, str]:
    return str(raw.get("message") or ""), str(raw.get("resolution") or "")


def _told_errors(records: Iterable[LayoutRecord]) -> set[tuple[str, str]]:
    """Return the errors of episodes: a learning that repeats one is no second memory."""
    return {
        _error_of(error)
        for record in records
        if record.kind == "episode" and isinstance(record.raw.get("errors_encountered"), list)
        for error in record.raw["errors_encountered"]
        if isinstance(error, dict)
    }


def _relations(layout: Layout) -> Iterator[tuple[str, str, str]]:
    """Yield all links: of patterns, of their sources, and of the file of links."""
    for record in layout.records:
        if record.kind == "pattern":
            for link in _list(record.raw.get("links")):
                if isinstance(link, dict):
                    yield record.id, str(link.get("to")), str(link.get("relation"))
            for source in _list(record.raw.get("source_episodes")):
                yield record.id, str(source), "derived_from"
        elif record.kind == "anti_pattern" and record.id:
            yield record.id, str(record.raw.get("source")), "derived_from"
    for link in loki_layout.read_links(layout.files):
        yield link


def _list(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


_PLAIN_ID = compile_lazy(r"[\w.-]{1,60}")
"""An id is shown to agents as it is; what could be read as a sentence is none."""

_LONGEST_NAME = 200
"""Characters of an agent's name, as in the tools."""


def _agent_name(name: Any) -> str:
    """Return the name of an agent on one line."""
    return " ".join(str(name or "").split())[:_LONGEST_NAME]


def _is_same_import(former: Json, body: Json) -> bool:
    """Return whether a ledger was imported from the same record before."""
    known = former.get(LAYOUT) or {}
    return all(known.get(name) == body[LAYOUT][name] for name in ("path", "raw"))


_LEDGER = {"state": ("files_modified", "uncommitted_changes", "last_git_commit"),
           "context": ("tech_stack", "patterns_learned", "current_goal")}  # fmt: skip
_HANDOFF = ("what_was_done", "artifacts", "git_state", "needs_testing", "known_issues",
            "relevant_patterns")  # fmt: skip


def _acting_body(kind: RecordKind, raw: Json) -> Json:
    """Return the fields of a ledger or handoff as they are stored: flat."""
    if kind == "handoff":
        context = raw.get("context")
        return (
            {n: context[n] for n in _HANDOFF if n in context} if isinstance(context, dict) else {}
        )
    body: Json = {name: raw[name] for name in ("tasks_completed", "current_task") if name in raw}
    for part, names in _LEDGER.items():
        inner = raw.get(part)
        if isinstance(inner, dict):
            body |= {name: inner[name] for name in names if name in inner}
    return body


# Export.


Summarize = Callable[[Mapping[str, str], list[LayoutRecord]], dict[str, Json]]
"""Returns the files that summarize a memory, of the names of its fragments and its records."""


def export_layout(db: Connection, project_n: int | None, summarize: Summarize) -> dict[str, bytes]:
    """Return the files of a project's memories in the layout.

    A memory that has more than an import brought gets the files that summarize it. Of those that
    an import brought, Lore replaces only what it made itself.
    """
    stored = layout_rows.fragments_of_project(db, project_n)
    names = {fragment.id: _layout_name(fragment) for _, fragment in stored}
    ordered = sorted(stored, key=lambda pair: imported_record(pair[1]) is None)
    records = [
        _export_fragment(fragment, lambda id_: names.get(id_, id_)) for _, fragment in ordered
    ]
    records += _export_ledgers(db, project_n)
    records += _export_handoffs(db, project_n)
    records = _unique_paths(records)
    files = layout_rows.list_files(db, project_n)
    if any(imported_record(fragment) is None for _, fragment in stored):
        summaries = summarize(names, records)
        files = {
            path: body for path, body in files.items()
            if path not in summaries or not loki_layout.is_generated(body)
        }  # fmt: skip
    else:
        summaries = {}
    written = loki_layout.format_layout(records, files)
    for path, summary in summaries.items():
        written.setdefault(path, loki_layout.dump_json(summary))
    links = _export_links(db, [n for n, _ in stored], names)
    former = written.get(loki_layout.LINKS)
    if links and (former is None or (summaries and _are_known(former, links))):
        written[loki_layout.LINKS] = loki_layout.dump_json(links)
    return {path: written[path] for path in sorted(written) if loki_layout.is_safe_path(path)}


def _layout_name(fragment: Fragment) -> str:
    record = imported_record(fragment)
    return record.id if record and record.id else fragment.id


def _export_fragment(fragment: Fragment, layout_name: Callable[[str], str]) -> LayoutRecord:
    record = imported_record(fragment)
    if record is None:
        return _new_record(fragment, layout_name)
    return replace(record, raw=_current_raw(fragment, record, layout_name))


def _current_raw(
    fragment: Fragment, record: LayoutRecord, layout_name: Callable[[str], str]
) -> Any:
    """Return a raw record with what changed in memory since it was imported."""
    try:
        before = read_payload(record, lambda name: name)
    except InvalidInput:
        return record.raw
    content, _ = describe_record(record.kind, before, record.raw)
    is_reworded = fragment.content != content and fragment.version > 1
    if record.kind == "fact":
        name = next(one for one in FACT_NAMES if str(record.raw.get(one) or "").strip())
        return record.raw | {name: fragment.content} if is_reworded else record.raw
    if record.kind == "skill":
        now = skill_page.SkillPage.from_payload(fragment.payload)
        former = skill_page.parse_skill(record.raw)
        if now.to_payload() == former.to_payload():
            return record.raw
        return skill_page.format_skill(replace(now, sections=former.sections, front=former.front))
    kind: RecordKind = "anti_pattern" if record.kind == "learning" else record.kind
    raw = loki_layout.merge_changes(
        record.raw,
        loki_layout.from_payload(kind, before, lambda name: name),
        loki_layout.from_payload(kind, fragment.payload, layout_name),
    )
    return raw | {"content": fragment.content} if is_reworded else raw


def _new_record(fragment: Fragment, layout_name: Callable[[str], str]) -> LayoutRecord:
    """Return the record of a memory that was not imported."""
    at = loki_layout.format_time(fragment.created_at)
    payload = fragment.payload
    if fragment.kind == "episode":
        raw = {"id": fragment.id, "timestamp": at,
               **loki_layout.from_payload("episode", payload, layout_name)}  # fmt: skip
        path = f"memory/episodic/{fragment.created_at:%Y-%m-%d}/{fragment.id}.json"
        return LayoutRecord("episode", path, raw)
    if fragment.kind == "skill" and payload.get("steps") and payload.get("name"):
        page = skill_page.SkillPage.from_payload(payload)
        path = f"memory/skills/{skill_page.page_name(page.name)}"
        return LayoutRecord("skill", path, skill_page.format_skill(page))
    main = {"pattern": "pattern", "anti_pattern": "what_fails"}.get(fragment.kind, "")
    if main and payload.get(main):
        kind: RecordKind = "pattern" if fragment.kind == "pattern" else "anti_pattern"
        raw = {"id": fragment.id, **loki_layout.from_payload(kind, payload, layout_name),
               "timestamp": at}  # fmt: skip
        return LayoutRecord(kind, _LISTS[fragment.kind], raw, _AT_END)
    raw = {"id": fragment.id, "fact": fragment.content, "kind": fragment.kind,
           "confidence": round(fragment.confidence, 4), "timestamp": at}  # fmt: skip
    return LayoutRecord("fact", _FACTS, raw, _AT_END)


def _export_ledgers(db: Connection, project_n: int | None) -> Iterator[LayoutRecord]:
    for row in handoff_rows.ledgers(db, project_n, limit=_MOST_ROWS):
        former = row.body.get(LAYOUT) or {}
        raw: Json = {"agent_id": row.agent, "last_checkpoint": row.updated_at.isoformat()}
        raw |= {n: row.body[n] for n in ("tasks_completed", "current_task") if n in row.body}
        for part, names in _LEDGER.items():
            raw[part] = {name: row.body[name] for name in names if name in row.body}
        path = former.get("path") or f"memory/ledgers/{_file_name(row.agent)}.json"
        yield LayoutRecord("ledger", path, _merged(former, "ledger", row.body, raw))


def _export_handoffs(db: Connection, project_n: int | None) -> Iterator[LayoutRecord]:
    for row in handoff_rows.handoffs(db, project_n, limit=_MOST_ROWS):
        former = row.body.get(LAYOUT) or {}
        imported = former.get("raw")
        name = imported.get("id", row.id) if isinstance(imported, dict) else row.id
        raw = {"id": name, "from_agent": row.from_agent, "to_agent": row.to_agent,
               "timestamp": row.created_at.isoformat(),
               "context": {n: v for n, v in row.body.items() if n != LAYOUT}}  # fmt: skip
        path = former.get("path") or f"memory/handoffs/{_file_name(row.id)}.json"
        yield LayoutRecord("handoff", path, _merged(former, "handoff", row.body, raw))


def _merged(former: Json, kind: RecordKind, body: Json, raw: Json) -> Json:
    """Return the imported record, unless the stored one changed since."""
    imported = former.get("raw")
    if not isinstance(imported, dict):
        return raw
    same = all(body.get(name) == value for name, value in _acting_body(kind, imported).items())
    return imported if same else loki_layout.merge_changes(imported, imported, {**imported, **raw})


def _export_links(db: Connection, ns: list[int], names: Mapping[str, str]) -> list[Json]:
    by_n = {n: one.id for n, one in fragments.by_number(db, ns).items()}
    return [
        {"from": names[by_n[edge.source_n]], "to": names[by_n[edge.target_n]],
         "relation": edge.kind}
        for edge in graph.edges_among(db, ns, EDGE_KINDS)
        if edge.source_n in by_n and edge.target_n in by_n
    ]  # fmt: skip


def _are_known(text: bytes | str, links: list[Json]) -> bool:
    """Return whether a file of links has no others than those of the memory."""
    try:
        listed = json.loads(text)
    except ValueError:
        return False
    return isinstance(listed, list) and bool(listed) and all(one in links for one in listed)


def _file_name(name: str) -> str:
    return skill_page.page_name(name).removesuffix(".md")


def _unique_paths(records: Iterable[LayoutRecord]) -> list[LayoutRecord]:
    """Return records of which no two are written to one file of their own."""
    seen: set[str] = set()
    listed = []
    for record in records:
        path, _, suffix = record.path.rpartition(".")
        number = 1
        name = record.path
        while record.place < 0 and name in seen:
            number += 1
            name = f"{path}-{number}.{suffix}"
        seen.add(name)
        listed.append(replace(record, path=name))
    return listed
