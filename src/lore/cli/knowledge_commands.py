"""Commands that change knowledge: remember, update, delete, undo, link, forget, revoke, share."""

from __future__ import annotations

import difflib
import sys
from collections import Counter
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer
from typer import Argument, Context, Option

from lore.cli.links import link_ids
from lore.cli.native_commands import share_native
from lore.cli.options import (
    DryRun,
    Id,
    Json,
    Project,
    Summary,
    Text,
    Yes,
    absolute,
    current_repository,
    given_path,
    names_of,
)
from lore.cli.output import (
    bold,
    clean,
    coloured,
    counted,
    diff_line,
    dim,
    notice,
    one_line,
    open_memory,
    plain,
    print_columns,
    print_json,
    print_result,
    read_text,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Sequence

    from lore.memory import Memory
    from lore.records import (
        EdgeKind,
        ForgetPreview,
        FragmentKind,
        NameMatches,
        Origin,
        Reading,
        Revocation,
        SharedChange,
        SharedPage,
        TaskRecordCount,
    )


_DOOMED_SHOWN = 20
"""How many items to forget are listed; --json has the ids of all."""

_SHORT_MATCH = 3
"""A shorter text occurs in too many words to be what the user means."""


def remember(
    context: Context,
    text: Text,
    summary: Summary = "",
    kind: Annotated[
        str | None,
        Option(
            help="fact, decision, preference, pattern, … (default: preference for a lasting rule,"
            " else fact).",
            autocompletion=names_of("FRAGMENT_KINDS"),
        ),
    ] = None,
    parent: Annotated[str, Option(help="Id of the fragment it belongs under.")] = "",
    importance: Annotated[float, Option(help="How much it matters, 0 to 1.")] = 0.5,
    origin: Annotated[
        str,
        Option(help="Who said it: user, assistant, tool, …", autocompletion=names_of("ORIGINS")),
    ] = "user",
    project: Annotated[
        str,
        Option(
            "--project",
            help="Path or name of the project it applies to (default: the current repository).",
            callback=absolute,
        ),
    ] = "",
    everywhere: Annotated[bool, Option("--everywhere", help="Apply it to all projects.")] = False,
    key: Annotated[str, Option(help="Idempotency key: the same key stores nothing twice.")] = "",
    json: Json = False,
) -> None:
    """Store a piece of knowledge and print its id.

    It applies to the current repository; outside of a repository, to all projects.
    """
    if everywhere and project:
        msg = "Use --project or --everywhere, not both."
        raise InvalidInput(msg)
    if not everywhere and not project:
        project = current_repository()
    content = read_text(text)
    with open_memory(context, create=True, asks_once=True) as memory:
        result = memory.remember(
            content,
            summary=summary,
            kind=cast("FragmentKind", _kind_of(content) if kind is None else kind),
            parent_id=parent,
            importance=importance,
            origin=cast("Origin", origin),
            project=project,
            key=key,
        )
        notice(memory.notice)
        shown = link_ids(memory, {result.id: result.id})[result.id]
    if json:
        print_json(result)
        return
    print(shown)
    if result.outcome == "known":
        notice("Already known: nothing was stored.")
    elif result.outcome == "updated":
        notice("Already known: its text was updated.")
    elif result.parent:
        notice(f"Stored below '{one_line(result.parent.title, 60)}'.")
    if result.redacted:
        notice(f"A secret in the text was redacted: 'lore read {result.id}' shows what is stored.")
    if result.outcome == "stored":
        notice(_where(project))


def _kind_of(content: str) -> FragmentKind:
    """Return the kind of what a person wants remembered: a lasting rule is a preference."""
    from lore.text.instructions import judge_sentence

    return "preference" if judge_sentence(content) == "stands" else "fact"


def _where(project: str) -> str:
    """Return where a stored fragment applies, and how to change that."""
    if project:
        name = one_line(Path(project).name or project, 60)
        return f"It applies to the project '{name}'; --everywhere applies it to all."
    return "It applies to all projects; --project names one."


def update(
    context: Context,
    id: Id,
    text: Text,
    summary: Summary = "",
    reason: Annotated[str, Option(help="Why it changed; shown by 'lore log'.")] = "",
    json: Json = False,
) -> None:
    """Change the text of a fragment; former versions stay readable."""
    with open_memory(context) as memory:
        version = memory.knowledge.update(id, read_text(text), summary=summary, reason=reason)
        (whole,), (label,) = _names(memory, id)
    short = label.split(" ", 1)[0]
    outcome = (
        f"{label} is now at version {version}.\n"
        f"'lore diff {short}' shows what changed, 'lore undo {short}' undoes it."
    )
    print_result({"id": whole, "version": version}, outcome, json=json)


def delete(context: Context, id: Id, json: Json = False) -> None:
    """Delete a fragment; 'lore undo' restores it."""
    with open_memory(context) as memory:
        id_ = memory.knowledge.delete(id)
        _, (label,) = _names(memory, id_)
    short = label.split(" ", 1)[0]
    way_back = f"'lore undo {short}' restores it; 'lore forget {short}' deletes it for good."
    print_result({"deleted": id_}, f"Deleted {label}.\n{way_back}", json=json)


def undo(
    context: Context,
    id: Annotated[str | None, Argument(help="Only changes of this fragment.")] = None,
    redo: Annotated[bool, Option("--redo", help="Repeat what was last undone.")] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would be undone.")] = False,
    json: Json = False,
) -> None:
    """Undo the last manual change; run it again for the one before.

    --redo repeats what was undone, until something else is changed.
    """
    if id is not None and not id.strip():
        msg = "The id is empty: leave it out to undo the last change of all."
        raise InvalidInput(msg)
    with open_memory(context) as memory:
        if dry_run:
            _print_next(memory, id or "", redo=redo, json=json)
            return
        verb, id_ = memory.knowledge.redo(id or "") if redo else memory.knowledge.undo(id or "")
        _, (label,) = _names(memory, id_)
    if json:
        print_json({"redone" if redo else "undone": verb, "id": id_})
    elif redo:
        print(f"Redone: {verb} of {label}.")
    else:
        print(f"Undone: {verb} of {label}.{_EFFECTS.get(verb, '')} 'lore undo --redo' repeats it.")


_EFFECTS = {
    "store": " It is hidden now.",
    "import": " What it brought is hidden or removed; files and handoffs need another import.",
}
"""What an undo does beyond restoring a former state, by what was undone."""


def _print_next(memory: Memory, id: str, *, redo: bool, json: bool) -> None:
    """Print what undo or redo would do, without doing it."""
    verb, id_ = memory.knowledge.next_undo(id, redo=redo) or ("", "")
    if json:
        print_json({"would_redo" if redo else "would_undo": verb, "id": id_})
    elif verb:
        _, (label,) = _names(memory, id_)
        print(f"Would {'redo' if redo else 'undo'}: {verb} of {label}.")
    else:
        print(f"There is nothing to {'redo' if redo else 'undo'}.")


def _edge_kinds() -> list[str]:
    """Return the kinds of edges that can be created by hand."""
    from lore.records import EDGE_KINDS

    return [kind for kind in EDGE_KINDS if kind != "supersedes"]


def link(
    context: Context,
    source: Id,
    target: Id,
    kind: Annotated[
        str, Option(help="associative, related_to, supports, …", autocompletion=_edge_kinds)
    ] = "related_to",
    weight: Annotated[float, Option(help="Strength, 0 to 1.")] = 1.0,
    note: Annotated[str, Option(help="Why they are linked.")] = "",
    json: Json = False,
) -> None:
    """Create an edge between two fragments."""
    with open_memory(context) as memory:
        memory.knowledge.link(source, target, cast("EdgeKind", kind), weight=weight, note=note)
        ids, labels = _names(memory, source, target)
    print_result(
        {"source": ids[0], "target": ids[1], "kind": kind},
        f"Linked ({kind}): {labels[0]} → {labels[1]}.",
        json=json,
    )


def supersede(context: Context, old: Id, new: Id, json: Json = False) -> None:
    """Replace an older fragment by a newer one; both are kept."""
    with open_memory(context) as memory:
        memory.knowledge.supersede(old, new)
        ids, labels = _names(memory, old, new)
    way_back = "The older one is kept but no longer found; 'lore undo' undoes this."
    outcome = f"{labels[0]} is superseded by {labels[1]}.\n{way_back}"
    print_result({"superseded": ids[0], "by": ids[1]}, outcome, json=json)


def forget(
    context: Context,
    id: Annotated[
        str, Argument(help="Id of a message, distillation or fragment.", show_default=False)
    ] = "",
    session: Annotated[str, Option(help="A whole session.")] = "",
    project: Annotated[str, Option(help="A whole project, by path or name.")] = "",
    match: Annotated[
        str, Option(help="Everything that contains this text ('-': from standard input).")
    ] = "",
    yes: Yes = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would be deleted.")] = False,
    json: Json = False,
) -> None:
    """Delete without a trace.

    Database, log, indexes and automatic backups: nothing can restore it.
    """
    what = {"id": id, "session": session, "project": project, "match": read_text(match)}
    if sum(bool(value.strip()) for value in what.values()) != 1:
        msg = "Name exactly one: an id, --session, --project or --match."
        raise InvalidInput(msg)
    with open_memory(context) as memory:
        _warn_of_short(what["match"])
        preview = memory.maintenance.preview_forget(**what)
        count = preview.count
        names = memory.maintenance.find_names(what["match"])
        task_records = preview.task_records
        asks = not dry_run and not yes and bool(count or names.sessions or task_records)
        if (dry_run or (asks and sys.stdin.isatty())) and not json:
            _print_forget_preview(memory, preview)
        if not dry_run:
            if asks:
                doomed = _doomed(count, names, task_records)
                _require_terminal(f"{doomed} would be deleted for good.")
                _confirm(f"Forget {doomed} for good? Nothing can bring that back.")
            # The text may also be in the log of queries, so it is forgotten there too.
            count = len(memory.forget(**what))
    if json:
        ids = {"sessions": [s.id for s in names.sessions], "projects": names.projects}
        listed = {"ids": preview.ids, "task_records": task_records, **ids}
        print_json({"forgotten": count, "dry_run": dry_run, **listed})
        return
    _print_forgotten(count, names, task_records, dry_run=dry_run)
    for page in preview.pages:
        print(f"{one_line(str(page))} {'would lose' if dry_run else 'lost'} the entries with it.")
        print("   The history of the repository still has them.")
    for copy in preview.copies:
        print(f"{one_line(str(copy))} {'would lose' if dry_run else 'lost'} the entries with it.")
    for file in preview.notes:
        print(f"{one_line(file, 300)} still has it: Lore does not change an agent's own memory.")


def _warn_of_short(match: str) -> None:
    if 0 < len(match.strip()) < _SHORT_MATCH:
        notice(f"'{match.strip()}' is short: it occurs in many words, and all of them would match.")


def _print_forget_preview(memory: Memory, preview: ForgetPreview) -> None:
    """List what would be forgotten, because it cannot be restored."""
    readings = memory.read(preview.ids[:_DOOMED_SHOWN], reinforce=False)
    short = memory.search.short_ids([reading.id for reading in readings])
    print_columns(
        (
            f"   {short[one.id]}",
            f"{one.created_at:%Y-%m-%d}",
            _sort_of(one),
            one_line(one.session.title, 40) if one.session else "",
            one_line(one.text, 80),
        )
        for one in readings
    )
    if len(preview.ids) > len(readings):
        print(f"   and {len(preview.ids) - len(readings):,} more: --json has their ids.")
    places = [(preview.sessions, "session"), (preview.projects, "project")]
    places_text = " and ".join(counted(count, noun) for count, noun in places if count)
    if places_text:
        print(f"   with {places_text}")


def _sort_of(reading: Reading) -> str:
    """Return the role of a message, the kind of a fragment, or 'distillation'."""
    if reading.fragment:
        return reading.fragment.kind
    return one_line(reading.message.role, 20) if reading.message else reading.type


_TASK_RECORDS = {
    "task": "task",
    "handoff": "handoff",
    "agent_ledger": "ledger",
    "working_state": "working state",
    "layout_file": "layout file",
}


def _task_counts(records: Sequence[TaskRecordCount], *, changed: bool = False) -> str:
    """Return how many records of task memory are deleted, or lose entries."""
    numbers: Counter[str] = Counter()
    for one in records:
        number = one.changed if changed else one.deleted
        numbers[_TASK_RECORDS.get(one.record, "other record")] += number
    return ", ".join(counted(number, noun) for noun, number in numbers.items() if number)


def _doomed(count: int, names: NameMatches, task_records: Sequence[TaskRecordCount]) -> str:
    """Return what would be deleted, to ask for it."""
    doomed = counted(count, "record")
    if names.sessions:
        doomed += f" and the names of {counted(len(names.sessions), 'session')}"
    if task_records:
        doomed += f" and {_touched(task_records)} of task memory"
    return doomed


def _touched(records: Sequence[TaskRecordCount]) -> str:
    parts = (_task_counts(records), _task_counts(records, changed=True))
    return ", ".join(filter(None, (parts[0], parts[1] and f"entries in {parts[1]}")))


def _print_task_records(records: Sequence[TaskRecordCount], *, dry_run: bool) -> None:
    if deleted := _task_counts(records):
        print(f"Task memory: {deleted}{' would be' if dry_run else ''} deleted for good.")
    if changed := _task_counts(records, changed=True):
        print(f"Task memory: {changed} {'would lose' if dry_run else 'lost'} the entries with it.")


def _print_forgotten(
    count: int, names: NameMatches, task_records: Sequence[TaskRecordCount], *, dry_run: bool
) -> None:
    if dry_run:
        print(f"{counted(count, 'record')} would be deleted for good.")
    elif count:
        print(f"{counted(count, 'record')} deleted for good.")
    elif not names.sessions and not task_records:
        print("Nothing contains that text; it is also removed from the query log.")
    _print_task_records(task_records, dry_run=dry_run)
    for session in names.sessions:
        if dry_run:
            name = one_line(session.title or session.branch or session.external_id)
            print(f"Session {session.id} would lose its name: {name}")
        else:
            print(f"Session {session.id} lost its name.")
    for project in names.projects:
        print(f"The project {one_line(project.path)} still has it in its name.")
        print(f"   'lore forget --project {project.id}' forgets the whole project.")


def _require_terminal(consequence: str) -> None:
    """Raise if nobody can be asked."""
    if not sys.stdin.isatty():
        raise InvalidInput(consequence, hint="Add --yes to confirm, or --dry-run to preview.")


def _confirm(question: str) -> None:
    if not typer.confirm(question):
        raise typer.Exit(1)


def _names(memory: Memory, *ids: str) -> tuple[list[str], list[str]]:
    """Return the full ids of fragments, and their names for display."""
    readings = memory.read(ids, reinforce=False)
    whole = [reading.id for reading in readings]
    short = memory.search.short_ids(whole)
    return whole, [f"{short[r.id]} '{one_line(r.title, 60)}'" for r in readings]


_SHOWN = 50


def revoke(
    context: Context,
    session: Annotated[str, Option(help="Everything derived from a session.")] = "",
    origin: Annotated[
        str,
        Option(help="Everything from an origin: web, tool, …", autocompletion=names_of("ORIGINS")),
    ] = "",
    file: Annotated[
        str, Option(help="Everything from a file, read by a tool or as a transcript.")
    ] = "",
    project: Project = "",
    yes: Yes = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only show what would be revoked.")] = False,
    json: Json = False,
) -> None:
    """Revoke everything that was derived from a session, an origin or a file.

    Fragments are hidden, distillations and standing instructions are removed; messages stay. 'lore
    undo' restores fragments and instructions.
    """
    with open_memory(context) as memory:
        take = partial(
            memory.knowledge.revoke, session=session, origin=origin, file=file, project=project
        )
        revocation = take(dry_run=True)
        if not dry_run:
            if not yes and _size(revocation):
                _require_terminal(f"{_describe_counts(revocation)} would be revoked.")
                _confirm(f"Take back {_describe_counts(revocation)}?")
            revocation = take()
        if json:
            print_json({**plain(revocation), "dry_run": dry_run})
            return
        _print_revocation(memory, revocation, dry_run=dry_run)


def _size(revocation: Revocation) -> int:
    return len(revocation.fragments) + len(revocation.distillations) + len(revocation.standing)


def _describe_counts(revocation: Revocation) -> str:
    counts = (
        counted(len(revocation.fragments), "fragment"),
        counted(len(revocation.distillations), "distillation"),
        counted(len(revocation.standing), "standing instruction"),
    )
    return f"{counts[0]}, {counts[1]} and {counts[2]}"


def _print_revocation(memory: Memory, revocation: Revocation, *, dry_run: bool) -> None:
    if not _size(revocation):
        print(f"Nothing was derived from {counted(revocation.messages, 'message')} of that kind.")
        return
    short = memory.search.short_ids([title.id for title in revocation.fragments])
    for title in revocation.fragments[:_SHOWN]:
        print(f"   {short[title.id]}  {one_line(title.title)}")
    for text in revocation.standing[:_SHOWN]:
        print(f"   standing: {one_line(text)}")
    hidden = max(0, len(revocation.fragments) - _SHOWN) + max(0, len(revocation.standing) - _SHOWN)
    if hidden:
        print(f"   and {hidden:,} more")
    came = f"derived from {counted(revocation.messages, 'message')}"
    if dry_run:
        print(f"{_describe_counts(revocation)}, {came}, would be revoked.")
        return
    print(f"Revoked: {_describe_counts(revocation)}, {came}. The messages stay.")
    if revocation.fragments:
        print("'lore undo' undoes this.")


def share(
    context: Context,
    read: Annotated[
        bool, Option("--read", help="Import changes that people made on the page.")
    ] = False,
    project: Annotated[str, Option(help="Folder of the project.", metavar="PATH")] = ".",
    leave_out: Annotated[
        list[str] | None, Option(help="Id of a fragment that never goes on the page.")
    ] = None,
    every: Annotated[
        bool, Option("--all", help="Write all that is known, not some 60 entries.")
    ] = False,
    hidden: Annotated[
        bool, Option("--hidden", help="Also import entries with hidden characters.")
    ] = False,
    native: Annotated[
        str,
        Option(
            help="Write to the memory of an agent instead: claude-code or codex.", metavar="AGENT"
        ),
    ] = "",
    undo: Annotated[bool, Option("--undo", help="Take out again what --native wrote.")] = False,
    yes: Yes = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Write what is known about a project to .lore.md, for colleagues and pull requests.

    Only words of you or the assistant are shared, never episodes or texts with a secret. Changes
    that people make on the page come back with --read, after you have approved them.

    With --native, an agent's own memory gets what it does not have yet, as one file of Lore's and
    one line in its index.
    """
    from lore.text.shared_page import FILE_NAME

    folder = given_path(project).expanduser().absolute().resolve()
    if not folder.is_dir():
        msg = f"{folder} is not a folder."
        raise InvalidInput(msg, hint="--project names the folder that holds the page.")
    if (undo and not native) or (native and (read or leave_out or hidden or every)):
        msg = "--undo needs --native, and --native takes no option of the page."
        raise InvalidInput(msg)
    with open_memory(context, create=read) as memory:
        if native:
            share_native(memory, native, folder, undo=undo, yes=yes, dry_run=dry_run, json=json)
            return
        if leave_out:
            memory.knowledge.exclude_from_page(leave_out)
        if read:
            _read(
                memory,
                folder,
                folder / FILE_NAME,
                hidden=hidden,
                yes=yes,
                dry_run=dry_run,
                json=json,
            )
        else:
            page = memory.knowledge.plan_share(str(folder), folder / FILE_NAME, whole=every)
            _write(memory, page, folder / FILE_NAME, yes=yes, dry_run=dry_run, json=json)


def _write(
    memory: Memory, page: SharedPage, file: Path, *, yes: bool, dry_run: bool, json: bool
) -> None:
    acting = bool(page.changes) and not dry_run
    if acting and not yes:
        _require_terminal(f"{counted(len(page.changes), 'change')} would be made.")
    if not json:
        _print_page(page.changes)
    if acting and not yes:
        _confirm(clean(f"Write {counted(len(page.changes), 'change')} to {file}?"))
    if acting:
        memory.knowledge.share(page, file)
    if json:
        print_json({"file": file, "changes": page.changes, "dry_run": dry_run})
    elif not page.changes:
        print(f"{clean(str(file))} is up to date.")
    elif not dry_run:
        entries = len(page.entries)
        print(f"{clean(str(file))} has {entries:,} of your fragments.")
    if not json and page.total > len(page.entries):
        left = page.total - len(page.entries)
        print(dim(f"{left:,} more are known: 'lore share --all' writes them too."))


def _read(
    memory: Memory, folder: Path, file: Path, *, hidden: bool, yes: bool, dry_run: bool, json: bool
) -> None:
    changes = memory.knowledge.read_shared(str(folder), file)
    refused = [change for change in changes if change.hidden and not hidden]
    accepted = [change for change in changes if hidden or not change.hidden]
    acting = bool(accepted) and not dry_run
    if acting and not yes:
        _require_terminal(f"{counted(len(accepted), 'change')} would be made.")
    if not json:
        _print_page(changes)
    if refused:
        notice(f"{counted(len(refused), 'change')} skipped: the text contains hidden characters.")
    if acting and not yes:
        _confirm(f"Take in {counted(len(accepted), 'change')}?")
    if acting:
        memory.knowledge.apply_shared(str(folder), accepted)
    if json:
        print_json({"file": file, "changes": accepted, "left_out": refused, "dry_run": dry_run})
    elif not changes:
        print(f"{clean(str(file))} has no changes.")
    elif acting:
        print(f"Imported {counted(len(accepted), 'change')}. 'lore undo' undoes the last one.")


def _print_page(changes: Sequence[SharedChange]) -> None:
    for change in changes:
        print(bold(f"{change.verb} {change.kind}"))
        before, after = change.before.splitlines(), change.after.splitlines()
        diff = difflib.unified_diff(before, after, lineterm="", n=1)
        for line in islice(diff, 2, None):  # behind the names of the two sides
            if not line.startswith("@@"):  # a line of a text begins with its sign
                print(f"   {diff_line(line)}")
        for reason in change.hidden:
            print(coloured(f"   hidden: {clean(reason)}", "yellow"))
