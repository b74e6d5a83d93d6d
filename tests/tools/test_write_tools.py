from __future__ import annotations

import pytest

from lore.errors import InvalidInput, LoreError
from lore.memory import Memory
from lore.tools.tool import Caller
from lore.tools.tool_registry import call_tool
from lore.tools.write_tools import LinkResult, StoreResult, SupersedeResult, UpdateResult
from tests.recall.talk import say

AGENT = Caller(project="/code/lore")
PERSON = Caller(project="/code/lore", origin="user")


def store(
    memory: Memory, content: str, caller: Caller = AGENT, **given: object
) -> tuple[str, StoreResult]:
    outcome = call_tool(memory, "store", {"content": content, **given}, caller)
    assert isinstance(outcome.data, StoreResult)
    return outcome.text, outcome.data


def test_what_an_agent_stores_is_the_assistants_word_in_its_project(memory: Memory):
    _, data = store(memory, "Deploys go through ops/deploy.sh", kind="workflow", importance=0.9)
    (reading,) = memory.read([data.id], reinforce=False)
    assert reading.fragment
    assert (reading.origin, reading.fragment.kind) == ("assistant", "workflow")
    assert reading.fragment.importance == 0.9
    assert [project.path for project in memory.sessions.projects()] == ["/code/lore"]


def test_what_an_agent_stores_belongs_to_its_session_once_that_is_known(memory: Memory):
    caller = Caller(session="s")
    _, early = store(memory, "Deploys go through ops/deploy.sh", caller)
    say(memory, "s", "We deploy on Thursdays.")
    _, late = store(memory, "Lunch is at noon", caller)
    readings = memory.read([early.id, late.id])
    assert [one.session.external_id if one.session else "" for one in readings] == ["", "s"]


def test_the_same_thing_twice_is_known_and_not_doubled(memory: Memory):
    _, first = store(memory, "Deploys go through ops/deploy.sh")
    text, second = store(memory, "Deploys go through ops/deploy.sh")
    assert (second.outcome, second.id) == ("known", first.id)
    assert "Known already, nothing stored" in text
    assert memory.maintenance.stats().fragments == 1


def test_it_says_where_it_went_and_what_it_resembles(memory: Memory):
    _, top = store(memory, "Deploys of the shop go through ops/deploy.sh on Thursdays")
    text, below = store(
        memory, "Deploys of the shop go through ops/deploy.sh on cold Thursdays in winter"
    )
    assert below.parent
    assert below.parent.id == top.id
    assert f"below {memory.search.short_ids([top.id])[top.id]}" in text
    text, apart = store(memory, "Deploys of the shop are announced in the channel on Thursdays")
    assert apart.parent is None
    assert "as a root" in text
    assert "resembles" in text
    assert top.id in [one.id for one in apart.resembles]


def test_a_parent_that_is_given_is_taken(memory: Memory):
    top = memory.store("Deploys")
    _, data = store(memory, "Lunch is at noon", parent_id=top)
    assert data.parent
    assert data.parent.id == top


def test_an_update_is_a_new_version_that_can_be_undone(memory: Memory):
    _, stored = store(memory, "The port is 3207.")
    outcome = call_tool(memory, "update", {"id": stored.id, "content": "The port is 4000."}, AGENT)
    assert outcome.data == UpdateResult(id=stored.id, version=2)
    assert "'lore undo" in outcome.text
    memory.knowledge.undo(stored.id)
    assert memory.read([stored.id])[0].text == "The port is 3207."


def test_a_deletion_says_that_undo_brings_it_back(memory: Memory):
    _, stored = store(memory, "The port is 3207.")
    short = memory.search.short_ids([stored.id])[stored.id]
    text = call_tool(memory, "delete", {"id": stored.id}, AGENT).text
    assert f"'lore undo {short}' brings it back" in text
    with pytest.raises(LoreError, match="was deleted") as refused:
        call_tool(memory, "delete", {"id": stored.id}, AGENT)
    assert "lore undo" in refused.value.hint
    memory.knowledge.undo(short)
    assert not memory.read([stored.id])[0].deleted


def test_edges_by_hand(memory: Memory):
    a, b = memory.store("a one"), memory.store("b two")
    linked = call_tool(memory, "link", {"source": a, "target": b, "kind": "supports"}, AGENT)
    assert linked.data == LinkResult(source=a, target=b, kind="supports")
    replaced = call_tool(memory, "supersede", {"old": a, "new": b}, PERSON)
    assert replaced.data == SupersedeResult(old=a, new=b)
    assert memory.read([a])[0].fragment.superseded_by == b  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("update", {"id": "SAID", "content": "We use spaces."}),
        ("delete", {"id": "SAID"}),
        ("supersede", {"old": "SAID", "new": "OWN"}),
        ("link", {"source": "OWN", "target": "SAID", "kind": "hierarchical"}),
    ],
)
def test_an_agent_never_takes_the_place_of_what_the_user_said(
    memory: Memory, name: str, given: dict[str, str]
):
    said = memory.store("We use tabs.", kind="preference")
    own = memory.store("We use spaces.", origin="assistant")
    arguments = {key: {"SAID": said, "OWN": own}.get(value, value) for key, value in given.items()}
    with pytest.raises(InvalidInput, match=r"'assistant' may not .* 'user'") as refused:
        call_tool(memory, name, arguments, AGENT)
    assert "A user can" in refused.value.hint
    (reading,) = memory.read([said], reinforce=False)
    assert (reading.text, reading.deleted, reading.parent) == ("We use tabs.", False, None)
    assert reading.fragment
    assert reading.fragment.superseded_by is None
    call_tool(memory, name, arguments, PERSON)


def test_an_agent_that_repeats_the_user_in_fewer_words_changes_nothing(memory: Memory):
    said = memory.store("We use tabs, and the width of one is 4.")
    text, data = store(memory, "We use tabs, and the width of one is 4.")
    assert (data.id, data.outcome) == (said, "known")
    assert "We use tabs" in text
    assert memory.read([said])[0].origin == "user"


def test_a_payload_that_is_none_is_refused_and_nothing_is_stored(memory: Memory):
    huge = {f"key{i}": f"value {i}" for i in range(50_000)}
    with pytest.raises(InvalidInput, match="payload has more than 1,000 values"):
        store(memory, "Deploys go through ops/deploy.sh", payload=huge)
    assert memory.maintenance.stats().fragments == 0


OLD_PORT = "The harbor server listens on port 8080 in staging"
NEW_PORT = "The harbor server listens on port 8443 in staging"


@pytest.mark.parametrize("by_id", [True, False])
def test_what_an_agent_corrects_is_superseded(memory: Memory, by_id: bool):
    _, old = store(memory, OLD_PORT)
    text, new = store(memory, NEW_PORT, corrects=old.id if by_id else OLD_PORT)
    assert new.corrected
    assert new.corrected.id == old.id
    assert "It supersedes" in text
    (reading,) = memory.read([old.id], reinforce=False)
    assert reading.fragment
    assert reading.fragment.superseded_by == new.id


def test_an_agent_marks_a_conflict_with_what_the_user_said(memory: Memory):
    _, old = store(memory, OLD_PORT, PERSON)
    text, new = store(memory, NEW_PORT, corrects=old.id)
    assert (new.corrected, new.contradicts is not None) == (None, True)
    assert "'lore conflicts'" in text
    (conflict,) = memory.knowledge.conflicts()
    assert {conflict.newer.id, conflict.older.id} == {new.id, old.id}


def test_a_correction_of_nothing_known_is_stored_and_says_so(memory: Memory):
    text, new = store(memory, NEW_PORT, corrects="Lunch is at noon")
    assert (new.outcome, new.corrected) == ("stored", None)
    assert "Nothing else that is known matches 'corrects'." in text


def test_nothing_of_another_project_is_corrected_by_words(memory: Memory):
    _, old = store(memory, OLD_PORT, Caller(project="/code/other"))
    _, new = store(memory, NEW_PORT, corrects=OLD_PORT)
    assert new.corrected is None
    (reading,) = memory.read([old.id], reinforce=False)
    assert reading.fragment
    assert reading.fragment.superseded_by is None
