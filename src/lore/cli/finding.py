"""Commands that find: recall, search, sessions, standing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from lore.cli.output import Json, Project, console, notice, open_memory, print_json, read_text

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import Answer, Hit, Scope

Query = Annotated[str, typer.Argument(help="What you want to know, or '-' for standard input.")]


def add_to(app: typer.Typer) -> None:
    """Add the commands of this file."""
    for command in (recall, search, sessions, standing):
        app.command()(command)


def recall(
    context: typer.Context,
    query: Query,
    scope: Annotated[str, typer.Option(help="all, session, project or knowledge.")] = "all",
    session: Annotated[str, typer.Option(help="The session that asks.")] = "",
    project: Project = "",
    limit: Annotated[int | None, typer.Option(help="Most hits.")] = None,
    budget: Annotated[int | None, typer.Option(help="Most tokens.")] = None,
    recipe: Annotated[str, typer.Option(help="learned, weighted or rrf.")] = "",
    explain: Annotated[bool, typer.Option("--explain", help="Show the numbers behind each hit.")] = False,
    why_not: Annotated[list[str] | None, typer.Option(help="Say what became of this id.")] = None,
    json: Json = False,
) -> None:
    """Answer a question from messages, distillations and fragments."""
    with open_memory(context) as memory:
        answer = memory.recall(
            read_text(query),
            scope=cast("Scope", scope),
            session=session,
            project=project,
            limit=limit,
            budget_tokens=budget,
            recipe=recipe,
            explain=explain,
            why_not=tuple(why_not or ()),
        )
        notice(answer.notice)
        if json:
            print_json(answer)
        else:
            print_answer(memory, answer, explain=explain)


def search(
    context: typer.Context,
    query: Query,
    parent: Annotated[str, typer.Option(help="Only below this fragment.")] = "",
    depth: Annotated[int | None, typer.Option(help="Only this level: 0 broad, 3 detail.")] = None,
    limit: Annotated[int, typer.Option(help="Most hits.")] = 10,
    deep: Annotated[bool, typer.Option("--deep", help="Follow the graph to related fragments.")] = False,
    kind: Annotated[str, typer.Option(help="Only this kind.")] = "",
    origin: Annotated[str, typer.Option(help="Only this origin.")] = "",
    since: Annotated[str, typer.Option(help="Only newer: a date, or 'last week'.")] = "",
    project: Project = "",
    json: Json = False,
) -> None:
    """Search the fragments: ids and titles first, 'lore read' for the rest."""
    with open_memory(context) as memory:
        hits = memory.search(
            read_text(query),
            parent_id=parent,
            depth=depth,
            limit=limit,
            deep=deep,
            kind=kind,
            origin=origin,
            since=since,
            project=project,
        )
        notice(memory.notice)
        if json:
            print_json(hits)
            return
        short = memory.short_ids([hit.id for hit in hits])
        out = console()
        if not hits:
            out.print("Nothing found.")
        for hit in hits:
            trail = f"  [dim]{_safe(hit.breadcrumb)}[/dim]" if hit.breadcrumb else ""
            path = f"  [cyan]via {_safe(' → '.join(hit.path))}[/cyan]" if hit.path else ""
            out.print(
                f"[bold]{short[hit.id]}[/bold]  {hit.score:.2f}  {hit.kind}"
                f"  {_safe(hit.title)}{trail}{path}  [dim]{hit.tokens} tokens[/dim]"
            )


def sessions(
    context: typer.Context,
    query: Query,
    project: Project = "",
    limit: Annotated[int, typer.Option(help="Most sessions.")] = 5,
    json: Json = False,
) -> None:
    """Find the conversations in which something was done."""
    with open_memory(context) as memory:
        found = memory.find_sessions(read_text(query), project=project, limit=limit)
        notice(memory.notice)
        if json:
            print_json(found)
            return
        out = console()
        if not found:
            out.print("Nothing found.")
        for hit in found:
            out.print(
                f"[bold]{hit.session_id}[/bold]  {hit.started_at:%Y-%m-%d}  {_safe(hit.title)}"
            )
            for best in hit.best[:2]:
                out.print(f"    {_safe(_one_line(best.text))}")


def standing(
    context: typer.Context, project: Project = "", json: Json = False
) -> None:
    """Show the standing instructions and preferences."""
    with open_memory(context) as memory:
        found = memory.standing(project=project)
    if json:
        print_json(found)
        return
    for hit in found:
        print(f"{hit.created_at:%Y-%m-%d}  {_one_line(hit.text, 200)}")
    if not found:
        print("No standing instructions yet.")


def print_answer(memory: Memory, answer: Answer, *, explain: bool = False) -> None:
    """Show an answer to a person."""
    out = console()
    if not answer.hits:
        out.print("Nothing found.")
    short = memory.short_ids([hit.id for hit in answer.hits])
    for place, hit in enumerate(answer.hits, 1):
        out.print(f"[bold]{place}. {_safe(_heading(hit))}[/bold]  [dim]{short[hit.id]}[/dim]")
        for line in hit.text.strip().splitlines():
            out.print(f"   {_safe(line)}")
        out.print(f"   [dim]{_safe(hit.why)}[/dim]")
        if explain:
            _print_signals(out, hit)
    if answer.standing:
        out.print("[bold]Standing instructions[/bold]")
        for hit in answer.standing:
            out.print(f" · {_safe(_one_line(hit.text, 200))}")
    for fate in answer.fates:
        out.print(f"[bold]{fate.id}[/bold]: {_safe(fate.verdict)}")
    if answer.hits:
        out.print(
            f"[dim]{len(answer.hits)} of {answer.considered} considered, {answer.tokens} tokens[/dim]"
        )


def _heading(hit: Hit) -> str:
    place = " · ".join(part for part in (hit.title, hit.breadcrumb) if part)
    who = hit.kind or hit.role
    return f"{hit.created_at:%Y-%m-%d}  {place}  ({who})"


def _print_signals(out: Any, hit: Hit) -> None:
    strongest = sorted(hit.signals, key=lambda signal: -abs(signal.contribution))
    for signal in strongest[:8]:
        out.print(f"      {signal.name:<18} {signal.value:8.3f}  adds {signal.contribution:+.3f}")


def _one_line(text: str, most: int = 120) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else line[: most - 1] + "…"


def _safe(text: str) -> str:
    """Keep markup and control characters of stored text from acting on the terminal."""
    shown = "".join(c if c.isprintable() or c == "\t" else "\ufffd" for c in text)
    return shown.replace("[", "\\[")
