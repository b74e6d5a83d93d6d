"""Lives: what this process knows of its sessions, and which of them are in amnesia."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import replace
from functools import partial

from lore.errors import StoreError
from lore.memory import holding
from lore.memory.conversing import KEEP_S, Conversing, changes
from lore.memory.holding import Live
from lore.memory.recent import Recent
from lore.records import Dialogue, Held, Speaker

MOST_SESSIONS = 256
"""Sessions that this process remembers; what the others hold is in the store."""


class Lives:
    """Finds what is known of a session, and keeps it."""

    def __init__(self, desk: Conversing) -> None:
        self._desk = desk
        self._sessions = Recent[Live](MOST_SESSIONS)
        self._hushed: set[str] = set()
        """Sessions whose amnesia is not written down yet."""

    def find(self, speaker: Speaker) -> Live | None:
        """Return what this process knows of a session, None if that is nothing."""
        return self._sessions.find(speaker.place)

    def get(self, speaker: Speaker, *, at_hand: bool = False) -> Live:
        """Return what is known of a session; with `at_hand`, the store is only asked for a new one.

        That will do where nothing is told, and where storing asks for itself what it may.
        """
        live = self.find(speaker) if at_hand else None
        live = live or self._found(speaker)
        with live.lock:
            if self._is_hushed(speaker) and not live.held.amnesic:
                live.held = replace(live.held, amnesic=True)
        return live

    def _is_hushed(self, speaker: Speaker) -> bool:
        return speaker.session in self._hushed or speaker.parent in self._hushed

    def _found(self, speaker: Speaker) -> Live:
        found = self.find(speaker)
        if found is not None:
            self.bring_up_to_date(speaker, found)
            return found
        # The era first: what is forgotten between the two is then let go of once more.
        era = self._desk.era()
        held = self._desk.held(speaker)
        if speaker.began and not holding.has_begun(held):
            held = self._going_on(speaker, held)
        live = Live(held, holding.calibration(held.measured), era)
        return self._sessions.add(speaker.place, live)

    def _going_on(self, speaker: Speaker, held: Held) -> Held:
        """Return what a session holds on to that had another name at its first request."""
        first = self.get(speaker.first).held
        with suppress(StoreError):
            self._desk.go_on_from(speaker)
        return replace(first, amnesic=held.amnesic)

    def _set_amnesic(self, speaker: Speaker, *, amnesic: bool) -> None:
        live = self.get(speaker)
        with live.lock:
            live.held = replace(live.held, amnesic=amnesic)
            live.standings += 1

    def bring_up_to_date(self, speaker: Speaker, live: Live) -> None:
        """Drop all texts of a session if anything was forgotten since, by whatever process.

        Whether it is amnesic may have been said to another one, too.
        """
        before = live.standings
        era, amnesic = self._standing(speaker, live)
        if (era, amnesic) == (live.era, live.held.amnesic):
            return
        with live.lock:
            if live.standings != before:
                return  # Somebody knows better: what was read may be from before that.
            live.standings += 1
            live.held = replace(live.held, amnesic=amnesic)
            holding.bring_to(live, era)

    def let_go(self, era: str) -> None:
        """Drop the texts of all sessions that are of another era than this one."""
        for live in self._sessions.all():
            with live.lock:
                live.standings += live.era != era
                holding.bring_to(live, era)

    def _standing(self, speaker: Speaker, live: Live) -> tuple[str, bool]:
        """Return the era, and whether a session is amnesic; as before, where nothing is read."""
        try:
            era, amnesic = self._desk.standing(speaker)
        except StoreError:
            return live.era, live.held.amnesic
        return era, amnesic or self._is_hushed(speaker)

    def hold(self, speaker: Speaker, live: Live) -> None:
        """Keep what a session holds on to, without waiting for it.

        What has failed is written once more; what is under way is left to itself.
        """
        with live.lock:
            if live.held.amnesic:
                return
            changed = changes(live.held, live.handed)
            live.unkept |= changed
            live.handed = live.held
            is_under_way = live.writing is not None and not live.writing.done()
            if not live.unkept or (is_under_way and not changed):
                return
            live.writes += 1
            with suppress(StoreError):
                # Under the lock, so that the last comes last.
                names = frozenset(live.unkept)
                writing = self._desk.hold(speaker, live.held, era=live.era, names=names)
                writing.add_done_callback(partial(_note_kept, live, live.writes))
                live.writing = writing

    def markers(self, speaker: Speaker, *, at_hand: bool = False) -> Mapping[str, str]:
        """Return what the markers of a session stand for, by their ids.

        With `at_hand` only those that this process knows are, and nothing is looked up.
        """
        if at_hand:
            return self._markers_at_hand(speaker)
        live = self.get(speaker)
        with live.lock:
            era, is_whole = live.era, live.has_all_markers
        if not is_whole:
            found = self._desk.markers(speaker)
            with live.lock:
                # Those of another era may quote what is forgotten.
                if live.era == era:
                    live.markers, live.has_all_markers = {**found, **live.markers}, True
        return self._markers_at_hand(speaker)

    def _markers_at_hand(self, speaker: Speaker) -> Mapping[str, str]:
        lives = [self.find(one) for one in dict.fromkeys((speaker.first, speaker))]
        return {id_: text for live in lives if live for id_, text in live.markers.items()}

    def keep_markers(
        self, speaker: Speaker, markers: Mapping[str, str], *, within_s: float = KEEP_S
    ) -> None:
        """Keep what markers stand for, and return once that is durable.

        They are known here at once: one that is durable later than that is told in the same way.
        """
        live = self.get(speaker, at_hand=True)
        with live.lock:
            live.markers = {**live.markers, **markers}
        self._desk.keep_markers(speaker, markers, within_s=within_s)

    def hush(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored or given from now on, as long as this process runs.

        The store is not asked: it may be locked.
        """
        if not speaker.unnamed:
            self._hushed.add(speaker.session)

    def begin_amnesia(self, speaker: Speaker) -> None:
        """Let nothing of a session be stored or given from now on.

        Of an unnamed one nothing is kept: its history tells, and others may have its name.
        """
        if speaker.unnamed:
            return
        self.hush(speaker)
        self._desk.begin_amnesia(speaker)
        self._set_amnesic(speaker, amnesic=True)
        self._hushed.discard(speaker.session)

    def end_amnesia(self, speaker: Speaker, dialogue: Dialogue) -> None:
        """Let what a session says after this dialogue be stored and given to again."""
        if speaker.unnamed:
            return
        self._desk.end_amnesia(speaker, dialogue.entries)
        self._hushed.discard(speaker.session)
        self._set_amnesic(speaker, amnesic=False)

    def write_down_amnesia(self, speaker: Speaker) -> None:
        """Begin an amnesia once more that could not be written down yet."""
        if speaker.session in self._hushed:
            self.begin_amnesia(speaker)


def _note_kept(live: Live, number: int, writing: Future[None]) -> None:
    """Take note that the last write is durable; it holds all that those before it should have."""
    if writing.cancelled() or writing.exception() is not None:
        return
    with live.lock:
        if live.writes == number:
            live.unkept.clear()
