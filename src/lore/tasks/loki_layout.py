"""The file layout `.loki/memory` and `.loki/metrics`: its files as records, and back without loss.

Pure functions: files are texts by path. A file that is not understood stays a file. Of a file with
many records everything around them stays as a frame, into which the records are put back.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import PurePosixPath
from typing import Any, Literal

from lore.payloads import find_json_problem
from lore.records import EconomicsReport, LayoutProblem, MemoryIndex, MemoryTimeline
from lore.tasks import task_metrics
from lore.tasks.task_metrics import TaskMetrics
from lore.text.name_limit import LONGEST_NAME, is_short

RecordKind = Literal[
    "episode", "pattern", "anti_pattern", "fact", "skill", "ledger", "handoff", "learning",
    "efficiency", "reward",
]  # fmt: skip
"""What a file of the layout holds."""

Json = dict[str, Any]

_WHOLE = -1
"""The place of a record that is a whole file."""


@dataclass(frozen=True, slots=True)
class LayoutRecord:
    """A record, the file it is in, and its place there; the raw value of a skill is its page."""

    kind: RecordKind
    path: str
    raw: Any
    place: int = _WHOLE

    @property
    def id(self) -> str:
        """Return the id that the layout gives to the record; a skill is named by its file."""
        if isinstance(self.raw, dict):
            for name in ("id", "agent_id", "task_id"):
                if isinstance(self.raw.get(name), str) and self.raw[name]:
                    return str(self.raw[name])
        return PurePosixPath(self.path).stem if self.place == _WHOLE else ""


@dataclass(frozen=True, slots=True)
class Layout:
    """A parsed layout: its records, the frames and other files by path, and what is not kept."""

    records: tuple[LayoutRecord, ...] = ()
    files: Mapping[str, str] = field(default_factory=dict)
    problems: tuple[LayoutProblem, ...] = ()
    left_out: tuple[LayoutProblem, ...] = ()


_LISTS: Mapping[str, tuple[RecordKind, tuple[str, ...]]] = {
    "memory/semantic/patterns.json": ("pattern", ("patterns",)),
    "memory/semantic/anti-patterns.json": (
        "anti_pattern", ("anti_patterns", "anti-patterns", "antipatterns"),
    ),
    "memory/semantic/facts.json": ("fact", ("facts",)),
}  # fmt: skip
"""Files with lists of records, and under which name an object may hold the list."""

_FOLDERS: Mapping[str, RecordKind] = {
    "memory/ledgers": "ledger",
    "memory/handoffs": "handoff",
    "metrics/efficiency": "efficiency",
    "metrics/rewards": "reward",
}
"""Folders with one record in each file."""

_LEARNINGS = "memory/learnings"
_LEARNING_NAMES = ("learnings", "errors", "entries")

LINKS = "memory/semantic/links.json"
INDEX, TIMELINE = "memory/index.json", "memory/timeline.json"
ECONOMICS, DASHBOARD = "memory/token_economics.json", "metrics/dashboard.json"

FACT_NAMES = ("fact", "content", "text", "statement", "summary", "description")
"""The layout says nothing about facts: the first of these fields is the text."""

_REQUIRED: Mapping[RecordKind, tuple[str, ...]] = {
    "pattern": ("pattern",),
    "anti_pattern": ("what_fails",),
    "fact": FACT_NAMES,
    "learning": ("message", "what_fails", "error", "lesson"),
    "ledger": ("agent_id",),
    "handoff": ("from_agent", "to_agent"),
}
"""One of these fields must be a text that says something."""


def parse_layout(files: Mapping[str, bytes]) -> Layout:
    """Parse files by their path below `.loki`; only what is no UTF-8 text is left out.

    In a text secrets can be found and words forgotten, in other bytes they cannot.
    """
    records: list[LayoutRecord] = []
    rest: dict[str, str] = {}
    problems: list[LayoutProblem] = []
    left_out: list[LayoutProblem] = []
    for path in sorted(files):
        text, why = _decode(path, files[path])
        if why:
            shown = path.encode("utf-8", "backslashreplace").decode()
            left_out.append(LayoutProblem(shown[:LONGEST_NAME], why))
            continue
        kind, names = _kind_of(path)
        if kind == "skill":
            records.append(LayoutRecord("skill", path, text))
            continue
        value, why = _parse_json(text) if kind else (None, "")
        parsed: list[LayoutRecord] = []
        frame: Json | None = None
        if kind and not why and names:
            parsed, frame, why = _split_list(kind, path, value, names)
        elif kind and not why:
            why = _problem(kind, value)
            parsed = [] if why else [LayoutRecord(kind, path, value)]
        if why:
            problems.append(LayoutProblem(path, why))
        records += parsed
        if names and frame is not None:
            rest[path] = _pack(frame)
        elif not parsed:
            rest[path] = _pack({"text": text})
    return Layout(tuple(records), rest, tuple(problems), tuple(left_out))


def _decode(path: str, body: bytes) -> tuple[str, str]:
    """Return the text of a file, and why it cannot be stored."""
    try:
        path.encode()
    except UnicodeEncodeError:
        return "", "has a name that is not UTF-8 text"
    if not is_short(path):
        return "", f"has a path longer than {LONGEST_NAME} bytes"
    try:
        return body.decode("utf-8"), ""
    except UnicodeDecodeError:
        return "", "is not UTF-8 text"


def format_layout(records: Sequence[LayoutRecord], files: Mapping[str, str]) -> dict[str, bytes]:
    """Return the files of a layout by path; records without a frame get a plain list."""
    written: dict[str, bytes] = {}
    lists: dict[str, list[LayoutRecord]] = {}
    for record in records:
        if isinstance(record.raw, str):
            written[record.path] = record.raw.encode()
        elif record.place == _WHOLE:
            written[record.path] = dump_json(record.raw)
        else:
            lists.setdefault(record.path, []).append(record)
    for path, packed in files.items():
        body = _unpack(packed)
        if "data" in body:
            continue  # Bytes that were never redacted: no import keeps them any more.
        if "text" in body:
            written.setdefault(path, str(body["text"]).encode())
        else:
            written[path] = dump_json(_join_list(body, lists.pop(path, [])))
    for path, listed in lists.items():
        written[path] = dump_json([record.raw for record in sorted(listed, key=_place)])
    return written


def is_safe_path(path: str) -> bool:
    """Return whether a path stays inside of the folder it is written to."""
    parts = path.split("/")
    return (
        bool(path)
        and "\\" not in path
        and "\0" not in path
        and ":" not in parts[0]
        and not any(part in ("", ".", "..") for part in parts)
    )


def _kind_of(path: str) -> tuple[RecordKind | None, tuple[str, ...]]:
    """Return the kind of the records in a file, and the names of the list that holds them."""
    if path in _LISTS:
        return _LISTS[path]
    pure = PurePosixPath(path)
    folder = str(pure.parent)
    if folder == "memory/skills" and pure.suffix == ".md":
        return "skill", ()
    if pure.suffix != ".json":
        return None, ()
    if folder == _LEARNINGS:
        return "learning", _LEARNING_NAMES
    if str(pure.parent.parent) == "memory/episodic":
        return "episode", ()
    return _FOLDERS.get(folder), ()


def _parse_json(text: str) -> tuple[Any, str]:
    """Return a value, or why it would not come back as it is."""
    try:
        value = json.loads(text, object_pairs_hook=_unique, parse_constant=_refuse)
        json.dumps(value, ensure_ascii=False).encode()
    except RecursionError:
        return None, "is nested too deeply"
    except (ValueError, UnicodeEncodeError) as error:
        return None, f"is no valid JSON ({error})"
    problem = find_json_problem(value)
    return (None, problem) if problem else (value, "")


def _unique(pairs: list[tuple[str, Any]]) -> Json:
    table = dict(pairs)
    if len(table) != len(pairs):
        msg = "a name occurs twice in one object"
        raise ValueError(msg)
    return table


def _refuse(name: str) -> Any:
    msg = f"{name} is no number"
    raise ValueError(msg)


def _split_list(
    kind: RecordKind, path: str, value: Any, names: tuple[str, ...]
) -> tuple[list[LayoutRecord], Json | None, str]:
    """Return the records of a list, the frame around them, and what is wrong with the rest."""
    key = None
    if isinstance(value, dict):
        key = next((name for name in names if isinstance(value.get(name), list)), None)
        if key is None:
            if kind == "learning" and not _problem(kind, value):
                return [LayoutRecord(kind, path, value, 0)], {"single": True}, ""
            return [], None, f"has no list named '{names[0]}'"
    elif not isinstance(value, list):
        return [], None, "is neither a list nor an object with one"
    entries = value[key] if key is not None else value
    records, others, why = [], [], ""
    for place, entry in enumerate(entries):
        problem = _problem(kind, entry)
        if problem:
            others.append([place, entry])
            why = f"entry {place + 1} {problem}"
        else:
            records.append(LayoutRecord(kind, path, entry, place))
    around = {**value, key: []} if key is not None else []
    return records, {"key": key, "around": around, "others": others}, why


def _join_list(frame: Json, records: Sequence[LayoutRecord]) -> Any:
    if frame.get("single"):
        return records[0].raw if len(records) == 1 else [record.raw for record in records]
    placed = [*((record.place, record.raw) for record in records), *map(tuple, frame["others"])]
    listed = [raw for _, raw in sorted(placed, key=lambda pair: pair[0])]
    if frame["key"] is None:
        return listed
    return {**frame["around"], frame["key"]: listed}


def _problem(kind: RecordKind, value: Any) -> str:
    """Return why a value is no record of this kind; nothing if it is one."""
    if not isinstance(value, dict):
        return "is no object"
    if kind == "episode":
        context = value.get("context")
        goal = context.get("goal") if isinstance(context, dict) else value.get("goal")
        return "" if isinstance(goal, str) and goal.strip() else "has no goal"
    if kind == "handoff" and isinstance(value.get("context"), dict) and value["context"]:
        return ""  # it says something, and need not name an agent
    names = _REQUIRED.get(kind, ())
    if names and not any(isinstance(value.get(n), str) and value[n].strip() for n in names):
        return f"has no '{names[0]}'"
    return ""


def _place(record: LayoutRecord) -> int:
    return record.place


def dump_json(value: Any) -> bytes:
    """Return a value as the text of a file."""
    return (json.dumps(value, ensure_ascii=False, indent=2) + "\n").encode()


def _pack(body: Json) -> str:
    return json.dumps(body, ensure_ascii=False)


def _unpack(packed: str) -> Json:
    body = json.loads(packed)
    return body if isinstance(body, dict) else {"text": packed}


PLAIN_LIST = _pack({"key": None, "around": [], "others": []})
"""The frame of a list that has nothing but records, as an export writes it."""


def map_body(packed: str, change: Callable[[Any], Any]) -> str:
    """Return a kept file with a change of its text, or of what a frame holds around records."""
    body = _unpack(packed)
    named: Json = {n: change(body[n]) for n in ("text", "around") if n in body}
    others = [[place, change(entry)] for place, entry in body.get("others", ())]
    return _pack({**body, **named, **({"others": others} if "others" in body else {})})


def keep_in_frame(packed: str, record: LayoutRecord) -> str:
    """Return the frame of a list with a record that is no memory of its own."""
    frame = _unpack(packed)
    if frame.get("single"):
        return _pack({"text": dump_json(record.raw).decode()})
    others = [*frame["others"], [record.place, record.raw]]
    return _pack({**frame, "others": sorted(others, key=lambda pair: pair[0])})


def keep_record(packed: str | None, record: LayoutRecord) -> str:
    """Return the body of a file with a record that stays a part of it."""
    if record.place != _WHOLE and packed is not None:
        return keep_in_frame(packed, record)
    text = record.raw if isinstance(record.raw, str) else dump_json(record.raw).decode()
    return _pack({"text": text})


def text_of(packed: str) -> str:
    """Return the text of a kept file; '' if it is the frame of a list."""
    return str(_unpack(packed).get("text", ""))


def read_links(files: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Yield the links of the file of links: source, target and relation."""
    body = _unpack(files[LINKS]) if LINKS in files else {}
    value, _ = _parse_json(str(body.get("text", "null")))
    listed = value.get("links") if isinstance(value, dict) else value
    for link in _objects(listed):
        names = (link.get("from", link.get("source")), link.get("to"), link.get("relation"))
        if all(isinstance(name, str) for name in names):
            yield str(names[0]), str(names[1]), str(names[2])


def merge_changes(raw: Json, before: Json, now: Json) -> Json:
    """Return a raw record with what changed between two readings of it; other fields stay."""
    merged = dict(raw)
    for name, value in now.items():
        if name in before and before[name] == value:
            continue
        inner = merged.get(name)
        if isinstance(inner, dict) and isinstance(value, dict):
            former = before.get(name)
            merged[name] = merge_changes(inner, former if isinstance(former, dict) else {}, value)
        else:
            merged[name] = value
    for name in before:
        if name not in now:
            merged.pop(name, None)
    return merged


# Records as payloads of fragments, and back.

_RESULTS = {
    "pass": "ok", "passed": "ok", "success": "ok", "ok": "ok", "refused": "refused",
    "fail": "failed", "failed": "failed", "failure": "failed", "error": "failed",
}  # fmt: skip
_WORDS = {"ok": "pass", "failed": "fail", "refused": "refused"}
_OUTCOMES = ("success", "failure", "partial", "unknown")

IdMap = Callable[[str], str]
"""Translates the ids of the layout to those of fragments, or back."""


def to_payload(kind: RecordKind, raw: Json, own_id: IdMap) -> Json:
    """Return a record of the layout as the payload of a fragment."""
    if kind == "episode":
        return _episode_payload(raw)
    if kind == "pattern":
        payload = _pick(
            raw, "pattern", "category", "conditions", "correct_approach", "incorrect_approach",
            "confidence", "usage_count", "last_used",
        )  # fmt: skip
        sources = [own_id(one) for one in _texts(raw.get("source_episodes"))]
        links = [
            {"to": own_id(one["to"]), "relation": one["relation"]}
            for one in _objects(raw.get("links"))
            if isinstance(one.get("to"), str) and isinstance(one.get("relation"), str)
        ]
        return payload | _filled(source_episodes=sources, links=links)
    if kind in ("anti_pattern", "learning"):
        what = next((raw[n] for n in ("what_fails", "type", "error") if _text(raw, n)), "")
        why = next((raw[n] for n in ("why", "message", "lesson") if _text(raw, n)), "")
        fix = next((raw[n] for n in ("prevention", "resolution", "fix") if _text(raw, n)), "")
        source = next((own_id(raw[n]) for n in ("source", "episode_id") if _text(raw, n)), "")
        return {
            "what_fails": what or why,
            **_filled(why=why, prevention=fix, source=source),
            **_pick(raw, "confidence", "usage_count", "last_used"),
        }
    return dict(raw)


def from_payload(kind: RecordKind, payload: Json, layout_id: IdMap) -> Json:
    """Return the payload of a fragment as a record of the layout."""
    if kind == "episode":
        return _episode_record(payload)
    record = dict(payload)
    if kind == "pattern":
        sources = [layout_id(one) for one in _texts(payload.get("source_episodes"))]
        links = [{**one, "to": layout_id(str(one.get("to")))} for one in
                 _objects(payload.get("links"))]  # fmt: skip
        record |= _filled(source_episodes=sources, links=links)
    if kind == "anti_pattern" and _text(payload, "source"):
        record["source"] = layout_id(payload["source"])
    return record


def _episode_payload(raw: Json) -> Json:
    context = _episode_context(raw)
    files = _texts(context.get("files_involved"))
    artifacts = _texts(raw.get("artifacts_produced"))
    actions = [
        {"t": _number(one.get("t")), "action": str(one["action"]),
         **_filled(target=_text(one, "target"), result=_RESULTS.get(_text(one, "result").lower()),
                   error=_text(one, "error"))}
        for one in _objects(raw.get("action_log")) if one.get("action")
    ]  # fmt: skip
    errors = [
        {name: _text(one, name) for name in ("type", "message", "resolution")}
        for one in _objects(raw.get("errors_encountered"))
        if _text(one, "message")
    ]
    outcome = raw.get("outcome")
    return {
        "goal": str(context["goal"]),
        "outcome": outcome if outcome in _OUTCOMES else "unknown",
        **_filled(
            task_id=_text(raw, "task_id"),
            phase=_text(context, "phase"),
            agent=_text(raw, "agent"),
            constraints=_texts(context.get("constraints")),
            files_read=[file for file in files if file not in artifacts],
            files_changed=[file for file in files if file in artifacts],
            actions=actions,
            errors=errors,
            artifacts=artifacts,
            commits=[raw["git_commit"]] if _text(raw, "git_commit") else [],
            duration_s=int(_number(raw.get("duration_seconds"))),
            tokens=int(_number(raw.get("tokens"))),
            retries=int(_number(raw.get("retries"))),
        ),
    }


def _episode_record(payload: Json) -> Json:
    files = list(dict.fromkeys([*_texts(payload.get("files_changed")),
                                *_texts(payload.get("files_read"))]))  # fmt: skip
    actions = []
    for one in _objects(payload.get("actions")):
        action = {"t": one.get("t", 0), "action": one.get("action", "")}
        result = _WORDS.get(str(one.get("result")))
        actions.append(action | _filled(target=one.get("target"), result=result,
                                        error=one.get("error")))  # fmt: skip
    commits = _texts(payload.get("commits"))
    return {
        **_filled(task_id=payload.get("task_id")),
        "duration_seconds": payload.get("duration_s", 0),
        **_filled(agent=payload.get("agent")),
        "context": {
            **_filled(phase=payload.get("phase")),
            "goal": payload.get("goal", ""),
            "constraints": _texts(payload.get("constraints")),
            "files_involved": files,
        },
        "action_log": actions,
        "outcome": payload.get("outcome", "unknown"),
        **_filled(outcome_reason=payload.get("reason")),
        "errors_encountered": _objects(payload.get("errors")),
        "artifacts_produced": _texts(payload.get("artifacts")),
        **_filled(git_commit=commits[-1] if commits else "", tokens=payload.get("tokens"),
                  retries=payload.get("retries")),
    }  # fmt: skip


def _filled(**values: Any) -> Json:
    return {name: value for name, value in values.items() if value}


def _pick(raw: Json, *names: str) -> Json:
    return {name: raw[name] for name in names if raw.get(name) not in (None, "", [])}


def _text(table: Json, name: str) -> str:
    value = table.get(name)
    return value if isinstance(value, str) else ""


def _texts(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else []
    return [one for one in listed if isinstance(one, str) and one.strip()]


def _objects(value: Any) -> list[Json]:
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def _number(value: Any) -> float:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return value if is_number and 0 <= value < 2**53 else 0


# Files that summarize a memory: other files of the layout have what they are made of.

EPISODE_INDEX = "memory/episodic/index.json"
_GENERATOR = {"version": "1.0", "generator": "lore"}
"""How a file says that Lore made it, so that a newer one may take its place."""


def is_generated(packed: str) -> bool:
    """Return whether a kept file is a summary that Lore made."""
    body = _unpack(packed)
    around = body.get("around")
    value = around if around else _parse_json(str(body.get("text", "null")))[0]
    return isinstance(value, dict) and value.get("generator") == _GENERATOR["generator"]


def _summary(now: datetime, **fields: Any) -> Json:
    return {**_GENERATOR, "last_updated": format_time(now), **fields}


def format_time(moment: datetime) -> str:
    """Return a time as the layout writes it."""
    return moment.astimezone(UTC).isoformat().replace("+00:00", "Z")


def format_index(index: MemoryIndex, names: Mapping[str, str], now: datetime) -> Json:
    """Return layer 1: the topics whose memories have a name in the layout."""
    topics = [
        {
            "id": names[topic.id],
            "summary": topic.title,
            "relevance_score": round(topic.relevance, 4),
            "last_accessed": format_time(topic.last_accessed),
            "token_count": topic.tokens,
        }
        for topic in index.topics
        if topic.id in names
    ]
    tokens = sum(topic.tokens for topic in index.topics if topic.id in names)
    return _summary(now, topics=topics, total_memories=len(names), total_tokens_available=tokens)


def format_timeline(timeline: MemoryTimeline, names: Mapping[str, str], now: datetime) -> Json:
    """Return layer 2: what was done and decided lately, and what is going on."""
    return _summary(
        now,
        recent_actions=[
            {
                "timestamp": format_time(one.at),
                "action": one.action,
                "outcome": one.outcome,
                "topic_id": names.get(one.topic, one.topic),
            }
            for one in timeline.recent_actions
        ],
        key_decisions=[
            {
                "decision": one.decision,
                "rationale": one.rationale,
                "date": f"{one.at:%Y-%m-%d}",
                "topic_id": names.get(one.topic, one.topic),
            }
            for one in timeline.key_decisions
        ],
        active_context={
            "current_focus": timeline.current_focus,
            "blocked_by": list(timeline.blocked_by),
            "next_up": list(timeline.next_up),
        },
    )


def format_economics(report: EconomicsReport, now: datetime) -> Json:
    """Return what the memory of a project cost and saved in all its sessions."""
    metrics = ("discovery_tokens", "read_tokens", "ratio")
    layers = (
        "layer1_loads", "layer1_tokens", "layer2_loads", "layer2_tokens_scanned",
        "layer2_tokens_available", "layer3_loads", "layer3_tokens",
    )  # fmt: skip
    return _summary(
        now,
        sessions=report.sessions,
        metrics={name: getattr(report, name) for name in metrics}
        | {"savings_vs_full_load": f"{report.savings_vs_full_load:g}%"},
        breakdown={name: getattr(report, name) for name in layers},
        baseline_comparison={
            "traditional_approach_tokens": report.baseline_tokens,
            "progressive_approach_tokens": report.discovery_tokens + report.read_tokens,
            "tokens_saved": report.tokens_saved,
        },
    )


def format_episode_index(records: Sequence[LayoutRecord], now: datetime) -> Json:
    """Return the episodes in the order of their times, each with its file."""
    listed = [
        {
            "id": record.id,
            "timestamp": _text(record.raw, "timestamp"),
            "goal": _text(_episode_context(record.raw), "goal"),
            "outcome": record.raw.get("outcome", "unknown"),
            "file": record.path.removeprefix("memory/episodic/"),
        }
        for record in records
        if record.kind == "episode"
    ]
    return _summary(now, episodes=sorted(listed, key=lambda one: str(one["timestamp"])))


def format_learnings(records: Sequence[LayoutRecord], now: datetime) -> dict[str, Json]:
    """Return the resolved errors of episodes as files of their days, by path."""
    days: dict[str, list[Json]] = {}
    for record in records:
        if record.kind != "episode":
            continue
        at = _text(record.raw, "timestamp")
        for error in _objects(record.raw.get("errors_encountered")):
            if _text(error, "message") and _text(error, "resolution"):
                learning = {**error, "episode_id": record.id, "timestamp": at}
                days.setdefault(at[:10] or "undated", []).append(learning)
    return {
        f"{_LEARNINGS}/{day}.json": _summary(now, date=day, learnings=listed)
        for day, listed in days.items()
        if is_safe_path(f"{day}.json")
    }


def format_metrics(tasks: Sequence[TaskMetrics], now: datetime) -> dict[str, Json]:
    """Return what tasks cost and how they are rewarded as files of their days, and a dashboard."""
    files: dict[str, Json] = {}
    for day, listed in task_metrics.group_by_day(tasks).items():
        costs = [
            {
                "task_id": task.task_id, "timestamp": format_time(task.at),
                "duration_seconds": round(task.duration_s, 3), "agents": task.agents,
                "retries": task.retries, "tokens": task.tokens, "agent": task.agent,
                "task_type": task.task_type,
            }
            for task in listed
        ]  # fmt: skip
        rewards = [
            {
                "task_id": task.task_id, "timestamp": format_time(task.at),
                "outcome": task.outcome, "outcome_reward": task.outcome_reward,
                "efficiency_reward": task.efficiency_reward,
                "preference_reward": task.preference,
            }
            for task in listed
        ]  # fmt: skip
        files[f"metrics/efficiency/{day}.json"] = _summary(now, date=day, tasks=costs)
        files[f"metrics/rewards/{day}.json"] = _summary(now, date=day, tasks=rewards)
    summary = asdict(task_metrics.summarize(tasks, now=now))
    times = {name: format_time(summary[name]) for name in ("since", "until")}
    return files | {DASHBOARD: _summary(now, **(summary | times))}


def _episode_context(raw: Json) -> Json:
    context = raw.get("context")
    return context if isinstance(context, dict) else raw
