from __future__ import annotations

from pathlib import Path

from lore.http import write_endpoints
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
