"""Commands of access: key, open."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from lore.cli.output import Json, clean, notice, one_line, open_memory, print_columns, print_json
from lore.errors import DaemonError, InvalidInput
from lore.proxy.address import API_PREFIX

if TYPE_CHECKING:
    from lore.proxy.address import Address
    from lore.records import AccessKey

key = typer.Typer(name="key", invoke_without_command=True, rich_markup_mode=None)

_ANSWER_S = 10.0
_OK = 200
_DAY_S = 86_400.0


def add_commands(app: typer.Typer) -> None:
    """Register the commands of this module."""
    app.command("open")(open_browser)
    app.add_typer(key)


@key.callback()
def key_options(context: typer.Context) -> None:
    """Create, list and revoke access keys for the server.

    Programs of this user on this machine need none: they read the file access.key in the home.
    """
    if context.invoked_subcommand is None:
        print(context.get_help())


@key.command("create")
def create_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="What the key is for.", show_default=False)],
    scope: Annotated[
        list[str] | None,
        typer.Option(
            "--scope", help="read, write, push or admin; several times. By default read and write."
        ),
    ] = None,
    days: Annotated[
        float | None,
        typer.Option("--days", min=0, help="Lifetime in days; without it, until revoked."),
    ] = None,
    json: Json = False,
) -> None:
    """Create an access key and print it. It is shown only once: Lore stores a digest of it."""
    lasting_s = None if days is None else days * _DAY_S
    with open_memory(context, create=True) as memory:
        scopes = scope or ["read", "write"]
        secret, record = memory.access.create_key(name, scopes=scopes, expires_in_s=lasting_s)  # type: ignore[arg-type]  # create_key refuses others
    if json:
        print_json({"key": secret, **_row(record)})
        return
    print(secret)
    notice(f"Scopes: {', '.join(record.scopes)}. The key is not shown again.")


@key.command("list")
def list_keys(context: typer.Context, json: Json = False) -> None:
    """List the access keys by prefix."""
    with open_memory(context, or_empty=True) as memory:
        records = memory.access.list_keys()
    if json:
        print_json([_row(record) for record in records])
        return
    if not records:
        print("No access keys.")
    print_columns(
        (record.prefix, one_line(record.name, 40), ", ".join(record.scopes), _state(record))
        for record in records
    )


@key.command("revoke")
def revoke_key(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="Name or prefix of a key.", show_default=False)],
    json: Json = False,
) -> None:
    """Revoke an access key, effective at once."""
    with open_memory(context) as memory:
        record = memory.access.revoke_key(name)
    if json:
        print_json(_row(record))
    else:
        print(clean(f"{record.prefix} ({record.name}) is revoked."))


def _row(record: AccessKey) -> dict[str, object]:
    return {
        "prefix": record.prefix,
        "name": record.name,
        "scopes": record.scopes,
        "created_at": record.created_at,
        "expires_at": record.expires_at,
        "revoked_at": record.revoked_at,
    }


def _state(record: AccessKey) -> str:
    from lore.clock import now

    if record.revoked_at is not None:
        return f"revoked {record.revoked_at:%Y-%m-%d}"
    if record.expires_at is None:
        return "until revoked"
    ended = "expired" if not record.is_valid(now()) else "until"
    return f"{ended} {record.expires_at:%Y-%m-%d %H:%M} UTC"


def open_browser(
    context: typer.Context,
    print_only: Annotated[
        bool, typer.Option("--print", help="Print the address and open nothing.")
    ] = False,
) -> None:
    """Open this memory in a browser, logged in.

    The address works once and for a minute.
    """
    import webbrowser

    from lore.proxy.address import find_address
    from lore.settings import load

    address = find_address(str(load(home=context.obj).settings.home))
    if address is None:
        msg = "No server is running for this memory."
        raise DaemonError(msg, hint="'lore up --detach' starts it.")
    url = f"{address.url}{_ticket_path(address)}"
    if print_only or not webbrowser.open(url):
        print(url)


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
