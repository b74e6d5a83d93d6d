"""Encryption of the provider keys of teams, with AES-256-GCM under a key of the server."""

from __future__ import annotations

import base64
import secrets
from typing import TYPE_CHECKING

from lore.errors import InvalidInput, StoreDamaged

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM

_NONCE_BYTES = 12
_MISSING = "Provider keys of teams need the package 'cryptography'."
_INSTALL = "Install Lore with its extra 'server': agent-lore[server]."


class KeyVault:
    """Seals and opens secrets; each is bound to its place, and opens nowhere else."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, secret: str, place: str) -> str:
        """Return a secret, encrypted for a place."""
        nonce = secrets.token_bytes(_NONCE_BYTES)
        sealed = self._cipher().encrypt(nonce, secret.encode(), place.encode())
        return base64.b64encode(nonce + sealed).decode()

    def open(self, sealed: str, place: str) -> str:
        """Return the secret of a place, or raise if it was altered or moved."""
        cipher = self._cipher()
        from cryptography.exceptions import InvalidTag

        try:
            raw = base64.b64decode(sealed, validate=True)
            return cipher.decrypt(raw[:_NONCE_BYTES], raw[_NONCE_BYTES:], place.encode()).decode()
        except (ValueError, InvalidTag) as error:
            msg = "A provider key of a team cannot be decrypted."
            hint = "Set it again: 'lore team provider-key TEAM PROVIDER'."
            raise StoreDamaged(msg, hint=hint) from error

    def _cipher(self) -> AESGCM:
        try:
            from cryptography.hazmat.primitives.ciphers.aead import AESGCM
        except ModuleNotFoundError as error:
            raise InvalidInput(_MISSING, hint=_INSTALL) from error
        return AESGCM(self._key)
