"""Commands that look at what is there: read, explore, roots, traverse, log, diff, why."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, cast

import typer

from lore.cli.knowledge import Id
from lore.cli.output import Json, Project, open_memory, print_json

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.recall.reading import Direction
    from lore.records import Outline, Reading, Title


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (read, explore, roots, traverse, log, diff, why):
        app.command()(command)


def read(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(help="Ids, or prefixes of at least 8 characters.")],
    json: Json = False,
) -> None:
    """Read items whole, with what they are linked to; reading makes them stronger."""
    with open_memory(context) as memory:
        readings = memory.read(ids)
    if json:
        print_json(readings)
        return
    for reading in readings:
        _print_reading(reading)


def _print_reading(reading: Reading) -> None:
    print(f"{reading.id}  {reading.type}  {reading.created_at:%Y-%m-%d %H:%M}  {reading.origin}")
    if reading.deleted:
        print("(deleted)")
    print(clean(reading.text))
    if reading.fragment:
        fragment = reading.fragment
        print(f"kind {fragment.kind}, depth {fragment.depth}, version {fragment.version}")
        if fragment.superseded_by:
            print(f"superseded by {fragment.superseded_by}")
    if reading.session:
        print(f"session {reading.session.id}  {clean(reading.session.title)}")
    if reading.parent:
        print(f"parent   {_title(reading.parent)}")
    for child in reading.children:
        print(f"child    {_title(child)}")
    for edge in reading.edges:
        print(f"{edge.kind:<12} {edge.source} → {edge.target}  {edge.weight:.2f} {clean(edge.note)}")
    print()


def explore(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="Id of a fragment, or a question.")],
    max_depth: Annotated[int, typer.Option(help="Levels below.")] = 2,
    json: Json = False,
) -> None:
    """Show the tree below a fragment as an outline."""
    with open_memory(context) as memory:
        outlines = memory.explore(what, max_depth=max_depth)
        if json:
            print_json(outlines)
            return
        for outline in outlines:
            _print_outline(memory, outline, 0)
        if not outlines:
            print("Nothing found.")


def _print_outline(memory: Memory, outline: Outline, level: int) -> None:
    print(f"{'  ' * level}{_title(outline.title)}")
    for below in outline.below:
        _print_outline(memory, below, level + 1)


def roots(
    context: typer.Context,
    query: Annotated[str, typer.Argument(help="Only roots that fit this question.")] = "",
    limit: Annotated[int, typer.Option(help="Most roots.")] = 20,
    project: Project = "",
    json: Json = False,
) -> None:
    """List the broadest fragments with how many children each has."""
    with open_memory(context) as memory:
        found = memory.roots(query=query, limit=limit, project=project)
    if json:
        print_json(found)
        return
    for title in found:
        print(_title(title))
    if not found:
        print("No fragments yet. 'lore remember' stores one.")


def traverse(
    context: typer.Context,
    id: Id,  # noqa: A002 - shown as ID
    direction: Annotated[str, typer.Option(help="children, parent or associations.")] = "children",
    json: Json = False,
) -> None:
    """Take one step from a fragment."""
    with open_memory(context) as memory:
        found = memory.traverse(id, cast("Direction", direction))
    if json:
        print_json(found)
        return
    for title in found:
        print(_title(title))
    if not found:
        print("Nothing there.")


def log(context: typer.Context, id: Id, json: Json = False) -> None:  # noqa: A002 - shown as ID
    """Show the versions of a fragment, newest first."""
    with open_memory(context) as memory:
        now, versions = memory.log(id)
    if json:
        print_json({"current": now, "former": versions})
        return
    print(f"version {now.version}  {now.updated_at:%Y-%m-%d %H:%M}  {clean(now.summary)}")
    for version in reversed(versions):
        reason = f"  ({clean(version.reason)})" if version.reason else ""
        print(
            f"version {version.version}  until {version.changed_at:%Y-%m-%d %H:%M}"
            f"  {clean(version.summary)}{reason}"
        )


def diff(
    context: typer.Context,
    id: Id,  # noqa: A002 - shown as ID
    version: Annotated[int | None, typer.Option(help="Compare with this version.")] = None,
    json: Json = False,
) -> None:
    """Show what a fragment's last change changed."""
    with open_memory(context) as memory:
        old, new = memory.diff(id, version)
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
        print(clean(line))


def why(context: typer.Context, id: Id, json: Json = False) -> None:  # noqa: A002 - shown as ID
    """Show where an item comes from, and the numbers behind its strength."""
    with open_memory(context) as memory:
        provenance = memory.why(id)
    if json:
        print_json(provenance)
        return
    _print_reading(provenance.reading)
    for name, value in provenance.numbers.items():
        print(f"  {name:<22} {value:.3f}")
    for source in provenance.sources:
        first = clean(source.parts[0].text if source.parts else "")
        print(f"from message {source.id} ({source.role}, {source.created_at:%Y-%m-%d %H:%M}): {first[:200]}")
    for id_ in provenance.supersedes:
        print(f"supersedes {id_}")
    if provenance.versions:
        print(f"{provenance.versions} former versions: 'lore log {provenance.reading.id}'")
    print(f"recalled {provenance.times_recalled} times")


def _title(title: Title) -> str:
    count = f"  ({title.children} below)" if title.children else ""
    return f"{title.id}  {title.kind:<12} {clean(title.title)}{count}"


def clean(text: str) -> str:
    """Keep control characters of stored text off the terminal."""
    return "".join(c if c.isprintable() or c in "\n\t" else "\ufffd" for c in text)
