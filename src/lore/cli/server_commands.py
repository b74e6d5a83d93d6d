"""Commands of a server for many people: serve, owner, team, publish."""

from __future__ import annotations

import json as json_module
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

from typer import Argument, Context, Option

from lore.cli.options import Json, Yes, command_group
from lore.cli.output import (
    counted,
    load_settings,
    one_line,
    print_columns,
    print_json,
    print_result,
    progress,
)
from lore.errors import DaemonError, InvalidInput
from lore.proxy.address import API_PREFIX

if TYPE_CHECKING:
    from collections.abc import Callable

    from lore.server.memory_move import MoveResult
    from lore.server.memory_store import MemoryStore
    from lore.server.registry import Registry
    from lore.settings import Settings

SERVER_FOLDER = "server"
"""The folder of a server in a home, if --data names no other."""

_ANSWER_S = 30.0
_OK = 200

Data = Annotated[
    Path | None,
    Option("--data", help="Folder of the server (default: 'server' in the home).", metavar="DIR"),
]
Name = Annotated[str, Argument(help="Name of an owner.", show_default=False)]
TeamName = Annotated[str, Argument(help="Name of a team.", show_default=False)]
ServerUrl = Annotated[
    str, Option("--server", help="Address of the server.", envvar="LORE_SERVER_URL")
]
ServerKeyOption = Annotated[
    str,
    Option("--key", help="Your access key; better in LORE_SERVER_KEY.", envvar="LORE_SERVER_KEY"),
]


def serve(
    context: Context,
    host: Annotated[str, Option(help="Address to listen on (setting server.host).")] = "",
    port: Annotated[
        int | None, Option(min=0, max=65_535, help="Port (setting server.port); 0: any free one.")
    ] = None,
    data: Data = None,
    allow_host: Annotated[
        list[str] | None, Option(help="A name by which clients call the server; several times.")
    ] = None,
) -> None:
    """Serve many people, each with a memory and access keys of their own.

    It speaks plain HTTP: a reverse proxy in front of it does TLS. 'lore owner add' and 'lore key
    create NAME --owner' let people in. Ctrl-C or SIGTERM stops it: requests in progress finish.
    """
    from lore.server.owner_server import serve as run_server

    home, settings = load_server(context, data)
    chosen = replace(
        settings,
        server_host=host or settings.server_host,
        server_port=settings.server_port if port is None else port,
    )

    def tell(address: str) -> None:
        print(f"Lore serves {address}; Ctrl-C stops it.", flush=True)

    run_server(home, chosen, host_names=allow_host or (), on_ready=tell)


def load_server(context: Context, data: Path | None) -> tuple[Path, Settings]:
    """Return the folder of the server, and its settings."""
    from lore.settings import load

    home = (data or load_settings(context).home / SERVER_FOLDER).expanduser().absolute()
    return home, load(home=home).settings


def open_registry(context: Context, data: Path | None, *, create: bool = False) -> Registry:
    """Open the registry of the server in a folder."""
    from lore.server.registry import Registry

    home, _ = load_server(context, data)
    return Registry.open(home, create=create)


def open_store(context: Context, data: Path | None, registry: Registry) -> MemoryStore:
    """Return the memories of a server by its settings."""
    from lore.server.memory_store import MemoryStore

    _, settings = load_server(context, data)
    return MemoryStore(registry, settings)


owner = command_group("owner", "Add, list and remove the people who have a memory on the server.")


@owner.command("add")
def add_owner(context: Context, name: Name, data: Data = None, json: Json = False) -> None:
    """Add a person; 'lore key create NAME --owner' then gives them a key."""
    with open_registry(context, data, create=True) as registry:
        added = registry.add_owner(name)
    print_result(added, f"{added.name} has a memory here.", json=json)


@owner.command("list")
def list_owners(context: Context, data: Data = None, json: Json = False) -> None:
    """List the people, with the folders of their memories."""
    with open_registry(context, data) as registry:
        owners = registry.list_owners()
        budgets = {one.id: registry.find_budget(registry.owner_folder(one.id)) for one in owners}
    if json:
        print_json(owners)
        return
    if not owners:
        print("No owners.")
    print_columns(
        (one_line(one.name, 40), f"{one.created_at:%Y-%m-%d}", _dollars(budgets[one.id]), one.id)
        for one in owners
    )


def _dollars(usd: float | None) -> str:
    return "no budget" if usd is None else f"${usd:.2f} a day"


@owner.command("remove")
def remove_owner(
    context: Context, name: Name, data: Data = None, yes: Yes = False, json: Json = False
) -> None:
    """Remove a person and delete their memory for good; their keys stop at once."""
    _remove(context, data, name, is_team=False, yes=yes, json=json)


def _remove(
    context: Context, data: Path | None, name: str, *, is_team: bool, yes: bool, json: bool
) -> None:
    with open_registry(context, data) as registry:
        known = registry.get_team(name) if is_team else registry.get_owner(name)
    label = f"team {known.name}" if is_team else known.name
    if not yes and input(f"Delete the memory of {label} for good? [y/N] ").lower() != "y":
        print("Nothing was removed.")
        return
    with open_registry(context, data) as registry:
        store = open_store(context, data, registry)
        store.check()
        removed = registry.remove_team(name) if is_team else registry.remove_owner(name)
        when = _erase(registry, lambda: store.erase(removed))
        left = removed.id in registry.left_vectors()
    text = f"{removed.name} is removed; the memory is deleted {when}."
    if left:
        text += (
            "\nQdrant still has vectors of it. They are deleted when the server runs, or something"
            " is removed, with 'vectors.url' set."
        )
    print_result(removed, text, json=json)


def _erase(registry: Registry, erase: Callable[[], None]) -> str:
    """Delete a removed memory, unless a running server does; return when it is deleted."""
    from lore.daemon.daemon_lock import find_holder

    if find_holder(registry.home) is not None:
        return "within a minute"
    erase()
    return "now"


MoveTo = Annotated[
    str, Option("--to", help="postgres (the database of store.url) or files.", show_default=False)
]


@owner.command("move")
def move_owners(
    context: Context,
    to: MoveTo,
    delete_old: Annotated[
        bool, Option("--delete-old", help="Delete the former copies instead of setting them aside.")
    ] = False,
    forget_left: Annotated[
        bool,
        Option("--forget-left", help="Forget copies left in a database that is gone for good."),
    ] = False,
    dry_run: Annotated[bool, Option("--dry-run", help="Only count.")] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Move the memories of all people and teams into PostgreSQL, or back into files.

    The server must be stopped. Every copy is compared with the original before anything is
    switched; a move that was interrupted continues when you repeat the command. Until anything is
    switched, the command with the former place cancels it.
    """
    from lore.server.memory_move import move_memories

    if to not in ("postgres", "files"):
        msg = f"--to must be postgres or files, not '{to[:40]}'."
        raise InvalidInput(msg)
    home, settings = load_server(context, data)
    with progress("memories", quiet=json) as report:
        moved = move_memories(
            home, settings, "postgres" if to == "postgres" else "files",
            delete_former=delete_old, forget_left=forget_left, dry_run=dry_run,
            on_memory=lambda _name, number, total: report(number, total),
        )  # fmt: skip
    if json:
        print_json(moved)
        return
    _print_move(moved)


def _print_move(moved: MoveResult) -> None:
    where = "rows of PostgreSQL" if moved.to == "postgres" else "files"
    if moved.is_cancelled:
        _print_cancelled(moved, where)
        return
    if moved.was_there:
        print(f"The memories are {where} already.")
        _print_left(moved)
        return
    print_columns(
        (one.kind, one_line(one.name, 40), counted(one.rows, "row"), one.former)
        for one in moved.memories
    )
    for one in moved.memories:
        if one.shortened:
            names = counted(one.shortened, "name")
            print(
                f"{one.kind} {one_line(one.name, 40)}: {names} too long for PostgreSQL, shortened."
            )
    if not moved.is_done:
        print(f"These would become {where}; nothing was changed.")
        return
    print(f"All were compared and moved: they are {where} now.")
    if any(one.former for one in moved.memories):
        print("The former copies are in the folders above; delete them when all is well.")
    if moved.to == "files":
        print("Unset 'store.url' (LORE_STORE_URL) before you start the server.")
    _print_left(moved)


def _print_cancelled(moved: MoveResult, where: str) -> None:
    if not moved.is_done:
        print(f"This would cancel the move that was interrupted; the memories stay {where}.")
        return
    print(f"The move that was interrupted is cancelled: the memories are {where}, as before.")
    _print_left(moved)


def _print_left(moved: MoveResult) -> None:
    if moved.has_leftover_rows:
        print("Copies of a cancelled move are left in a database that was not reached.")
        print("Repeat the command with its address (LORE_STORE_URL): that deletes them. If it is")
        print("gone for good, '--forget-left' says so.")


Usd = Annotated[
    float | None,
    Argument(help="US dollars a day; without it the budget is shown.", show_default=False, min=0),
]
Clear = Annotated[
    bool, Option("--clear", help="Remove it: the daily_budget of the server's settings applies.")
]


@owner.command("budget")
def set_owner_budget(
    context: Context, name: Name, usd: Usd = None, clear: Clear = False, data: Data = None
) -> None:
    """Show or set what the gateway may spend for a person in a day (UTC); effective at once."""
    with open_registry(context, data) as registry:
        folder = registry.owner_folder(registry.get_owner(name).id)
        applies = _change_budget(registry, folder, usd, clear=clear)
    print(f"{name}: {applies}")


def _change_budget(registry: Registry, folder: Path, usd: float | None, *, clear: bool) -> str:
    """Set or clear the budget of a folder, or neither; return the one that applies."""
    from lore.settings import load

    if clear and usd is not None:
        msg = "An amount and --clear cannot be combined."
        raise InvalidInput(msg, hint="--clear removes the budget; 0 allows free requests only.")
    if clear or usd is not None:
        registry.set_budget(folder, usd)
    own = registry.find_budget(folder)
    if own is not None:
        return _dollars(own)
    default = load(home=registry.home).settings.daily_budget
    return _dollars(default) + ("" if default is None else " (of the server)")


team = command_group(
    "team",
    """Manage teams, and what is published to them.

add, remove, list, members, join, leave, quorum, budget and provider-key work on the server's
folder. The others ask a server for you: --server and --key, or LORE_SERVER_URL and
LORE_SERVER_KEY.""",
)


@team.command("add")
def add_team(
    context: Context,
    name: TeamName,
    quorum: Annotated[
        int | None, Option(min=1, help="Approvals that a publication needs (team.quorum).")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> None:
    """Add a team without members."""
    _, settings = load_server(context, data)
    with open_registry(context, data, create=True) as registry:
        added = registry.add_team(name, quorum=quorum or settings.team_quorum)
    print_result(added, f"Team {added.name}: {counted(added.quorum, 'approval')}.", json=json)


@team.command("remove")
def remove_team(
    context: Context, name: TeamName, data: Data = None, yes: Yes = False, json: Json = False
) -> None:
    """Remove a team and delete its memory for good; its keys stop at once."""
    _remove(context, data, name, is_team=True, yes=yes, json=json)


@team.command("list")
def list_teams(context: Context, data: Data = None, json: Json = False) -> None:
    """List the teams."""
    with open_registry(context, data) as registry:
        teams = registry.list_teams()
        sizes = {one.id: len(registry.list_members(one.name)) for one in teams}
    if json:
        print_json(teams)
        return
    if not teams:
        print("No teams.")
    print_columns(
        (one_line(one.name, 40), counted(sizes[one.id], "member"), counted(one.quorum, "approval"))
        for one in teams
    )


@team.command("members")
def list_members(context: Context, name: TeamName, data: Data = None, json: Json = False) -> None:
    """List the members of a team."""
    with open_registry(context, data) as registry:
        members = registry.list_members(name)
    print_result(members, "\n".join(members) or "No members.", json=json)


Member = Annotated[str, Argument(help="Name of an owner.", metavar="OWNER", show_default=False)]


@team.command("join")
def join_team(context: Context, name: TeamName, member: Member, data: Data = None) -> None:
    """Make an owner a member of a team."""
    with open_registry(context, data) as registry:
        registry.add_member(name, member)
    print(f"{member} is in {name}.")


@team.command("leave")
def leave_team(context: Context, name: TeamName, member: Member, data: Data = None) -> None:
    """End a membership; keys for the team stop at once."""
    with open_registry(context, data) as registry:
        registry.remove_member(name, member)
    print(f"{member} is no longer in {name}.")


@team.command("quorum")
def set_quorum(
    context: Context,
    name: TeamName,
    count: Annotated[int, Argument(min=1, help="Approvals.", show_default=False)],
    data: Data = None,
) -> None:
    """Set how many members must approve what is published."""
    with open_registry(context, data) as registry:
        registry.set_quorum(name, count)
    print(f"{name}: {counted(count, 'approval')}")


@team.command("budget")
def set_team_budget(
    context: Context, name: TeamName, usd: Usd = None, clear: Clear = False, data: Data = None
) -> None:
    """Show or set what the team's provider keys may spend in a day (UTC); effective at once."""
    with open_registry(context, data) as registry:
        folder = registry.team_folder(registry.get_team(name).id)
        applies = _change_budget(registry, folder, usd, clear=clear)
    print(f"{name}: {applies}")


@team.command("provider-key")
def set_provider_key(
    context: Context,
    name: TeamName,
    provider: Annotated[str, Argument(help="anthropic, openai or gemini.", show_default=False)],
    remove: Annotated[bool, Option("--remove", help="Remove the key.")] = False,
    data: Data = None,
) -> None:
    """Store a provider key for a team, encrypted; it is read from standard input."""
    secret = "" if remove else sys.stdin.readline().strip()
    if not remove and not secret:
        msg = "The key is empty."
        raise InvalidInput(msg, hint="Pipe it in: 'lore team provider-key T anthropic < FILE'.")
    with open_registry(context, data) as registry:
        registry.set_provider_key(name, provider, secret)
        left = registry.list_provider_keys(name)
    print(f"{name}: keys for {', '.join(left) or 'no provider'}")


Id = Annotated[str, Argument(help="Id of a publication.", metavar="ID", show_default=False)]


def publish(
    id: Annotated[str, Argument(help="Id of a fragment on the server.", show_default=False)],
    to: Annotated[str, Option("--team", help="Name of a team of yours.", show_default=False)],
    server: ServerUrl = "",
    key: ServerKeyOption = "",
    json: Json = False,
) -> None:
    """Publish a fragment to a team of a server, where somebody else has to approve it."""
    done = _post(server, key, f"/teams/{quote(to, safe='')}/publications", {"id": id})
    print_result(done, f"{done['id']}: {done['state']}", json=json)


@team.command("publications")
def list_publications(
    name: TeamName, server: ServerUrl = "", key: ServerKeyOption = "", json: Json = False
) -> None:
    """List what was published to a team: pending and approved."""
    listed = _ask(server, key, "GET", f"/teams/{quote(name, safe='')}/publications")
    if json:
        print_json(listed)
        return
    if not listed:
        print("No publications.")
    print_columns(
        (one["id"], one["state"], one_line(one["publisher"], 30), one_line(one["summary"], 60))
        for one in listed
    )


@team.command("approve")
def approve(
    name: TeamName, id: Id, server: ServerUrl = "", key: ServerKeyOption = "", json: Json = False
) -> None:
    """Approve what somebody else published."""
    _act("approve", name, id, server, key, json=json)


@team.command("reject")
def reject(
    name: TeamName, id: Id, server: ServerUrl = "", key: ServerKeyOption = "", json: Json = False
) -> None:
    """Reject what was published, with a key of the team that has the scope admin."""
    _act("reject", name, id, server, key, json=json)


@team.command("withdraw")
def withdraw(
    name: TeamName, id: Id, server: ServerUrl = "", key: ServerKeyOption = "", json: Json = False
) -> None:
    """Withdraw what you published; it is deleted from the team's memory."""
    _act("withdraw", name, id, server, key, json=json)


def _act(verb: str, name: str, id_: str, server: str, key: str, *, json: bool) -> None:
    path = f"/teams/{quote(name, safe='')}/publications/{quote(id_, safe='')}/{verb}"
    done = _post(server, key, path, {})
    so_far = f" ({counted(done['approvals'], 'approval')})" if done["state"] == "pending" else ""
    print_result(done, f"{done['id']}: {done['state']}{so_far}", json=json)


def _post(server: str, key: str, path: str, body: dict[str, Any]) -> Any:
    return _ask(server, key, "POST", path, json_module.dumps(body).encode())


def _ask(server: str, key: str, method: str, path: str, body: bytes | None = None) -> Any:
    """Ask a server by its address; redirects are not followed, since the key would go along."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection

    if not server or not key:
        msg = "The address of the server and your access key are needed."
        raise InvalidInput(msg, hint="Set LORE_SERVER_URL and LORE_SERVER_KEY.")
    parts = urlsplit(server if "://" in server else f"https://{server}")
    if parts.scheme not in ("http", "https") or not parts.hostname:
        msg = "The address of the server must begin with http:// or https://."
        raise InvalidInput(msg)
    kind = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    headers = {"authorization": f"Bearer {key}", "content-type": "application/json"}
    try:
        connection = kind(parts.hostname, parts.port, timeout=_ANSWER_S)
        connection.request(method, f"{parts.path.rstrip('/')}{API_PREFIX}{path}", body, headers)
        response = connection.getresponse()
        document = json_module.loads(response.read())
    except (OSError, HTTPException, ValueError) as error:
        msg = f"The server does not answer: {type(error).__name__}."
        raise DaemonError(msg, hint="Look at the address, and at 'lore serve' there.") from error
    if response.status != _OK:
        detail = document.get("detail", "") if isinstance(document, dict) else ""
        raise InvalidInput(f"The server refused ({response.status}): {detail}")
    return document


def make_login(server: str, key: str) -> str:
    """Return an address that logs a browser in to a server, once."""
    ticket = _post(server, key, "/logins", {})
    return f"{server.rstrip('/')}{ticket['path']}"
