"""Sealing: by which a home knows its own export again, to the last line."""

from __future__ import annotations

import hashlib
import hmac

LINES_PER_SEAL = 500
"""A seal is believed before the lines above it are brought in: so many are held in memory."""


class Sealer:
    """Seals lines in their order: none can be changed, added, moved or left out in the middle."""

    def __init__(self, key: bytes) -> None:
        self._key = key
        self.home = self._digest(b"home")[:16]
        """Names the home that the key belongs to, and gives nothing of the key away."""
        self._lines = self._begun(self.home)

    def add(self, line: bytes) -> None:
        """Take in a line, without its end."""
        self._lines.update(line)
        self._lines.update(b"\n")

    def seal(self) -> str:
        """Return the seal of all lines since the former one; it carries that one in it."""
        sealed = self._lines.hexdigest()
        self._lines = self._begun(sealed)
        return sealed

    def fits(self, seal: object) -> bool:
        """Tell whether a seal is that of the lines since the former one."""
        return isinstance(seal, str) and hmac.compare_digest(self.seal().encode(), seal.encode())

    def _begun(self, former: str) -> hmac.HMAC:
        return hmac.new(self._key, former.encode() + b"\n", hashlib.sha256)

    def _digest(self, words: bytes) -> str:
        return hmac.new(self._key, words, hashlib.sha256).hexdigest()
