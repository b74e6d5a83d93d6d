from __future__ import annotations

from pathlib import Path

import pytest

from lore import clock
from lore.http import write_endpoints
from lore.records import NewMessage, Part
from tests.http_api.live_server import TOOLBOX, Served


def test_every_tool_is_an_endpoint_that_needs_what_the_tool_does():
    made = write_endpoints.tool_endpoints(TOOLBOX)
    assert [one.path for one in made] == [f"/tools/{tool.name}" for tool in TOOLBOX.tools]
    for tool, one in zip(TOOLBOX.tools, made, strict=True):
        assert one.scope == ("read" if tool.reads_only else "write")
        assert (one.arguments, one.result) == (tool.arguments, tool.result)


def test_a_tool_checks_its_own_arguments_and_says_what_it_takes(served: Served):
    reply = served.post("/api/v1/tools/delete", {"name": "x"})
    assert reply.status == 422
    assert reply.json["hint"] == "delete() takes id."


def test_a_key_names_only_projects_that_the_memory_knows(served: Served, tmp_path: Path):
    (tmp_path / "go.mod").write_text("")
    key, _ = served.memory.access.create_key("for a test", scopes=["read", "write"])
    headers = {"authorization": f"Bearer {key}", "x_lore_project": str(tmp_path)}
    for name, body in (("checkpoint", {"agent": "x"}), ("handoff_write", {"what_was_done": "x"})):
        reply = served.post(f"/api/v1/tools/{name}", body, **headers)
        assert (reply.status, reply.json["detail"]) == (422, "This memory has no such project.")
    assert served.memory.sessions.find_project(str(tmp_path)) is None
    local = served.post("/api/v1/tools/checkpoint", {"agent": "x"}, x_lore_project=str(tmp_path))
    assert local.status == 200
    known = served.post("/api/v1/tools/checkpoint", {"agent": "x"}, **headers)
    assert known.status == 200


def test_nothing_in_a_folder_is_read_for_a_key(served: Served, tmp_path: Path):
    (tmp_path / "go.mod").write_text("")
    (tmp_path / ".git" / "objects").mkdir(parents=True)
    (tmp_path / ".git" / "refs").mkdir()
    (tmp_path / ".git" / "HEAD").write_text("ref: refs/heads/merger-with-acme")
    key, _ = served.memory.access.create_key("pushes", scopes=["read", "write", "push"])
    headers = {"authorization": f"Bearer {key}", "x_lore_project": str(tmp_path)}
    message = {"role": "user", "parts": [{"text": "Hello."}]}
    pushed = {"session": "s-pushed", "project": str(tmp_path), "messages": [message]}
    assert served.post("/api/v1/capture", pushed, **headers).status == 200

    def look(**headers: str) -> tuple[object, object]:
        ledger = served.post("/api/v1/tools/checkpoint", {"agent": "x"}, **headers)
        handoff = served.post("/api/v1/tools/handoff_write", {"what_was_done": "x"}, **headers)
        return ledger.json["data"]["tech_stack"], handoff.json["data"]["git_state"]

    assert look(**headers) == ([], "")
    assert look(x_lore_project=str(tmp_path)) == (["go"], "branch merger-with-acme, no commit")


@pytest.mark.parametrize(
    ("tool", "arguments"),
    [
        ("load", {"query": "Which port does the tide server of the almanac use?"}),
        ("index", {}),
        ("timeline", {}),
        ("read", {}),
    ],
)
def test_what_a_key_reads_counts_for_a_session_only_if_it_may_write(
    served: Served, tool: str, arguments: dict[str, object]
):
    said = Part("text", "The tide server of the almanac uses port 4711.")
    session = f"s-{tool}"
    served.memory.capture(session, [NewMessage("user", (said,), clock.now())], project="almanac")
    id_ = served.memory.remember(said.text, project="almanac").id
    arguments = {"ids": [id_]} if tool == "read" else arguments
    served.memory.tasks.start("Change the port of the tide server", session=session)
    before = served.memory.tasks.economics(session=session)
    changed = {}
    for scopes in (("read",), ("read", "write")):
        key, _ = served.memory.access.create_key("reads", scopes=scopes)
        headers = {"authorization": f"Bearer {key}", "x_lore_session": session}
        assert served.post(f"/api/v1/tools/{tool}", arguments, **headers).status == 200
        changed[scopes] = served.memory.tasks.economics(session=session) != before
    assert changed == {("read",): False, ("read", "write"): True}
