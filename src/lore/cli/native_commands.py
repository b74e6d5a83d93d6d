"""The option `lore share --native`: give knowledge back to an agent's own memory."""

from __future__ import annotations

import difflib
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from lore.cli.output import clean, counted, diff_line, notice, print_json
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import NativeShare


def share_native(
    memory: Memory, agent: str, folder: Path, *, undo: bool, yes: bool, dry_run: bool, json: bool
) -> None:
    """Show how an agent's memory would change, ask, and change it."""
    plan = memory.native.plan_share(agent, str(folder), undo=undo)
    acting = bool(plan.changes) and not dry_run
    if acting and not yes and not sys.stdin.isatty():
        msg = f"{counted(len(plan.changes), 'file')} would be changed."
        raise InvalidInput(msg, hint="Add --yes to confirm, or --dry-run to preview.")
    if not json:
        _print_diff(plan)
    if acting and not yes and not typer.confirm(f"Change the memory of {agent}?"):
        raise typer.Exit(1)
    if acting:
        memory.native.share(plan)
    if json:
        files = [change.path for change in plan.changes]
        print_json({
            "agent": agent, "changed": files, "entries": plan.entries,
            "left_out": plan.left_out, "dry_run": dry_run,
        })  # fmt: skip
    elif not plan.changes:
        print(f"Nothing to change in the memory of {agent}.")
    elif acting:
        _print_done(plan, undo=undo)


def _print_diff(plan: NativeShare) -> None:
    for change in plan.changes:
        before, after = ((text or "").splitlines() for text in (change.before, change.after))
        for line in difflib.unified_diff(before, after, change.path, change.path, lineterm="", n=2):
            print(diff_line(line))
        if change.after is None:
            print(clean(f"{change.path} is removed."))
    if plan.left_out:
        notice(f"{counted(plan.left_out, 'fragment')} left out: the file would be too long.")


def _print_done(plan: NativeShare, *, undo: bool) -> None:
    if undo:
        print(f"The memory of {plan.agent} is as it was before.")
        return
    entries = counted(plan.entries, "fragment")
    print(f"The memory of {plan.agent} has {entries} of yours. --undo takes them out again.")
