"""Commands that search: recall, ask, search, sessions, standing."""

from __future__ import annotations

import sys
from functools import cache
from typing import TYPE_CHECKING, Annotated, cast

import click
from typer import Argument, Context, Option

from lore.cli.links import link_ids, types_of
from lore.cli.options import Json, Project, Recipe, current_repository, names_of
from lore.cli.output import (
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
    project_names,
    read_text,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable

    from lore.memory import Memory
    from lore.records import (
        Answer,
        AskResult,
        Citation,
        Hit,
        InstructionDecision,
        RecallTrace,
        Scope,
        Signal,
        StandingInstruction,
    )

Query = Annotated[
    list[str], Argument(help="The question in one or more words, or '-' for standard input.")
]

Everywhere = Annotated[
    bool, Option("--everywhere", help="Search all projects, not the current one first.")
]

HITS_SHOWN = 5
HIT_LINES = 6
"""Hits, and lines of each, that people are shown; `--all` shows everything, JSON always does."""

_LINE_CHARS = 100
"""A longer line of a hit counts as several."""

_ALL_TOKENS = 1_000_000
"""Limit of an answer to a filtered question: as many hits as asked for."""

STANDING_SHOWN = 3
"""Standing instructions shown with an answer; `lore standing` shows all."""

NEAREST_SHOWN = 3
"""Hits shown if none is relevant: enough to see that the question was understood."""

_SIGNALS_SHOWN = 8

_FITTING = 5
_LATEST = 20
"""Default number of sessions: for a query, and of the latest."""


def recall(
    context: Context,
    query: Query,
    limit: Annotated[
        int | None,
        Option(
            "--limit",
            "-n",
            min=1,
            max=1000,
            help="Maximum number of hits (5; in JSON the setting).",
        ),
    ] = None,
    every: Annotated[
        bool, Option("--all", help="Show all relevant hits, and each in full.")
    ] = False,
    since: Annotated[str, Option(help="Only newer items: a date, or 'last week'.")] = "",
    until: Annotated[str, Option(help="Only items before this time.")] = "",
    agent: Annotated[str, Option(help="Only conversations with this agent.")] = "",
    kind: Annotated[
        str,
        Option(
            help="Only this kind of fragment, or message or distillation.",
            autocompletion=names_of("FRAGMENT_KINDS"),
        ),
    ] = "",
    task_type: Annotated[
        str,
        Option(
            "--task-type",
            help="Put first what such a task needs: debugging, review, …",
            autocompletion=names_of("TASK_TYPES"),
        ),
    ] = "",
    project: Project = "",
    everywhere: Everywhere = False,
    session: Annotated[str, Option(help="Only this session, unless --scope is wider.")] = "",
    scope: Annotated[
        str | None,
        Option(help="all, session, project or knowledge.", autocompletion=names_of("SCOPES")),
    ] = None,
    budget: Annotated[int | None, Option(min=1, help="Maximum number of tokens.")] = None,
    recipe: Recipe = "",
    explain: Annotated[bool, Option("--explain", help="Show the scores behind each hit.")] = False,
    why_not: Annotated[
        list[str] | None, Option(metavar="ID", help="Explain why this item was not returned.")
    ] = None,
    json: Json = False,
) -> None:
    """Answer a question from messages, distillations and fragments.

    In a repository it searches there first, and everywhere if it finds nothing.
    """
    with open_memory(context, asks_once=True) as memory:
        from lore.memory.search import ask_project_first

        is_filtered = any((since, until, agent, kind))
        most = limit or (None if every or json else HITS_SHOWN)

        default_scope = "session" if session else "all"

        def ask(place: str) -> Answer:
            return memory.recall(
                _joined(query),
                scope=cast("Scope", default_scope if scope is None else scope),
                session=session,
                project=place,
                limit=most,
                budget_tokens=_ALL_TOKENS if is_filtered and budget is None else budget,
                since=since,
                until=until,
                agent=agent,
                kind=kind,
                task_type=task_type,
                recipe=recipe,
                explain=explain,
                why_not=tuple(why_not or ()),
            )

        limited = everywhere or project or session or scope is not None
        answer = ask_project_first(memory, "" if limited else current_repository(), ask, project)
        notice(answer.notice)
        if json:
            print_json(answer)
        else:
            print_answer(memory, answer, explain=explain, most_lines=None if every else HIT_LINES)


def ask(
    context: Context,
    question: Query,
    project: Project = "",
    everywhere: Everywhere = False,
    session: Annotated[str, Option(help="Only this session.")] = "",
    json: Json = False,
) -> None:
    """Answer a question in a few sentences, with sources.

    The chat of 'chat.provider' writes the answer; without one the best passages are quoted. In a
    repository it searches there first, and everywhere if nothing there answers.
    """
    with open_memory(context, asks_once=True) as memory:
        from lore.memory.search import ask_project_first

        def ask_in(place: str) -> AskResult:
            return memory.search.ask(_joined(question), session=session, project=place)

        is_limited = everywhere or project or session
        folder = "" if is_limited else current_repository()
        result = ask_project_first(memory, folder, ask_in, project)
    notice(result.notice)
    if json:
        print_json(result)
    else:
        _print_ask_result(result)


def _print_ask_result(result: AskResult) -> None:
    print(clean(result.text))
    if result.nearest is not None:
        passage = one_line(result.nearest.text, 100)
        print(f"Nearest: “{passage}” {dim(_source(result.nearest))}")
        return
    if not result.citations:
        return
    print()
    for citation in result.citations:
        print(f"[{citation.number}] {_source(citation)}")
    writer = "" if result.written_by == "offline" else f", written by {one_line(result.written_by)}"
    print(dim(f"Confidence: {result.strength}{writer}. 'lore read ID' shows a source whole."))


def _source(citation: Citation) -> str:
    """Return who said a passage, when, in which project and session, and its short id."""
    words = [
        one_line(citation.said_by, 40),
        f"{citation.created_at:%Y-%m-%d}",
        one_line(citation.project, 30),
        one_line(citation.title, 80),
        citation.short_id,
        one_line(citation.note, 200),
    ]
    return " · ".join(word for word in words if word)


def _joined(query: list[str]) -> str:
    """Return a question that was written without quotes."""
    return read_text(" ".join(query))


def search(
    context: Context,
    query: Query,
    parent: Annotated[str, Option(help="Only below this fragment.")] = "",
    depth: Annotated[
        int | None, Option(min=0, max=1000, help="Only this depth: 0 is broad, 3 is detail.")
    ] = None,
    limit: Annotated[
        int, Option("--limit", "-n", min=1, max=1000, help="Maximum number of hits.")
    ] = 10,
    deep: Annotated[bool, Option("--deep", help="Follow the graph to related fragments.")] = False,
    kind: Annotated[
        str, Option(help="Only this kind.", autocompletion=names_of("FRAGMENT_KINDS"))
    ] = "",
    origin: Annotated[
        str, Option(help="Only this origin.", autocompletion=names_of("ORIGINS"))
    ] = "",
    since: Annotated[str, Option(help="Only newer items: a date, or 'last week'.")] = "",
    project: Project = "",
    json: Json = False,
) -> None:
    """Search the fragments; 'lore read' shows one in full."""
    with open_memory(context, asks_once=True) as memory:
        hits = memory.search(
            _joined(query),
            parent_id=parent,
            depth=depth,
            limit=limit,
            deep=deep,
            kind=kind,
            origin=origin,
            since=since,
            project=project,
        )
        notice(memory.notice_now)
        if json:
            print_json(hits)
            return
        short = link_ids(memory, memory.search.short_ids([hit.id for hit in hits]))
        print_columns((short[hit.id], f"{hit.score:.2f}", hit.kind, _titled(hit)) for hit in hits)
        print(dim("'lore read ID' shows one whole.") if hits else "Nothing found.")


def _titled(hit: Hit) -> str:
    """Return the title of a hit, with its place and the path that led to it."""
    trail = dim(f"  in {one_line(hit.breadcrumb, 80)}") if hit.breadcrumb else ""
    steps = " → ".join(one_line(step, 50) for step in hit.path[:-1])
    way = coloured(f"  via {steps}", "cyan") if steps else ""
    note = coloured(f"  {one_line(hit.note, 120)}", "yellow") if hit.note else ""
    return f"{one_line(hit.title)}{trail}{way}{note}  {dim(counted(hit.tokens, 'token'))}"


def sessions(
    context: Context,
    query: Annotated[
        list[str] | None,
        Argument(help="The question, '-' for standard input; without it, the latest sessions."),
    ] = None,
    project: Project = "",
    limit: Annotated[
        int | None,
        Option(
            "--limit",
            "-n",
            min=1,
            max=1000,
            help="Maximum number of sessions (default: 5, or the latest 20).",
        ),
    ] = None,
    json: Json = False,
) -> None:
    """Find the session in which something was done, or list the latest."""
    with open_memory(context, asks_once=True) as memory:
        if not query:
            _print_latest(memory, project, limit or _LATEST, json=json)
            return
        hits = memory.search.find_sessions(_joined(query), project=project, limit=limit or _FITTING)
        notice(memory.notice_now)
        if json:
            print_json(hits)
            return
        short = memory.search.short_ids([best.id for hit in hits for best in hit.best])
    for hit in hits:
        title = one_line(hit.title) or "(no title)"
        print(f"{bold(title)}  {hit.started_at:%Y-%m-%d}  {dim(hit.session_id)}")
        for best in hit.best[:2]:
            print(f"   {dim(short[best.id])}  {one_line(best.text)}")
    if not hits:
        print("Nothing found.")


def _print_latest(memory: Memory, project: str, limit: int, *, json: bool) -> None:
    latest = memory.sessions(project=project, limit=limit)
    if json:
        print_json(latest)
        return
    names = project_names(memory)
    print_columns(
        (
            one.id,
            f"{one.last_message_at:%Y-%m-%d %H:%M}",
            one_line(one.agent, 20),
            names.get(one.project_id or "", ""),
            one_line(one.title) or "(no title)",
        )
        for one in latest
    )
    print(
        dim("'lore session ID' reads one, 'lore log ID' shows its log.")
        if latest
        else "No sessions yet."
    )


def standing(
    context: Context,
    project: Project = "",
    confirm: Annotated[
        str, Option("--confirm", metavar="ID", help="Make a suggested rule stand.")
    ] = "",
    reject: Annotated[
        str, Option("--reject", metavar="ID", help="Never take this for a rule again.")
    ] = "",
    review: Annotated[
        bool, Option("--review", help="Decide on each suggested rule with one key.")
    ] = False,
    rejected: Annotated[bool, Option("--rejected", help="Show the rejected ones.")] = False,
    json: Json = False,
) -> None:
    """Show your lasting rules, and sentences that may be rules.

    Agents are given what stands. A suggested rule is given to nobody until you confirm it, or say
    it again in another session.
    """
    with open_memory(context, asks_once=True) as memory:
        if confirm or reject:
            _decide(memory, confirm, reject, json=json)
            return
        listed = memory.search.instructions(project=project, rejected=rejected)
        if review:
            _review(memory, [one for one in listed if one.state == "suggested"])
            return
        if json:
            print_json(listed)
            return
        short = memory.search.short_ids([one.id for one in listed])
        names = project_names(memory)
    stands = [one for one in listed if one.state != "suggested"]
    suggested = [one for one in listed if one.state == "suggested"]
    _print_instructions(stands, short, names)
    if not stands:
        print("Nothing was rejected." if rejected else "No standing instructions yet.")
    if suggested:
        print(f"\n{bold('Maybe rules')} {dim('(lore standing --review decides)')}")
        _print_instructions(suggested, short, names)


def _print_instructions(
    listed: Iterable[StandingInstruction], short: dict[str, str], names: dict[str, str]
) -> None:
    print_columns(
        (
            f"{one.created_at:%Y-%m-%d}",
            short[one.id],
            names.get(one.project_id, "no project" if one.session_id else "everywhere"),
            one_line(one.text, 200),
        )
        for one in listed
    )


def _decide(memory: Memory, confirm: str, reject: str, *, json: bool) -> None:
    decided: list[StandingInstruction] = []
    if confirm:
        decided += memory.knowledge.decide_instruction(confirm, "confirmed")
    if reject:
        decided += memory.knowledge.decide_instruction(reject, "rejected")
    if json:
        print_json(decided)
        return
    for one in decided:
        done = "Stands" if one.state == "confirmed" else "Rejected"
        print(f"{done}: {one_line(one.text, 200)}")


def _review(memory: Memory, suggested: list[StandingInstruction]) -> None:
    """Ask about each suggested rule; one key answers."""
    if not suggested:
        print("Nothing to decide.")
        return
    if not sys.stdin.isatty():
        msg = f"{counted(len(suggested), 'suggested rule')} cannot be reviewed without a terminal."
        raise InvalidInput(msg, hint="Use --confirm ID and --reject ID.")
    for place, one in enumerate(suggested, 1):
        print(f"{bold(f'{place}/{len(suggested)}')}  {one_line(one.text, 600)}")
        print(dim("   a rule from now on? y yes, n no, s skip, q quit "), end="", flush=True)
        key = ""
        while key not in ("y", "n", "s", "q"):
            key = click.getchar().lower()
        print(key)
        if key == "q":
            return
        if key != "s":
            decision: InstructionDecision = "confirmed" if key == "y" else "rejected"
            memory.knowledge.decide_instruction(one.id, decision, number=one.number)


def print_answer(
    memory: Memory,
    answer: Answer,
    *,
    explain: bool = False,
    hints: bool = True,
    most_lines: int | None = None,
) -> None:
    """Print an answer; `hints` name commands that continue in the same memory.

    Hits are cut after `most_lines` lines.
    """
    hits = answer.hits if answer.relevant else answer.hits[:NEAREST_SHOWN]
    short = link_ids(memory, memory.search.short_ids([hit.id for hit in hits]), types_of(hits))
    if hits and not answer.relevant:
        print("Nothing relevant found; nearest:")
    for place, hit in enumerate(hits, 1):
        print(f"{bold(f'{place}. {_heading(hit)}')}  {dim(short[hit.id])}")
        if hit.question:
            print(f"   {dim(f'asked: {one_line(hit.question, 200)}')}")
        print(indented(cut_lines(hit.text, most_lines, answer.question)))
        _print_reason(hit)
        if explain:
            _print_signals(hit.signals)
    if not answer.hits:
        print("Nothing found.")
    if rules := _rules_asked_for(answer):
        _print_standing(rules, hints=hints)
    for fate in answer.fates:
        _print_fate(memory, answer, fate)
    if hits:
        shown = f"{counted(len(hits), 'hit')} of {answer.considered:,} considered"
        if answer.relevant:
            shown += f" ({answer.strength})"
        tokens = answer.tokens if answer.relevant else sum(hit.tokens for hit in hits)
        onward = " 'lore read ID' shows one whole." if hints else ""
        print(dim(f"{shown}, {counted(tokens, 'token')}.{onward}"))


def _print_reason(hit: Hit) -> None:
    """Print what replaced a hit, if anything did, and why it was found."""
    if hit.note:
        print(f"   {coloured(one_line(hit.note, 300), 'yellow')}")
    print(f"   {dim(one_line(hit.why, 300))}")


def cut_lines(text: str, most_lines: int | None, question: str) -> str:
    """Return the lines of a text that have most of a question's words, as many as have room.

    The last of them is cut where the room ends.
    """
    lines = [line.rstrip() for line in text.strip().split("\n") if line.strip()]
    if most_lines is None or sum(map(_rows, lines)) <= most_lines:
        return text
    from lore.text import words

    asked = {words.stem(word) for word in words.split(question) if word not in words.STOP_WORDS}

    @cache
    def common(line: str) -> frozenset[str]:
        return frozenset(asked & {words.stem(word) for word in words.split(line)})

    parts = [
        _lines_from(lines[start : start + most_lines], most_lines) for start in range(len(lines))
    ]
    counts = [len(frozenset[str]().union(*map(common, part))) for part in parts]
    start = counts.index(max(counts))
    cut, rest = ("\n".join(some) for some in (parts[start], lines[start:]))
    return f"{'…' if start else ''}{cut}{'' if cut == rest else '…'}"


def _rows(line: str) -> int:
    return max(1, -(-len(line) // _LINE_CHARS))


def _lines_from(lines: Iterable[str], most: int) -> list[str]:
    """Return the first lines that have room, the last of them perhaps in part."""
    shown: list[str] = []
    for line in lines:
        shown.append(line[: most * _LINE_CHARS].rstrip())
        most -= _rows(line)
        if most <= 0:
            break
    return shown


def _heading(hit: Hit) -> str:
    """Return date, kind and place; a title that only repeats the text is left out."""
    words = [f"{hit.created_at:%Y-%m-%d}", hit.kind or hit.role]
    repeats_title = one_line(hit.text, 10_000).startswith(one_line(hit.title).rstrip("…"))
    trail = f"in {hit.breadcrumb}" if hit.kind and hit.breadcrumb else hit.breadcrumb
    place = [trail] if repeats_title else [hit.title, trail]
    words.append(" · ".join(one_line(part, 80) for part in place if part))
    return "  ".join(word for word in words if word)


def _rules_asked_for(answer: Answer) -> tuple[Hit, ...]:
    """Return the standing instructions that share a word with the question.

    An agent obeys them all and is given them with every answer; a person knows them.
    """
    from lore.text import words

    asked = {words.stem(word) for word in words.search_terms(answer.question)}
    return tuple(
        hit
        for hit in answer.standing
        if asked & {words.stem(word) for word in words.search_terms(hit.text)}
    )


def _print_standing(hits: tuple[Hit, ...], *, hints: bool) -> None:
    print(bold("Standing instructions"))
    for hit in hits[:STANDING_SHOWN]:
        print(f" · {one_line(hit.text, 200)}")
    if len(hits) > STANDING_SHOWN:
        onward = ": lore standing" if hints else ""
        print(dim(f" … and {len(hits) - STANDING_SHOWN} more{onward}"))


def _print_signals(signals: Iterable[Signal]) -> None:
    strongest = sorted(signals, key=lambda signal: -abs(signal.contribution))
    for signal in strongest[:_SIGNALS_SHOWN]:
        adds = f"  adds {signal.contribution:+.3f}" if signal.contribution else ""
        print(f"      {signal.name:<18} {signal.value:8.3f}{adds}")


def _print_fate(memory: Memory, answer: Answer, fate: RecallTrace) -> None:
    """Print why an item was not recalled."""
    (reading,) = memory.read([fate.id], reinforce=False)
    ids = [fate.id, *(hit.id for hit in answer.hits)]
    verdict = fate.verdict
    for whole, short in memory.search.short_ids(ids).items():
        verdict = verdict.replace(whole, short)
    name = memory.search.short_ids([fate.id])[fate.id]
    print(f"{bold(f'What happened to {name}')}  {one_line(reading.title, 80)}")
    print(f"   {one_line(verdict, 300)}")
    if fate.score is None:
        return
    places = [
        _placed("keywords", fate.keyword_rank),
        _placed("meaning", fate.vector_rank),
        f"score {fate.score:.2f}",
    ]
    last = f", the last hit shown has {answer.hits[-1].score:.2f}" if answer.hits else ""
    print(f"   {', '.join(places)}{last}")
    _print_signals(fate.signals)


def _placed(arm: str, rank: int | None) -> str:
    return f"{arm} #{rank}" if rank is not None else f"not found by {arm}"
