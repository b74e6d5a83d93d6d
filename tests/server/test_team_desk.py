"""Teams: publication is explicit, somebody else approves, and others see nothing."""

from __future__ import annotations

from typing import Any

import pytest

from lore.proxy.address import API_PREFIX
from lore.store import registry_rows
from tests.server.served import ALL, Reply, Served, on_both_engines

TEXT = "The harbor gate code rotates on Mondays."
PATH = f"{API_PREFIX}/teams/harbor/publications"


@pytest.fixture
def team(served: Served) -> dict[str, str]:
    """Return the keys of a team of three, and of one who is in none."""
    keys = {name: served.add(name) for name in ("ann", "ben", "cy", "dora")}
    served.registry.add_team("harbor", quorum=2)
    for name in ("ann", "ben", "cy"):
        served.registry.add_member("harbor", name)
    return keys


def publish(served: Served, key: str) -> dict[str, Any]:
    stored = served.post(f"{API_PREFIX}/tools/store", {"content": TEXT}, key).json["data"]["id"]
    reply = served.post(PATH, {"id": stored}, key)
    assert reply.status == 200, reply.body
    return dict(reply.json)


def act(served: Served, key: str, verb: str, id_: str) -> Reply:
    return served.post(f"{PATH}/{id_}/{verb}", {}, key)


def recall(served: Served, key: str, query: str = "harbor gate code") -> list[dict[str, Any]]:
    return list(served.post(f"{API_PREFIX}/retrieve", {"query": query}, key).json["hits"])


def inject(served: Served, key: str) -> str:
    hook = {
        "session_id": "s9",
        "cwd": "/code/x",
        "prompt": "What is the harbor gate code rotation?",
    }
    return served.post(f"{API_PREFIX}/hooks/UserPromptSubmit", hook, key).body.decode()


@on_both_engines
def test_a_publication_is_shown_to_members_once_a_quorum_approved_it(served: Served, team):
    published = publish(served, team["ann"])
    assert (published["state"], published["publisher"]) == ("pending", "ann")
    assert recall(served, team["ben"]) == []
    assert act(served, team["ben"], "approve", published["id"]).json["state"] == "pending"
    assert act(served, team["ben"], "approve", published["id"]).json["approvals"] == 1
    assert recall(served, team["cy"]) == []
    assert act(served, team["cy"], "approve", published["id"]).json["state"] == "approved"
    (hit,) = recall(served, team["ben"])
    assert (hit["text"], hit["origin"]) == (TEXT, "peer")
    assert hit["why"] == "published by ann to team harbor"
    assert recall(served, team["dora"]) == []


def test_what_a_team_knows_is_never_put_into_a_prompt_unasked(served: Served, team):
    published = publish(served, team["ann"])
    for verb in ("nothing", "approve"):
        if verb == "approve":
            act(served, team["ben"], "approve", published["id"])
            act(served, team["cy"], "approve", published["id"])
        assert "rotates on Mondays" not in inject(served, team["ben"])
    trusted = {"query": "harbor gate code", "trusted_only": True}
    assert served.post(f"{API_PREFIX}/retrieve", trusted, team["ben"]).json["hits"] == []


def test_the_recall_tool_says_who_published(served: Served, team):
    published = publish(served, team["ann"])
    act(served, team["ben"], "approve", published["id"])
    act(served, team["cy"], "approve", published["id"])
    reply = served.post(f"{API_PREFIX}/tools/recall", {"query": "harbor gate code"}, team["cy"])
    assert "published by ann to team harbor" in reply.body.decode()


def test_members_read_and_ask_what_is_approved_and_nobody_else(served: Served, team):
    served.registry.set_quorum("harbor", 1)
    published = publish(served, team["ann"])
    pending = served.get(PATH, team["ben"]).json[0]["fragment_id"]
    assert pending == ""
    act(served, team["ben"], "approve", published["id"])
    (hit,) = recall(served, team["cy"])

    def read(name: str, id_: str = hit["id"]) -> Reply:
        return served.post(f"{API_PREFIX}/tools/read", {"ids": [id_]}, team[name])

    def ask(name: str) -> dict[str, Any]:
        question = {"query": "When does the harbor gate code rotate?"}
        return dict(served.post(f"{API_PREFIX}/ask", question, team[name]).json)

    for id_ in (hit["id"], hit["id"][:13]):
        (item,) = read("cy", id_).json["data"]["items"]
        assert (item["text"], item["origin"]) == (TEXT, "peer")
        assert item["title"].startswith("published by ann to team harbor")
    (citation,) = ask("cy")["citations"]
    assert citation["said_by"] == "peer, published by ann to team harbor"
    missing = f"{hit['id'][:9]}ffff{hit['id'][13:]}"
    bodies = [read("dora", id_).body.replace(id_.encode(), b"ID") for id_ in (hit["id"], missing)]
    assert bodies[0] == bodies[1]
    assert ask("dora")["citations"] == []
    act(served, team["ann"], "withdraw", published["id"])
    assert read("cy").status == 404
    assert ask("cy")["citations"] == []


def test_a_key_of_the_team_with_admin_decides_alone(served: Served, team):
    published = publish(served, team["ann"])
    admin, _ = served.registry.create_key("lead", owner="ben", team="harbor", scopes=ALL)
    assert act(served, team["ben"], "reject", published["id"]).status == 422
    assert act(served, admin, "approve", published["id"]).json["state"] == "approved"
    other = publish(served, team["cy"])
    assert act(served, admin, "reject", other["id"]).json["state"] == "rejected"
    assert act(served, admin, "approve", other["id"]).status == 422


def test_nobody_approves_what_they_published(served: Served, team):
    served.registry.set_quorum("harbor", 1)
    published = publish(served, team["ann"])
    admin, _ = served.registry.create_key("lead", owner="ann", team="harbor", scopes=ALL)
    for key in (team["ann"], admin):
        assert act(served, key, "approve", published["id"]).status == 422
    assert recall(served, team["ben"]) == []


@on_both_engines
def test_who_published_withdraws_and_it_is_gone(served: Served, team):
    served.registry.set_quorum("harbor", 1)
    published = publish(served, team["ann"])
    act(served, team["ben"], "approve", published["id"])
    assert len(recall(served, team["cy"])) == 1
    assert act(served, team["ben"], "withdraw", published["id"]).status == 422
    assert act(served, team["ann"], "withdraw", published["id"]).json["state"] == "withdrawn"
    assert act(served, team["ann"], "withdraw", published["id"]).json["state"] == "withdrawn"
    assert recall(served, team["cy"]) == []
    folder = served.registry.team_folder(served.registry.get_team("harbor").id)
    assert len(recall(served, team["ann"])) == 1  # the own memory still has it
    served.server.pool.close_owner(f"team:{folder.name}")
    served.registry.database.checkpoint()
    files = [*folder.glob("memory.db*"), *served.home.glob("server.db")]
    assert all(b"rotates on Mondays" not in path.read_bytes() for path in files)


def test_a_team_of_others_answers_like_no_team(served: Served, team):
    published = publish(served, team["ann"])
    served.registry.add_team("pier", quorum=1)
    requests = [
        ("GET", "/publications", None),
        ("POST", "/publications", {"id": published["source_id"]}),
        *(("POST", f"/publications/{published['id']}/{verb}", {})
          for verb in ("approve", "reject", "withdraw")),
    ]  # fmt: skip
    for method, path, body in requests:
        replies = [
            served.get(f"{API_PREFIX}/teams/{name}{path}", team["dora"]) if method == "GET"
            else served.post(f"{API_PREFIX}/teams/{name}{path}", body, team["dora"])
            for name in ("harbor", "pier", "nowhere")
        ]  # fmt: skip
        assert len({(reply.status, reply.body) for reply in replies}) == 1
        assert replies[0].status == 404
    assert served.get(f"{API_PREFIX}/teams", team["dora"]).json == []


def test_a_team_is_found_by_its_name_in_any_case(served: Served, team):
    for name in ("HARBOR", "%20Harbor"):
        assert served.get(f"{API_PREFIX}/teams/{name}/publications", team["ann"]).json == []
        assert served.get(f"{API_PREFIX}/teams/{name}/publications", team["dora"]).status == 404


def test_publishing_again_is_the_same_publication(served: Served, team):
    first = publish(served, team["ann"])
    again = served.post(PATH, {"id": first["source_id"]}, team["ann"]).json
    assert again["id"] == first["id"]


def test_the_tool_publishes_too(served: Served, team):
    id_ = served.post(f"{API_PREFIX}/tools/store", {"content": TEXT}, team["ann"]).json["data"][
        "id"
    ]
    tool = {"id": id_, "team": "harbor"}
    reply = served.post(f"{API_PREFIX}/tools/publish", tool, team["ann"])
    assert "waits for the approval" in reply.json["text"]
    assert served.post(f"{API_PREFIX}/tools/publish", tool, team["dora"]).status == 404


def test_one_who_left_sees_nothing_of_the_team(served: Served, team):
    served.registry.set_quorum("harbor", 1)
    act(served, team["ben"], "approve", publish(served, team["ann"])["id"])
    assert len(recall(served, team["cy"])) == 1
    served.registry.remove_member("harbor", "cy")
    assert recall(served, team["cy"]) == []
    assert served.get(PATH, team["cy"]).status == 404


def test_a_local_memory_has_no_teams(tmp_path):
    from lore.errors import InvalidInput
    from lore.memory import Memory
    from tests.fakes import FakeEmbedder

    with Memory.open(tmp_path, embedder=FakeEmbedder()) as memory:
        assert memory.teams.memberships() == []
        with pytest.raises(InvalidInput):
            memory.teams.publish("x", "harbor")


def test_only_what_is_pending_is_approved(served: Served, team):
    published = publish(served, team["ann"])["id"]
    assert act(served, team["ann"], "withdraw", published).json["state"] == "withdrawn"
    database = served.registry.database
    is_decided = database.write(
        lambda db: registry_rows.decide(db, published, "approved", now=database.now())
    )
    assert not is_decided
    assert served.get(f"{PATH}?state=approved", team["ben"]).json == []


def test_approvals_of_former_members_do_not_count(served: Served, team):
    published = publish(served, team["ann"])["id"]
    act(served, team["ben"], "approve", published)
    served.registry.remove_member("harbor", "ben")
    assert act(served, team["cy"], "approve", published).json["state"] == "pending"
