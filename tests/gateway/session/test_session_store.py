"""What passes through the gateway is stored once, and what a session holds on to survives."""

from __future__ import annotations

import json
import uuid
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from lore.gateway.apis import entry_keys
from lore.gateway.apis.entry_keys import KeyedBlock
from lore.gateway.session.session_store import SessionStore, StoredPrefix
from lore.memory import Memory
from lore.records import (
    Block,
    ClientSession,
    Distilled,
    Entry,
    InjectedItem,
    Measured,
    PromptState,
    SessionSnapshot,
    Voice,
)
from lore.settings import load
from lore.store import dialogue_state, sessions
from tests.capture.adapters.samples import claude_line
from tests.fakes import FakeEmbedder, FixedClock

TALK = ClientSession("s-1", "claude-code", "/code/almanac")


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    config = load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def entry(voice: Voice, *blocks: Block, key: str = "") -> Entry:
    """Return an entry that is called by what it says."""
    said = "".join(block.text + block.call_id for block in blocks)
    return Entry(voice, blocks, key or f"{voice}:{said}"[:40])


def words(text: str) -> Block:
    return Block("text", len(text), text)


def exchange(n: int) -> list[Entry]:
    """Return a prompt, a call with its result, and an answer."""
    call = Block("call", 20, f'{{"file_path": "a{n}.py"}}', f"call-{n}", "Read")
    result = Block("result", 90, f"line of a{n}.py\n" * 30, f"call-{n}", "")
    return [
        entry("user", words(f"Look at a{n}.py and tell me what the cache number {n} does.")),
        entry("assistant", words(f"Reading a{n}.py now."), call),
        entry("user", result),
        entry("assistant", words(f"We keep cache {n} at {n * 100} entries, as you decided.")),
    ]


def talk(turns: int) -> list[Entry]:
    return [one for n in range(turns) for one in exchange(n)]


def texts(memory: Memory, session: str = "s-1") -> list[str]:
    """Return what is stored of a session."""
    return [part.text for message in memory.sessions.messages(session) for part in message.parts]


def test_each_request_stores_only_new_messages(memory: Memory):
    SessionStore(memory).record(TALK, talk(1))
    first = texts(memory)
    SessionStore(memory).record(TALK, talk(2), first=4, model="m")
    SessionStore(memory).record(TALK, talk(2))
    assert texts(memory)[: len(first)] == first
    assert len(texts(memory)) == 2 * len(first) == 10


def test_repeated_text_is_two_messages(memory: Memory):
    yes = entry("user", words("yes"))
    SessionStore(memory).record(TALK, [*exchange(0), yes, *exchange(1), yes])
    assert texts(memory).count("yes") == 2


def said(voice: Voice, text: str) -> Entry:
    return entry_keys.make_entry(voice, [KeyedBlock(words(text), text)])


def numbered(*told: str) -> list[Entry]:
    """Return a talk of prompts and answers in turn, with the keys that a wire gives them."""
    spoken = [said("assistant" if n % 2 else "user", text) for n, text in enumerate(told)]
    return list(entry_keys.number_duplicates(spoken))


def test_prompts_kept_by_a_compaction_are_stored_once(memory: Memory):
    told = ["Count the tides.", "Six.", "And the locks?", "Two.", "Yes.", "Done."]
    SessionStore(memory).record(TALK, numbered(*told))
    carried = [said("user", text) for text in (*told[::2], "Distilled: tides and locks.")]
    for _ in range(2):
        SessionStore(memory).record(
            TALK, [*carried, said("user", "Yes."), said("assistant", "Well.")]
        )
    assert texts(memory) == [*told, "Distilled: tides and locks.", "Yes.", "Well."]


@pytest.mark.parametrize("asked", ["Part {}?", "go on"])
@pytest.mark.parametrize("window", [3, 4, 7])
def test_sliding_window_stores_each_message_once(memory: Memory, asked: str, window: int):
    answer = "Done." if "{}" in asked else "Part {} is done."
    told = [word.format(n) for n in range(12) for word in (asked, answer)]
    for end in range(2, len(told) + 1, 2):
        start = max(0, end - window)
        spoken = [said("assistant" if n % 2 else "user", told[n]) for n in range(start, end)]
        SessionStore(memory).record(TALK, entry_keys.number_duplicates(spoken))
    assert texts(memory) == told


def test_window_that_starts_within_a_turn_stores_each_message_once(memory: Memory):
    entries = talk(2)
    SessionStore(memory).record(TALK, entries[:-1])
    before = texts(memory)
    SessionStore(memory).record(TALK, entries[5:])
    assert texts(memory)[:-1] == before
    assert len(texts(memory)) == 10


class Client:
    """A client that cuts, condenses and turns back its history as it likes."""

    def __init__(self) -> None:
        self.history: list[tuple[Voice, str]] = []
        self.said: list[str] = []
        self._asked: set[tuple[str, str]] = set()

    def change(self, how: str, at: int) -> None:
        """Do something to the history."""
        if how == "go back":
            ends = [n + 1 for n, (voice, _) in enumerate(self.history) if voice == "assistant"]
            self.history = self.history[: ends[at % len(ends)] if ends else 0]
        elif how == "cut":
            self.history = self.history[at % len(self.history) if self.history else 0 :]
        elif how == "condense":
            self.history = [one for one in self.history if one[0] == "user"]
            self._say("user", f"Summary {len(self.said)}.")

    def ask(self, text: str) -> list[Entry]:
        """Say something and return all that the request and its answer tell."""
        before = self.history[-1][1] if self.history else ""
        if (before, text) in self._asked:  # the same request again
            text = f"Something else, {len(self.said)}."
        self._asked.add((before, text))
        self._say("user", text)
        self._say("assistant", f"Answer {len(self.said)}.")
        return list(entry_keys.number_duplicates(said(*one) for one in self.history))

    def _say(self, voice: Voice, text: str) -> None:
        self.history.append((voice, text))
        self.said.append(text)


CHANGES = st.sampled_from(["", "", "go back", "cut", "condense"])
STEPS = st.tuples(CHANGES, st.integers(0, 20), st.sampled_from(["yes", "no", "go on"]))


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEPS, max_size=10))
def test_each_message_is_stored_once_for_any_history_changes(
    memory: Memory, steps: list[tuple[str, int, str]]
):
    client, talk = Client(), replace(TALK, session=uuid.uuid4().hex)
    for how, at, text in steps:
        client.change(how, at)
        SessionStore(memory).record(talk, client.ask(text))
    stored = texts(memory, talk.session) if steps else []
    assert Counter(stored) == Counter(client.said)


def test_message_repeated_after_a_rewind_is_stored_again(memory: Memory):
    first = numbered("Begin.", "Well.", "Try the left.", "No way.", "Try the right.", "A door.")
    SessionStore(memory).record(TALK, first)
    back = numbered("Begin.", "Well.", "Try the right.", "A wall.")
    SessionStore(memory).record(TALK, back)
    SessionStore(memory).record(
        TALK, [*back, said("user", "Try the left."), said("assistant", "Ah.")]
    )
    assert texts(memory).count("Try the right.") == texts(memory).count("Try the left.") == 2
    assert len(texts(memory)) == 10


def test_forgotten_message_is_not_stored_again_after_compaction(memory: Memory):
    told = ["Count the tides.", "Six.", "The code of the gate is 1904.", "Noted.", "Yes.", "Done."]
    SessionStore(memory).record(TALK, numbered(*told))
    carried = [said("user", text) for text in (*told[::2], "Go on.")]
    SessionStore(memory).record(TALK, carried)
    secret = next(one for one in memory.sessions.messages("s-1") if "1904" in one.parts[0].text)
    memory.forget(id=secret.id)
    for again in (carried, numbered(*told)):
        SessionStore(memory).record(TALK, again)
    assert texts(memory) == [text for text in (*told, "Go on.") if "1904" not in text]


def test_transcript_of_the_same_session_adds_nothing(memory: Memory, tmp_path: Path):
    SessionStore(memory).record(TALK, talk(1))
    before = texts(memory)
    path = tmp_path / "s-1.jsonl"
    said: Sequence[tuple[str, object]] = [
        ("user", "Look at a0.py and tell me what the cache number 0 does."),
        ("assistant", [{"type": "text", "text": "Reading a0.py now."}]),
        ("assistant", [
            {"type": "tool_use", "id": "call-0", "name": "Read", "input": {"file_path": "a0.py"}}
        ]),
        ("user", [{"type": "tool_result", "tool_use_id": "call-0", "content": "cut"}]),
        ("assistant", [
            {"type": "text", "text": "We keep cache 0 at 0 entries, as you decided."}
        ]),
    ]  # fmt: skip
    path.write_text(
        "".join(
            json.dumps(claude_line(role, content, uuid=f"u{i}", sessionId="s-1")) + "\n"
            for i, (role, content) in enumerate(said)
        )
    )
    memory.capture_files([path])
    assert texts(memory) == before


def test_injected_text_is_not_stored_as_a_users_message(memory: Memory):
    told = "<system-reminder>Never deploy on Fridays.</system-reminder>Mend the login."
    SessionStore(memory).record(
        TALK, [entry("user", words(told)), entry("system", words("Be brief."))]
    )
    found = memory.sessions.messages("s-1")
    assert [(p.kind, p.origin) for p in found[0].parts if "Fridays" in p.text] == [
        ("aside", "tool")
    ]
    assert found[1].role == "system"


def test_parent_with_a_redacted_name_is_found(memory: Memory):
    store, name = SessionStore(memory), "ghp_" + "a1B2c3D4" * 4 + "e5F6"
    store.record(replace(TALK, session=name), exchange(0))
    store.record(replace(TALK, session="helper", parent=name), exchange(1))
    found = {one.external_id: one for one in memory.sessions()}
    assert name not in found
    parent = next(one for one in found.values() if one.external_id != "helper")
    assert found["helper"].parent_id == parent.id


def test_prompt_of_a_subagent_is_not_a_users_message(memory: Memory):
    SessionStore(memory).record(TALK, talk(1))
    helper = replace(TALK, session="s-1/agent-7", parent="s-1")
    SessionStore(memory).record(helper, [entry("user", words("Always use tabs."))])
    [asked] = memory.sessions.messages("s-1/agent-7")
    assert (asked.origin, asked.speaker) == ("assistant", "agent")
    found = {one.external_id: one for one in memory.sessions()}
    assert found["s-1/agent-7"].parent_id == found["s-1"].id


def test_distillation_states_the_entries_it_covers(memory: Memory):
    entries = talk(8)
    SessionStore(memory).record(TALK, entries[:24])
    memory.distill("s-1")
    SessionStore(memory).record(TALK, entries)
    found = SessionStore(memory).find_distillations(TALK, entries)
    assert found
    assert [one.until for one in found] == sorted(one.until for one in found)
    assert found[-1].until == 24
    assert SessionStore(memory).find_distillations(TALK, entries[:8])[-1].until == 8


def test_a_growing_session_looks_up_only_its_new_entries(memory: Memory):
    entries, store, known = talk(12), SessionStore(memory), StoredPrefix()
    for end in range(4, len(entries) + 1, 4):
        store.record(TALK, entries[:end])
        memory.distill("s-1")
        found = store.find_distillations(TALK, entries[:end], known)
        assert found == store.find_distillations(TALK, entries[:end])
        with memory.database.read() as db:
            session_n = sessions.find_session(db, TALK.session, agent=TALK.agent)
        assert session_n is not None
        assert len(known.ordinals(session_n, entries)) == end


def test_a_changed_history_is_looked_up_from_the_change_on(memory: Memory):
    entries, store, known = talk(8), SessionStore(memory), StoredPrefix()
    store.record(TALK, entries)
    memory.distill("s-1")
    store.find_distillations(TALK, entries, known)
    for other in (entries[:9], [*entries[:9], *talk(20)[60:]], entries[4:], talk(20)[40:]):
        found = store.find_distillations(TALK, other, known)
        assert found == store.find_distillations(TALK, other)


def test_entries_behind_the_last_distillation_are_not_looked_up(memory: Memory):
    entries, store, known = talk(12), SessionStore(memory), StoredPrefix()
    store.record(TALK, entries[:24])
    memory.distill("s-1")
    store.record(TALK, entries)
    before = store.find_distillations(TALK, entries[:40], known)
    assert before[-1].until == 24
    with memory.database.read() as db:
        session_n = sessions.find_session(db, TALK.session, agent=TALK.agent)
    assert session_n is not None
    assert store.find_distillations(TALK, entries, known) == before
    assert len(known.ordinals(session_n, entries)) == 40
    memory.distill("s-1")
    after = store.find_distillations(TALK, entries, known)
    assert after == store.find_distillations(TALK, entries) != before
    assert len(known.ordinals(session_n, entries)) == len(entries)


def test_unknown_session_has_no_distillations(memory: Memory):
    assert SessionStore(memory).find_distillations(TALK, talk(1)) == []


def test_session_state_survives_a_restart(tmp_path: Path, clock: FixedClock):
    config = load({}, home=tmp_path / "home").settings
    pins = PromptState(2, 2, "k", ("d1", "d2"), frozenset(("call-1", "call-0")), 3)
    made = (Distilled("tier-1", "All of it.", 3, 8, 1),)
    snapshot = SessionSnapshot(
        pins, Measured(80, 20, 0.25, 1, 2, 3, "k", 7.5), "What stands.", {"k": "a"}, made
    )
    snapshot = replace(
        snapshot,
        told={"": (InjectedItem(1, -7),), "k": (InjectedItem(2, 2**62), InjectedItem(3, 0))},
    )
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        SessionStore(memory).save(TALK, snapshot, generation="")
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as memory:
        assert SessionStore(memory).load(TALK) == snapshot
        assert SessionStore(memory).load(replace(TALK, session="s-2")) == SessionSnapshot()


def test_empty_knowledge_replaces_stored_knowledge(memory: Memory):
    made = (Distilled("tier-1", "All of it.", 3, 8, 1),)
    SessionStore(memory).save(
        TALK, SessionSnapshot(PromptState(1), Measured(), "Old.", {"k": "a"}, made), generation=""
    )
    nothing = SessionSnapshot(PromptState(1), Measured(), "", {}, (), bare=True)
    SessionStore(memory).save(TALK, nothing, generation="")
    memory.database.write(lambda db: db.rows("SELECT 1"))
    assert SessionStore(memory).load(TALK) == nothing
    SessionStore(memory).save(TALK, SessionSnapshot(), generation="")
    memory.database.write(lambda db: db.rows("SELECT 1"))
    assert SessionStore(memory).load(TALK) == SessionSnapshot()


def test_markers_belong_to_one_session_and_survive_a_restart(memory: Memory):
    SessionStore(memory).save_markers(TALK, {"m1": "Port 5436."})
    assert SessionStore(memory).load_markers(TALK) == {"m1": "Port 5436."}
    assert SessionStore(memory).load_markers(replace(TALK, session="s-2")) == {}


def test_forgetting_removes_all_quoting_state(memory: Memory):
    id_ = memory.store("The staging port is 5436.")
    quoting = SessionSnapshot(
        PromptState(1), Measured(), "The staging port is 5436.", {"k": "Port 5436."}
    )
    quoting = replace(quoting, told={"k": (InjectedItem(1, 2),)})
    generation = SessionStore(memory).generation()
    SessionStore(memory).save(TALK, quoting, generation=generation)
    SessionStore(memory).save_markers(TALK, {"m1": "The staging port is 5436."})
    memory.forget(id=id_)
    snapshot = SessionStore(memory).load(TALK)
    assert (snapshot.knowledge, snapshot.notes, snapshot.told, snapshot.pins.layer) == (
        None,
        {},
        {},
        1,
    )
    assert SessionStore(memory).load_markers(TALK) == {}
    # Whoever did not notice brings nothing back.
    SessionStore(memory).save(TALK, replace(quoting, pins=PromptState(2)), generation=generation)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    snapshot = SessionStore(memory).load(TALK)
    assert (snapshot.knowledge, snapshot.notes, snapshot.told, snapshot.pins.layer) == (
        None,
        {},
        {},
        2,
    )


def test_private_session_is_not_stored_by_any_channel(
    memory: Memory, clock: FixedClock, tmp_path: Path
):
    SessionStore(memory).record(TALK, exchange(0)[:1])
    clock.advance(seconds=10)
    SessionStore(memory).private_mode.begin(TALK)
    assert SessionStore(memory).load(TALK).is_private
    secret = "The merger is on the ninth."
    assert SessionStore(memory).record(TALK, [*exchange(0)[:1], entry("user", words(secret))]) == []
    path = tmp_path / "s-1.jsonl"
    line = claude_line("user", secret, uuid="u9", sessionId="s-1", timestamp=clock().isoformat())
    path.write_text(json.dumps(line) + "\n")
    clock.advance(seconds=10)
    SessionStore(memory).end_private_mode(TALK, [])
    memory.capture_files([path])
    assert secret not in texts(memory)
    SessionStore(memory).record(TALK, [entry("user", words("Back again."))])
    assert "Back again." in texts(memory)


def test_private_session_gets_nothing_from_hooks(memory: Memory):
    memory.remember("The staging port is 5436", kind="decision", project=TALK.project)
    SessionStore(memory).private_mode.begin(TALK)
    assert not memory.prompts.begin_session("s-1", project=TALK.project).text
    assert memory.prompts.begin_session("s-2", project=TALK.project).text


def test_excluded_entries_are_stored_as_keyed_digests(memory: Memory, tmp_path: Path):
    store, entries = SessionStore(memory), talk(1)
    store.private_mode.begin(TALK)
    store.end_private_mode(TALK, entries)
    with memory.database.read() as db:
        kept = dialogue_state.find_excluded_entries(db, TALK.session)
    assert len(kept) == len(entries)
    assert not kept & {entry.key for entry in entries}
    config = load({}, home=tmp_path / "other").settings
    with Memory.open(config=config, embedder=FakeEmbedder()) as other:
        SessionStore(other).private_mode.begin(TALK)
        SessionStore(other).end_private_mode(TALK, entries)
        with other.database.read() as db:
            assert not kept & dialogue_state.find_excluded_entries(db, TALK.session)


def test_older_digests_without_a_key_still_exclude(memory: Memory):
    entries, now = talk(1), memory.database.now()
    old = {entry.key for entry in entries}
    memory.database.write(lambda db: dialogue_state.begin_private_mode(db, TALK.session, now=now))
    memory.database.write(
        lambda db: dialogue_state.end_private_mode(db, TALK.session, excluded=old, now=now)
    )
    assert SessionStore(memory).record(TALK, entries) == []
    SessionStore(memory).private_mode.begin(TALK)
    SessionStore(memory).end_private_mode(TALK, entries)
    with memory.database.read() as db:
        assert not old & dialogue_state.find_excluded_entries(db, TALK.session)
    assert SessionStore(memory).record(TALK, entries) == []


@pytest.mark.parametrize("again", [False, True], ids=["in the middle", "at the beginning too"])
def test_placeholder_stands_for_private_entries_between_distillations(memory: Memory, again: bool):
    store, entries = SessionStore(memory), talk(8)
    told = entries[4:8] if again else entries[:8]
    if again:
        store.private_mode.begin(TALK)
        store.end_private_mode(TALK, entries[:4])
    store.record(TALK, entries[:8])
    store.private_mode.begin(TALK)
    store.end_private_mode(TALK, entries[:16])
    store.record(TALK, entries)
    memory.distill("s-1")
    assert len(texts(memory)) == 5 * (len(told) + len(entries[16:])) // 4
    found = store.find_distillations(TALK, entries)
    silent = [one for one in found if one.id.startswith("unsaid-")]
    assert [one.until for one in silent] == ([4, 16] if again else [16])
    assert silent[-1].text.endswith("Turns: 2.")
    assert max(one.until for one in found) == 32
    assert store.find_distillations(TALK, entries) == found
    for number in range(8, 16):
        assert not any(f"a{number // 4}.py" in one.text for one in found)


def test_transcript_has_no_commands_and_no_private_summaries(
    memory: Memory, clock: FixedClock, tmp_path: Path
):
    store = SessionStore(memory)
    store.private_mode.begin(TALK)
    clock.advance(minutes=1)
    store.end_private_mode(TALK, [])
    clock.advance(minutes=1)
    offered = (
        "<command-message>lore:amnesia</command-message>\n"
        "<command-name>/lore:amnesia</command-name>\n<command-args>off</command-args>"
    )
    retold = "This session is being continued from a previous conversation. The merger is near."
    said: Sequence[tuple[str, object]] = [
        ("user", "Good morning."),
        ("assistant", [{"type": "text", "text": "Hello."}]),
        ("user", "lore:status"),
        ("assistant", [{"type": "text", "text": "Session s-1."}]),
        ("user", offered),
        ("assistant", [{"type": "text", "text": "This conversation is stored again."}]),
        ("user", retold),
        ("user", "Good night."),
        ("assistant", [{"type": "text", "text": "Sleep well."}]),
    ]
    path = tmp_path / "s-1.jsonl"
    at = clock().isoformat()
    path.write_text(
        "".join(
            json.dumps(claude_line(role, content, uuid=f"u{i}", sessionId="s-1", timestamp=at))
            + "\n"
            for i, (role, content) in enumerate(said)
        )
    )
    memory.capture_files([path])
    assert texts(memory) == ["Good morning.", "Hello.", "Good night.", "Sleep well."]
