"""OTP rules: seed phrases, seeds of one-time passwords, recovery codes, Kubernetes secrets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from lore.redaction import compile_bytes
from lore.redaction.value_checks import is_example, is_random
from lore.redaction.value_reader import Judge, Span
from lore.text.regex import compile_lazy

_PHRASE_BYTES = 420
"""Bytes after a name in which its phrase ends: 24 words of 8 letters, numbered."""

_WORDS = compile_bytes("otp_words")
_ONE_WORD = compile_lazy(rb"[a-z]{3,8}")
_COMMON = frozenset(
    b"""the and for with that this from you your are not have has was were can may must will when
    where which what how then than them they into before after write down keep safe place store
    never share anyone else all any each""".split()
)
"""Words of sentences; no list of seed words contains them."""

_CODES_BYTES = 700
_CODE = compile_bytes("otp_code")
_CODES_JOINT = compile_bytes("codes_joint")
_BETWEEN = compile_lazy(rb"(?:[ \t,;|\"'`]|\r?\n|\\n|\d{1,2}[.):][ \t]|[\-*][ \t])*")
_MOST_CODES = 24
"""Codes that are issued at once, at most."""

_SEED_BYTES = 100
_BASE32 = compile_lazy(
    rb"(?<![\w+/=\-])(?:[A-Z2-7]{16,64}|(?:[A-Z2-7]{4}[ \-]){3,15}[A-Z2-7]{4})=*(?![\w+/])"
)
_LOWER32 = compile_lazy(
    rb"(?<![\w+/=\-])(?:[a-z2-7]{16,64}|(?:[a-z2-7]{4}[ ]){3,15}[a-z2-7]{4})(?![\w+/])"
)

_ENTRY = compile_bytes("entry")
_DATA = compile_lazy(rb"\b(?:stringData|data)\\*[\"']?:")
_MANIFEST_BYTES = 1_500
_ENTRIES = 30
_PLAIN_KEYS = frozenset(
    b"name namespace kind apiVersion type uid creationTimestamp username".split()
)


def _judge_phrase(data: bytes, _match: Any, end: int) -> Iterator[Span]:
    """Judge whether the words after a name are a wallet's seed phrase."""
    for words in _WORDS.finditer(data, end, min(len(data), end + _PHRASE_BYTES)):
        each = _ONE_WORD.findall(words.group())
        if len(each) >= 12 and _COMMON.isdisjoint(each):
            yield words.start(), words.start() + len(words.group().rstrip()), "seed-phrase"
            return


def _judge_codes(data: bytes, _match: Any, end: int) -> Iterator[Span]:
    """Judge the codes that follow their name, one after the other."""
    joint = _CODES_JOINT.match(data, end, end + 120)
    if joint is None:
        return
    at = joint.end()
    for _ in range(_MOST_CODES):
        at = _BETWEEN.match(data, at, at + 40).end()  # type: ignore[union-attr]
        code = _CODE.match(data, at, min(len(data), at + 60))
        if code is None or not any(48 <= byte < 58 for byte in code.group()):
            return
        if not is_example(code.group().decode("latin-1")):
            yield code.start(), code.end(), "recovery-code"
        at = code.end()


def _judge_seed(data: bytes, _match: Any, end: int) -> Iterator[Span]:
    """Judge whether a Base32 value follows the name of one-time passwords."""
    high = min(len(data), end + _SEED_BYTES)
    line = data.find(b"\n\n", end, high)
    for pattern in (_BASE32, _LOWER32):
        for value in pattern.finditer(data, end, line if line >= 0 else high):
            text = value.group()
            varied = len(set(text)) >= 8
            if varied and any(byte in b"234567" for byte in text) and not is_example(text.decode()):
                yield *value.span(), "otp-seed"
                return


def _judge_manifest(data: bytes, match: Any, end: int) -> Iterator[Span]:
    """Judge the entries of a Kubernetes Secret, whatever their names."""
    cut = data.find(b"\n---", end, end + _MANIFEST_BYTES)
    high = cut if cut >= 0 else min(len(data), end + _MANIFEST_BYTES)
    block = _DATA.search(data, end, high)
    if block is None:
        low = max(0, match.start() - _MANIFEST_BYTES)
        low = max(low, data.rfind(b"\n---", low, match.start()))
        block, high = _DATA.search(data, low, match.start()), match.start()
    if block is None:
        return
    for count, entry in enumerate(_ENTRY.finditer(data, block.end() - 1, high)):
        if entry.group(1) in _PLAIN_KEYS or count >= _ENTRIES:
            return
        if is_random(entry.group(2)[:256].decode("latin-1"), least=12):
            yield *entry.span(2), "secret"


OTP_RULES: dict[str, Judge] = {
    "phrase": _judge_phrase,
    "codes": _judge_codes,
    "seed": _judge_seed,
    "manifest": _judge_manifest,
}
