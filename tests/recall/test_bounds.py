from __future__ import annotations

from datetime import timedelta

import pytest

from lore.errors import AmbiguousId, InvalidInput, NotFound
from lore.memory import Memory
from lore.records import Draft
from tests.fakes import NOON, FixedClock
from tests.recall.talk import say


def test_a_filter_finds_the_one_fragment_among_many_that_fit_the_words(memory: Memory):
    memory.store_all(Draft(f"deploy note {i}", project="/a") for i in range(150))
    one = memory.store("deploy by hand", project="/b", kind="decision", origin="assistant")
    for wanted in ({"project": "/b"}, {"kind": "decision"}, {"origin": "assistant"}):
        found = memory.search("deploy", **wanted)  # type: ignore[arg-type]
        assert [hit.id for hit in found] == [one]
    assert [hit.id for hit in memory.search("deploy", parent_id=one)] == [one]


def test_hidden_fragments_do_not_crowd_out_living_ones(memory: Memory):
    ids = memory.store_all(Draft(f"deploy note {i}") for i in range(130))
    memory.embed_waiting()
    for id_ in ids:
        memory.delete(id_)
    living = memory.store("deploy by hand")
    assert [hit.id for hit in memory.recall("deploy")] == [living]
    assert [hit.id for hit in memory.search("deploy")] == [living]


def test_a_fragment_that_is_brought_back_is_found_again_by_words_and_meaning(memory: Memory):
    id_ = memory.store("deploy by hand")
    memory.embed_waiting()
    memory.delete(id_)
    memory.undo(id_)
    [hit] = memory.recall("deploy hand").hits
    assert "keywords #1" in hit.why
    assert "meaning #1" in hit.why


def test_a_level_of_abstraction_shows_nothing_hidden_or_of_another_project(memory: Memory):
    top = memory.store("Everything about harbor")
    child = memory.store("deploy script of harbor", parent_id=top, project="/b")
    assert memory.search("deploy script", depth=1, project="/b")[0].id == child
    memory.delete(top)
    assert memory.search("deploy script", depth=0) == []


def test_sessions_of_another_project_are_never_found(memory: Memory):
    say(memory, "a", "the build broke", "mended", project="/a", title="build broke")
    say(memory, "b", "the build broke", "mended", project="/b", title="build broke")
    found = memory.find_sessions("build broke", project="/a")
    names = {s.id: s.external_id for s in memory.sessions(limit=9)}
    assert [names[hit.session_id] for hit in found] == ["a"]
    with pytest.raises(InvalidInput):
        memory.find_sessions("x", limit=-1)


def test_untrusted_text_stays_out_of_what_nobody_asked_for(memory: Memory):
    memory.store("Deploys are done by pasting this command", origin="web")
    said = say(memory, "s", "Deploys are done by script")
    assert [hit.id for hit in memory.recall("deploys", trusted_only=True)] == said


def test_an_unread_trifle_fades_from_search(tmp_path, clock: FixedClock):
    from tests.fakes import FakeEmbedder

    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), now=clock) as memory:
        trifle = memory.store("the tea was green", importance=0.1)
        lasting = memory.store("the tea room is on deck two", importance=0.9)
    clock.advance(days=200)
    with Memory.open(home=tmp_path, embedder=FakeEmbedder(), now=clock) as memory:
        memory.database.write(lambda _db: None)
        assert [hit.id for hit in memory.search("tea")] == [lasting]
        assert "faded" in memory.recall("tea", why_not=[trifle]).fates[0].verdict


def test_nonsense_finds_nothing(memory: Memory):
    say(memory, "s", *[f"boat {i} needs a new rope" for i in range(40)])
    assert len(memory.recall("zzxqv").hits) <= 3


def test_the_newest_value_comes_first_when_asked_for_now(memory: Memory):
    for days, value in ((60, 2), (30, 4), (5, 8)):
        at = NOON - timedelta(days=days)
        say(memory, f"s{days}", f"SEARCH_TIMEOUT is {value} s", "noted", at=at)
    assert "8 s" in memory.recall("what is SEARCH_TIMEOUT now?").hits[0].text


def test_an_answer_deep_in_a_long_message_is_found_and_shown(memory: Memory):
    for i in range(30):
        say(memory, f"s{i}", f"the quota of user {i} is fine", "good")
    trace = "\n".join(f"at frame {i} in module_{i}.py" for i in range(900))
    answer = "Root cause: the disk quota of user idx on ox-3 was exhausted"
    [id_] = say(memory, "crash", f"{trace}\n{answer}\n{trace}")
    hit = memory.recall("disk quota of user idx exhausted").hits[0]
    assert hit.id == id_
    assert "Root cause" in hit.text


def test_a_stretch_of_time_brings_what_was_said_then(memory: Memory, clock: FixedClock):
    for i in range(60):
        say(
            memory, f"s{i}", f"What did we do about boat {i}", "ropes", at=NOON - timedelta(days=90)
        )
    then = say(memory, "then", "Lamps were replaced", at=NOON - timedelta(days=1))
    answer = memory.recall("What did we do yesterday?")
    assert answer.hits[0].id == then[0]
    assert "the time asked for" in answer.hits[0].why
    assert all("the time" not in hit.why for hit in answer.hits[1:])


def test_a_tree_is_not_searched_for_by_a_wrong_id(memory: Memory):
    memory.store("one")
    with pytest.raises(NotFound):
        memory.explore("0199aaaa-bbbb")
    with pytest.raises(InvalidInput):
        memory.explore("anything", max_depth=-1)
    memory.store("two")
    with pytest.raises(AmbiguousId):
        memory.explore(memory.roots()[0].id[:8])


def test_a_key_belongs_to_its_verb(memory: Memory):
    id_ = memory.store("one", key="k")
    assert memory.update(id_, "two", key="k") == 2
    assert memory.update(id_, "three", key="k") == 2
    assert memory.read([id_])[0].text == "two"
