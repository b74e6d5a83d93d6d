"""Commands about tasks: task start, end, list, show, load and economics; and index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

from typer import Argument, Context, Option

from lore.cli.options import Json, Project, command_group, current_folder, names_of
from lore.cli.output import (
    bold,
    clean,
    counted,
    dim,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    print_result,
    read_text,
    require_project,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import (
        BriefingEntry,
        IndexTopic,
        MemoryTimeline,
        Outcome,
        TaskBriefing,
        TaskState,
    )

task = command_group(
    "task",
    """Begin and end tasks: what is known before one, and what came of it.

Agents do the same with the tools before_task and after_task.""",
)

Session = Annotated[str, Option("--session", help="Id of the session that works on it.")]
Goal = Annotated[str, Argument(help="What is to be done, or '-' to read it from standard input.")]

_SECTIONS = (
    ("critical_avoid", "Avoid, met before in such errors"),
    ("avoid_these", "Avoid"),
    ("relevant_patterns", "Known"),
    ("applicable_skills", "How it was done"),
)


@task.command("start")
def start_task(
    context: Context,
    goal: Goal,
    phase: Annotated[str, Option(help="planning, development, debugging, review, …")] = "",
    action: Annotated[str, Option(help="The first action: read_file, run_test, …")] = "",
    task_type: Annotated[
        str, Option("--type", help="Else derived.", autocompletion=names_of("TASK_TYPES"))
    ] = "",
    name: Annotated[str, Option(help="Your own id of the task.")] = "",
    session: Session = "",
    project: Project = "",
    json: Json = False,
) -> None:
    """Begin a task: print its id and what is known for it."""
    with open_memory(context, create=True, asks_once=True) as memory:
        briefing = memory.tasks.start(
            read_text(goal),
            phase=phase,
            action=action,
            task_type=task_type,
            session=session,
            project=project or current_folder(),
            agent="cli",
            name=name,
        )
        if json:
            print_json(briefing)
            return
        _print_briefing(memory, briefing)


def _print_briefing(memory: Memory, briefing: TaskBriefing) -> None:
    print(f"{bold(briefing.task_id)}  {briefing.detected_task_type}")
    entries: dict[str, tuple[BriefingEntry, ...]] = {
        heading: getattr(briefing, name) for name, heading in _SECTIONS
    }
    ids = [entry.id for listed in entries.values() for entry in listed]
    if not ids:
        print("Nothing is known for this yet.")
        return
    short = memory.search.short_ids(ids)
    for heading, listed in entries.items():
        if listed:
            print(f"\n{heading}")
        for entry in listed:
            print(f"  {dim(short[entry.id])}  {clean(entry.text)}")
    print(dim(f"\n{briefing.tokens} tokens"))


@task.command("end")
def end_task(
    context: Context,
    name: Annotated[str, Argument(help="Id or name of the task; else the open one.")] = "",
    outcome: Annotated[
        str,
        Option(help="success, failure, partial or unknown.", autocompletion=names_of("OUTCOMES")),
    ] = "unknown",
    reason: Annotated[str, Option(help="By what you know.")] = "",
    used: Annotated[
        list[str] | None, Option("--used", metavar="ID", help="A memory that was used.")
    ] = None,
    changed: Annotated[
        list[str] | None, Option("--changed", metavar="FILE", help="A file that was changed.")
    ] = None,
    error: Annotated[
        list[str] | None,
        Option("--error", metavar="'MESSAGE => FIX'", help="An error, and what fixed it."),
    ] = None,
    report: Annotated[
        str, Option(help="Further fields of the episode as JSON, or '-' for standard input.")
    ] = "",
    session: Session = "",
    project: Project = "",
    json: Json = False,
) -> None:
    """End a task: store how it ended, and which of the given memories were used."""
    fields = _parse_report(report)
    if changed:
        fields["files_changed"] = [*fields.get("files_changed", ()), *changed]
    if error:
        fields["errors"] = [*fields.get("errors", ()), *map(_parse_error, error)]
    with open_memory(context, create=True, asks_once=True) as memory:
        ended = memory.tasks.end(
            name,
            outcome=cast("Outcome", outcome),
            reason=reason,
            session=session,
            project=project or current_folder(),
            agent="cli",
            used=used or (),
            report=fields,
        )
        if json:
            print_json(ended)
            return
        short = memory.search.short_ids([ended.episode_id, *(m.item_id for m in ended.memories)])
    print(f"{ended.task.outcome}: {one_line(ended.task.goal)}")
    print(f"episode {short[ended.episode_id]}  {dim(one_line(ended.task.reason))}")
    for one in ended.memories:
        state = f"used ({one.sign})" if one.used else "not used"
        print(f"  {dim(short[one.item_id])}  {one.given_as}  {state}")


def _parse_report(text: str) -> dict[str, Any]:
    import json

    if not text:
        return {}
    try:
        fields = json.loads(read_text(text))
    except RecursionError:
        msg = "--report is nested too deeply."
        raise InvalidInput(msg) from None
    except ValueError as error:
        msg = f"--report is not JSON: {error}."
        raise InvalidInput(msg) from None
    if not isinstance(fields, dict):
        msg = "--report must be a JSON object with fields of an episode."
        raise InvalidInput(msg, hint='Example: --report \'{"files_changed": ["a.py"]}\'')
    return fields


def _parse_error(text: str) -> dict[str, str]:
    message, _, fix = text.partition("=>")
    if not message.strip():
        msg = "--error needs a message: --error 'message => fix'."
        raise InvalidInput(msg)
    return {"message": message.strip(), "resolution": fix.strip()}


@task.command("list")
def list_tasks(
    context: Context,
    state: Annotated[str, Option(help="open or done.")] = "",
    limit: Annotated[int, Option("--limit", "-n", min=1, max=1000)] = 20,
    project: Project = "",
    json: Json = False,
) -> None:
    """List tasks, the latest first."""
    if state not in ("", "open", "done"):
        msg = f"'{state}' is not a state of a task: use open or done."
        raise InvalidInput(msg)
    with open_memory(context, or_empty=True) as memory:
        known = memory.sessions.find_project(project) if project else None
        tasks = memory.tasks.list_tasks(
            project=known.id if known else project, state=cast("TaskState", state), limit=limit
        )
    if json:
        print_json(tasks)
        return
    if not tasks:
        print("No tasks.")
    print_columns(
        (
            dim(one.id[:13]),
            f"{one.started_at:%Y-%m-%d %H:%M}",
            one.type,
            one.outcome if one.state == "done" else "open",
            one_line(one.goal, 70),
        )
        for one in tasks
    )


@task.command("show")
def show_task(
    context: Context,
    name: Annotated[str, Argument(help="Id or name of a task.")],
    json: Json = False,
) -> None:
    """Show a task: its goal, how it ended, and what became of the memories that it was given."""
    with open_memory(context) as memory:
        record, memories = memory.tasks.show(name)
        if json:
            print_json({"task": record, "memories": memories})
            return
        short = memory.search.short_ids([one.item_id for one in memories]) if memories else {}
        titles = {reading.id: reading.title for reading in _readings(memory, short)}
    print(f"{bold(record.id)}  {record.type}  {record.state}  {record.outcome}")
    print(clean(record.goal))
    if record.reason:
        print(dim(clean(record.reason)))
    for one in memories:
        state = {None: "given", True: f"used ({one.sign})", False: "not used"}[one.used]
        helped = {None: "", True: ", helped", False: ", did not help"}[one.helped]
        title = one_line(titles.get(one.item_id, ""), 70)
        print(f"  {dim(short[one.item_id])}  {one.given_as}  {state}{helped}  {title}")


def _readings(memory: Memory, short: dict[str, str]) -> list[Any]:
    return list(memory.read(list(short), reinforce=False)) if short else []


@task.command("load")
def load_context(
    context: Context,
    query: Annotated[str, Argument(help="What you want to know.")],
    session: Session = "",
    project: Project = "",
    json: Json = False,
) -> None:
    """Print what a question needs: its topics, the timeline, and details if that is not enough."""
    with open_memory(context, asks_once=True) as memory:
        place = require_project(memory, project) or current_folder()
        loaded = memory.tasks.load(query, session=session, project=place)
        if json:
            print_json(loaded)
            return
        text = memory.tasks.describe(loaded)
    print(clean(text) if text else "No topic is near this; 'lore recall' searches every message.")
    spent = loaded.index_tokens + loaded.timeline_tokens
    print(dim(f"\n{spent} tokens to find it, {loaded.details_tokens} to read it"))


@task.command("economics")
def show_economics(
    context: Context, session: Session = "", project: Project = "", json: Json = False
) -> None:
    """Show what memory cost and saved, and the corrective actions with their effect."""
    with open_memory(context) as memory:
        place = require_project(memory, project) or current_folder()
        report = memory.tasks.economics(session=session, project=place)
    if json:
        print_json(report)
        return
    ratio = "nothing read" if report.ratio is None else f"{report.ratio:.3f}"
    print_columns((
        ("sessions", str(report.sessions)),
        ("tokens to find", str(report.discovery_tokens)),
        ("tokens read", str(report.read_tokens)),
        ("ratio", ratio),
        ("saved", f"{report.tokens_saved} of {report.baseline_tokens}"
                  f" ({report.savings_vs_full_load:.0f} %)"),
        ("index", f"{counted(report.layer1_loads, 'load')}, {report.layer1_tokens} tokens"),
        ("timeline", f"{counted(report.layer2_loads, 'load')}, {report.layer2_tokens_scanned}"
                     f" of {report.layer2_tokens_available} tokens"),
        ("details", f"{counted(report.layer3_loads, 'load')}, {report.layer3_tokens} tokens"),
    ))  # fmt: skip
    if report.bypassed:
        notice("Memory is given only when asked in this project: it saved too little.")
    for one in report.actions:
        after = "" if one.after is None else f" → {one.after:g}"
        verdict = "kept" if one.is_kept else "taken back"
        print(f"{one.at:%Y-%m-%d}  {one.action}: {one.metric} {one.before:g}{after}  {verdict}")


def index(
    context: Context,
    query: Annotated[str, Argument(help="Only topics near this.")] = "",
    read: Annotated[str, Option("--read", metavar="TOPIC", help="Read a topic in full.")] = "",
    every: Annotated[bool, Option("--all", help="List all topics.")] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """List the topics of a project: what each is about, and what it costs to read."""
    with open_memory(context, asks_once=True) as memory:
        place = require_project(memory, project) or current_folder()
        if read:
            details = memory.tasks.details(read, project=place)
            print_result(details, clean(memory.tasks.describe(details)), json=json)
            return
        listing = memory.tasks.index(query=query, project=place, whole=every)
        short = (
            memory.search.short_ids([one.id for one in listing.topics]) if listing.topics else {}
        )
    if json:
        print_json(listing)
        return
    if not listing.topics:
        print("Nothing is known here yet.")
        return
    print_columns(_topic_row(one, short) for one in listing.topics)
    totals = f"{counted(listing.total_topics, 'topic')}, {listing.total_memories} memories"
    print(dim(f"\n{totals}, {listing.total_tokens} tokens; 'lore index --read ID' reads a topic"))
    if len(listing.topics) < listing.total_topics and not query:
        shown = f"{len(listing.topics)} of {counted(listing.total_topics, 'topic')}"
        print(dim(f"{shown} shown, as an agent is given them; 'lore index --all' lists all"))


def _topic_row(topic: IndexTopic, short: dict[str, str]) -> tuple[str, ...]:
    return (
        dim(short[topic.id]),
        f"{topic.relevance:.2f}",
        f"{topic.latest_at:%Y-%m-%d}",
        f"{topic.tokens:>5} tokens",
        one_line(topic.title, 90),
    )


def print_timeline(timeline: MemoryTimeline, short: dict[str, str]) -> None:
    """Print the recent work of a project."""
    if timeline.current_focus:
        print(f"{bold('Focus')}  {clean(timeline.current_focus)}")
    for text in timeline.blocked_by:
        print(f"{bold('Blocked by')}  {one_line(text)}")
    for text in timeline.next_up:
        print(f"{bold('Next')}  {one_line(text)}")
    if timeline.recent_actions:
        print(bold("\nDone lately"))
        print_columns(
            (f"  {one.at:%Y-%m-%d}", one.outcome, one_line(one.action, 80), dim(short[one.id]))
            for one in timeline.recent_actions
        )
    if timeline.key_decisions:
        print(bold("\nDecided"))
    for one in timeline.key_decisions:
        why = f" — {clean(one.rationale)}" if one.rationale else ""
        print(f"  {one.at:%Y-%m-%d}  {clean(one.decision)}{why}  {dim(short[one.id])}")
