from __future__ import annotations

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
