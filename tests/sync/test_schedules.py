"""Any schedule of edits, forgets, partial syncs, lost replies, kills and wrong clocks converges.

Two laptops and a hub. In the end all have the same state, and nothing that was forgotten is in any
byte of their files.
"""

from __future__ import annotations

import os
import re
from datetime import timedelta
from functools import partial
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test

from lore import clock
from lore.capture.message_capture import Conversation, capture
from lore.records import NewMessage, Part
from lore.records.task_records import TaskRecord
from lore.store import (
    consolidation,
    fragments,
    graph,
    handoff_rows,
    hard_delete,
    maintenance,
    reversible_changes,
    standing_instructions,
    task_rows,
)
from lore.store.consolidation import Judgement
from lore.store.database import Connection
from lore.store.handoff_rows import HandoffRow
from lore.store.hard_delete import ForgetSelection
from lore.store.project_rows import ProjectLocation, ensure_project_at
from lore.store.task_rows import TaskPlace
from lore.sync.replica import ChangePage
from lore.text import entities
from tests.sync.machines import Machine

SEARCHES = os.environ.get("HYPOTHESIS_PROFILE") == "search"
SHARDS = 4
SCHEDULES = int(os.environ.get("LORE_TEST_SCHEDULES", "500" if SEARCHES else "30"))
"""Of each shard."""

PHASES = (Phase.generate, Phase.shrink) if SEARCHES else (Phase.generate,)
"""A failing schedule is shrunk on request: that takes minutes."""

laptops = st.integers(0, 1)
anyone = st.integers(0, 2)
places = st.integers(0, 7)
DAYS = st.sampled_from((-20_000, -400, -3, -1, 0, 0, 1, 3, 400, 2_912_000))
"""How far a clock is off: it may show the year 1971 or 9998."""

KINDS = ("fact", "preference", "decision")


def choose(ns: list[int], place: int) -> int | None:
    return ns[place % len(ns)] if ns else None


def words_of(db: Connection, selection: ForgetSelection) -> set[str]:
    """Return the words in all that is forgotten with a selection."""
    whole = hard_delete.with_derived(db, hard_delete.expand_selection(db, selection))
    texts = [
        *(text for n in whole.item_ns for sql in TEXTS_OF_ITEM for text in db.column(sql, n=n)),
        *(
            text
            for n in whole.session_ns
            for sql in TEXTS_OF_SESSION
            for text in db.column(sql, n=n)
        ),
    ]
    return {word for text in texts for word in WORD.findall(text)}


WORD = re.compile(r"qz\d{4}xv")
TEXTS_OF_ITEM = (
    "SELECT content FROM fragments WHERE n = :n",
    "SELECT content FROM fragment_versions WHERE fragment_n = :n",
    "SELECT parts FROM messages WHERE n = :n",
)
TEXTS_OF_SESSION = (
    "SELECT title FROM sessions WHERE n = :n",
    "SELECT goal FROM tasks WHERE session_n = :n",
    "SELECT body FROM handoffs WHERE session_n = :n",
    "SELECT body FROM working_states WHERE session_n = :n",
)


class Schedules(RuleBasedStateMachine):
    """Two laptops, a hub, and whatever happens between them."""

    def __init__(self) -> None:
        super().__init__()
        self.machines = [Machine(name) for name in ("one", "other", "hub")]
        self.words = 0
        self.forgotten: set[str] = set()
        self.mail: list[tuple[ChangePage, Machine]] = []

    def teardown(self) -> None:
        try:
            self.check()
        finally:
            for machine in self.machines:
                machine.close()

    def word(self) -> str:
        """Return a word that occurs nowhere else."""
        self.words += 1
        return f"qz{self.words:04d}xv"

    def fragments_of(self, machine: Machine, *, live: bool = True) -> list[int]:
        condition = " WHERE deleted_at IS NULL" if live else ""
        with machine.database.read() as db:
            return db.column(f"SELECT n FROM fragments{condition} ORDER BY n")

    @rule(who=laptops, kind=st.sampled_from(KINDS), in_project=st.booleans())
    def remember(self, who: int, kind: str, *, in_project: bool) -> None:
        machine, now = self.machines[who], self.machines[who].now()
        content = f"Always use {self.word()} for builds."

        def work(db: Connection) -> None:
            project_n = None
            if in_project:
                place = ProjectLocation(f"/home/{who}/code", "git@host:me/code", "code")
                project_n = ensure_project_at(db, place, now=now)
            new = fragments.NewFragment(
                clock.new_id(now), content, content[:40], kind, now, project_n=project_n,  # type: ignore[arg-type]
                mentions=tuple(entities.fragment_mentions(content, content[:40])),
            )  # fmt: skip
            fragments.add(db, new, now=now)

        machine.write(work)

    @rule(who=laptops, session=st.integers(0, 2), messages=st.integers(1, 3))
    def converse(self, who: int, session: int, messages: int) -> None:
        """Capture a conversation; the last one is captured on both laptops."""
        machine = self.machines[who]
        name = "shared" if session == 2 else f"talk-{who}-{session}"
        start = len(self.fragments_of(machine)) if session != 2 else 0
        new = [
            NewMessage(
                "user" if place % 2 == 0 else "assistant",
                (Part("text", f"Never push to {self.word() if session != 2 else 'main'}."),),
                machine.now(),
                key=f"{name}-{start + place}",
            )
            for place in range(messages)
        ]
        title = self.word()
        capture(machine.database, Conversation(name, agent="codex", title=title), new)

    @rule(who=laptops, place=places)
    def edit(self, who: int, place: int) -> None:
        machine = self.machines[who]
        n = choose(self.fragments_of(machine), place)
        if n is None:
            return
        content, now = f"Rather use {self.word()} for builds.", machine.now()
        mentioned = entities.fragment_mentions(content, "a summary")
        machine.write(
            lambda db: fragments.update(
                db,
                n,
                content=content,
                summary="a summary",
                mentioned=mentioned,
                now=now,
                reason="edited",
            )
        )

    @rule(who=laptops, place=places, other=places)
    def relate(self, who: int, place: int, other: int) -> None:
        """Supersede, link, move or judge two fragments."""
        machine = self.machines[who]
        ns = self.fragments_of(machine)
        a, b, now = choose(ns, place), choose(ns, other), machine.now()
        if a is None or b is None or a == b:
            return
        low, high = sorted((a, b))
        match (place + other) % 4:
            case 0:
                machine.write(lambda db: reversible_changes.supersede(db, low, high, now=now))
            case 1:
                note = "because"
                machine.write(lambda db: graph.put_edge(db, a, b, "related_to", now=now, note=note))
            case 2:
                machine.write(partial(self._move, child=a, parent=b, now=now))
            case _:
                machine.write(partial(self._judge, low=low, high=high, now=now))

    @staticmethod
    def _move(db: Connection, child: int, parent: int, now) -> None:
        if child not in graph.ancestors(db, parent):
            reversible_changes.reparent(db, child, parent, now=now)

    @staticmethod
    def _judge(db: Connection, low: int, high: int, now) -> None:
        versions = [fragments.get(db, n).version for n in (low, high)]
        consolidation.put_judgements(
            db, [Judgement(low, high, "judge", "agrees", *versions)], now=now
        )

    @rule(who=laptops, place=places)
    def unlink(self, who: int, place: int) -> None:
        machine = self.machines[who]
        with machine.database.read() as db:
            rows = db.rows("SELECT source_n, target_n, kind FROM edges ORDER BY 1, 2, 3")
        if not rows:
            return
        source, target, kind = rows[place % len(rows)]
        now = machine.now()
        if kind == "hierarchical":
            machine.write(lambda db: reversible_changes.reparent(db, target, None, now=now))
        else:
            machine.write(lambda db: graph.remove_edge(db, source, target, kind))

    @rule(who=laptops, place=places)
    def delete_or_restore(self, who: int, place: int) -> None:
        machine = self.machines[who]
        n, now = choose(self.fragments_of(machine, live=False), place), machine.now()
        if n is not None:
            with machine.database.read() as db:
                at = None if fragments.is_deleted(db, n) else now
            machine.write(lambda db: fragments.set_deleted(db, n, at, now=now))

    @rule(who=laptops, place=places, use=st.booleans())
    def use_or_decide(self, who: int, place: int, *, use: bool) -> None:
        machine = self.machines[who]
        with machine.database.read() as db:
            rules = db.column("SELECT n FROM standing WHERE state <> 'passing' ORDER BY n")
        n, now = choose(self.fragments_of(machine), place), machine.now()
        if use and n is not None:
            machine.write(lambda db: fragments.reinforce(db, n, now=now))
        elif rules:
            rule_n = rules[place % len(rules)]
            state = ("rejected", "confirmed")[place % 2]
            machine.write(lambda db: standing_instructions.decide(db, rule_n, state))  # type: ignore[arg-type]

    @rule(who=laptops, place=places, what=st.integers(0, 2), quotes=st.booleans())
    def work(self, who: int, place: int, what: int, *, quotes: bool) -> None:
        """Start a task, hand work over or note how far it is, in a session or outside."""
        machine, now = self.machines[who], self.machines[who].now()
        with machine.database.read() as db:
            session_n = choose(db.column("SELECT n FROM sessions ORDER BY n"), place)
            project_n = choose(db.column("SELECT n FROM projects ORDER BY n"), place)
            n = choose(self.fragments_of(machine), place)
            text = f"Build with {self.word()} next."
            if quotes and n is not None:
                text = f"See {fragments.get(db, n).id}: {fragments.get(db, n).content}"
        if what == 0:
            task = TaskRecord(clock.new_id(now), text, "", "", "implementation", "open", now)
            add: partial[Any] = partial(
                task_rows.add_task, task=task, place=TaskPlace(session_n, project_n)
            )
        elif what == 1 or session_n is None:
            row = HandoffRow(
                clock.new_id(now), session_n, project_n, "codex", "", {"note": text}, now, None
            )
            add = partial(handoff_rows.add_handoff, row=row)
        else:
            body = {"goal": text, "steps": ["build", text]}
            add = partial(handoff_rows.put_working_state, session_n=session_n, body=body, now=now)
        machine.write(add)

    @rule(who=laptops, place=places)
    def proceed(self, who: int, place: int) -> None:
        """Finish a task, or read a handoff."""
        machine, now = self.machines[who], self.machines[who].now()
        table = ("tasks", "handoffs")[place % 2]
        with machine.database.read() as db:
            n = choose(db.column(f"SELECT n FROM {table} ORDER BY n"), place)
        if n is not None and table == "tasks":
            machine.write(lambda db: db.update("tasks", n, state="done", outcome="success"))
        elif n is not None:
            machine.write(lambda db: db.update("handoffs", n, read_at=clock.to_us(now)))

    @rule(who=anyone, place=places, what=st.integers(0, 5))
    def forget(self, who: int, place: int, what: int) -> None:
        machine, now = self.machines[who], self.machines[who].now()
        tables = ("fragments", "fragments", "fragments", "messages", "sessions", "projects")
        with machine.database.read() as db:
            n = choose(db.column(f"SELECT n FROM {tables[what]} ORDER BY n"), place)
        if n is None:
            return
        selection = {
            "sessions": ForgetSelection(session_ns=(n,)),
            "projects": ForgetSelection(project_ns=(n,)),
        }.get(tables[what], ForgetSelection((n,)))
        with machine.database.read() as db:
            self.forgotten |= words_of(db, selection)
        machine.write(lambda db: hard_delete.forget(db, selection, now=now))

    @rule(who=anyone, days=DAYS)
    def set_clock(self, who: int, days: int) -> None:
        self.machines[who].skew = timedelta(days=days)

    @rule(who=laptops, pages=st.integers(1, 3), limit=st.integers(1, 6), up=st.booleans())
    def sync_partly(self, who: int, pages: int, limit: int, *, up: bool) -> None:
        one, other = self.machines[who], self.machines[2]
        one, other = (other, one) if up else (one, other)
        other.replica.scan()
        for _ in range(pages):
            page = one.page_from(other, limit)
            one.receive(page, other)
            one.pulled[other.name] = page.cursor
            self.mail.append((page, other))

    @rule(who=laptops, limit=st.integers(1, 9), up=st.booleans(), peer=st.booleans())
    def lose_the_reply(self, who: int, limit: int, *, up: bool, peer: bool) -> None:
        one, other = self.machines[who], self.machines[1 - who if peer else 2]
        one, other = (other, one) if up else (one, other)
        other.replica.scan()
        page = one.page_from(other, limit)
        one.receive(page, other)
        self.mail.append((page, other))

    @rule(who=laptops, limit=st.integers(1, 9), up=st.booleans(), statement=st.integers(1, 400))
    def die_while_applying(self, who: int, limit: int, statement: int, *, up: bool) -> None:
        one, other = self.machines[who], self.machines[2]
        one, other = (other, one) if up else (one, other)
        other.replica.scan()
        page = one.page_from(other, limit)
        if not one.receive_and_die(page, other, statement):
            one.pulled[other.name] = page.cursor

    @rule(who=anyone, place=st.integers(0, 30))
    def deliver_old_mail(self, who: int, place: int) -> None:
        if self.mail:
            page, sender = self.mail[place % len(self.mail)]
            if sender is not self.machines[who]:
                self.machines[who].receive(page, sender)

    @rule(who=laptops)
    def sync(self, who: int) -> None:
        self.machines[who].sync_with(self.machines[2])

    def check(self) -> None:
        one, other, hub = self.machines
        for _ in range(12):
            if not one.sync_with(hub) + other.sync_with(hub):
                break
        else:
            pytest.fail("sync does not come to an end")
        assert one.state() == hub.state()
        assert other.state() == hub.state()
        assert len({machine.replica.state_hash() for machine in self.machines}) == 1
        for machine in self.machines:
            assert machine.replica.scan() == 0
            with machine.database.read() as db:
                assert maintenance.check_integrity(db) == []
                assert db.value("SELECT count(*) FROM sync_pending") == 0
                self.check_tree(db)
            content = machine.bytes()
            assert [word for word in self.forgotten if word.encode() in content] == []

    @staticmethod
    def check_tree(db: Connection) -> None:
        """Check that each fragment has one parent at most, and none is below itself."""
        rows = db.rows("SELECT source_n, target_n FROM edges WHERE kind = 'hierarchical'")
        parents = {child: parent for parent, child in rows}
        assert len(parents) == len(rows)
        for child in parents:
            above, seen = parents.get(child), {child}
            while above is not None:
                assert above not in seen
                seen.add(above)
                above = parents.get(above)


@pytest.mark.parametrize("shard", range(SHARDS))
def test_any_schedule_ends_in_one_state_without_what_was_forgotten(shard: int) -> None:
    run_state_machine_as_test(
        seed(shard)(type("Schedules", (Schedules,), {})),
        settings=settings(
            max_examples=SCHEDULES,
            stateful_step_count=20,
            suppress_health_check=list(HealthCheck),
            database=None,
            phases=PHASES,
        ),
    )
