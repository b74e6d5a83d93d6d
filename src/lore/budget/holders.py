"""Holders: whose money is set aside, and what becomes of it when a process is killed."""

from __future__ import annotations

import os
import secrets
from datetime import datetime, timedelta
from typing import TYPE_CHECKING

from lore.records import Spend
from lore.store import spend

if TYPE_CHECKING:
    from lore.store.db import Connection

HELD_FOR = timedelta(hours=1)
"""No call takes so long: what is set aside for longer is given back, for another program may by
now have the number of the process that was killed."""

_BORN = secrets.token_hex(4)
"""In a container every daemon has the same number: this tells a process from the one before."""


def this_process() -> str:
    """Return what money is set aside under by this process."""
    return f"{os.getpid()}.{_BORN}"


def settle_dead(db: Connection, now: datetime) -> None:
    """Enter what processes had under way that are gone, each call with the price of its prompt.

    What was asked the provider has most likely read, and charges; what it answered nobody knows.
    """
    for held in spend.holdings(db):
        if not held.process or _lives(held.process):
            if abs(now - held.at) > HELD_FOR:
                spend.release(db, held.key)
            continue
        spend.release(db, held.key)
        if held.prompt_usd:
            usd, usage = held.prompt_usd, {spend.ESTIMATED: 1}
            entry = Spend(held.key, held.at, held.purpose, held.model, usage, usd, without_usd=usd)
            spend.add(db, entry)


def _lives(process: str) -> bool:
    """Tell whether a process runs; another with its number is taken for it."""
    number, _, _ = process.partition(".")
    if int(number) == os.getpid():
        return process == this_process()
    try:
        os.kill(int(number), 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True
