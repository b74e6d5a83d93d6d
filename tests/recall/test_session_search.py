from __future__ import annotations

from datetime import timedelta

from lore.memory import Memory
from tests.fakes import NOON
from tests.recall.talk import say


def test_the_session_in_which_it_was_done_comes_first(memory: Memory):
    for i in range(4):
        say(memory, f"other-{i}", f"Let us talk about boat {i}", "A fine boat")
    say(memory, "flaky", "The timezone test is flaky", "Fixed by freezing the clock")
    first = memory.find_sessions("flaky timezone test")[0]
    assert first.best[0].text.startswith(("The timezone", "Fixed"))
    assert memory.sessions(limit=10)
    found = {s.id: s.external_id for s in memory.sessions(limit=10)}
    assert found[first.session_id] == "flaky"


def test_files_that_were_touched_lead_to_the_session(memory: Memory):
    for i in range(4):
        say(memory, f"other-{i}", "please fix it", "done")
    memory.capture("files", [], files=["src/berths/slots.py"])
    say(memory, "files", "please fix it", "done")
    memory.capture(
        "files",
        memory_messages(memory, "files"),
        agent="test",
        files=["src/berths/slots.py"],
    )
    found = {s.id: s.external_id for s in memory.sessions(limit=10)}
    assert found[memory.find_sessions("slots.py berths")[0].session_id] == "files"


def memory_messages(memory: Memory, session: str):
    from lore.records import NewMessage

    return [NewMessage(m.role, m.parts, m.created_at) for m in memory.messages(session)]


def test_of_equal_sessions_the_recent_one_comes_first(memory: Memory):
    for days in (400, 200, 1):
        say(memory, f"s{days}", "the build broke again", "mended", at=NOON - timedelta(days=days))
    found = {s.id: s.external_id for s in memory.sessions(limit=10)}
    ranked = [found[hit.session_id] for hit in memory.find_sessions("build broke")]
    assert ranked[0] == "s1"


def test_no_session_is_found_in_an_empty_memory(memory: Memory):
    assert memory.find_sessions("anything") == []
