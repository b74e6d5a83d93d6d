"""Commands that change knowledge: remember, update, delete, undo, link, supersede, forget."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lore.cli.output import Json, Project, open_memory, print_json, read_text
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.records import EdgeKind, FragmentKind, Origin

Id = Annotated[str, typer.Argument(help="Id, or at least 8 characters of it.", show_default=False)]
Text = Annotated[str, typer.Argument(help="The text, or '-' to read it from standard input.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (remember, update, delete, undo, link, supersede, forget):
        app.command()(command)


def remember(
    context: typer.Context,
    text: Text,
    summary: Annotated[str, typer.Option(help="One line; derived from the text if not given.")] = "",
    kind: Annotated[str, typer.Option(help="fact, decision, preference, pattern, …")] = "fact",
    parent: Annotated[str, typer.Option(help="Id of the fragment it belongs under.")] = "",
    importance: Annotated[float, typer.Option(help="How much it matters, 0 to 1.")] = 0.5,
    origin: Annotated[str, typer.Option(help="Who said it: user, assistant, tool, …")] = "user",
    project: Project = "",
    key: Annotated[str, typer.Option(help="The same key again stores nothing twice.")] = "",
    json: Json = False,
) -> None:
    """Store a piece of knowledge."""
    with open_memory(context) as memory:
        id_ = memory.store(
            read_text(text),
            summary=summary,
            kind=cast("FragmentKind", kind),
            parent_id=parent,
            importance=importance,
            origin=cast("Origin", origin),
            project=project,
            key=key,
        )
    if json:
        print_json({"id": id_})
    else:
        print(id_)


def update(
    context: typer.Context,
    id: Id,  # noqa: A002 - shown as ID
    text: Text,
    summary: Annotated[str, typer.Option(help="One line; derived from the text if not given.")] = "",
    reason: Annotated[str, typer.Option(help="Why it changed; shown by 'lore log'.")] = "",
    json: Json = False,
) -> None:
    """Give a fragment new words; the former ones stay readable."""
    with open_memory(context) as memory:
        version = memory.update(id, read_text(text), summary=summary, reason=reason)
    if json:
        print_json({"version": version})
    else:
        print(f"Version {version}; 'lore log {id}' shows the former ones.")


def delete(context: typer.Context, id: Id, json: Json = False) -> None:  # noqa: A002 - shown as ID
    """Remove a fragment; 'lore undo' brings it back."""
    with open_memory(context) as memory:
        id_ = memory.delete(id)
    if json:
        print_json({"deleted": id_})
    else:
        print(f"Deleted {id_}. 'lore undo {id_}' brings it back; 'lore forget' leaves no trace.")


def undo(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Only what was done to this fragment.")] = "",  # noqa: A002 - shown as ID
    json: Json = False,
) -> None:
    """Undo the last change made by hand."""
    with open_memory(context) as memory:
        verb, id_ = memory.undo(id)
    if json:
        print_json({"undone": verb, "id": id_})
    else:
        print(f"Undone: {verb} of {id_}.")


def link(
    context: typer.Context,
    source: Id,
    target: Id,
    kind: Annotated[str, typer.Option(help="associative, related_to, supports, …")] = "related_to",
    weight: Annotated[float, typer.Option(help="Strength, 0 to 1.")] = 1.0,
    note: Annotated[str, typer.Option(help="Why they belong together.")] = "",
    json: Json = False,
) -> None:
    """Draw an edge between two fragments."""
    with open_memory(context) as memory:
        memory.link(source, target, cast("EdgeKind", kind), weight=weight, note=note)
    if json:
        print_json({"linked": [source, target], "kind": kind})
    else:
        print(f"Linked ({kind}).")


def supersede(context: typer.Context, old: Id, new: Id, json: Json = False) -> None:
    """Let a newer fragment replace an older one; both are kept."""
    with open_memory(context) as memory:
        memory.supersede(old, new)
    if json:
        print_json({"superseded": old, "by": new})
    else:
        print("Superseded: the older one is kept, and no longer shown.")


def forget(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Id of a message, distillation or fragment.")] = "",  # noqa: A002 - shown as ID
    session: Annotated[str, typer.Option(help="A whole session.")] = "",
    project: Annotated[str, typer.Option(help="A whole project, by path or name.")] = "",
    match: Annotated[str, typer.Option(help="Everything that contains this text.")] = "",
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only count.")] = False,
    json: Json = False,
) -> None:
    """Delete without a trace: database, log, indexes and automatic backups."""
    chosen = [value for value in (id, session, project, match) if value.strip()]
    if len(chosen) != 1:
        msg = "Say what to forget: an id, --session, --project or --match."
        raise InvalidInput(msg)
    what = {"id": id, "session": session, "project": project, "match": read_text(match)}
    with open_memory(context, create=False) as memory:
        count = memory.count_forgettable(**what)
        if not dry_run and count:
            if not yes:
                _confirm(count)
            gone = memory.forget(**what)
            count = len(gone)
    if json:
        print_json({"forgotten": count, "dry_run": dry_run})
    elif dry_run:
        print(f"{count} records would be forgotten.")
    else:
        print(f"Forgotten: {count} records, without a trace.")


def _confirm(count: int) -> None:
    if not sys.stdin.isatty():
        msg = f"{count} records would be gone for good."
        raise InvalidInput(msg, hint="Add --yes to do it, --dry-run to only count.")
    if not typer.confirm(f"Forget {count} records for good? Nothing can bring them back."):
        raise typer.Exit(1)
