"""Secret raw keys: keys of wallets, of RSA in XML and of Azure, known by what surrounds them."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from lore.text import secret_values
from lore.text.secret_fitting import Span
from lore.text.secret_reading import QUOTE, read_value

__all__ = ["JUDGES", "RAW_KEYS", "RAW_KEY_HEADS"]

RAW_KEYS = (
    rf"(?P<chain>(?:wallet|keypair|signer|privatekeyto\w+|from_key"
    rf"|accounts){QUOTE}?\]?[ \t]*[:=(]+"
    rf"[ \t]*\[?[ \t]*{QUOTE}|\(\d{{1,2}}\)[ \t]+)(?:0x)?[0-9a-f]{{64}}\b"
    r"|(?P<array>\[)[ \t\n]*(?:\d{1,3},[ \n]?){63}\d{1,3}\b"
    r"|(?P<tail>(?:\+ASt|\+ABa|\+AMC|\+ARm|APIM|AzSe|AzFu)[A-Za-z0-9+/]{5,8}={1,2})"
    r"|(?P<rsa></(?:exponent|p|q|dp|dq|inverseq)>\s*<(?:d|p|q|dp|dq|inverseq)>)"
)
"""Places of such keys; each group has its judge below."""

RAW_KEY_HEADS = (
    rf"(?:wallet|keypair|signer|privatekeyto\w+|from_key|accounts){QUOTE}?\]?[ \t]*[:=(]"
    r"|\(\d{1,2}\)[ \t]+(?:0x)?[0-9a-f]{4}|\[[ \t\n]*(?:\d{1,3},[ \n]?){4}"
    r"|(?:\+ASt|\+ABa|\+AMC|\+ARm|APIM|AzSe|AzFu)[A-Za-z0-9+/]{5}"
    r"|</(?:exponent|p|q|dp|dq|inverseq)>\s*<(?:d|p|q|dp|dq|inverseq)>"
)
"""How each of these begins."""

_KEY_CHARS = 20
_BASE64_BYTES = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"
_SIGNED_BYTES, _SIGNED_LEAST = 76, 36
"""Characters that stand before the mark of an issuer in its keys."""


def _chain(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    value = read_value(data, at)
    if not secret_values.is_example_key(value.text):
        yield value.start, value.end, "wallet"


def _array(data: bytes, found: Any, at: int) -> Iterator[Span]:
    """Judge numbers of one byte each, as some wallets write their keys."""
    numbers = [int(number) for number in re.findall(rb"\d+", data[at : found.end()])]
    if len(set(numbers)) >= 32 and max(numbers) < 256:
        yield at, found.end(), "wallet"


def _tail(data: bytes, found: Any, at: int) -> Iterator[Span]:
    """Judge a key by the mark that its issuer puts near its end."""
    head = data[max(0, found.start() - _SIGNED_BYTES) : found.start()]
    drawn = head[len(head.rstrip(_BASE64_BYTES)) :]
    if len(drawn) >= _SIGNED_LEAST:
        yield found.start() - len(drawn), at, "azure-key"


def _rsa(data: bytes, _found: Any, at: int) -> Iterator[Span]:
    """Judge the numbers that XML has of a private key."""
    value = read_value(data, at)
    if secret_values.is_random(value.text, least=_KEY_CHARS):
        yield value.start, value.end, "private-key"


JUDGES: dict[str, Callable[[bytes, Any, int], Iterator[Span]]] = {
    "chain": _chain, "array": _array, "tail": _tail, "rsa": _rsa,
}  # fmt: skip
