"""A program of the version before: it writes, one row after the other, until it is refused.

`python -m tests.store.older_program FILE [URL OWNER]` prints each row once it is durable. When its
input ends, it stops.
"""

from __future__ import annotations

import sys
import threading
from pathlib import Path

from lore.errors import SchemaTooNew
from lore.store.database import Database, open_database, open_on_server


def open_it(path: Path, url: str = "", owner: str = "") -> Database:
    """Open a memory as this version of Lore does."""
    if url:
        return open_on_server(url, owner, path, busy_timeout_s=60)
    return open_database(path, busy_timeout_s=60, backups=None)


def say(line: object) -> None:
    """Print a line at once."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(path: str, *on_server: str) -> None:
    database = open_it(Path(path), *on_server)
    stopping = threading.Event()

    def wait_for_end() -> None:
        sys.stdin.read()
        stopping.set()

    threading.Thread(target=wait_for_end, daemon=True).start()
    n = 0
    try:
        while not stopping.is_set():
            n += 1
            database.write(lambda db, n=n: db.insert("speakers", name=f"speaker {n}"))  # type: ignore[misc]
            say(f"speaker {n}")
    except SchemaTooNew as error:
        say(f"refused: {error} {error.hint}")
        try:
            with database.read() as db:
                say(db.column("SELECT name FROM speakers LIMIT 1"))
        except SchemaTooNew:
            say("refused to read")
    database.close()


if __name__ == "__main__":
    main(*sys.argv[1:])
