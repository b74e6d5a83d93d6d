from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest

from lore import clock
from lore.http.request_limits import Limits
from lore.records import NewMessage, Part
from tests.fakes import NOON
from tests.http_api.browser import Browser, log_in
from tests.http_api.live_server import Served, serving

RULE = "Please use tabs for indentation in this file"


@pytest.fixture
def served(tmp_path) -> Iterator[Served]:
    with serving(tmp_path, limits=Limits(requests_per_minute=0)) as running:
        yield running


@pytest.fixture
def browser(served: Served) -> Browser:
    return log_in(served)


def queue(served: Served, query: str = "") -> list[Any]:
    reply = served.get(f"/api/v1/review?{query}")
    assert reply.status == 200, reply.body
    return list(reply.json["items"])


def suggest(served: Served, text: str = RULE) -> None:
    """Let the memory hold a sentence that may be a rule."""
    said = NewMessage("user", (Part("text", text),), NOON, text)
    served.memory.capture("s", [said], agent="tests", project="/code/p")
    served.memory.database.write(lambda db: db.run("UPDATE standing SET state = 'suggested'"))


def fade(served: Served, id_: str) -> None:
    """Let a fragment fade as if nobody had read it for a year."""
    old = clock.to_us(NOON - timedelta(days=400))
    served.memory.database.write(
        lambda db: (
            db.run(
                "UPDATE fragments SET relevance = 0.001 WHERE n = (SELECT max(n) FROM fragments)"
            ),
            db.run(
                "UPDATE items SET created_at = :old WHERE n = (SELECT max(n) FROM fragments)",
                old=old,
            ),
        )
    )
    assert served.memory.knowledge.fragment(id_).id == id_


def test_what_a_peer_said_waits_for_approval(served: Served, browser: Browser):
    id_ = served.memory.store("The port is 8080", origin="peer")
    served.memory.store("A person's words")
    (entry,) = queue(served)
    assert (entry["kind"], entry["texts"][0]["id"]) == ("untrusted", id_)
    assert entry["options"] == ["approve", "reject"]
    done = browser.post(f"/review/{entry['id']}", decision="approve")
    assert queue(served) == []
    browser.post("/undo", action=done["action"])
    assert queue(served) == [entry]
    done = browser.post(f"/review/{entry['id']}", decision="reject")
    assert served.memory.knowledge.fragment(id_).deleted
    browser.post("/undo", action=done["action"])
    assert queue(served) == [entry]


@pytest.mark.parametrize("decision", ["approve", "reject"])
def test_a_possible_rule_is_decided_and_undone(served: Served, browser: Browser, decision: str):
    suggest(served, "Always use tabs for indentation in all files.")
    (entry,) = queue(served, "kind=instruction")
    done = browser.post(f"/review/{entry['id']}", decision=decision)
    assert queue(served, "kind=instruction") == []
    states = {one.state for one in served.memory.search.instructions(rejected=decision == "reject")}
    assert states == {"confirmed" if decision == "approve" else "rejected"}
    browser.post("/undo", action=done["action"])
    assert queue(served, "kind=instruction") == [entry]
    browser.post("/redo", action=done["action"])
    assert queue(served, "kind=instruction") == []


def test_a_rule_that_was_said_often_is_decided_and_undone(served: Served, browser: Browser):
    text = "Always use tabs for indentation in all files."
    said = [
        NewMessage("user", (Part("text", text),), NOON + timedelta(minutes=n), str(n))
        for n in range(200)
    ]
    served.memory.capture("s", said, agent="tests", project="/code/p")
    served.memory.database.write(lambda db: db.run("UPDATE standing SET state = 'suggested'"))
    before = queue(served, "kind=instruction")
    done = browser.post(f"/review/{before[0]['id']}", decision="approve")
    assert queue(served, "kind=instruction") == []
    browser.post("/undo", action=done["action"])
    assert queue(served, "kind=instruction") == before


def test_the_decision_on_a_forgotten_rule_is_not_undone_on_another(
    served: Served, browser: Browser
):
    suggest(served, "Always use tabs for indentation in all files.")
    (entry,) = queue(served, "kind=instruction")
    done = browser.post(f"/review/{entry['id']}", decision="approve")
    served.memory.maintenance.forget(match="tabs for indentation")
    suggest(served, "Always write dates with hyphens in all reports.")
    (other,) = queue(served, "kind=instruction")
    assert other["id"].rsplit(":", 1)[1] == entry["id"].rsplit(":", 1)[1]  # the number is reused
    browser.post(f"/review/{other['id']}", decision="approve")
    assert browser.send("/undo", {"action": done["action"]}).status == 422
    assert queue(served, "kind=instruction") == []


@pytest.mark.parametrize("decision", ["keep_newer", "keep_older", "both", "dismiss"])
def test_a_conflict_is_decided_and_undone(served: Served, browser: Browser, decision: str):
    older, newer = served.memory.store("The port is 8080"), served.memory.store("The port is 9090")
    served.memory.knowledge.link(newer, older, "contradicts")
    (entry,) = queue(served, "kind=conflict")
    assert [one["id"] for one in entry["texts"]] == [newer, older]
    done = browser.post(f"/review/{entry['id']}", decision=decision)
    assert queue(served, "kind=conflict") == []
    superseded = {"keep_newer": older, "keep_older": newer}.get(decision)
    for id_ in (older, newer):
        fragment = served.memory.knowledge.fragment(id_).fragment
        assert fragment
        assert bool(fragment.superseded_by) == (id_ == superseded)
    browser.post("/undo", action=done["action"])
    assert [one["id"] for one in queue(served, "kind=conflict")] == [entry["id"]]


@pytest.mark.parametrize("decision", ["keep_newer", "dismiss"])
def test_a_doubtful_pair_is_settled_and_undone(served: Served, browser: Browser, decision: str):
    new = [
        NewMessage("user", (Part("text", text),), NOON + timedelta(days=day), text)
        for day, text in enumerate(["The port is 8080.", "The port is 9090."])
    ]
    served.memory.capture("s", new, agent="tests", project="/code/p")
    served.memory.database.write(
        lambda db: db.run(
            "INSERT INTO replacements (older_n, older_text, newer_n, newer_text, relation,"
            " certainty, at, statements) SELECT min(n), 'The port is 8080.', max(n),"
            " 'The port is 9090.', 'may_replace', 0.4, 1, 1 FROM messages"
        )
    )
    (entry,) = queue(served, "kind=replacement")
    assert entry["certainty"] == 0.4
    done = browser.post(f"/review/{entry['id']}", decision=decision)
    assert queue(served, "kind=replacement") == []
    browser.post("/undo", action=done["action"])
    assert queue(served, "kind=replacement") == [entry]


@pytest.mark.parametrize("decision", ["approve", "keep"])
def test_what_will_be_merged_is_shown_before(served: Served, browser: Browser, decision: str):
    one = served.memory.store("The service listens on its port")
    served.memory.store("The service listens on its port")
    served.memory.maintenance.embed_waiting()
    (entry,) = queue(served, "kind=merge")
    assert entry["texts"][0]["id"] == one
    done = browser.post(f"/review/{entry['id']}", decision=decision)
    assert queue(served, "kind=merge") == []
    browser.post("/undo", action=done["action"])
    served.memory.maintenance.embed_waiting()
    assert [one["id"] for one in queue(served, "kind=merge")] == [entry["id"]]


def test_a_merge_moves_what_hangs_below_and_its_undo_moves_it_back(
    served: Served, browser: Browser
):
    knowledge = served.memory.knowledge
    one = served.memory.store("The service listens on its port")
    other = served.memory.store("The service listens on its port")
    child = served.memory.store("Only on weekdays", parent_id=other)
    related = served.memory.store("A proxy stands before it")
    knowledge.link(other, related, "associative")
    served.memory.maintenance.embed_waiting()

    def state() -> tuple[object, ...]:
        with served.memory.database.read() as db:
            edges = db.rows("SELECT source_n, target_n, kind FROM edges ORDER BY 1, 2, 3")
        return knowledge.fragment(child).fragment.parent_id, edges  # type: ignore[union-attr]

    before = state()
    (entry,) = queue(served, "kind=merge")
    done = browser.post(f"/review/{entry['id']}", decision="approve")
    merged = state()
    assert merged[0] == one
    assert len(merged[1]) == len(before[1]) + 2  # type: ignore[arg-type]  # supersedes, associative
    browser.post("/undo", action=done["action"])
    assert state() == before
    browser.post("/redo", action=done["action"])
    assert state() == merged


@pytest.mark.parametrize("decision", ["keep", "delete"])
def test_what_will_be_pruned_is_shown_before(served: Served, browser: Browser, decision: str):
    id_ = served.memory.store("It does not matter", importance=0.05)
    fade(served, id_)
    (entry,) = queue(served, "kind=prune")
    done = browser.post(f"/review/{entry['id']}", decision=decision)
    assert queue(served, "kind=prune") == []
    assert served.memory.knowledge.fragment(id_).deleted == (decision == "delete")
    browser.post("/undo", action=done["action"])
    assert [one["id"] for one in queue(served, "kind=prune")] == [entry["id"]]


def test_changes_of_a_shared_page_are_approved_one_by_one(
    served: Served, browser: Browser, tmp_path
):
    folder = tmp_path / "repository"
    folder.mkdir()
    served.memory.store("The port is 8080", project=str(folder), kind="config", confidence=0.9)
    file = folder / ".lore.md"
    served.memory.knowledge.share(served.memory.knowledge.plan_share(str(folder), file), file)
    file.write_text(file.read_text().replace("8080", "9090"))
    (entry,) = queue(served, "kind=shared")
    assert "9090" in entry["texts"][0]["text"]
    key, _ = served.memory.access.create_key("reader", scopes=["read"])
    for_key = served.get("/api/v1/review?kind=shared", authorization=f"Bearer {key}").json
    assert for_key["items"] == []  # a caller with a key reads no folder
    counts = served.get("/api/v1/review/counts", authorization=f"Bearer {key}").json["counts"]
    assert counts["shared"] == 0
    assert served.get("/api/v1/review/counts").json["counts"]["shared"] == 1
    done = browser.post(f"/review/{entry['id']}", decision="approve")
    assert served.memory.knowledge.fragment(done["id"]).text == "The port is 9090"
    assert queue(served, "kind=shared") == []
    assert browser.send(f"/review/{entry['id']}", {"decision": "approve"}).status == 404


@pytest.mark.parametrize(
    "edit", [("8080", "9090"), ("- The port.*\n", ""), ("- The", "- Ask the owner\n- The")]
)
def test_a_decision_on_a_shared_page_is_undone_and_redone_as_a_whole(
    served: Served, browser: Browser, tmp_path, edit: tuple[str, str]
):
    folder = tmp_path / "repository"
    folder.mkdir()
    served.memory.store("The port is 8080", project=str(folder), kind="config", confidence=0.9)
    file = folder / ".lore.md"
    served.memory.knowledge.share(served.memory.knowledge.plan_share(str(folder), file), file)
    file.write_text(re.sub(*edit, file.read_text()))
    before = queue(served, "kind=shared")
    assert len(before) == 1
    done = browser.post(f"/review/{before[0]['id']}", decision="approve")
    assert queue(served, "kind=shared") == []
    browser.post("/undo", action=done["action"])
    assert queue(served, "kind=shared") == before
    browser.post("/redo", action=done["action"])
    assert queue(served, "kind=shared") == []


def test_the_queue_is_paged_while_it_is_cleared(served: Served, browser: Browser):
    ids = [served.memory.store(f"Page {n}", origin="web") for n in range(6)]
    first = served.get("/api/v1/review?limit=2").json
    for entry in first["items"]:
        browser.post(f"/review/{entry['id']}", decision="reject")
    second = served.get(f"/api/v1/review?limit=10&cursor={first['next']}").json
    seen = [one["texts"][0]["id"] for one in first["items"] + second["items"]]
    assert seen == ids[::-1]
    counts = served.get("/api/v1/review/counts").json
    assert counts["counts"]["untrusted"] == 4


def test_the_queue_of_a_project_holds_nothing_of_others(served: Served):
    mine = served.memory.store("Mine", origin="web", project="/code/p")
    served.memory.store("Theirs", origin="web", project="/code/q")
    assert [one["texts"][0]["id"] for one in queue(served, "project=/code/p")] == [mine]
    assert served.get("/api/v1/review?project=/nowhere").status == 404


@pytest.mark.parametrize(
    ("id_", "status"),
    [
        ("nonsense", 422),
        ("conflict:0123abcd", 422),
        ("untrusted:", 422),
        ("untrusted:0123abcd", 404),
        ("instruction:0123abcd:x", 404),
        ("shared:0123abcd:x", 404),
        ("merge:0123abcd:0123abce", 404),
    ],
)
def test_an_entry_that_is_not_there_is_refused(browser: Browser, id_: str, status: int):
    assert browser.send(f"/review/{id_}", {"decision": "approve"}).status in (status, 422)


def test_a_decision_must_fit(served: Served, browser: Browser):
    served.memory.store("From a page", origin="web")
    (entry,) = queue(served)
    assert browser.send(f"/review/{entry['id']}", {"decision": "both"}).status == 422
    assert browser.send(f"/review/{entry['id']}", {"decision": "maybe"}).status == 422
    key = served.memory.access.create_key("writer")[0]
    refused = served.post(
        f"/api/v1/review/{entry['id']}", {"decision": "approve"}, authorization=f"Bearer {key}"
    )
    assert refused.status == 403


def test_a_fragment_that_contradicts_two_others_waits_twice(served: Served):
    newer, *older = [served.memory.store(text) for text in ("Port 80", "Port 90", "Berth 7")]
    for id_ in older:
        served.memory.knowledge.link(newer, id_, "contradicts")
    served.memory.database.write(lambda db: db.run("UPDATE edges SET created_at = 1"))
    first = served.get("/api/v1/review?kind=conflict&limit=1").json
    (second,) = queue(served, f"kind=conflict&limit=1&cursor={first['next']}")
    entries = [*first["items"], second]
    assert {entry["id"] for entry in entries} == {f"conflict:{newer}:{id_}" for id_ in older}
