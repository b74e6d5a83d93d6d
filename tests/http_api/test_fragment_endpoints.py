from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.http.request_limits import Limits
from lore.recall.fragment_details import compare_texts, find_quote
from lore.records import NewMessage, Part
from tests.fakes import NOON
from tests.http_api.browser import Browser, log_in
from tests.http_api.live_server import Served, serving
from tests.waiting import eventually

SAID = "Well. We deploy with blue-green releases on Fridays. Nobody works at night."


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    with serving(tmp_path, limits=Limits(requests_per_minute=0)) as running:
        yield running


@pytest.fixture
def browser(served: Served) -> Browser:
    return log_in(served)


def items(served: Served, path: str) -> list[Any]:
    reply = served.get(f"/api/v1{path}")
    assert reply.status == 200, reply.body
    return list(reply.json["items"])


def test_versions_say_what_each_changed(served: Served, browser: Browser):
    id_ = served.memory.store("The port is 8080.")
    reply = browser.post(f"/fragments/{id_}/update", content="The port is 9090.", reason="moved")
    assert reply["version"] == 2
    newest, first = items(served, f"/fragments/{id_}/versions")
    assert (newest["version"], newest["reason"], newest["is_current"]) == (2, "moved", True)
    changed = [(one["change"], one["text"]) for one in newest["diff"]]
    assert ("removed", "8080") in changed
    assert ("added", "9090") in changed
    assert (first["version"], first["content"], first["diff"]) == (1, "The port is 8080.", [])


def test_versions_are_paged(served: Served, browser: Browser):
    id_ = served.memory.store("Number 0")
    for n in range(1, 6):
        browser.post(f"/fragments/{id_}/update", content=f"Number {n}")
    first = served.get(f"/api/v1/fragments/{id_}/versions?limit=4").json
    second = served.get(f"/api/v1/fragments/{id_}/versions?limit=4&cursor={first['next']}").json
    assert [one["version"] for one in first["items"] + second["items"]] == [6, 5, 4, 3, 2, 1]


def test_sources_quote_the_passage_that_says_it(served: Served):
    said = NewMessage("user", (Part("text", SAID),), NOON, "k1")
    other = NewMessage("user", (Part("text", "Hello."),), NOON, "k2")
    ids = served.memory.capture("s", [said, other], agent="tests", project="/code/p", title="Talk")
    id_ = served.memory.store(
        "Deploys use blue-green releases on Fridays.", project="/code/p", source_messages=ids
    )
    quoted, plain = items(served, f"/fragments/{id_}/sources")
    assert quoted["id"] == ids[0]
    assert quoted["quote"] == "We deploy with blue-green releases on Fridays."
    assert quoted["before"] + quoted["quote"] + quoted["after"] == SAID
    assert (quoted["session"], quoted["agent"], quoted["ordinal"]) == ("Talk", "tests", 0)
    assert (plain["quote"], plain["after"]) == ("", "Hello.")


def test_edges_lead_to_titles(served: Served):
    one, other, third = (served.memory.store(f"Fact {n}") for n in range(3))
    served.memory.knowledge.link(one, other, "supports", note="because")
    served.memory.knowledge.link(third, one, "related_to")
    out, into = items(served, f"/fragments/{one}/edges")
    assert (out["direction"], out["kind"], out["note"]) == ("out", "supports", "because")
    assert (out["other"]["id"], out["other"]["title"]) == (other, "Fact 1")
    assert (into["direction"], into["other"]["id"]) == ("in", third)
    paged = served.get(f"/api/v1/fragments/{one}/edges?limit=1").json
    rest = served.get(f"/api/v1/fragments/{one}/edges?limit=1&cursor={paged['next']}").json
    assert [*paged["items"], *rest["items"]] == [out, into]


def test_the_curve_falls_until_the_fragment_is_hidden(served: Served):
    id_ = served.memory.store("Not important", importance=0.1)
    curve = served.get(f"/api/v1/fragments/{id_}/relevance").json
    ahead = [one["relevance"] for one in curve["points"] if one["basis"] == "forecast"]
    assert ahead == sorted(ahead, reverse=True)
    assert curve["hidden_at"]
    assert curve["numbers"]["importance"] == 0.1
    assert curve["points"][-1]["at"] > (curve["now"])
    lasting = served.memory.store("Important", importance=0.9)
    assert served.get(f"/api/v1/fragments/{lasting}/relevance").json["hidden_at"] is None


def test_looking_reinforces_nothing_and_is_not_logged(served: Served, browser: Browser):
    id_ = served.memory.store("The port is 8080.")
    before = served.memory.knowledge.fragment(id_).fragment
    for path in ("versions", "sources", "relevance", "edges"):
        assert browser.get(f"/fragments/{id_}/{path}").status == 200
    assert browser.post("/retrieve", query="Which port?")["hits"][0]["id"] == id_
    assert browser.post("/ask", query="Which port?")["citations"]
    assert served.memory.knowledge.fragment(id_).fragment == before
    assert served.memory.search.why(id_).times_recalled == 0
    served.post("/api/v1/retrieve", {"query": "Which port?"})
    eventually(lambda: served.memory.search.why(id_).times_recalled == 1)


EDITS = {
    "update": {"content": "Another text"},
    "supersede": {"content": "Another text"},
    "delete": {},
    "approve": {},
    "reject": {},
}


@pytest.mark.parametrize("verb", EDITS)
def test_each_correction_is_undone_and_redone_by_its_id(
    served: Served, browser: Browser, verb: str
):
    id_ = served.memory.store("From a page", origin="web", kind="fact")

    def state() -> tuple[Any, ...]:
        reading = served.memory.knowledge.fragment(id_)
        assert reading.fragment
        one = reading.fragment
        return one.content, one.trust, one.origin, bool(one.superseded_by), reading.deleted

    before = state()
    edit = browser.post(f"/fragments/{id_}/{verb}", **EDITS[verb])
    after = state()
    assert edit["id"] == id_
    assert after != before
    assert browser.post("/undo", action=edit["action"])["id"] == id_
    assert state() == before
    browser.post("/redo", action=edit["action"])
    assert state() == after
    browser.post("/undo", action=edit["action"])
    assert state() == before


def test_a_successor_takes_the_place_of_what_it_replaces(served: Served, browser: Browser):
    root = served.memory.store("Everything about ports", project="/code/p")
    id_ = served.memory.store("The port is 8080.", project="/code/p", parent_id=root, kind="config")
    edit = browser.post(f"/fragments/{id_}/supersede", content="The port is 9090.")
    newer = served.memory.knowledge.fragment(edit["new_id"]).fragment
    older = served.memory.knowledge.fragment(id_).fragment
    assert newer
    assert older
    assert (newer.kind, newer.parent_id, newer.origin) == ("config", root, "user")
    assert newer.project_id == older.project_id
    assert older.superseded_by == newer.id
    browser.post("/undo", action=edit["action"])
    assert served.memory.knowledge.fragment(edit["new_id"]).deleted


def test_a_successor_stays_in_the_project_of_a_folder_that_is_another_now(
    served: Served, browser: Browser, tmp_path
):
    folder = tmp_path / "repository"
    (folder / ".git" / "refs").mkdir(parents=True)
    remote = '[remote "origin"]\n\turl = https://example.org/one.git\n'
    (folder / ".git" / "HEAD").write_text("ref: refs/heads/main\n")
    (folder / ".git" / "config").write_text(remote)
    id_ = served.memory.store("The port is 8080.", project=str(folder))
    (folder / ".git" / "config").write_text(remote.replace("one", "two"))
    edit = browser.post(f"/fragments/{id_}/supersede", content="The port is 9090.")
    newer = served.memory.knowledge.fragment(edit["new_id"]).fragment
    older = served.memory.knowledge.fragment(id_).fragment
    assert newer
    assert older
    assert newer.project_id == older.project_id


def test_a_change_is_not_undone_below_a_later_one(served: Served, browser: Browser):
    id_ = served.memory.store("One")
    first = browser.post(f"/fragments/{id_}/update", content="Two")
    second = browser.post(f"/fragments/{id_}/update", content="Three")
    refused = browser.send("/undo", {"action": first["action"]})
    assert refused.status == 422
    assert "later" in refused.json["hint"]
    browser.post("/undo", action=second["action"])
    browser.post("/undo", action=first["action"])
    assert served.memory.knowledge.fragment(id_).text == "One"
    assert browser.send("/undo", {"action": first["action"]}).status == 422


def test_the_change_of_a_forgotten_fragment_is_not_undone_on_another(
    served: Served, browser: Browser
):
    forgotten = served.memory.store("The port is 8080.")
    edit = browser.post(f"/fragments/{forgotten}/update", content="The port is 9090.")
    served.memory.maintenance.forget(id=forgotten)
    others = [served.memory.store(f"Other {n}") for n in range(3)]
    assert browser.send("/undo", {"action": edit["action"]}).status == 422
    assert not any(served.memory.knowledge.fragment(one).deleted for one in others)


@pytest.mark.parametrize("action", ["x", "W10", "W1sxXSxbXV0", "W1stMV0sW10sW11d", "A" * 9_000])
def test_an_id_that_is_no_action_is_refused(browser: Browser, action: str):
    assert browser.send("/undo", {"action": action}).status == 422
    assert browser.send("/redo", {"action": action}).status == 422


def test_bad_input_is_refused(served: Served, browser: Browser):
    id_ = served.memory.store("One")
    assert browser.send("/fragments/0123abcd/update", {"content": "x"}).status == 404
    assert browser.send(f"/fragments/{id_}/update", {"content": ""}).status == 422
    assert browser.send(f"/fragments/{id_}/update", {}).status == 422
    assert browser.send(f"/fragments/{id_}/supersede", {}).status == 422
    assert browser.send(f"/fragments/{id_}/supersede", {"by": id_}).status == 422
    assert browser.send(f"/fragments/{id_}/delete", {"other": 1}).status == 422
    assert browser.get(f"/fragments/{id_}/versions?limit=0").status == 422
    assert browser.get(f"/fragments/{id_}/versions?cursor=zz").status == 422


def test_an_agent_changes_nothing_that_a_person_said(served: Served):
    id_ = served.memory.store("A person's words")
    refused = served.post(f"/api/v1/fragments/{id_}/update", {"content": "An agent's"})
    assert refused.status == 422
    assert "assistant" in refused.json["detail"]


def test_keys_do_no_more_than_their_scopes_allow(served: Served):
    id_ = served.memory.store("A fact", origin="assistant")
    read = served.memory.access.create_key("reader", scopes=["read"])[0]
    write = served.memory.access.create_key("writer")[0]
    update = {"content": "Another"}
    bearer = {"authorization": f"Bearer {read}"}
    assert served.get(f"/api/v1/fragments/{id_}/versions", **bearer).status == 200
    assert served.get("/api/v1/me", **bearer).json["read_only"] is True
    assert served.post(f"/api/v1/fragments/{id_}/update", update, **bearer).status == 403
    bearer = {"authorization": f"Bearer {write}"}
    edit = served.post(f"/api/v1/fragments/{id_}/update", update, **bearer)
    assert edit.status == 200
    for path in ("/undo", "/redo"):
        refused = served.post(f"/api/v1{path}", {"action": edit.json["action"]}, **bearer)
        assert refused.status == 403
    assert served.post(f"/api/v1/fragments/{id_}/approve", {}, **bearer).status == 403


def test_a_write_by_another_site_is_refused(served: Served, browser: Browser):
    id_ = served.memory.store("A fact")
    path = f"/fragments/{id_}/delete"
    assert browser.send(path, {}, origin="http://evil.example").status == 403
    assert browser.send(path, {}, origin="").status == 403
    assert served.memory.knowledge.fragment(id_).deleted is False


def test_a_caller_learns_who_it_is(served: Served, browser: Browser):
    me = browser.get("/me").json
    assert me["browser"] is True
    assert me["origin"] == "user"
    assert set(me["scopes"]) == {"read", "write", "push", "admin"}
    local = served.get("/api/v1/me").json
    assert (local["name"], local["origin"], local["read_only"]) == ("local", "assistant", False)


def test_filters_narrow_what_is_found(served: Served, browser: Browser):
    memory = served.memory
    root = memory.store("Ports of the services", project="/code/p")
    below = memory.store("The port of the shop is 8080", project="/code/p", parent_id=root)
    web = memory.store("The port of the blog is 9090", origin="web")
    said = NewMessage("user", (Part("text", "The port of the bank is 7070"),), NOON, "k")
    (message,) = memory.capture("s", [said], agent="codex", project="/code/q")

    def found(**filters: object) -> set[str]:
        hits = browser.post("/retrieve", query="port", limit=10, **filters)["hits"]
        return {one["id"] for one in hits}

    assert found() >= {web, message}
    assert found(origin="web") == {web}
    assert found(agent="codex") == {message}
    assert found(under=root) == {root, below}
    assert found(kind="message") == {message}
    assert found(kind="decision") == set()
    assert found(until="2026-05-14") == {message}
    assert message not in found(since="2026-05-14")
    assert found(under=root, depth=1) == {below}
    assert root in found(depth=0)
    assert below not in found(depth=0)
    assert web not in found(project="/code/p", depth=0, origin="user")
    assert browser.send("/retrieve", {"query": "x", "kind": "nonsense"}).status == 422
    assert browser.send("/retrieve", {"query": "x", "under": "0123abcd"}).status == 404
    assert browser.send("/retrieve", {"query": "x", "kind": "message", "depth": 1}).status == 422


def test_an_answer_says_how_strong_it_is(served: Served, browser: Browser):
    served.memory.store("The port is 8080.")
    answer = browser.post("/retrieve", query="What is the port?")
    assert answer["strength"] in ("strong", "likely", "weak", "none")
    cited = browser.post("/ask", query="What is the port?")
    assert "8080" in cited["text"]


@given(st.text(max_size=60), st.text(max_size=60))
def test_a_diff_holds_both_texts(former: str, current: str):
    parts = compare_texts(former, current)
    assert "".join(one.text for one in parts if one.change != "added") == former
    assert "".join(one.text for one in parts if one.change != "removed") == current


@given(st.text(max_size=200), st.text(max_size=80))
def test_a_quote_lies_within_the_text(text: str, content: str):
    start, end = find_quote(text, content)
    assert 0 <= start <= end <= len(text)


def test_a_long_diff_is_made_by_lines():
    former = "\n".join(f"line {n} of the text" for n in range(1_000))
    parts = compare_texts(former, former.replace("line 500 ", "row 500 "))
    assert [one.change for one in parts] == ["same", "removed", "added", "same"]
    assert compare_texts("a\n" * 2_000, "b\n" * 2_000)[0].change == "removed"


def test_old_versions_keep_their_times(served: Served, browser: Browser):
    id_ = served.memory.store("One")
    browser.post(f"/fragments/{id_}/update", content="Two")
    newest, first = items(served, f"/fragments/{id_}/versions")
    assert newest["at"] >= first["at"]
