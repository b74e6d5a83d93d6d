"""Commands that look at what is there: read, explore, roots, traverse, log, diff, timeline, why."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

from lore.cli import completion
from lore.cli.knowledge import Id
from lore.cli.output import (
    Json,
    Project,
    bold,
    clean,
    coloured,
    counted,
    dim,
    indented,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    read_text,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from lore.memory import Memory
    from lore.records import Outline, Provenance, Reading, Title

_Direction = Literal["children", "parent", "associations"]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (read, session, explore, roots, traverse, log, diff, timeline, why):
        app.command()(command)


def read(
    context: typer.Context,
    ids: Annotated[list[str], typer.Argument(help="Ids, or prefixes of at least 8 characters.")],
    json: Json = False,
) -> None:
    """Read items whole, with what they are linked to.

    Reading makes a fragment stronger.
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
    short = memory.short_ids([reading.id])[reading.id]
    print(f"{bold(short)}  {_described(reading)}")
    print(indented(reading.text))
    if reading.session:
        title = one_line(reading.session.title) or "(no title)"
        print(f"session       {reading.session.id}  {title}")
    _print_around(memory, reading)


def _described(reading: Reading) -> str:
    """Say in one line what an item is."""
    words: list[str] = [reading.fragment.kind if reading.fragment else reading.type]
    if reading.fragment:
        words.append(f"depth {reading.fragment.depth}, version {reading.fragment.version}")
    words += [f"said by {reading.origin}", f"{reading.created_at:%Y-%m-%d %H:%M}"]
    if reading.deleted:
        words.append(coloured("deleted", "red"))
    if reading.fragment and reading.fragment.superseded_by:
        words.append(coloured("superseded", "yellow"))
    return "  ".join(words)


def _print_around(memory: Memory, reading: Reading) -> None:
    """Print what an item is linked to, by title."""
    rows: list[tuple[str, str, str]] = []
    if reading.parent:
        gone = "  (deleted)" if reading.parent.deleted else ""
        rows.append(("parent", reading.parent.id, reading.parent.title + gone))
    rows += [("child", child.id, child.title) for child in reading.children]
    if reading.edges:
        others = [e.target if e.source == reading.id else e.source for e in reading.edges]
        found = {title.id: title.title for title in memory.titles(others)}
        for edge, other in zip(reading.edges, others, strict=True):
            arrow = "→" if edge.source == reading.id else "←"
            note = f"  ({edge.note})" if edge.note else ""
            rows.append((f"{arrow} {edge.kind}", other, found[other] + note))
    short = memory.short_ids([id_ for _, id_, _ in rows])
    print_columns((name, short[id_], one_line(title)) for name, id_, title in rows)


def session(
    context: typer.Context,
    id: Annotated[str, typer.Argument(help="Id of a session, or the agent's own name for it.")],
    asides: Annotated[
        bool, typer.Option("--asides", help="Also what the agent's program put beside the talk.")
    ] = False,
    json: Json = False,
) -> None:
    """Read a conversation from beginning to end.

    What nobody said, but the agent's program put there, is left out; JSON has it.
    """
    from lore.text.parts import is_spoken, readable

    with open_memory(context) as memory:
        messages = memory.messages(id)
    if json:
        print_json(messages)
        return
    left_out = 0
    for message in messages:
        shown = [part for part in message.parts if asides or is_spoken(part)]
        left_out += len(message.parts) - len(shown)
        if not shown:
            continue
        who = message.speaker or message.role
        print(bold(f"{message.created_at:%Y-%m-%d %H:%M}  {clean(who)}"))
        print(indented(readable(shown, brief=True)))
    if left_out:
        notice(f"{counted(left_out, 'aside')} of the agent's program left out; --asides shows it.")


def explore(
    context: typer.Context,
    what: Annotated[str, typer.Argument(help="Id of a fragment, or a question.")],
    max_depth: Annotated[int, typer.Option(min=0, max=100, help="Levels below.")] = 2,
    json: Json = False,
) -> None:
    """Show the tree below a fragment as an outline."""
    with open_memory(context) as memory:
        outlines = memory.explore(read_text(what), max_depth=max_depth)
        if json:
            print_json(outlines)
            return
        for outline in outlines:
            rows = list(_flat(outline))
            short = memory.short_ids([title.id for _, title in rows])
            for level, title in rows:
                print(f"{'  ' * level}{_named(title, short)}")
        if not outlines:
            print("Nothing found.")


def _flat(outline: Outline, level: int = 0) -> Iterator[tuple[int, Title]]:
    yield level, outline.title
    for below in outline.below:
        yield from _flat(below, level + 1)


def _named(title: Title, short: dict[str, str]) -> str:
    count = dim(f"  {title.children:,} below") if title.children else ""
    gone = f"  {coloured('deleted', 'red')}" if title.deleted else ""
    return f"{bold(short[title.id])}  {one_line(title.title)}  {dim(title.kind)}{count}{gone}"


def roots(
    context: typer.Context,
    query: Annotated[
        str, typer.Argument(help="Only roots that fit this question.", show_default=False)
    ] = "",
    limit: Annotated[int, typer.Option(min=1, max=1000, help="Most roots.")] = 20,
    project: Project = "",
    json: Json = False,
) -> None:
    """List the broadest fragments with how many children each has."""
    with open_memory(context) as memory:
        found = memory.roots(query=read_text(query), limit=limit, project=project)
        if json:
            print_json(found)
            return
        _print_titles(memory, found)
    if not found:
        print("Nothing found." if query else "No fragments yet: 'lore remember' stores one.")


def traverse(
    context: typer.Context,
    id: Id,
    direction: Annotated[
        str,
        typer.Option(
            help="children, parent or associations.", autocompletion=completion.directions
        ),
    ] = "children",
    json: Json = False,
) -> None:
    """Take one step from a fragment."""
    with open_memory(context) as memory:
        found = memory.traverse(id, cast("_Direction", direction))
        if json:
            print_json(found)
            return
        _print_titles(memory, found)
    if not found:
        print(f"It has no {direction}.")


def _print_titles(memory: Memory, found: list[Title]) -> None:
    short = memory.short_ids([title.id for title in found])
    for title in found:
        print(_named(title, short))


def log(context: typer.Context, id: Id, json: Json = False) -> None:
    """Show the versions of a fragment, newest first."""
    with open_memory(context) as memory:
        now, versions = memory.log(id)
    if json:
        print_json({"current": now, "former": versions})
        return
    rows = [(f"version {now.version}", "now", "", now.summary)]
    for version in reversed(versions):
        until = f"until {version.changed_at:%Y-%m-%d %H:%M}"
        reason = f"  (changed: {version.reason})" if version.reason else ""
        rows.append((f"version {version.version}", until, "", version.summary + reason))
    print_columns((name, until, one_line(said, 160)) for name, until, _, said in rows)


def diff(
    context: typer.Context,
    id: Id,
    version: Annotated[int | None, typer.Option(min=1, help="Compare with this version.")] = None,
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
        colour = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1])
        print(coloured(clean(line), colour) if colour else clean(line))
    if not lines:
        print(f"Version {new.version} says the same as version {old.version}.")


def timeline(context: typer.Context, id: Id, json: Json = False) -> None:
    """Show what happened to a fragment: said, learned, changed, linked, recalled, read."""
    with open_memory(context) as memory:
        happened = memory.history(id)
    if json:
        print_json(happened)
        return
    print_columns((f"{one.at:%Y-%m-%d %H:%M}", one.what, one_line(one.detail)) for one in happened)


def why(context: typer.Context, id: Id, json: Json = False) -> None:
    """Show where an item comes from, and how strong it is."""
    with open_memory(context) as memory:
        provenance = memory.why(id)
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
        print("   no message: it was stored by hand")
    short = memory.short_ids([source.id for source in provenance.sources])
    for source in provenance.sources:
        said = one_line(" ".join(part.text for part in source.parts), 200)
        origin = provenance.origins[source.id]
        voice = f"{source.role} (origin {origin}, trust {TRUST[origin]})"
        print(f"   {short[source.id]}  {source.created_at:%Y-%m-%d %H:%M}  {voice}: {said}")


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
    known = provenance.reading
    short = memory.short_ids([
        known.id,
        *provenance.supersedes,
        *filter(None, [provenance.superseded_by]),
    ])
    print(f"   recalled {counted(provenance.times_recalled, 'time')}")
    if provenance.versions:
        former = counted(provenance.versions, "former version")
        print(f"   {former}: 'lore log {short[known.id]}'")
    for id_ in provenance.supersedes:
        print(f"   supersedes {short[id_]}")
    if provenance.superseded_by:
        print(f"   superseded by {short[provenance.superseded_by]}: no longer found by recall")
    if known.deleted:
        print(f"   deleted: 'lore undo {short[known.id]}' brings it back")
