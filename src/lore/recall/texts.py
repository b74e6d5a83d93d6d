"""Texts: what candidates say, in plain form, remembered from one question to the next."""

from __future__ import annotations

import re
import threading
from collections import OrderedDict

from lore.store import pooling, upkeep
from lore.store.db import Connection
from lore.store.pooling import Numbers

_REMEMBERED_CHARS = 8_000_000
"""So much is remembered, the texts that were looked at last."""

_BLANKS = bytes(code if chr(code).isalnum() and code < 128 else 32 for code in range(256))
_DENSE = 0.8
"""Below this share of ASCII a text is of another script, and its letters are kept."""

_NOT_ALNUM = re.compile(r"[^\w]+|_")


def plain(text: str) -> str:
    """Return a text in lower case with blanks for all that is no letter or digit."""
    lowered = text.lower()
    narrow = lowered.encode("ascii", "replace")
    if len(narrow) < _DENSE * len(lowered.encode()):
        return f" {_NOT_ALNUM.sub(' ', lowered)} "
    return f" {narrow.translate(_BLANKS).decode()} "


class Texts:
    """The plain beginnings of items; of what never changes, the latest are remembered."""

    def __init__(self, most_chars: int, *, remembered_chars: int = _REMEMBERED_CHARS) -> None:
        self._most_chars = most_chars
        self._remembered_chars = remembered_chars
        self._known: OrderedDict[int, str] = OrderedDict()
        self._chars = 0
        self._epoch = ""
        self._lock = threading.Lock()

    def of(self, db: Connection, ns: Numbers, changing: Numbers) -> dict[int, str]:
        """Return the texts of items; those of `changing` ones are read anew."""
        wanted = ns.tolist()
        epoch = upkeep.epoch(db)
        with self._lock:
            if epoch != self._epoch:
                self._known.clear()
                self._chars, self._epoch = 0, epoch
            found = {n: self._known[n] for n in wanted if n in self._known}
        missing = [n for n in wanted if n not in found]
        if missing:
            read = pooling.texts_of(db, missing, self._most_chars)
            fresh = {n: plain(text) for n, text in read.items()}
            found |= fresh
            self._remember(fresh, set(changing.tolist()))
        return found

    def clear(self) -> None:
        """Remember nothing: some of it may have been forgotten."""
        with self._lock:
            self._known.clear()
            self._chars = 0

    def _remember(self, fresh: dict[int, str], changing: set[int]) -> None:
        with self._lock:
            for n, text in fresh.items():
                if n not in changing and n not in self._known:
                    self._known[n] = text
                    self._chars += len(text)
            while self._chars > self._remembered_chars:
                _, dropped = self._known.popitem(last=False)
                self._chars -= len(dropped)
