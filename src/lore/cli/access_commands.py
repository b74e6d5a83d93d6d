"""Commands of access: key, open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

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
from lore.errors import DaemonError, InvalidInput
from lore.proxy.address import API_PREFIX

if TYPE_CHECKING:
    from lore.proxy.address import Address
    from lore.records import AccessKey

_ANSWER_S = 10.0
_OK = 200
_DAY_S = 86_400.0


key = command_group(
    "key",
    """Create, list and revoke access keys for the server.

Programs of this user on this machine need none: they read the file access.key in the home.""",
)


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
    json: Json = False,
) -> None:
    """Create an access key and print it. It is shown only once: Lore stores a digest of it."""
    lasting_s = None if days is None else days * _DAY_S
    with open_memory(context, create=True) as memory:
        scopes = scope or ["read", "write"]
        secret, record = memory.access.create_key(name, scopes=scopes, expires_in_s=lasting_s)  # type: ignore[arg-type]  # create_key refuses others
    if json:
        print_json({"key": secret, **plain(record)})
        return
    print(secret)
    notice(f"Scopes: {', '.join(record.scopes)}. The key is not shown again.")


@key.command("list")
def list_keys(context: Context, json: Json = False) -> None:
    """List the access keys by prefix."""
    with open_memory(context, or_empty=True) as memory:
        records = memory.access.list_keys()
    if json:
        print_json(records)
        return
    if not records:
        print("No access keys.")
    print_columns(
        (record.prefix, one_line(record.name, 40), ", ".join(record.scopes), _state(record))
        for record in records
    )


@key.command("revoke")
def revoke_key(
    context: Context,
    name: Annotated[str, Argument(help="Name or prefix of a key.", show_default=False)],
    json: Json = False,
) -> None:
    """Revoke an access key, effective at once."""
    with open_memory(context) as memory:
        record = memory.access.revoke_key(name)
    print_result(record, f"{record.prefix} ({record.name}) is revoked.", json=json)


def _state(record: AccessKey) -> str:
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
) -> None:
    """Open this memory in a browser, logged in.

    The address works once and for a minute.
    """
    import webbrowser
    from urllib.parse import quote

    from lore.http import explorer_build
    from lore.proxy.address import find_address

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
