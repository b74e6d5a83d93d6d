"""Commands of access: key, open."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Context, Option

from lore.cli.options import Json, command_group
from lore.cli.output import (
    load_settings,
    notice,
    one_line,
    open_memory,
    plain,
    print_columns,
    print_json,
    print_result,
)
from lore.cli.server_commands import Data, ServerKeyOption, make_login, open_registry
from lore.errors import DaemonError, InvalidInput
from lore.proxy.address import API_PREFIX

if TYPE_CHECKING:
    from lore.proxy.address import Address
    from lore.records import AccessKey, ServerKey

_ANSWER_S = 10.0
_OK = 200
_DAY_S = 86_400.0
_UNITS_S = {"d": _DAY_S, "h": 3_600.0}


key = command_group(
    "key",
    """Create, list and revoke access keys for the server.

Programs of this user on this machine need none: they read the file access.key in the home.""",
)


Owner = Annotated[
    str, Option("--owner", help="On the server ('lore serve'): whose key it is.", metavar="NAME")
]
OfServer = Annotated[bool, Option("--server", help="Of the server ('lore serve').")]


@key.command("create")
def create_key(
    context: Context,
    name: Annotated[str, Argument(help="What the key is for.", show_default=False)],
    scope: Annotated[
        list[str] | None,
        Option(
            "--scope", help="read, write, push or admin; several times. By default read and write."
        ),
    ] = None,
    days: Annotated[
        float | None, Option("--days", min=0, help="Lifetime in days; without it, until revoked.")
    ] = None,
    expires: Annotated[
        str, Option("--expires", help="Lifetime, such as 90d or 12h, instead of --days.")
    ] = "",
    owner: Owner = "",
    team: Annotated[
        str, Option("--team", help="With --owner: the key acts for this team.", metavar="TEAM")
    ] = "",
    operator: Annotated[
        bool, Option("--operator", help="On the server: it reads /status and /metrics alone.")
    ] = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Create an access key and print it. It is shown only once: Lore stores a digest of it.

    With --owner it is a key to the memory of a person on the server.
    """
    lasting_s = _lifetime_s(days, expires)
    scopes: Any = scope or ["read", "write"]  # create_key refuses what is none
    record: AccessKey | ServerKey
    if owner or operator:
        if owner and operator:
            msg = "A key has an owner, or it is the operator's."
            raise InvalidInput(msg)
        with open_registry(context, data) as registry:
            secret, record = registry.create_key(
                name, owner=owner, team=team, scopes=scopes if owner else ("read",),
                expires_in_s=lasting_s,
            )  # fmt: skip
    else:
        if team:
            msg = "A key for a team needs --owner."
            raise InvalidInput(msg)
        with open_memory(context, create=True) as memory:
            secret, record = memory.access.create_key(name, scopes=scopes, expires_in_s=lasting_s)
    if json:
        print_json({"key": secret, **plain(record)})
        return
    print(secret)
    notice(f"Scopes: {', '.join(record.scopes)}. The key is not shown again.")


def _lifetime_s(days: float | None, expires: str) -> float | None:
    """Return a lifetime in seconds, of --days or --expires."""
    if not expires:
        return None if days is None else days * _DAY_S
    number, unit = expires[:-1], expires[-1]
    if days is not None or unit not in _UNITS_S or not number.isdecimal():
        msg = "--expires takes a whole number with d or h, such as 90d or 12h, and no --days."
        raise InvalidInput(msg)
    return int(number) * _UNITS_S[unit]


@key.command("list")
def list_keys(
    context: Context,
    owner: Owner = "",
    server: OfServer = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """List the access keys by prefix."""
    records: Sequence[AccessKey | ServerKey]
    if owner or server or data:
        with open_registry(context, data) as registry:
            records = registry.list_keys(owner=owner)
    else:
        with open_memory(context, or_empty=True) as memory:
            records = memory.access.list_keys()
    if json:
        print_json(records)
        return
    if not records:
        print("No access keys.")
    print_columns(
        (record.prefix, one_line(record.name, 40), *_whose(record), ", ".join(record.scopes),
         _state(record))
        for record in records
    )  # fmt: skip


def _whose(record: AccessKey | ServerKey) -> tuple[str, ...]:
    """Return whose a key of the server is; nothing for a key of this memory."""
    owner = getattr(record, "owner_name", None)
    if owner is None:
        return ()
    team = getattr(record, "team_name", "")
    return (one_line(f"{owner} for {team}" if team else owner or "operator", 40),)


@key.command("revoke")
def revoke_key(
    context: Context,
    name: Annotated[str, Argument(help="Name or prefix of a key.", show_default=False)],
    server: OfServer = False,
    data: Data = None,
    json: Json = False,
) -> None:
    """Revoke an access key, effective at once."""
    record: AccessKey | ServerKey
    if server or data:
        with open_registry(context, data) as registry:
            record = registry.revoke_key(name)
    else:
        with open_memory(context) as memory:
            record = memory.access.revoke_key(name)
    print_result(record, f"{record.prefix} ({record.name}) is revoked.", json=json)


def _state(record: AccessKey | ServerKey) -> str:
    from lore.clock import now

    if record.revoked_at is not None:
        return f"revoked {record.revoked_at:%Y-%m-%d}"
    if record.expires_at is None:
        return "until revoked"
    ended = "expired" if not record.is_valid(now()) else "until"
    return f"{ended} {record.expires_at:%Y-%m-%d %H:%M} UTC"


PAGES = ("search", "ask", "graph", "timeline", "sessions", "spend", "review", "tasks", "health")
"""Pages of the explorer that 'lore open' knows by name."""


def open_browser(
    context: Context,
    target: Annotated[
        str,
        Argument(
            help=f"A page ({', '.join(PAGES)}), or the id of a fragment, message or session.",
            metavar="[PAGE|ID]",
            show_default=False,
        ),
    ] = "",
    print_only: Annotated[
        bool, Option("--print", help="Print the address and open nothing.")
    ] = False,
    server: Annotated[
        str, Option("--server", help="Open your memory on a server instead, by its address.")
    ] = "",
    server_key: ServerKeyOption = "",
) -> None:
    """Open this memory in a browser, logged in.

    The address works once and for a minute. With --server it is that of your memory on a server; it
    takes a key with the scope admin.
    """
    import webbrowser
    from urllib.parse import quote

    from lore.http import explorer_build
    from lore.proxy.address import find_address

    if server:
        login = make_login(server, server_key)
        if print_only or not webbrowser.open(login):
            print(login)
        return
    page = _find_page(context, target.strip())
    address = find_address(str(load_settings(context).home))
    if address is None:
        msg = "No server is running for this memory."
        raise DaemonError(msg, hint="'lore up --detach' starts it.")
    url = f"{address.url}{_ticket_path(address)}"
    if page:
        url += f"&next={quote(page, safe='')}"
    if not explorer_build.is_built():
        notice(explorer_build.NOT_BUILT)
    if print_only or not webbrowser.open(url):
        print(url)


def _find_page(context: Context, target: str) -> str:
    """Return the path of a page, or of the page that shows an item."""
    from lore.errors import LoreError, NotFound

    if not target or target.startswith("/") or target in PAGES:
        return target if target.startswith("/") or not target else f"/{target}"
    with open_memory(context) as memory:
        try:
            (reading,) = memory.read([target], reinforce=False)
        except LoreError as error:
            if memory.sessions.has_session(target):
                return f"/sessions/{memory.sessions.log(target).session.id}"
            msg = f"'{target}' is neither a page nor the id of something in this memory."
            raise NotFound(msg, hint=f"Pages: {', '.join(PAGES)}.") from error
        if reading.type == "distillation" and reading.session is not None:
            return f"/sessions/{reading.session.id}"
        return f"/{'fragments' if reading.type == 'fragment' else 'messages'}/{reading.id}"


def _ticket_path(address: Address) -> str:
    """Ask the server for a ticket and return the path that redeems it."""
    import json

    from lore.proxy.daemon_client import DaemonCall

    try:
        status, body = DaemonCall().post(address, f"{API_PREFIX}/logins", b"", {}, _ANSWER_S)
        document = json.loads(body)
        if status == _OK:
            return str(document["path"])
        msg = f"The server refused: {document.get('detail', status)}"
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        msg = "The server does not respond."
        raise DaemonError(msg, hint="'lore status' and 'lore logs' show more.") from error
    raise InvalidInput(msg)
