"""Private mode of gateway sessions: nothing is stored, and nothing from memory is given.

A person switches it on and off with `/lore:amnesia`. The switch is stored per session, and it
is also part of the conversation itself (see `find_private_entries`), so it survives a session
whose client does not name it.

Storing is skipped in two places: `PromptComposer.record` (`prompt_composer.py`) returns early for a
private request, and `SessionStore.record` (`session_store.py`) skips private sessions and excluded
entries.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Container, Iterator, Sequence
from operator import attrgetter

from lore.memory.facade import Memory
from lore.records import ClientSession, Distilled, Entry
from lore.redaction.redactor import home_key
from lore.store import dialogue_state
from lore.store.database import Connection
from lore.text import chat_commands, tokens

_SEALED = "~"
"""Prefix of digests that are keyed with the key of this home; older digests have none."""

_PLACEHOLDER = "What was said here is not recorded, as the person wished."

_may_be_command = attrgetter("may_be_command")

FindKeys = Callable[[Connection], set[str]]


def find_private_entries(client: ClientSession, entries: Sequence[Entry]) -> frozenset[int]:
    """Return the numbers of the entries in private mode, without the commands themselves.

    Unless the agent marks injected text, only an entry with a single text is a command.
    """
    if not any(map(_may_be_command, entries)):
        return frozenset()
    numbers: list[int] = []
    is_on, command = False, ""
    for number, entry in enumerate(entries):
        if entry.voice == "user":
            is_on, command = _apply_command(client, entry, is_on=is_on)
        if is_on and not command and entry.voice != "system":
            numbers.append(number)
    return frozenset(numbers)


def is_private_dialogue(client: ClientSession, entries: Sequence[Entry]) -> bool:
    """Return whether a conversation is in private mode at its end, by its own text."""
    is_on = False
    for entry in filter(_may_be_command, entries):
        is_on, _ = _apply_command(client, entry, is_on=is_on)
    return is_on


def _apply_command(client: ClientSession, entry: Entry, *, is_on: bool) -> tuple[bool, str]:
    """Return whether private mode is on after an entry, and the command that the entry is."""
    command = chat_commands.find_command(entry.typed(joined=client.marks_injected_text))
    switch = chat_commands.private_switch(command)
    return (is_on if switch is None else switch), command


class PrivateMode:
    """The stored switch of every session, and the entries that are excluded for good."""

    def __init__(self, memory: Memory, name_of: Callable[[str], str]) -> None:
        """Open it; `name_of` returns the redacted name of a session."""
        self._database = memory.database
        self._name_of = name_of
        self._key = home_key(memory.settings, "amnesia")
        self.pending: set[str] = set()
        """Sessions whose switch is not stored yet."""

    def mark_pending(self, client: ClientSession) -> None:
        """Switch it on in this process only; the store is not asked, because it may be locked.

        Unnamed sessions are skipped: their history says it, and others may have the same name.
        """
        if not client.unnamed:
            self.pending.add(client.session)

    def is_pending(self, client: ClientSession) -> bool:
        """Return whether the switch of a session, or of its parent, is not stored yet."""
        return client.session in self.pending or client.parent in self.pending

    def is_private(self, db: Connection, client: ClientSession) -> bool:
        """Return whether a session, or its parent, is in private mode by the store."""
        names = (self._name_of(client.session), self._name_of(client.parent))
        return any(dialogue_state.is_private(db, name) for name in names if name)

    def was_private(self, client: ClientSession) -> bool:
        """Return whether a session ever was in private mode."""
        with self._database.read() as db:
            return dialogue_state.was_ever_private(db, self._name_of(client.session))

    def begin(self, client: ClientSession) -> None:
        """Store that a session is in private mode from now on."""
        session, now = self._name_of(client.session), self._database.now()
        self._database.write(lambda db: dialogue_state.begin_private_mode(db, session, now=now))

    def begin_from_context(self, client: ClientSession) -> None:
        """Store without waiting that a session is private because of its parent or its history.

        A subagent stays private for good: it may repeat what it was asked in private mode. A
        session whose private mode was ended is not made private again by its older history.
        """
        session, now = self._name_of(client.session), self._database.now()

        def begin(db: Connection) -> None:
            if client.parent or not dialogue_state.was_ever_private(db, session):
                dialogue_state.begin_private_mode(db, session, now=now)

        self._database.submit(begin)

    def end(self, client: ClientSession, find_unstored: FindKeys) -> None:
        """End private mode; entries that are not stored by now are excluded for good."""
        session, now = self._name_of(client.session), self._database.now()

        def end(db: Connection) -> None:
            keys = find_unstored(db) | dialogue_state.find_excluded_entries(db, session)
            dialogue_state.end_private_mode(db, session, excluded=self._seal(keys), now=now)

        self._database.write(end)

    def exclude(self, client: ClientSession, find_unstored: FindKeys) -> None:
        """Exclude entries from storage for good, as far as they are not stored by now."""
        session, now = self._name_of(client.session), self._database.now()

        def exclude(db: Connection) -> None:
            keys = self._seal(find_unstored(db))
            dialogue_state.exclude_entries(db, session, keys, now=now)

        self._database.write(exclude)

    def find_excluded(
        self, db: Connection, client: ClientSession, entries: Sequence[Entry]
    ) -> frozenset[int]:
        """Return the numbers of the entries that must not be stored."""
        excluded = dialogue_state.find_excluded_entries(db, self._name_of(client.session))
        private = find_private_entries(client, entries)
        if not excluded:
            return private
        return private | {
            number
            for number, entry in enumerate(entries)
            if entry.key in excluded or self._seal_one(entry.key) in excluded
        }

    def _seal(self, keys: Collection[str]) -> set[str]:
        return set(map(self._seal_one, keys))

    def _seal_one(self, key: str) -> str:
        """Return a keyed digest of an entry key, so that nobody can guess what was said."""
        if key.startswith(_SEALED):
            return key
        return _SEALED + hashlib.blake2b(key.encode(), key=self._key, digest_size=12).hexdigest()


def placeholders(
    entries: Sequence[Entry], excluded: Container[int], covered: int
) -> Iterator[Distilled]:
    """Yield distillations that stand for excluded entries: they say only how many turns there were.

    `covered` is how many entries other distillations cover; a gap before a placeholder ends it.
    """
    start = None
    for number in range(len(entries) + 1):
        if number in excluded:
            start = number if start is None else start
        elif start is not None:
            if start > covered:
                return
            count = sum(entry.begins_turn for entry in entries[start:number])
            text = f"{_PLACEHOLDER} Turns: {count}."
            id_ = f"unsaid-{entries[number - 1].key}"
            yield Distilled(id_, text, tokens.count(text), number)
            covered, start = max(covered, number), None
