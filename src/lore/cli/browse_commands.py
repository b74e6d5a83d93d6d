"""Commands that show stored items: read, explore, roots, traverse, log, timeline, episodes."""

from __future__ import annotations

import difflib
import re
from typing import TYPE_CHECKING, Annotated, Literal, cast

from typer import Argument, Context, Option

from lore.cli.links import link_ids, types_of
from lore.cli.options import Id, Json, Project, current_repository
from lore.cli.output import (
    bold,
    clean,
    coloured,
    counted,
    diff_line,
    dim,
    format_duration,
    indented,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    project_names,
    read_text,
    require_project,
)
from lore.errors import InvalidInput, NotFound

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lore.memory import Memory
    from lore.records import (
        Action,
        Episode,
        Fragment,
        Outline,
        Provenance,
        Reading,
        SessionLog,
        Task,
        Title,
    )


_LOG_HEADING = re.compile(r"\d{4}-\d\d-\d\d|[A-Z][a-z ]+:")
"""A day, or the section of a condensed log."""

_Direction = Literal["children", "parent", "associations"]


def read(
    context: Context,
    ids: Annotated[list[str], Argument(help="Ids, or prefixes of at least 8 characters.")],
    json: Json = False,
) -> None:
    """Read items in full, with their links.

    Reading reinforces a fragment.
    """
    with open_memory(context) as memory:
        readings = memory.read(ids)
        if json:
            print_json(readings)
            return
        for place, reading in enumerate(readings):
            if place:
                print()
            _print_reading(memory, reading)


def _print_reading(memory: Memory, reading: Reading) -> None:
    short = link_ids(memory, memory.search.short_ids([reading.id]), types_of([reading]))
    print(f"{bold(short[reading.id])}  {_described(reading)}")
    print(indented(reading.text))
    if reading.session:
        title = one_line(reading.session.title) or "(no title)"
        print(f"session       {reading.session.id}  {title}")
    if place := _note_place(reading.fragment):
        print(f"noted         {place}")
    if reading.replaced and reading.replaced.by_id:
        one, other = memory.search.short_ids([reading.id, reading.replaced.by_id]).values()
        print(f"both hold?    lore conflicts {one} {other} --both")
    _print_around(memory, reading)


def _note_place(fragment: Fragment | None) -> str:
    """Return where an agent noted a fragment: file, line and agent; '' if none did."""
    about = fragment.payload if fragment and "native_file" in fragment.metadata else {}
    line, agent = about.get("line", 1), about.get("agent", "")
    return one_line(f"{about['file']}:{line} ({agent})", 300) if about.get("file") else ""


def _described(reading: Reading) -> str:
    """Return one line that describes an item."""
    words: list[str] = [reading.fragment.kind if reading.fragment else reading.type]
    if reading.fragment:
        words.append(f"depth {reading.fragment.depth}, version {reading.fragment.version}")
    words += [f"said by {reading.origin}", f"{reading.created_at:%Y-%m-%d %H:%M}"]
    if reading.deleted:
        words.append(coloured("deleted", "red"))
    if reading.fragment and reading.fragment.superseded_by:
        words.append(coloured("superseded", "yellow"))
    if reading.replaced:
        words.append(coloured(one_line(reading.replaced.note, 200), "yellow"))
    return "  ".join(words)


def _print_around(memory: Memory, reading: Reading) -> None:
    """Print the links of an item, by title."""
    rows: list[tuple[str, str, str]] = []
    if reading.parent:
        suffix = "  (deleted)" if reading.parent.deleted else ""
        rows.append(("parent", reading.parent.id, reading.parent.title + suffix))
    rows += [("child", child.id, child.title) for child in reading.children]
    if reading.edges:
        others = [e.target if e.source == reading.id else e.source for e in reading.edges]
        titles = {title.id: title.title for title in memory.search.titles(others)}
        for edge, other in zip(reading.edges, others, strict=True):
            arrow = "→" if edge.source == reading.id else "←"
            note = f"  ({edge.note})" if edge.note else ""
            rows.append((f"{arrow} {edge.kind}", other, titles[other] + note))
    short = memory.search.short_ids([id_ for _, id_, _ in rows])
    print_columns((name, short[id_], one_line(title)) for name, id_, title in rows)


def session(
    context: Context,
    id: Annotated[str, Argument(help="Id of a session, or the agent's own name for it.")],
    asides: Annotated[
        bool, Option("--asides", help="Include text that the agent's program inserted.")
    ] = False,
    json: Json = False,
) -> None:
    """Read a conversation from beginning to end.

    Text that the agent's program inserted is left out; --json has it. 'lore log' shows the log of
    the conversation.
    """
    from lore.text.message_features import is_dialogue_part, readable_text

    with open_memory(context) as memory:
        messages = memory.sessions.messages(id)
    if json:
        print_json(messages)
        return
    left_out = 0
    for message in messages:
        shown = [part for part in message.parts if asides or is_dialogue_part(part)]
        left_out += len(message.parts) - len(shown)
        if not shown:
            continue
        who = message.speaker or message.role
        print(bold(f"{message.created_at:%Y-%m-%d %H:%M}  {clean(who)}"))
        print(indented(readable_text(shown, brief=True)))
    if left_out:
        notice(f"{counted(left_out, 'aside')} of the agent's program left out; --asides shows it.")


def explore(
    context: Context,
    what: Annotated[str, Argument(help="Id of a fragment, or a question.")],
    max_depth: Annotated[int, Option(min=0, max=100, help="Number of levels to show.")] = 2,
    json: Json = False,
) -> None:
    """Show the tree below a fragment as an outline."""
    with open_memory(context) as memory:
        outlines = memory.search.explore(read_text(what), max_depth=max_depth)
        if json:
            print_json(outlines)
            return
        for outline in outlines:
            rows = list(_flat(outline))
            short = memory.search.short_ids([title.id for _, title in rows])
            for level, title in rows:
                print(f"{'  ' * level}{_describe_title(title, short)}")
        if not outlines:
            print("Nothing found.")


def _flat(outline: Outline, level: int = 0) -> Iterator[tuple[int, Title]]:
    yield level, outline.title
    for below in outline.below:
        yield from _flat(below, level + 1)


def _describe_title(title: Title, short: dict[str, str]) -> str:
    count = dim(f"  {title.children:,} below") if title.children else ""
    state = f"  {coloured('deleted', 'red')}" if title.deleted else ""
    return f"{bold(short[title.id])}  {one_line(title.title)}  {dim(title.kind)}{count}{state}"


def roots(
    context: Context,
    query: Annotated[
        str, Argument(help="Only roots that match this question.", show_default=False)
    ] = "",
    limit: Annotated[int, Option(min=1, max=1000, help="Maximum number of roots.")] = 20,
    project: Project = "",
    json: Json = False,
) -> None:
    """List the root fragments with the number of their children."""
    with open_memory(context) as memory:
        titles = memory.search.roots(query=read_text(query), limit=limit, project=project)
        if json:
            print_json(titles)
            return
        _print_titles(memory, titles)
    if not titles:
        print("Nothing found." if query else "No fragments yet: 'lore remember' stores one.")


def traverse(
    context: Context,
    id: Id,
    direction: Annotated[
        str,
        Option(
            help="children, parent or associations.",
            autocompletion=lambda: ["children", "parent", "associations"],
        ),
    ] = "children",
    json: Json = False,
) -> None:
    """List the fragments one step away: children, parent or associations."""
    with open_memory(context) as memory:
        titles = memory.search.traverse(id, cast("_Direction", direction))
        if json:
            print_json(titles)
            return
        _print_titles(memory, titles)
    if not titles:
        print(f"It has no {direction}.")


def _print_titles(memory: Memory, titles: list[Title]) -> None:
    short = memory.search.short_ids([title.id for title in titles])
    for title in titles:
        print(_describe_title(title, short))


def log(
    context: Context,
    id: Annotated[
        str, Argument(help="Id of a session, or the agent's own name for it; or of a fragment.")
    ],
    json: Json = False,
) -> None:
    """Show the log of a session, or the versions of a fragment.

    The log is what Lore distilled of the conversation, in its order; versions are listed newest
    first.
    """
    with open_memory(context) as memory:
        try:
            now, versions = memory.knowledge.log(id)
        except (NotFound, InvalidInput):
            if not id.strip() or not memory.sessions.has_session(id):
                raise
            _print_log(memory.sessions.log(id), json=json)
            return
    if json:
        print_json({"current": now, "former": versions})
        return
    rows = [(f"version {now.version}", "now", one_line(now.summary, 160))]
    for version in reversed(versions):
        until = f"until {version.changed_at:%Y-%m-%d %H:%M}"
        reason = f"  (changed: {version.reason})" if version.reason else ""
        rows.append((f"version {version.version}", until, one_line(version.summary + reason, 160)))
    print_columns(rows)


def _print_log(log: SessionLog, *, json: bool) -> None:
    if json:
        print_json(log)
        return
    for one in log.logs:
        for line in one.text.splitlines():
            print(bold(clean(line)) if _LOG_HEADING.fullmatch(line) else indented(line))
    if not log.logs:
        print("This session has no log yet.")
    if log.new_messages:
        newer = counted(log.new_messages, "message")
        notice(f"{newer} not in the log; 'lore distill {log.session.id}' adds what is enough.")


def diff(
    context: Context,
    id: Id,
    version: Annotated[int | None, Option(min=1, help="Compare with this version.")] = None,
    json: Json = False,
) -> None:
    """Show the last change of a fragment."""
    with open_memory(context) as memory:
        old, new = memory.knowledge.diff(id, version)
    lines = list(
        difflib.unified_diff(
            old.content.splitlines(),
            new.content.splitlines(),
            f"version {old.version}",
            f"version {new.version}",
            lineterm="",
        )
    )
    if json:
        print_json({"from": old.version, "to": new.version, "diff": lines})
        return
    for line in lines:
        print(diff_line(line))
    if not lines:
        print(f"Version {new.version} says the same as version {old.version}.")


def timeline(
    context: Context,
    id: Annotated[str, Argument(help="Id of a fragment, or at least 8 characters of it.")] = "",
    project: Project = "",
    json: Json = False,
) -> None:
    """Show the recent work of a project; with an id, the history of a fragment."""
    with open_memory(context) as memory:
        if not id:
            _show_recent_work(memory, project, json=json)
            return
        happened = memory.knowledge.history(id)
    if json:
        print_json(happened)
        return
    print_columns((f"{one.at:%Y-%m-%d %H:%M}", one.what, one_line(one.detail)) for one in happened)


def _show_recent_work(memory: Memory, project: str, *, json: bool) -> None:
    """Print what was done and decided lately, and what is open."""
    from lore.cli.task_commands import print_timeline

    folder = require_project(memory, project) or current_repository()
    recent = memory.tasks.timeline(project=folder)
    if json:
        print_json(recent)
        return
    ids = [one.id for one in recent.recent_actions]
    ids += [one.id for one in recent.key_decisions]
    if ids:
        print_timeline(recent, memory.search.short_ids(ids))
    else:
        print("Nothing was done here yet.")
    known = memory.sessions.find_project(folder) if folder else None
    if known and (missing := memory.digest.count_without_episode(known.id)):
        notice(
            f"What was done in {counted(missing, 'session')} is not summarized yet and not shown:"
            " 'lore up -d' does that in the background."
        )


def why(context: Context, id: Id, json: Json = False) -> None:
    """Show the sources of an item, and how strong it is."""
    with open_memory(context) as memory:
        provenance = memory.search.why(id)
        if json:
            print_json(provenance)
            return
        _print_reading(memory, provenance.reading)
        _print_sources(memory, provenance)
        print(f"   {provenance.allowed}")
        _print_strength(provenance)
        _print_history(memory, provenance)


def _print_sources(memory: Memory, provenance: Provenance) -> None:
    from lore.records import TRUST

    print(bold("\nWhere it comes from"))
    if not provenance.sources and provenance.reading.fragment:
        place = _note_place(provenance.reading.fragment)
        print(f"   a note in {place}" if place else "   no message: it was stored by hand")
    ids = [source.id for source in provenance.sources]
    short = link_ids(memory, memory.search.short_ids(ids), dict.fromkeys(ids, "message"))
    for source in provenance.sources:
        text = one_line(" ".join(part.text for part in source.parts), 200)
        origin = provenance.origins[source.id]
        voice = f"{source.role} (origin {origin}, trust {TRUST[origin]})"
        print(f"   {short[source.id]}  {source.created_at:%Y-%m-%d %H:%M}  {voice}: {text}")


_FIGURES = (
    ("relevance", "current strength by the forgetting curve"),
    ("importance", "how much it mattered when it was learned"),
    ("confidence", "how sure it is"),
    ("trust", "what its origin may do, 0 to 3"),
    ("readings", "how often it was read"),
    ("strength", "what these readings add"),
    ("days_since_reinforced", "days since it was last read"),
    ("decay_per_day", "what each of them takes"),
)


def _print_strength(provenance: Provenance) -> None:
    if not provenance.numbers:
        return
    print(bold("\nHow strong it is"))
    for name, meaning in _FIGURES:
        value = provenance.numbers[name]
        shown = f"{value:.0f}" if name in ("trust", "readings") else f"{value:.2f}"
        print(f"   {name.replace('_', ' '):<22} {shown:>6}   {dim(meaning)}")


def _print_history(memory: Memory, provenance: Provenance) -> None:
    print(bold("\nWhat became of it"))
    item = provenance.reading
    others = filter(None, [*provenance.supersedes, provenance.superseded_by])
    short = memory.search.short_ids([item.id, *others])
    linked = link_ids(memory, short, types_of([item]))
    print(f"   recalled {counted(provenance.times_recalled, 'time')}")
    if provenance.versions:
        former = counted(provenance.versions, "former version")
        print(f"   {former}: 'lore log {short[item.id]}'")
    for id_ in provenance.supersedes:
        print(f"   supersedes {linked[id_]}")
    if provenance.superseded_by:
        print(f"   superseded by {linked[provenance.superseded_by]}: no longer found by recall")
    if item.deleted:
        print(f"   deleted: 'lore undo {short[item.id]}' restores it")


_COLOURS = {"success": "green", "failure": "red", "partial": "yellow"}
_SHOWN = 20
"""How many actions and files are shown; --json has all of them."""


def episode(
    context: Context,
    session: Annotated[
        str,
        Argument(
            help="Id of a session or of its episode, or the agent's own name for the session."
        ),
    ],
    json: Json = False,
) -> None:
    """Describe a session: its goal, what was done and how it ended.

    The episode is stored, so that recall finds it. It changes only if the session went on.
    """
    with open_memory(context) as memory:
        record = memory.sessions.episode(session)
    if json:
        print_json(record)
    elif record is None:
        print("Nothing was asked or done in that session.")
    else:
        _print_episode(record)


def _print_episode(record: Episode) -> None:
    print(bold(one_line(record.goal, 400) or "(no goal was named)"))
    outcome = coloured(record.outcome, _COLOURS.get(record.outcome, "white"))
    print(f"   {outcome}: {one_line(record.reason, 200)}")
    duration = format_duration(record.duration_s)
    size = f"{counted(record.calls, 'tool call')}, {duration}, {record.tokens:,} tokens"
    print(f"   {size}{f' of {one_line(record.agent, 40)}' if record.agent else ''}")
    if len(record.tasks) > 1:
        _print_tasks(record.tasks)
    if record.errors:
        print(bold("\nErrors"))
    for error in record.errors:
        fix = one_line(error.resolution, 160) or "not fixed"
        print(f"   {error.type}: {one_line(error.message, 160)}\n      {dim('→')} {fix}")
    for title, names in (
        ("Changed", record.files_changed),
        ("Artifacts", record.artifacts),
        ("Commits", record.commits),
    ):
        _print_list(title, names)
    _print_actions(record.actions)


def _print_tasks(tasks: tuple[Task, ...]) -> None:
    print(bold("\nTasks"))
    for place, task in enumerate(tasks, 1):
        outcome = coloured(task.outcome, _COLOURS.get(task.outcome, "white"))
        size = f"messages {task.first} to {task.last}, {counted(task.calls, 'tool call')}"
        if task.files_changed:
            size += f", {counted(len(task.files_changed), 'file')} changed"
        if unmended := sum(not error.resolution for error in task.errors):
            size += f", {counted(unmended, 'error')} not fixed"
        print(f"   {place}. {one_line(task.goal, 160) or '(no goal was named)'}")
        print(f"      {outcome}: {one_line(task.reason, 120)}; {dim(size)}")


def _print_list(title: str, names: tuple[str, ...]) -> None:
    if names:
        print(bold(f"\n{title}"))
    for name in names[:_SHOWN]:
        print(f"   {one_line(name, 160)}")
    if len(names) > _SHOWN:
        print(f"   and {len(names) - _SHOWN} more")


def _print_actions(actions: tuple[Action, ...]) -> None:
    if not actions:
        return
    print(bold("\nThe last of what was done"))
    print_columns(
        (f"   {format_duration(a.t)}", a.result, one_line(a.action, 30), one_line(a.target, 100))
        for a in actions[-_SHOWN:]
    )


def episodes(
    context: Context,
    limit: Annotated[int, Option(min=1, max=1000, help="Maximum number of episodes.")] = 20,
    project: Project = "",
    json: Json = False,
) -> None:
    """List the latest episodes: time, outcome, project and goal."""
    with open_memory(context) as memory:
        stored = memory.sessions.episodes(project=project, limit=limit)
        short = memory.search.short_ids([one.fragment.id for one in stored])
        names = project_names(memory)
    if json:
        print_json([{"id": k.fragment.id, "session_id": k.fragment.session_id,
                     "project_id": k.fragment.project_id,
                     "at": k.at, "episode": k.episode} for k in stored])  # fmt: skip
        return
    print_columns(
        (
            short[one.fragment.id],
            f"{one.at:%Y-%m-%d %H:%M}",
            one.episode.outcome,
            names.get(one.fragment.project_id or "", ""),
            one_line(one.episode.goal),
        )
        for one in stored
    )
    if not stored:
        print("No episodes yet: 'lore episode SESSION' describes one.")
