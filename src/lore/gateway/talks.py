"""Talks: conversations of programs that do not name them, named by how they began.

A name is made of the project, of the first request and of its answer, and so it is the same in
every process. Until it is answered, a request shares its name with all that begin with the same
words in the same project: what such a one is given, each of them may have.
"""

from __future__ import annotations

import hashlib
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from lore.gateway.commands import RECALL
from lore.records import Entry, Speaker
from lore.text import marks

FindStored = Callable[[Sequence[str], str], str]
"""Returns the first of some names that a stored talk of an agent has, or ''."""

_KNOWN_TALKS = 1_000
"""Conversations that are remembered without a look at the store; each costs some 100 bytes."""

_BYTES = 8
"""Of a name: it is looked for among all talks of a home."""


class Talks:
    """Finds the talk that a request belongs to."""

    def __init__(self, find_stored: FindStored, most: int = _KNOWN_TALKS) -> None:
        self._find_stored = find_stored
        self._most = most
        self._lock = threading.Lock()
        self._begun: OrderedDict[str, None] = OrderedDict()

    def find_speaker(
        self, entries: Sequence[Entry], agent: str, project: str, *, at_hand: bool = False
    ) -> Speaker:
        """Return whose request it is; with `at_hand` nothing is looked up, and no talk begun.

        A request belongs to the talk of the longest beginning that is known, else it begins one.
        """
        spoken = [entry for entry in entries if entry.voice != "system"]
        begun = _begun(_seed(agent, project), spoken)
        known = None
        if not self._is_known(begun):
            known = self._find_known(spoken, agent, project, at_hand=at_hand)
        if known is not None:
            self._remember(known.began)
            return Speaker(known.name, agent, project, began=known.began, unnamed=True)
        if not at_hand:
            self._remember(begun)
        return Speaker(begun, agent, project, unnamed=True)

    def _find_known(
        self, spoken: Sequence[Entry], agent: str, project: str, *, at_hand: bool
    ) -> _Answered | None:
        """Return the longest beginning of a talk that is known, here or in the store."""
        answered = [*_answered(spoken, _seed(agent, project))][::-1]
        known = next((one for one in answered if self._is_known(one.began)), None)
        if known is None and answered and not at_hand:
            stored = self._find_stored([one.name for one in answered], agent)
            known = next((one for one in answered if one.name == stored), None)
        return known

    def _is_known(self, begun: str) -> bool:
        with self._lock:
            return begun in self._begun

    def _remember(self, begun: str) -> None:
        with self._lock:
            self._begun[begun] = None
            self._begun.move_to_end(begun)
            while len(self._begun) > self._most:
                self._begun.popitem(last=False)


def answered(speaker: Speaker, answer: Sequence[Entry]) -> Speaker | None:
    """Return the speaker of a talk once its first request has an answer, None if it has none."""
    if not speaker.unnamed or speaker.began:
        return speaker
    mark = _mark(answer)
    if not mark:
        return None
    return replace(speaker, session=_name(speaker.session, mark), began=speaker.session)


class _Answered(NamedTuple):
    """A beginning of a talk that ends with an answer: its name, and that of what was answered."""

    name: str
    began: str


def _answered(spoken: Sequence[Entry], hashed: hashlib.blake2b) -> Iterator[_Answered]:
    """Yield the beginnings of a talk after each of which somebody else spoke again."""
    answer: list[Entry] = []
    before = hashed.copy()
    for entry in spoken:
        if entry.voice == "assistant":
            answer.append(entry)
        elif answer:
            began = _begun(before, ())
            yield _Answered(_name(began, _mark(answer)), began)
            answer = []
        hashed.update(entry.key.encode())
        if not answer:
            before = hashed.copy()


def _seed(agent: str, project: str) -> hashlib.blake2b:
    named = f"{agent}\0{project}\0".encode(errors="surrogatepass")
    return hashlib.blake2b(named, digest_size=_BYTES)


def _begun(hashed: hashlib.blake2b, entries: Sequence[Entry]) -> str:
    for entry in entries:
        hashed.update(entry.key.encode())
    return f"talk-{hashed.hexdigest()}"


def _name(began: str, mark: str) -> str:
    named = f"{began}\0{mark}".encode(errors="surrogatepass")
    return f"talk-{hashlib.blake2b(named, digest_size=_BYTES).hexdigest()}"


def _mark(answer: Sequence[Entry]) -> str:
    """Return what an answer is known by, to us and to a client who has markers for searches."""
    said: list[str] = []
    spoken = [entry for entry in answer if entry.voice == "assistant"]
    for block in (block for entry in spoken for block in entry.blocks):
        if block.kind == "text":
            said += "".join(marks.SEARCHED.split(block.text)[::2]).split()
        elif block.kind == "call" and block.tool != RECALL.name:
            # Without an id that lasts: what was called stays as long as it is.
            is_known = block.by_id and block.call_id
            said.append(block.call_id if is_known else f"{block.tool}{len(block.text)}")
    return "".join(said)
