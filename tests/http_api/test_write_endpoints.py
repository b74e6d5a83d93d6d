from __future__ import annotations

import pytest

from lore.http.write_endpoints import _MAX_MESSAGES
from tests.http_api.live_server import Served
from tests.waiting import eventually


def push(served: Served, session: str, *texts: str, **more: object):
    messages = [{"role": "user", "text": text, "key": text} for text in texts]
    return served.post("/api/v1/capture", {"session": session, "messages": messages, **more})


def test_what_is_pushed_is_found_at_once(served: Served):
    reply = push(served, "pushed", "The warehouse robot is called Tamarind.", project="/code/w")
    assert reply.status == 200
    (id_,) = reply.json["ids"]
    found = served.post("/api/v1/retrieve", {"query": "what is the warehouse robot called?"})
    assert found.json["hits"][0]["id"] == id_
    assert found.json["hits"][0]["why"]


def test_the_project_of_the_caller_is_searched_first(served: Served):
    push(served, "ferry", "The ferry pilot is called Marlin.", project="/code/ferry")
    push(served, "barge", "The barge pilot is called Nutmeg.", project="/code/barge")
    asked = {"query": "what is the pilot called?"}

    def texts(folder: str, **more: object) -> str:
        reply = served.post("/api/v1/retrieve", {**asked, **more}, x_lore_project=folder)
        assert reply.status == 200
        return " ".join(hit["text"] for hit in reply.json["hits"])

    assert "Marlin" in texts("/code/ferry")
    assert "Nutmeg" not in texts("/code/ferry")
    assert "Nutmeg" in texts("/code/ferry", everywhere=True)
    assert "Nutmeg" in texts("/code/unknown")
    assert "Nutmeg" in texts(
        "/code/ferry", query="what is the barge called?", project="/code/barge"
    )
    assert "Nutmeg" not in texts("/code/barge", project="/code/ferry")
    asked["query"] = "who steers the barge Nutmeg?"
    assert "Nutmeg" in texts("/code/empty")


def test_a_key_that_may_only_read_leaves_no_entry_in_the_log(served: Served):
    key, _ = served.memory.access.create_key("reader", scopes=["read"])
    for path in ("retrieve", "ask"):
        body = {"query": f"Asked by a reader with {path}"}
        reply = served.post(f"/api/v1/{path}", body, authorization=f"Bearer {key}")
        assert reply.status == 200
    served.post("/api/v1/retrieve", {"query": "Asked by a writer afterwards"})

    def logged() -> list[str]:
        with served.memory.database.read() as db:
            return db.column("SELECT query FROM retrievals WHERE query LIKE 'Asked by a %'")

    assert eventually(logged) == ["Asked by a writer afterwards"]


def test_the_same_push_again_stores_nothing_twice(served: Served):
    first = push(served, "twice", "One thing.", "Another thing.")
    assert push(served, "twice", "One thing.", "Another thing.").json == first.json
    assert len(served.memory.sessions.messages("twice")) == 2


def test_the_folder_of_the_caller_is_the_project_of_a_push(served: Served):
    body = {"session": "located", "messages": [{"role": "user", "text": "Here."}]}
    reply = served.post("/api/v1/capture", body, x_lore_project="/code/gr%C3%BCn")
    assert reply.status == 200
    assert "/code/grün" in {project.path for project in served.memory.sessions.projects()}


def test_parts_keep_their_kinds_and_secrets_stay_out(served: Served):
    secret = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"
    parts = [
        {"kind": "text", "text": f"token {secret}"},
        {"kind": "tool_result", "text": "boom", "name": "Bash", "call_id": "1", "failed": True},
    ]
    body = {"session": "parts", "messages": [{"role": "assistant", "parts": parts}]}
    (id_,) = served.post("/api/v1/capture", body).json["ids"]
    stored = served.get(f"/api/v1/messages/{id_}")
    assert [part["kind"] for part in stored.json["parts"]] == ["text", "tool_result"]
    assert stored.json["parts"][1]["failed"]
    assert secret.encode() not in stored.body


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"session": "x"},
        {"session": "x", "messages": []},
        {"session": "", "messages": [{"role": "user", "text": "a"}]},
        {"session": "x", "messages": [{"role": "king", "text": "a"}]},
        {"session": "x", "messages": [{"role": "user"}]},
        {"session": "x", "messages": [{"role": "user", "text": "a", "parts": [{"text": "b"}]}]},
        {"session": "x", "messages": [{"role": "user", "text": "a", "created_at": "2026-01-01"}]},
        {"session": "x", "messages": [{"role": "user", "text": "a", "more": 1}]},
        {"session": "x", "messages": [{"role": "user", "text": "a"}] * (_MAX_MESSAGES + 1)},
        {"session": "x", "messages": [{"role": "user", "text": "a", "origin": "god"}]},
    ],
)
def test_a_push_that_makes_no_sense_is_refused(served: Served, body: object):
    reply = served.post("/api/v1/capture", body)
    assert reply.status == 422
    assert reply.json["detail"]


def test_a_message_may_be_as_old_as_dates_go(served: Served):
    for at in ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59-12:00", "1969-01-01T00:00:00Z"):
        body = {"session": at, "messages": [{"role": "user", "text": "a", "created_at": at}]}
        assert served.post("/api/v1/capture", body).status in (200, 422)


def test_a_cycle_can_be_rehearsed_and_run(served: Served):
    rehearsed = served.post("/api/v1/consolidate", {"dry_run": True})
    assert rehearsed.status == 200
    assert rehearsed.json["dry_run"]
    assert served.post("/api/v1/consolidate", {"phases": ["rescore"]}).status == 200
    assert served.post("/api/v1/consolidate", {"phases": ["nonsense"]}).status == 422


@pytest.mark.parametrize(
    "body", [{"query": ""}, {"query": 5}, {"query": "a", "scope": "x"}, {"query": "a", "limit": 0},
             {"query": "a", "types": []}, {"query": "a", "types": ["x"]}, {"q": "a"}, [], "a", None]
)  # fmt: skip
def test_a_question_that_makes_no_sense_is_refused(served: Served, body: object):
    assert served.post("/api/v1/retrieve", body).status == 422
