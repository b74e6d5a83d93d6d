"""Annotations: what stands in the place of old outputs, made once, while nobody waits."""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Iterable

from lore.context import annotating
from lore.records import Block, Entry

MOST = 20_000
"""Annotations that are kept, some 300 bytes each; the others are made again, and are the same."""


_BYTES = 16
"""Of a key: outputs of all projects are known by it, and none may be taken for another's."""


class Annotations:
    """Annotations by what they are made of; for many threads."""

    def __init__(self, most: int = MOST) -> None:
        self._most = most
        self._made: OrderedDict[tuple[bytes, str, bool], str] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, block: Block) -> str:
        """Return the annotation of an output."""
        key = (_digest(block.text), block.tool, block.failed)
        with self._lock:
            if key in self._made:
                self._made.move_to_end(key)
                return self._made[key]
        made = annotating.annotate(block)
        with self._lock:
            self._made[key] = made
            while len(self._made) > self._most:
                self._made.popitem(last=False)
        return made

    def prepare(self, entries: Iterable[Entry]) -> None:
        """Make those of all long outputs in advance."""
        for entry in entries:
            for block in entry.blocks:
                if annotating.is_long(block):
                    self.of(block)

    def clear(self) -> None:
        """Keep none."""
        with self._lock:
            self._made.clear()


def _digest(text: str) -> bytes:
    said = text.encode(errors="surrogatepass")
    return hashlib.blake2b(said, digest_size=_BYTES).digest()
