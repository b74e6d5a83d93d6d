"""The desk for the gateway: what passes through it is stored, and what a session holds on to.

A client waits while it is asked: nothing here embeds what waits, and no state waits for a write.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Container, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import asdict
from functools import lru_cache
from typing import Any

from lore.capture import dialogues as telling
from lore.capture import messages
from lore.capture.dialogues import Told
from lore.context import silences
from lore.errors import NotFound, StoreBusy, StoreError
from lore.memory.front import Memory
from lore.records import Distilled, Entry, Given, Held, Injection, Measured, Pins, Speaker
from lore.redaction import home_key
from lore.store import claims, dialogues, distillations, injections, sessions
from lore.store.db import Connection
from lore.text import tokens

_SEALED = "~"
"""Begins digests of entries that were made with the key of the home; older ones were not, and go
with their sessions."""

_UNTOLD = "What was said here is not recorded, as the person wished."

_NAMES = 256
"""Sessions whose names are remembered as redacted: as many as the composer has in mind."""

KNOWLEDGE_TOKENS = 1_000
"""The most that a session is told at its beginning; a small window has less room for it."""


_KEYS = 16_384
"""Keys of messages that are remembered as redacted: those of some thirty long sessions. To redact
them anew was most of what a request of a long session took."""

_HELD: dict[dialogues.Name, Callable[[Held], Any]] = {
    "pins": lambda held: _packed(held.pins),
    "measured": lambda held: asdict(held.measured),
    "knowledge": lambda held: held.knowledge,
    "notes": lambda held: dict(held.notes),
    "tiers": lambda held: [asdict(one) for one in held.tiers],
    "bare": lambda held: held.bare,
    "told": lambda held: {key: [[*one] for one in told] for key, told in held.told.items()},
}
"""What a session holds on to, as it is stored."""

_OF_ENTRIES: tuple[dialogues.Name, ...] = ("measured", "notes", "told")
"""Those that name the entries that were said last, by their digests."""

HELD = frozenset(_HELD)
"""The names of all that."""

KEEP_S = 1.0
"""So long an answer waits for its markers to be durable: a commit takes some milliseconds."""


class Conversing:
    """For the gateway alone, and so no part of `Memory`: what it hands over is its own."""

    def __init__(self, memory: Memory) -> None:
        self._memory = memory
        self._database = memory.database
        self._redact = memory.redactor.redact
        self._salt = home_key(memory.settings, "amnesia")
        self._named = lru_cache(_NAMES)(self._redact)
        self._redacted_key = lru_cache(_KEYS)(self._redact)

    def held(self, speaker: Speaker) -> Held:
        """Return what a session holds on to."""
        with self._database.read() as db:
            states = dialogues.find_all(db, self._place(speaker))
            amnesic = self._is_amnesic(db, speaker)
        return Held(
            pins=_pins(states.get("pins") or {}),
            measured=Measured(**(states.get("measured") or {})),
            knowledge=states.get("knowledge"),
            notes=states.get("notes") or {},
            tiers=tuple(Distilled(**one) for one in states.get("tiers") or ()),
            amnesic=amnesic,
            bare=bool(states.get("bare")),
            told=_told(states.get("told") or {}),
        )

    def era(self) -> str:
        """Return a name of the time since anything was forgotten; texts of another may quote it."""
        with self._database.read() as db:
            return dialogues.era(db)

    def standing(self, speaker: Speaker) -> tuple[str, bool]:
        """Return the era, and whether nothing of a session is to be stored now."""
        with self._database.read() as db:
            return dialogues.era(db), self._is_amnesic(db, speaker)

    def hold(
        self, speaker: Speaker, held: Held, *, era: str, names: Collection[dialogues.Name] = HELD
    ) -> Future[None]:
        """Keep what a session holds on to, without waiting for it; its texts are of an era.

        Only what is among the `names` is written. What was measured alone may wait for company.
        That nothing was chosen is kept too: it is not to be chosen anew after a restart. Where
        amnesia has begun meanwhile, in whatever process, nothing is, nor what tells of its last
        entries.
        """
        session, now = self._place(speaker), self._database.now()
        states = {name: _HELD[name](held) for name in names}

        def keep(db: Connection) -> None:
            if self._is_amnesic(db, speaker):
                for name in _OF_ENTRIES:
                    dialogues.remove(db, session, name)
                return
            may_quote = dialogues.era(db) == era
            for name, value in states.items():
                if value is None:
                    dialogues.remove(db, session, name)
                elif may_quote or name not in dialogues.QUOTING:
                    dialogues.put(db, session, name, value, now=now)

        return self._database.submit(keep, patient={*names} == {"measured"})

    def record(
        self, speaker: Speaker, entries: Sequence[Entry], *, first: int = 0, model: str = ""
    ) -> list[str]:
        """Store what a dialogue says from the `first` entry on, each message once."""
        with self._database.read() as db:
            if self._is_amnesic(db, speaker):
                return []
            unsaid = dialogues.find_unsaid(db, self._name(speaker))
            was_amnesic = dialogues.was_amnesic(db, self._name(speaker))
        told = self._told(speaker, entries, first=first, model=model)
        silent = self._silent(speaker, entries, unsaid)
        retells = was_amnesic or bool(silent)
        spoken = [
            (at, message)
            for at, message in zip(told.entries, told.messages, strict=True)
            if at not in silent and not (retells and dialogues.is_retelling(message))
        ]
        named = messages.Conversation(
            speaker.session,
            speaker.agent,
            speaker.project,
            parent=self._parent_of(speaker),
            channel="gateway",
        )
        return messages.capture(
            self._database,
            named,
            [message for _, message in spoken],
            redactor=self._memory.redactor,
            told=sum(at < told.newest for at, _ in spoken),
        )

    def distilled(self, speaker: Speaker, entries: Sequence[Entry]) -> list[Distilled]:
        """Return the logs of a session, each with the entry up to which it tells the talk."""
        with self._database.read() as db:
            n = sessions.find_number(db, self._name(speaker), agent=speaker.agent)
            if n is None:
                return []
            unsaid = dialogues.find_unsaid(db, self._name(speaker))
            silent = self._silent(speaker, entries, unsaid)
            extents = distillations.extents(db, n)
            logs = [log for log in distillations.of_session(db, n) if log.id in extents]
            if not logs and not silent:
                return []
            told = self._told(speaker, entries)
            places = self._places(db, n, told)
        last = _last_ordinals(len(entries), told.entries, places)
        found = []
        for log in sorted(logs, key=lambda log: extents[log.id][0]):
            until = _leading(last, extents[log.id][2], silent)
            if until:
                found.append(Distilled(log.id, log.text, log.tokens, until, log.generation))
        return [*found, *_silences(entries, silent, max((one.until for one in found), default=0))]

    def find_talk(self, names: Sequence[str], agent: str) -> str:
        """Return the first of the names that a stored session of an agent has, or ''."""
        with self._database.read() as db:
            known = sessions.known_names(db, names, agent=agent)
        return next((name for name in names if name in known), "")

    def go_on_from(self, speaker: Speaker) -> None:
        """Note that a session was given what its first request was, without waiting for it."""
        first, now = speaker.first.session, self._database.now()
        self._database.submit(lambda db: injections.copy(db, first, speaker.session, now=now))

    def choose_knowledge(
        self, speaker: Speaker, *, budget_tokens: int = KNOWLEDGE_TOKENS
    ) -> Injection:
        """Return the memory for the system prompt of a session; it counts once it is sent."""
        if speaker.parent:
            return Injection()
        return self._memory.begin_session(
            speaker.session, project=speaker.project, budget_tokens=budget_tokens, counts=False
        )

    def note_given(self, speaker: Speaker, given: Iterable[Injection]) -> None:
        """Note what a session was given, without waiting for it."""
        for one in given:
            if one.given:
                self._memory.note_given(speaker.session, one)

    def note_untold(self, speaker: Speaker, untold: Collection[Given]) -> None:
        """Note that the prompts of a session no longer have some of what it was given."""
        if not untold:
            return
        session = self._name(speaker)
        with suppress(StoreError):
            self._database.submit(lambda db: injections.take_back(db, session, untold))

    def keep_markers(
        self, speaker: Speaker, markers: Mapping[str, str], *, within_s: float = KEEP_S
    ) -> None:
        """Keep what markers stand for, unless in amnesia, and return once that is durable.

        Raises `StoreBusy` where that takes longer; they are kept once the store is free again.
        """
        session, now = self._place(speaker), self._database.now()

        def add(db: Connection) -> None:
            if not self._is_amnesic(db, speaker):
                dialogues.add_markers(db, session, markers, now=now)

        kept = self._database.submit(add)
        try:
            kept.result(within_s)
        except TimeoutError as error:
            msg = "The database is busy: what was searched for is kept later."
            raise StoreBusy(msg) from error

    def markers(self, speaker: Speaker) -> dict[str, str]:
        """Return what the markers of a session stand for, by their ids."""
        with self._database.read() as db:
            begun = dialogues.markers(db, self._place(speaker.first))
            return begun | dialogues.markers(db, self._place(speaker))

    def begin_amnesia(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored from now on."""
        session, now = self._name(speaker), self._database.now()
        self._database.write(lambda db: dialogues.forget_from(db, session, now=now))

    def stay_amnesic(self, speaker: Speaker) -> None:
        """Note that a session is in amnesia by its parent or by its history, without waiting.

        A helper stays so for good: what it was asked in amnesia is in all that it says later. One
        that was told of amnesia itself, and of its end, is not silenced by a history from before.
        """
        session, now = self._name(speaker), self._database.now()

        def note(db: Connection) -> None:
            if speaker.parent or not dialogues.was_amnesic(db, session):
                dialogues.forget_from(db, session, now=now)

        self._database.submit(note)

    def end_amnesia(self, speaker: Speaker, entries: Sequence[Entry]) -> None:
        """Let a session be stored again; what of these entries is not stored by now never is."""
        session, now = self._name(speaker), self._database.now()
        told = self._told(speaker, entries)

        def end(db: Connection) -> None:
            unsaid = self._unstored(db, speaker, entries, told)
            unsaid |= dialogues.find_unsaid(db, session)
            dialogues.remember_from(db, session, unsaid=set(map(self._sealed, unsaid)), now=now)

        self._database.write(end)

    def was_amnesic(self, speaker: Speaker) -> bool:
        """Tell whether anything of a session was not to be stored, at any time."""
        with self._database.read() as db:
            return dialogues.was_amnesic(db, self._name(speaker))

    def leave_unsaid(self, speaker: Speaker, entries: Sequence[Entry]) -> None:
        """Let entries never be stored, as far as they are not by now."""
        session, now = self._name(speaker), self._database.now()
        told = self._told(speaker, entries)

        def leave(db: Connection) -> None:
            unsaid = self._unstored(db, speaker, entries, told)
            dialogues.leave_unsaid(db, session, set(map(self._sealed, unsaid)), now=now)

        self._database.write(leave)

    def find_unstored(self, speaker: Speaker, entries: Sequence[Entry]) -> frozenset[str]:
        """Return the keys of the entries of which something is not stored, or no more."""
        told = self._told(speaker, entries)
        with self._database.read() as db:
            return frozenset(self._unstored(db, speaker, entries, told))

    def _unstored(
        self, db: Connection, speaker: Speaker, entries: Sequence[Entry], told: Told
    ) -> set[str]:
        """Return the keys of the entries of which something is not stored."""
        n = sessions.find_number(db, self._name(speaker), agent=speaker.agent)
        places = [None] * len(told.entries) if n is None else self._places(db, n, told)
        placed = zip(told.entries, places, strict=True)
        return {entries[at].key for at, place in placed if place is None}

    def _is_amnesic(self, db: Connection, speaker: Speaker) -> bool:
        """Tell whether nothing of a session, or of its parent, is to be stored now."""
        names = (self._name(speaker), self._redact(speaker.parent))
        return any(dialogues.is_amnesic(db, name) for name in names if name)

    def _sealed(self, key: str) -> str:
        """Return the digest of an entry as it is kept of what was not to be stored.

        Without the key of this home nobody can try by guessing what was said.
        """
        if key.startswith(_SEALED):
            return key
        return _SEALED + hashlib.blake2b(key.encode(), key=self._salt, digest_size=12).hexdigest()

    def _silent(
        self, speaker: Speaker, entries: Sequence[Entry], unsaid: Collection[str]
    ) -> frozenset[int]:
        """Return the numbers of the entries that were said while nothing was to be stored."""
        silent = silences.find_silent(entries, joined=speaker.marks_what_it_adds)
        if not unsaid:
            return silent
        return silent | {
            number
            for number, entry in enumerate(entries)
            if self._sealed(entry.key) in unsaid or entry.key in unsaid
        }

    def _name(self, speaker: Speaker) -> str:
        return self._named(speaker.session)

    def _place(self, speaker: Speaker) -> str:
        return self._named(speaker.place)

    def _told(
        self, speaker: Speaker, entries: Sequence[Entry], *, first: int = 0, model: str = ""
    ) -> Told:
        at, helper = self._database.now(), bool(speaker.parent)
        joined = speaker.marks_what_it_adds
        return telling.tell(entries, at, first=first, model=model, helper=helper, joined=joined)

    def _places(self, db: Connection, session_n: int, told: Told) -> list[int | None]:
        """Return where messages stand in the stored talk, None for those that are not in it."""
        keys = [self._redacted_key(key) for key in told.keys]
        ordinals = claims.ordinals(db, session_n, "gateway", keys)
        return [ordinals.get(key) for key in keys]

    def _parent_of(self, speaker: Speaker) -> str:
        """Return the session that a helper works for, if that is stored by now."""
        if not speaker.parent:
            return ""
        with self._database.read() as db:
            try:
                return sessions.get(db, sessions.get_number(db, self._redact(speaker.parent))).id
            except NotFound:
                return ""


def _last_ordinals(
    count: int, places: Sequence[int], ordinals: Sequence[int | None]
) -> list[int | None]:
    """Return for each entry the place of its last message, None where one is not stored yet."""
    last: list[int | None] = [-1] * count
    for place, ordinal in zip(places, ordinals, strict=True):
        held = last[place]
        last[place] = None if ordinal is None or held is None else max(held, ordinal)
    return last


def _leading(last: Sequence[int | None], until: int, silent: Container[int]) -> int:
    """Return how many entries from the first on are told by a log that ends at an ordinal.

    Those between them that were not to be stored are passed over.
    """
    count = 0
    for number, ordinal in enumerate(last):
        if number in silent:
            continue
        if ordinal is None or ordinal > until:
            break
        count = number + 1
    return count


def _silences(
    entries: Sequence[Entry], silent: Container[int], covered: int
) -> Iterator[Distilled]:
    """Yield what stands for entries that were not to be stored: that they were, and how many.

    As for every distillation, all before them has to be told as well.
    """
    begun = None
    for number in range(len(entries) + 1):
        if number in silent:
            begun = number if begun is None else begun
        elif begun is not None:
            if begun > covered:
                return
            count = sum(entry.begins_turn for entry in entries[begun:number])
            text = f"{_UNTOLD} Turns: {count}."
            id_ = f"unsaid-{entries[number - 1].key}"
            yield Distilled(id_, text, tokens.count(text), number)
            covered, begun = max(covered, number), None


def changes(held: Held, before: Held | None) -> frozenset[dialogues.Name]:
    """Return the names of what a session does not hold on to as before."""
    if before is None:
        return HELD
    return frozenset(name for name in HELD if getattr(held, name) != getattr(before, name))


def _packed(pins: Pins) -> dict[str, Any]:
    return asdict(pins) | {"annotated": sorted(pins.annotated)}


def _told(packed: Mapping[str, Any]) -> dict[str, tuple[Given, ...]]:
    return {key: tuple(Given(*one) for one in told) for key, told in packed.items()}


def _pins(packed: Mapping[str, Any]) -> Pins:
    if not packed:
        return Pins()
    return Pins(**{
        **packed,
        "prefix": tuple(packed["prefix"]),
        "annotated": frozenset(packed["annotated"]),
    })
