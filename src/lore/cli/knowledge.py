"""Commands that change knowledge: remember, update, delete, undo, link, supersede, forget."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lore.cli import completion
from lore.cli.output import (
    Json,
    absolute,
    counted,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    read_text,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import EdgeKind, Forgettable, FragmentKind, Names, Origin, Reading

Id = Annotated[str, typer.Argument(help="Id, or at least 8 characters of it.")]
Text = Annotated[str, typer.Argument(help="The text, or '-' to read it from standard input.")]

_DOOMED_SHOWN = 20
"""So many of what would be forgotten are listed; --json has the ids of all."""

_SHORT_MATCH = 3
"""A text of fewer characters stands inside of so many words that it is hardly meant."""


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (remember, update, delete, undo, link, supersede, forget):
        app.command()(command)


def remember(
    context: typer.Context,
    text: Text,
    summary: Annotated[
        str, typer.Option(help="One line; derived from the text if not given.")
    ] = "",
    kind: Annotated[
        str,
        typer.Option(
            help="fact, decision, preference, pattern, …", autocompletion=completion.kinds
        ),
    ] = "fact",
    parent: Annotated[str, typer.Option(help="Id of the fragment it belongs under.")] = "",
    importance: Annotated[float, typer.Option(help="How much it matters, 0 to 1.")] = 0.5,
    origin: Annotated[
        str,
        typer.Option(
            help="Who said it: user, assistant, tool, …", autocompletion=completion.origins
        ),
    ] = "user",
    project: Annotated[
        str,
        typer.Option(
            "--project",
            help="Path or name of the project it holds in; else the repository you are in.",
            callback=absolute,
        ),
    ] = "",
    everywhere: Annotated[
        bool, typer.Option("--everywhere", help="It holds in all projects.")
    ] = False,
    key: Annotated[str, typer.Option(help="The same key again stores nothing twice.")] = "",
    json: Json = False,
) -> None:
    """Store a piece of knowledge and print its id.

    It holds in the repository that you are in, outside of one in all projects.
    """
    if everywhere and project:
        msg = "Something holds in one project or everywhere, not both."
        raise InvalidInput(msg)
    if not everywhere and not project:
        project = _repository()
    with open_memory(context, create=True) as memory:
        kept = memory.remember(
            read_text(text),
            summary=summary,
            kind=cast("FragmentKind", kind),
            parent_id=parent,
            importance=importance,
            origin=cast("Origin", origin),
            project=project,
            key=key,
        )
        notice(memory.notice)
    if json:
        print_json(kept)
        return
    print(kept.id)
    if kept.outcome == "known":
        notice("That is known already: nothing was stored.")
    elif kept.outcome == "updated":
        notice("That is known already: it has your words now.")
    elif kept.parent:
        notice(f"It went below '{one_line(kept.parent.title, 60)}'.")
    if kept.outcome == "stored":
        notice(_where(project))


def _repository() -> str:
    """Return the present folder if it lies in a repository; one that is gone lies nowhere."""
    from lore.settings import resting_threads

    with resting_threads():
        from lore.projects import Projects
    try:
        here = str(Path.cwd())
    except FileNotFoundError:
        return ""
    return Projects().find_repository(here)


def _where(project: str) -> str:
    """Say where something holds that was just stored, and how it would hold elsewhere."""
    if project:
        name = one_line(Path(project).name or project, 60)
        return f"It holds in the project '{name}'; --everywhere makes it hold in all."
    return "It holds in all projects; --project names one."


def update(
    context: typer.Context,
    id: Id,
    text: Text,
    summary: Annotated[
        str, typer.Option(help="One line; derived from the text if not given.")
    ] = "",
    reason: Annotated[str, typer.Option(help="Why it changed; shown by 'lore log'.")] = "",
    json: Json = False,
) -> None:
    """Give a fragment new words; the former ones stay readable."""
    with open_memory(context) as memory:
        version = memory.update(id, read_text(text), summary=summary, reason=reason)
        (whole,), (named,) = _names(memory, id)
    if json:
        print_json({"id": whole, "version": version})
    else:
        print(f"{named} is now at version {version}.")
        short = named.split(" ", 1)[0]
        print(f"'lore diff {short}' shows what changed, 'lore undo {short}' takes it back.")


def delete(context: typer.Context, id: Id, json: Json = False) -> None:
    """Remove a fragment; 'lore undo' brings it back."""
    with open_memory(context) as memory:
        id_ = memory.delete(id)
        _, (named,) = _names(memory, id_)
    if json:
        print_json({"deleted": id_})
    else:
        short = named.split(" ", 1)[0]
        print(f"Deleted {named}.")
        print(f"'lore undo {short}' brings it back; 'lore forget {short}' leaves no trace.")


def undo(
    context: typer.Context,
    id: Annotated[str | None, typer.Argument(help="Only what was done to this fragment.")] = None,
    redo: Annotated[bool, typer.Option("--redo", help="Do again what was last undone.")] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Only say what would be undone.")
    ] = False,
    json: Json = False,
) -> None:
    """Undo the last change made by hand; again, the one before it.

    What was undone can be done again with --redo, until something new is done.
    """
    if id is not None and not id.strip():
        msg = "The id is empty: leave it out to undo the last change of all."
        raise InvalidInput(msg)
    with open_memory(context) as memory:
        if dry_run:
            _print_next(memory, id or "", redo=redo, json=json)
            return
        verb, id_ = memory.redo(id or "") if redo else memory.undo(id or "")
        _, (named,) = _names(memory, id_)
    if json:
        print_json({"redone" if redo else "undone": verb, "id": id_})
    elif redo:
        print(f"Done again: {verb} of {named}.")
    else:
        hidden = " It is hidden now." if verb == "store" else ""
        print(f"Undone: {verb} of {named}.{hidden} 'lore undo --redo' does it again.")


def _print_next(memory: Memory, id: str, *, redo: bool, json: bool) -> None:
    """Say what undo or redo would do, without doing it."""
    verb, id_ = memory.next_undo(id, redo=redo) or ("", "")
    if json:
        print_json({"would_redo" if redo else "would_undo": verb, "id": id_})
    elif verb:
        _, (named,) = _names(memory, id_)
        print(f"Would {'do again' if redo else 'undo'}: {verb} of {named}.")
    else:
        print(f"There is nothing to {'redo' if redo else 'undo'}.")


def link(
    context: typer.Context,
    source: Id,
    target: Id,
    kind: Annotated[
        str,
        typer.Option(
            help="associative, related_to, supports, …", autocompletion=completion.edge_kinds
        ),
    ] = "related_to",
    weight: Annotated[float, typer.Option(help="Strength, 0 to 1.")] = 1.0,
    note: Annotated[str, typer.Option(help="Why they belong together.")] = "",
    json: Json = False,
) -> None:
    """Draw an edge between two fragments."""
    with open_memory(context) as memory:
        memory.link(source, target, cast("EdgeKind", kind), weight=weight, note=note)
        ids, named = _names(memory, source, target)
    if json:
        print_json({"source": ids[0], "target": ids[1], "kind": kind})
    else:
        print(f"Linked ({kind}): {named[0]} → {named[1]}.")


def supersede(context: typer.Context, old: Id, new: Id, json: Json = False) -> None:
    """Let a newer fragment replace an older one; both are kept."""
    with open_memory(context) as memory:
        memory.supersede(old, new)
        ids, named = _names(memory, old, new)
    if json:
        print_json({"superseded": ids[0], "by": ids[1]})
    else:
        print(f"{named[0]} is superseded by {named[1]}.")
        print("The older one is kept, and no longer found; 'lore undo' takes this back.")


def forget(
    context: typer.Context,
    id: Annotated[
        str,
        typer.Argument(help="Id of a message, distillation or fragment.", show_default=False),
    ] = "",
    session: Annotated[str, typer.Option(help="A whole session.")] = "",
    project: Annotated[str, typer.Option(help="A whole project, by path or name.")] = "",
    match: Annotated[
        str, typer.Option(help="Everything that contains this text ('-': from standard input).")
    ] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would go.")] = False,
    json: Json = False,
) -> None:
    """Delete without a trace.

    Database, log, indexes and automatic backups: nothing can bring it back.
    """
    what = {"id": id, "session": session, "project": project, "match": read_text(match)}
    if sum(bool(value.strip()) for value in what.values()) != 1:
        msg = "Say what to forget by one of these: an id, --session, --project or --match."
        raise InvalidInput(msg)
    with open_memory(context) as memory:
        _warn_of_short(what["match"])
        found = memory.forgettable(**what)
        count = found.count
        names = memory.names_with(what["match"])
        asks = not dry_run and not yes and bool(count or names.sessions)
        if (dry_run or (asks and sys.stdin.isatty())) and not json:
            _print_doomed(memory, found)
        if not dry_run:
            if asks:
                _confirm(count, names)
            # A text can also stand in the log of questions, so it is forgotten there too.
            count = len(memory.forget(**what))
    if json:
        ids = {"sessions": [s.id for s in names.sessions], "projects": names.projects}
        print_json({"forgotten": count, "dry_run": dry_run, "ids": found.ids, **ids})
        return
    _print_forgotten(count, names, dry_run=dry_run)


def _warn_of_short(match: str) -> None:
    if 0 < len(match.strip()) < _SHORT_MATCH:
        notice(f"'{match.strip()}' is short: it stands inside of many words, and all of them go.")


def _print_doomed(memory: Memory, found: Forgettable) -> None:
    """List what would be forgotten: nothing brings it back, so a person sees it before."""
    readings = memory.read(found.ids[:_DOOMED_SHOWN], reinforce=False)
    short = memory.short_ids([reading.id for reading in readings])
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
    if len(found.ids) > len(readings):
        print(f"   and {len(found.ids) - len(readings):,} more: --json has their ids.")
    places = [(found.sessions, "session"), (found.projects, "project")]
    told = " and ".join(counted(count, noun) for count, noun in places if count)
    if told:
        print(f"   with {told}")


def _sort_of(reading: Reading) -> str:
    """Return the role of a message, the kind of a fragment, or that it is a distillation."""
    if reading.fragment:
        return reading.fragment.kind
    return one_line(reading.message.role, 20) if reading.message else reading.type


def _print_forgotten(count: int, names: Names, *, dry_run: bool) -> None:
    if dry_run:
        print(f"{counted(count, 'record')} would be forgotten.")
    elif count:
        print(f"{counted(count, 'record')} forgotten, without a trace.")
    elif not names.sessions:
        print("Nothing contains that, and the log of questions no longer names it.")
    for session in names.sessions:
        if dry_run:
            name = one_line(session.title or session.branch or session.external_id)
            print(f"Session {session.id} would lose its name: {name}")
        else:
            print(f"Session {session.id} lost its name.")
    for project in names.projects:
        print(f"The project {one_line(project.path)} still has it in its name.")
        print(f"   'lore forget --project {project.id}' forgets the whole project.")


def _confirm(count: int, names: Names) -> None:
    doomed = counted(count, "record")
    if names.sessions:
        doomed += f" and the names of {counted(len(names.sessions), 'session')}"
    if not sys.stdin.isatty():
        msg = f"{doomed} would be gone for good."
        raise InvalidInput(msg, hint="Add --yes to do it, --dry-run to only see what.")
    if not typer.confirm(f"Forget {doomed} for good? Nothing can bring that back."):
        raise typer.Exit(1)


def _names(memory: Memory, *ids: str) -> tuple[list[str], list[str]]:
    """Return the whole ids of fragments, and how they are named to a person."""
    readings = memory.read(ids, reinforce=False)
    whole = [reading.id for reading in readings]
    short = memory.short_ids(whole)
    return whole, [f"{short[r.id]} '{one_line(r.title, 60)}'" for r in readings]
