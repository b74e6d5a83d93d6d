"""Commands of the digest: distill, consolidate, conflicts, promote."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Context, Option

from lore.cli.options import DryRun, Json, Project
from lore.cli.output import (
    bold,
    clean,
    coloured,
    counted,
    dim,
    format_duration,
    notice,
    one_line,
    open_memory,
    print_columns,
    print_json,
    print_result,
    progress,
    progress_of_parts,
    project_names,
    tallied,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import (
        Conflict,
        CycleReport,
        Decision,
        DoubtfulPair,
        OutdatedNote,
        PhaseReport,
        SpentToday,
    )

_STATES = {"done": "green", "failed": "red", "skipped": "yellow", "pending": "yellow"}
_TOLD = 8
"""How many lines of a phase are shown; --json has all of them."""


def distill(
    context: Context,
    names: Annotated[list[str] | None, Argument(help="Sessions.", metavar="[SESSION]...")] = None,
    every: Annotated[bool, Option("--all", help="All sessions with new messages.")] = False,
    only_logs: Annotated[
        bool, Option("--only-logs", help="Write logs only, extract no fragments.")
    ] = False,
    json: Json = False,
) -> None:
    """Condense sessions into logs and extract knowledge from them.

    The daemon does this for every session that goes quiet.
    """
    if bool(names) is every:
        msg = "Name one or more sessions, or --all."
        raise InvalidInput(msg, hint="'lore sessions' lists them.")
    with open_memory(context) as memory:
        with progress("distilling", quiet=json) as report:
            result = memory.digest(names or [], knowledge=not only_logs, progress=report)
        notice(memory.notice)
    if json:
        print_json(result)
        return
    print(
        f"{counted(result.sessions, 'session')}: {counted(result.distillations, 'log')} and"
        f" {counted(result.fragments, 'fragment')} made, {result.confirmed:,} confirmed."
    )
    if result.fragments:
        print("'lore roots' shows what is known, 'lore why ID' where it comes from.")


def consolidate(
    context: Context,
    phase: Annotated[
        list[str] | None, Option(help="Only this phase; may be given several times.")
    ] = None,
    dry_run: DryRun = False,
    undo: Annotated[
        str | None,
        Option(help="Undo a cycle by its id, or 'last'.", metavar="ID", show_default=False),
    ] = None,
    history: Annotated[bool, Option("--history", help="Show the last cycles.")] = False,
    json: Json = False,
) -> None:
    """Run a consolidation cycle: digest, merge, link, resolve conflicts, forget.

    The daemon runs it every two hours. A cycle can be undone for a day.
    """
    if undo is not None and (dry_run or phase or not undo.strip()):
        msg = "--undo takes the id of a cycle, or 'last', and no other option."
        raise InvalidInput(msg, hint="'lore consolidate --history' lists the cycles.")
    with open_memory(context) as memory:
        if undo is not None:
            _undo(memory, "" if undo == "last" else undo, json=json)
        elif history:
            _print_history(memory, json=json)
        else:
            _run(memory, phase or [], dry_run=dry_run, json=json)


def _run(memory: Memory, phases: list[str], *, dry_run: bool, json: bool) -> None:
    with progress_of_parts(quiet=json) as report:
        cycle = memory.digest.consolidate(phases=phases, dry_run=dry_run, progress=report)
    spent = memory.budget.spent_today()
    notice(memory.notice)
    if json:
        print_json({"report": cycle, "spent_today": spent})
    else:
        print_report(cycle, spent)
    if any(one.state == "failed" for one in cycle.phases):
        raise typer.Exit(1)


def print_report(report: CycleReport, spent: SpentToday | None = None) -> None:
    """Print what a cycle did, phase by phase."""
    what = "would do" if report.dry_run else "did"
    duration = f", {format_duration((report.ended_at - report.started_at).total_seconds())}" if (
        report.ended_at
    ) else ""  # fmt: skip
    print(bold(f"What cycle {report.id[:13]} {what}{duration}"))
    for phase in report.phases:
        _print_phase(phase)
    if spent and (spent.spent_usd or spent.unpriced):
        print(f"Spent on background work today: ${spent.spent_usd:.4f} of ${spent.budget_usd:.2f}.")
    if not report.dry_run and any(phase.told for phase in report.phases):
        print(dim("'lore consolidate --undo last' undoes it, within a day."))


def _print_phase(phase: PhaseReport) -> None:
    state = coloured(f"{phase.state:<8}", _STATES[phase.state])
    remark = phase.reason or tallied(phase.counts) or "nothing to do"
    print(f"   {phase.phase:<16} {state} {one_line(remark, 200)}")
    for line in phase.told[:_TOLD]:
        print(dim(f"      {one_line(line, 160)}"))
    if len(phase.told) > _TOLD:
        print(dim(f"      and {len(phase.told) - _TOLD} more"))


def _undo(memory: Memory, id_: str, *, json: bool) -> None:
    undone = memory.digest.undo_cycle(id_)
    if json:
        print_json(undone._asdict())
        return
    print(f"Undid {counted(undone.taken_back, 'change')} of cycle {undone.id[:13]}.")
    if undone.left:
        print(f"{counted(undone.left, 'change')} kept: something else changed there since.")


def _print_history(memory: Memory, *, json: bool) -> None:
    reports = memory.digest.cycles()
    if json:
        print_json(reports)
        return
    if not reports:
        print("No cycle has run yet.")
    for report in reports:
        counts: dict[str, int] = {}
        for phase in report.phases:
            for name, count in phase.counts.items():
                counts[name] = counts.get(name, 0) + count
        state = "taken back" if report.undone else "ended" if report.ended_at else "stopped"
        when = f"{report.started_at:%Y-%m-%d %H:%M}"
        print(f"{report.id[:13]}  {when}  {state:<10}  {tallied(counts)}")


def conflicts(
    context: Context,
    ids: Annotated[
        list[str] | None, Argument(help="The two items of a conflict.", metavar="[ID ID]")
    ] = None,
    keep: Annotated[str, Option(help="Id of the item that is right.")] = "",
    both: Annotated[bool, Option("--both", help="Both are right.")] = False,
    dismiss: Annotated[bool, Option("--dismiss", help="The two do not conflict.")] = False,
    every: Annotated[
        bool, Option("--all", help="List unlikely ones, too; JSON always does.")
    ] = False,
    project: Project = "",
    json: Json = False,
) -> None:
    """List what contradicts each other or may be replaced, or resolve one conflict.

    Notes in the memories of agents that no longer hold are listed with what replaced them.
    """
    if not ids and (keep or both or dismiss):
        _settled([], keep, both=both, dismiss=dismiss)
    with open_memory(context) as memory:
        if not ids:
            pairs = memory.knowledge.conflicts(project=project)
            doubtful = memory.knowledge.doubtful_pairs(project=project)
            outdated = memory.native.outdated(project=project)
            if json:
                records = [{"type": "conflict", **one._asdict()} for one in pairs]
                records += [_pair_json(one) for one in doubtful]
                print_json([*records, *(_as_record(one) for one in outdated)])
                return
            if pairs or doubtful or not outdated:
                _print_conflicts(memory, pairs, doubtful, every=every)
            _print_outdated(memory, outdated)
            return
        one, other, decision = _settled(ids, keep, both=both, dismiss=dismiss)
        relation = memory.knowledge.resolve(one, other, decision)
    if relation is None:
        outcome = "Settled. 'lore undo' undoes it."
    elif relation == "replaces":
        outcome = (
            f"Settled: one replaces the other. 'lore conflicts {one} {other} --both' ends that."
        )
    else:
        outcome = (
            "Settled: none replaces the other. Nothing undoes this; if one is wrong after all,"
            " 'lore remember' stores what is right."
        )
    print_result({"ids": [one, other], "decision": decision}, outcome, json=json)


def _settled(ids: list[str], keep: str, *, both: bool, dismiss: bool) -> tuple[str, str, Decision]:
    if len(ids) != 2 or sum((bool(keep), both, dismiss)) != 1:
        msg = "Name the two fragments, and one of --keep ID, --both and --dismiss."
        raise InvalidInput(msg, hint="'lore conflicts' lists them.")
    one, other = ids
    if keep:
        if keep not in (one, other):
            raise InvalidInput(f"'{keep}' is not one of the two.")
        one, other = (one, other) if keep == one else (other, one)
    return one, other, "keep" if keep else "both" if both else "dismiss"


_LIKELY = 0.5
"""The certainty from which a pair is worth a person's time. Of 1,230 judged pairs of real sessions
in which 8 are changes, 95 have the 0.15 from which a pair counts as doubtful, and 16 have this; one
change is among the former, none among the latter. The model cannot tell them, so that a person
should not have to."""


def _pair_json(pair: DoubtfulPair) -> dict[str, object]:
    newer, older = pair.newer._asdict(), pair.older._asdict()
    return {"type": "may_replace", "newer": newer, "older": older, "certainty": pair.certainty}


def _print_conflicts(
    memory: Memory, pairs: list[Conflict], doubtful: list[DoubtfulPair], *, every: bool
) -> None:
    likely = pairs if every else [pair for pair in pairs if not _is_course_of_work(pair)]
    certain = doubtful if every else [one for one in doubtful if one.certainty >= _LIKELY]
    left = len(pairs) + len(doubtful) - len(likely) - len(certain)
    if likely or certain:
        _print_pairs(memory, likely, certain)
    else:
        print("No conflicts." if not left else "No likely conflicts.")
    if left:
        print(dim(f"{counted(left, 'unlikely pair')} not shown: 'lore conflicts --all' does."))


def _is_course_of_work(pair: Conflict) -> bool:
    """Return whether an agent said both in one session: first what was wrong, then what it did."""
    is_one_session = bool(pair.newer.session_id) and pair.newer.session_id == pair.older.session_id
    return is_one_session and "user" not in (pair.newer.origin, pair.older.origin)


def _print_pairs(memory: Memory, pairs: list[Conflict], doubtful: list[DoubtfulPair]) -> None:
    ids = [one.id for pair in pairs for one in pair]
    ids += [one.id for pair in doubtful for one in (pair.newer, pair.older)]
    short = memory.search.short_ids(ids)
    for pair in doubtful:
        print(f"May replace ({pair.certainty:.0%}):")
        print_columns(
            (short[one.id], f"{one.at:%Y-%m-%d}", one_line(one.text))
            for one in (pair.newer, pair.older)
        )
        print()
    for newer, older in pairs:
        print_columns(
            (short[one.id], f"{one.created_at:%Y-%m-%d}", one.origin, one_line(one.content))
            for one in (newer, older)
        )
        print()
    print("'lore conflicts ID ID --keep ID' settles one; or --both, or --dismiss.")


def _as_record(outdated: OutdatedNote) -> dict[str, object]:
    note, agent, file, line, newer = outdated
    return {
        "type": "outdated_note",
        "newer": newer._asdict(),
        "older": note,
        "outdated_in": {"agent": agent, "file": file, "line": line},
    }


def _print_outdated(memory: Memory, outdated: list[OutdatedNote]) -> None:
    if not outdated:
        return
    print(bold("Outdated in the memories of agents"))
    short = memory.search.short_ids([o.id for one in outdated for o in (one.note, one.newer)])
    for note, agent, file, line, newer in outdated:
        print(clean(f"{file}:{line} ({agent})"))
        was = (note.id, note.created_at, note.content)
        print_columns(
            (f"   {label}", short[id_], f"{at:%Y-%m-%d}", one_line(text))
            for label, (id_, at, text) in (("now", (newer.id, newer.at, newer.text)), ("was", was))
        )
    print("Change or remove them there, or ask the agent to; the list follows the files.")


def promote(
    context: Context,
    id: Annotated[str, Argument(help="Id of a fragment; without it, list the candidates.")] = "",
    json: Json = False,
) -> None:
    """Make a fragment of one project apply to all projects.

    Without an id, list the candidates: fragments that at least three projects confirmed.
    """
    with open_memory(context) as memory:
        if id:
            promoted = memory.knowledge.promote(id)
            print_result(
                {"id": promoted},
                f"{promoted} applies to all projects now. 'lore undo' undoes it.",
                json=json,
            )
            return
        offers = memory.knowledge.offers()
        if json:
            print_json(offers)
            return
        if not offers:
            print("Nothing has been confirmed in three projects yet.")
        names = project_names(memory)
        short = memory.search.short_ids([offer.fragment.id for offer in offers])
        for offer in offers:
            where = ", ".join(names.get(project, "?") for project in offer.projects)
            name = short[offer.fragment.id]
            print(clean(f"{name}  {one_line(offer.fragment.summary)}  ({where})"))
