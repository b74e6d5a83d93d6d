"""The command `lore sync`: exchange changes with another home of the same person."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

from typer import Argument, Context, Option

from lore.cli.options import DryRun, Json, given_path
from lore.cli.output import (
    counted,
    dim,
    one_line,
    open_memory,
    print_columns,
    print_json,
    print_result,
    progress_of_parts,
    read_text,
)
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import SyncResult, SyncState


def sync(
    context: Context,
    target: Annotated[
        str,
        Argument(
            help="An http(s) address, or 'HOST:' for ssh; by default the setting sync.target.",
            show_default=False,
        ),
    ] = "",
    to: Annotated[str, Option("--to", help="Write everything to a bundle.", metavar="FILE")] = "",
    source: Annotated[str, Option("--from", help="Apply a bundle.", metavar="FILE")] = "",
    trust: Annotated[
        bool, Option("--trust", help="With --from: the bundle is yours, though not paired.")
    ] = False,
    pair: Annotated[bool, Option("--pair", help="Print the code for '--join' elsewhere.")] = False,
    join: Annotated[
        str,
        Option("--join", help="Share the key of another machine; '-' reads it.", metavar="CODE"),
    ] = "",
    show_hash: Annotated[bool, Option("--hash", help="Print the hash of the state.")] = False,
    show_state: Annotated[
        bool, Option("--status", help="Show the machines and what waits for them.")
    ] = False,
    stdio: Annotated[
        bool, Option("--stdio", help="Answer another machine: 'lore sync HOST:' runs this.")
    ] = False,
    dry_run: DryRun = False,
    json: Json = False,
) -> None:
    """Bring two machines of yours to the same state, through a server, ssh or a file.

    Conversations, knowledge with its versions and links, decisions and what was forgotten travel;
    indexes and vectors are rebuilt. You can interrupt it and run it again. Two machines that have
    synced print the same --hash.

    Exit codes: 17 if the other side refuses, or a bundle is foreign, changed or cut off; 18 if it
    cannot be reached now.
    """
    actions = {
        "a target": target, "--to": to, "--from": source, "--pair": pair, "--join": join,
        "--hash": show_hash, "--status": show_state, "--stdio": stdio,
    }  # fmt: skip
    chosen = [name for name, value in actions.items() if value]
    if len(chosen) > 1:
        msg = f"{chosen[0]} and {chosen[1]} cannot be combined."
        raise InvalidInput(msg, hint="'lore sync --help' shows the usage.")
    if (trust and not source) or (dry_run and chosen not in ([], ["a target"])):
        msg = "--trust belongs to --from, and --dry-run to a target."
        raise InvalidInput(msg, hint="'lore sync --help' shows the usage.")
    with open_memory(context, create=True) as memory:
        if stdio:
            memory.sync.serve_pipes(sys.stdin.buffer, sys.stdout.buffer)
        elif pair or join:
            _share_key(memory, join, json=json)
        elif show_hash:
            value = memory.sync.state_hash()
            print_result({"state_hash": value}, value, json=json)
        elif show_state:
            _print_state(memory.sync.state(), json=json)
        else:
            result = _exchange(memory, target, to, source, trust=trust, dry_run=dry_run, json=json)
            _print_summary(result, json=json, wrote=bool(to))


def _share_key(memory: Memory, code: str, *, json: bool) -> None:
    if code:
        memory.sync.join(read_text(code))
        print_result({"joined": True}, "Bundles of the other machine are yours now.", json=json)
        return
    shown = memory.sync.pairing_code()
    print_result({"code": shown}, shown, json=json)


def _exchange(
    memory: Memory, target: str, to: str, source: str, *, trust: bool, dry_run: bool, json: bool
) -> SyncResult:
    with _progress(quiet=json) as report:
        if to:
            return memory.sync.write_bundle(given_path(to))
        if source:
            return memory.sync.read_bundle(given_path(source), trust=trust, progress=report)
        return memory.sync(target, dry_run=dry_run, progress=report)


@contextmanager
def _progress(*, quiet: bool) -> Iterator[Callable[[str, int], None]]:
    """Yield a function that shows how many records of a part are done."""
    with progress_of_parts(quiet=quiet) as report:
        yield lambda part, done: report(part, done, None)


def _print_summary(result: SyncResult, *, json: bool, wrote: bool) -> None:
    if json:
        print_json(result)
        return
    name = one_line(result.peer.removesuffix(":"), 200)
    if wrote:
        print(f"{counted(result.sent, 'record')} written to {name}.")
        return
    verb = "would be " if result.dry_run else ""
    print(
        f"{name}: {counted(result.sent, 'record')} {verb}sent,"
        f" {result.received:,} {verb}received, {result.changed:,} changed something here."
    )
    if result.forgotten:
        print(f"{counted(result.forgotten, 'item')} forgotten on another machine: gone here too.")
    if result.conflicts:
        edits = counted(result.conflicts, "edit")
        print(f"{edits} on both machines: 'lore conflicts' lists those to decide.")
    if result.peer_hash and not result.dry_run:
        same = result.peer_hash == result.state_hash
        print(dim("Both have the same state." if same else "The other one changed meanwhile."))


def _print_state(state: SyncState, *, json: bool) -> None:
    if json:
        print_json(state)
        return
    every = f", every {state.interval_s:g} s" if state.interval_s else ""
    print(f"This machine: {state.machine or '(never synced)'}")
    print(f"Target:       {one_line(state.target) or '(none)'}{every}")
    if state.unresolved:
        print(f"Waiting:      {counted(state.unresolved, 'record')} for others to arrive")
    print_columns(
        (
            one_line(peer.name, 60),
            peer.machine or "(unknown)",
            f"{peer.synced_at:%Y-%m-%d %H:%M} UTC" if peer.synced_at else "never",
            f"{counted(peer.waiting, 'change')} to send",
            one_line(peer.problem, 200),
        )
        for peer in state.peers
    )
