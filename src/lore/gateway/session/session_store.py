"""Stores what passes through the gateway, and the state of its sessions between requests.

A client waits for most of these calls: nothing here embeds text, and no state waits for a write.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Container, Iterable, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict, fields
from functools import lru_cache, partial
from itertools import takewhile
from typing import Any

from lore.capture import dialogues, message_capture
from lore.capture.dialogues import DialogueMessages
from lore.errors import NotFound, StoreBusy, StoreError
from lore.gateway.session.private_mode import PrivateMode, placeholders
from lore.memory.facade import Memory
from lore.records import (
    ClientSession,
    Distillation,
    Distilled,
    Entry,
    InjectedItem,
    Injection,
    Measured,
    PromptState,
    SessionSnapshot,
)
from lore.store import dialogue_state, distillations, message_dedup, sessions
from lore.store.database import Connection

_MAX_NAMES = 256
"""Cached redacted names of sessions and fields of conversations: as many as the registry holds
sessions. They stay valid, since a redactor does not change, and are dropped once anything is
forgotten."""

KNOWLEDGE_TOKENS = 1_000
"""Token limit of the memory at the start of a session; a small window allows less."""


_MAX_KEYS = 16_384
"""Cached redacted message keys, enough for about thirty long sessions. Redacting them again took
most of the time of a request in a long session."""

_MEASURED_FIELDS = tuple(field.name for field in fields(Measured))

_SERIALIZERS: dict[dialogue_state.StateName, Callable[[SessionSnapshot], Any]] = {
    "pins": lambda snapshot: _packed(snapshot.pins),
    "measured": lambda snapshot: {
        name: getattr(snapshot.measured, name) for name in _MEASURED_FIELDS
    },
    "knowledge": lambda snapshot: snapshot.knowledge,
    "notes": lambda snapshot: dict(snapshot.notes),
    "tiers": lambda snapshot: [asdict(one) for one in snapshot.tiers],
    "bare": lambda snapshot: snapshot.bare,
    "told": lambda snapshot: {key: [[*one] for one in each] for key, each in snapshot.told.items()},
}
"""How each field of a snapshot is stored."""

_ENTRY_STATES: tuple[dialogue_state.StateName, ...] = ("measured", "notes", "told")
"""Fields that name the last entries by their digests."""

SNAPSHOT_FIELDS = frozenset(_SERIALIZERS)

MARKER_TIMEOUT_S = 1.0
"""How long a response waits for its markers to be durable; a commit takes some milliseconds."""


class StoredPrefix:
    """The stored messages of the first entries of a session, so that only new ones are looked up,
    and its distillations.

    It belongs to a cache generation: whatever is forgotten is looked up again. Threads share it:
    one assignment replaces all of it.
    """

    def __init__(self) -> None:
        self._known: tuple[int, list[str], list[int]] = (-1, [], [])
        self.logs: Mapping[str, Distillation] = {}
        """The distillations of the session by their ids; their texts never change."""

    def ordinals(self, session_n: int, entries: Sequence[Entry]) -> list[int]:
        """Return of each known leading entry the ordinal of its last message, -1 for none."""
        known_n, keys, ordinals = self._known
        if session_n != known_n:
            return []
        if [entry.key for entry in entries[: len(keys)]] == keys:
            return ordinals
        pairs = enumerate(zip(keys, entries, strict=False))
        return ordinals[: next((n for n, (key, one) in pairs if key != one.key), len(entries))]

    def put(self, session_n: int, entries: Sequence[Entry], last: Sequence[int | None]) -> None:
        """Keep the ordinals of the entries before the first that is not stored yet."""
        stored = [one for one in takewhile(lambda one: one is not None, last) if one is not None]
        self._known = session_n, [entry.key for entry in entries[: len(stored)]], stored


class SessionStore:
    """Reads and writes the sessions of the gateway."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._database = memory.database
        self._redact = memory.redactor.redact
        self._named = lru_cache(_MAX_NAMES)(self._redact)
        self._redacted = lru_cache(_MAX_NAMES)(
            partial(message_capture.redact_fields, redactor=memory.redactor)
        )
        self.private_mode = PrivateMode(memory, self._named)
        self._redacted_key = lru_cache(_MAX_KEYS)(self._redact)

    def clear_caches(self) -> None:
        """Drop all names, because one of them may be forgotten."""
        for cached in (self._named, self._redacted, self._redacted_key):
            cached.cache_clear()

    def load(self, client: ClientSession) -> SessionSnapshot:
        """Return the stored state of a session."""
        with self._database.read() as db:
            states = dialogue_state.find_states(db, self._place(client))
            is_private = self.private_mode.is_private(db, client)
        return SessionSnapshot(
            pins=_pins(states.get("pins") or {}),
            measured=Measured(**(states.get("measured") or {})),
            knowledge=states.get("knowledge"),
            notes=states.get("notes") or {},
            tiers=tuple(Distilled(**one) for one in states.get("tiers") or ()),
            is_private=is_private,
            bare=bool(states.get("bare")),
            told=_parse_told(states.get("told") or {}),
        )

    def generation(self) -> str:
        """Return the cache generation: it changes whenever anything is forgotten."""
        with self._database.read() as db:
            return dialogue_state.cache_generation(db)

    def generation_and_privacy(self, client: ClientSession) -> tuple[str, bool]:
        """Return the cache generation, and whether a session is in private mode."""
        with self._database.read() as db:
            return dialogue_state.cache_generation(db), self.private_mode.is_private(db, client)

    def save(
        self,
        client: ClientSession,
        snapshot: SessionSnapshot,
        *,
        generation: str,
        names: Collection[dialogue_state.StateName] = SNAPSHOT_FIELDS,
    ) -> Future[None]:
        """Store the state of a session without waiting; its texts belong to a cache generation.

        Only the fields in `names` are written; `measured` alone may wait for a later commit. Texts
        of an older generation are not written, because they may quote forgotten memory. In private
        mode, which another process may have begun, nothing is written, and the fields that name the
        last entries are removed.
        """
        session, now = self._place(client), self._database.now()
        states = {name: _SERIALIZERS[name](snapshot) for name in names}

        def keep(db: Connection) -> None:
            if self.private_mode.is_private(db, client):
                for name in _ENTRY_STATES:
                    dialogue_state.remove_state(db, session, name)
                return
            may_quote = dialogue_state.cache_generation(db) == generation
            for name, value in states.items():
                if value is None:
                    dialogue_state.remove_state(db, session, name)
                elif may_quote or name not in dialogue_state.QUOTING_STATES:
                    dialogue_state.put_state(db, session, name, value, now=now)

        return self._database.submit(keep, patient={*names} == {"measured"})

    def record(
        self, client: ClientSession, entries: Sequence[Entry], *, first: int = 0, model: str = ""
    ) -> list[str]:
        """Store the messages of entries from `first` on, each once; return their ids."""
        if self._memory.sessions.is_excluded(client.agent, client.project):
            return []
        with self._database.read() as db:
            if self.private_mode.is_private(db, client):
                return []
            excluded = self.private_mode.find_excluded(db, client, entries)
            was_private = dialogue_state.was_ever_private(db, self._name(client))
        parsed = self._messages_of(client, entries, first=first, model=model)
        may_recap = was_private or bool(excluded)
        spoken = [
            (at, message)
            for at, message in zip(parsed.entries, parsed.messages, strict=True)
            if at not in excluded and not (may_recap and dialogue_state.is_recap(message))
        ]
        conversation = message_capture.Conversation(
            client.session,
            client.agent,
            client.project,
            parent=self._parent_of(client),
            channel="gateway",
        )
        return message_capture.capture_into(
            self._database,
            self._redacted(conversation),
            [message for _, message in spoken],
            redactor=self._memory.redactor,
            repeated=sum(at < parsed.newest for at, _ in spoken),
        )

    def find_distillations(
        self, client: ClientSession, entries: Sequence[Entry], known: StoredPrefix | None = None
    ) -> list[Distilled]:
        """Return the distillations of a session, each with the number of entries it covers.

        `known` has what earlier calls found, and takes what this one finds.
        """
        known = known or StoredPrefix()
        with self._database.read() as db:
            n = sessions.find_session(db, self._name(client), agent=client.agent)
            if n is None:
                return []
            excluded = self.private_mode.find_excluded(db, client, entries)
            extents = distillations.message_ranges(db, n)
            if known.logs.keys() != extents.keys():
                stored = distillations.distillations_of_session(db, n)
                known.logs = {log.id: log for log in stored if log.id in extents}
            logs = known.logs.values()
            if not logs and not excluded:
                return []
            last: Sequence[int | None] = known.ordinals(n, entries)
            newest = max((extent[2] for extent in extents.values()), default=-1)
            if not _ends_within(last, newest, excluded):
                last = self._last_ordinals(db, client, n, entries, known)
        distilled = []
        for log in sorted(logs, key=lambda log: extents[log.id][0]):
            until = _covered_entries(last, extents[log.id][2], excluded)
            if until:
                distilled.append(Distilled(log.id, log.text, log.tokens, until, log.generation))
        return [
            *distilled,
            *placeholders(entries, excluded, max((one.until for one in distilled), default=0)),
        ]

    def find_conversation(self, names: Sequence[str], agent: str) -> str:
        """Return the first of the names that a stored session of an agent has, or ''."""
        with self._database.read() as db:
            stored = sessions.find_known_names(db, names, agent=agent)
        return next((name for name in names if name in stored), "")

    def copy_injections(self, client: ClientSession) -> None:
        """Copy the injections of the first request of a session to it, without waiting."""
        first, now = client.first.session, self._database.now()
        self._database.submit(
            lambda db: dialogue_state.copy_injections(db, first, client.session, now=now)
        )

    def choose_knowledge(
        self, client: ClientSession, *, budget_tokens: int = KNOWLEDGE_TOKENS
    ) -> Injection:
        """Return the memory for the system prompt of a session; it counts once it is sent."""
        if client.parent:
            return Injection()
        return self._memory.prompts.begin_session(
            client.session,
            project=client.project,
            agent=client.agent,
            budget_tokens=budget_tokens,
            counts=False,
        )

    def record_given(self, client: ClientSession, injections: Iterable[Injection]) -> None:
        """Record what a session was given, without waiting."""
        for one in injections:
            if one.given:
                self._memory.prompts.record_injection(client.session, one)

    def record_withdrawn(self, client: ClientSession, withdrawn: Collection[InjectedItem]) -> None:
        """Record that prompts of a session no longer contain some of what it was given."""
        if not withdrawn:
            return
        session = self._name(client)
        with suppress(StoreError):
            self._database.submit(lambda db: dialogue_state.undo_injections(db, session, withdrawn))

    def save_markers(
        self,
        client: ClientSession,
        markers: Mapping[str, str],
        *,
        timeout_s: float = MARKER_TIMEOUT_S,
    ) -> None:
        """Store what markers stand for, and wait until that is durable.

        Nothing is stored in private mode or in an excluded folder. Raises `StoreBusy` on a timeout;
        the markers are stored once the store is free again.
        """
        if self._memory.sessions.is_excluded(client.agent, client.project):
            return
        session, now = self._place(client), self._database.now()

        def add(db: Connection) -> None:
            if not self.private_mode.is_private(db, client):
                dialogue_state.add_markers(db, session, markers, now=now)

        write = self._database.submit(add)
        try:
            write.result(timeout_s)
        except TimeoutError as error:
            msg = "The database is busy: what was searched for is kept later."
            raise StoreBusy(msg) from error

    def load_markers(self, client: ClientSession) -> dict[str, str]:
        """Return what the markers of a session stand for, by their ids."""
        with self._database.read() as db:
            begun = dialogue_state.find_markers(db, self._place(client.first))
            return begun | dialogue_state.find_markers(db, self._place(client))

    def end_private_mode(self, client: ClientSession, entries: Sequence[Entry]) -> None:
        """End private mode; those of these entries that are not stored by now never are."""
        self.private_mode.end(client, self._unstored_finder(client, entries))

    def exclude_entries(self, client: ClientSession, entries: Sequence[Entry]) -> None:
        """Exclude entries from storage for good, as far as they are not stored by now."""
        self.private_mode.exclude(client, self._unstored_finder(client, entries))

    def find_unstored(self, client: ClientSession, entries: Sequence[Entry]) -> frozenset[str]:
        """Return the keys of the entries of which a message is not stored, or no longer."""
        find = self._unstored_finder(client, entries)
        with self._database.read() as db:
            return frozenset(find(db))

    def _unstored_finder(
        self, client: ClientSession, entries: Sequence[Entry]
    ) -> Callable[[Connection], set[str]]:
        parsed = self._messages_of(client, entries)

        def find(db: Connection) -> set[str]:
            n = sessions.find_session(db, self._name(client), agent=client.agent)
            places = [None] * len(parsed.entries) if n is None else self._places(db, n, parsed)
            placed = zip(parsed.entries, places, strict=True)
            return {entries[at].key for at, place in placed if place is None}

        return find

    def _name(self, client: ClientSession) -> str:
        return self._named(client.session)

    def _place(self, client: ClientSession) -> str:
        return self._named(client.place)

    def _messages_of(
        self, client: ClientSession, entries: Sequence[Entry], *, first: int = 0, model: str = ""
    ) -> DialogueMessages:
        at, helper = self._database.now(), bool(client.parent)
        joined = client.marks_injected_text
        return dialogues.to_messages(
            entries, at, first=first, model=model, helper=helper, joined=joined
        )

    def _places(self, db: Connection, session_n: int, parsed: DialogueMessages) -> list[int | None]:
        """Return the ordinals of messages in the stored session, None for those not in it."""
        keys = self._redact_keys(parsed.keys)
        ordinals = message_dedup.find_ordinals(db, session_n, "gateway", keys)
        return [ordinals.get(key) for key in keys]

    def _redact_keys(self, keys: list[str]) -> list[str]:
        """Return keys as they are stored: hardly any holds a secret, so one scan is enough."""
        if not self._memory.redactor.holds_secret(keys):
            return keys
        return [self._redacted_key(key) for key in keys]

    def _last_ordinals(
        self,
        db: Connection,
        client: ClientSession,
        session_n: int,
        entries: Sequence[Entry],
        known: StoredPrefix,
    ) -> list[int | None]:
        """Return the ordinal of the last message of each entry, None where one is not stored."""
        before_new = known.ordinals(session_n, entries)
        first = len(before_new)
        last: list[int | None] = [*before_new, *[-1] * (len(entries) - first)]
        parsed = self._messages_of(client, entries, first=first)
        for at, ordinal in zip(parsed.entries, self._places(db, session_n, parsed), strict=True):
            before = last[at]
            last[at] = None if ordinal is None or before is None else max(before, ordinal)
        known.put(session_n, entries, last)
        return last

    def _parent_of(self, client: ClientSession) -> str:
        if not client.parent:
            return ""
        with self._database.read() as db:
            try:
                return sessions.get_session(
                    db, sessions.get_session_number(db, self._redact(client.parent))
                ).id
            except NotFound:
                return ""


def _covered_entries(last: Sequence[int | None], until: int, excluded: Container[int]) -> int:
    """Return how many leading entries a log covers that ends at an ordinal; skip excluded ones."""
    count = 0
    for number, ordinal in enumerate(last):
        if number in excluded:
            continue
        if ordinal is None or ordinal > until:
            break
        count = number + 1
    return count


def _ends_within(last: Sequence[int | None], until: int, excluded: Container[int]) -> bool:
    """Return whether a log that ends at an ordinal covers only known entries."""
    for number in reversed(range(len(last))):
        ordinal = last[number]
        if ordinal is not None and ordinal > until and number not in excluded:
            return True
    return False


def _packed(pins: PromptState) -> dict[str, Any]:
    return asdict(pins) | {"annotated": sorted(pins.annotated)}


def _parse_told(packed: Mapping[str, Any]) -> dict[str, tuple[InjectedItem, ...]]:
    return {key: tuple(InjectedItem(*one) for one in injected) for key, injected in packed.items()}


def _pins(packed: Mapping[str, Any]) -> PromptState:
    if not packed:
        return PromptState()
    return PromptState(**{
        **packed,
        "prefix": tuple(packed["prefix"]),
        "annotated": frozenset(packed["annotated"]),
    })
