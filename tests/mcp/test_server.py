from __future__ import annotations

import asyncio
import json

import pytest
from mcp.shared.exceptions import MCPError

from lore.mcp.server import INSTRUCTIONS, make_server
from lore.memory import Memory
from lore.settings import Settings
from lore.text import tokens
from lore.tools import tool_registry
from lore.tools.tool import Caller
from mcp import Client
from tests.fakes import FakeEmbedder

MOST_TOKENS = 2_000
"""Every request of every session pays for them."""

GENERATIONS = ["legacy", "2026-07-28"]


@pytest.fixture
def memory(tmp_path):
    with Memory.open(tmp_path / "home", embedder=FakeEmbedder()) as opened:
        yield opened


def talk(memory, conversation, *, mode="2026-07-28", caller=None):
    """Let the official client talk to the server within this process."""

    async def run():
        async with Client(make_server(memory, caller), mode=mode) as client:
            return await conversation(client)

    return asyncio.run(run())


def refused(memory, conversation):
    """Return the error of the protocol that a conversation ends in."""

    async def run(client):
        with pytest.raises(MCPError) as caught:
            await conversation(client)
        return caught.value

    return talk(memory, run)


def call(memory, name, arguments, **how):
    async def conversation(client):
        return await client.call_tool(name, arguments)

    return talk(memory, conversation, **how)


@pytest.mark.parametrize("mode", GENERATIONS)
def test_tools_are_listed_in_the_order_of_the_catalogue(memory, mode):
    listed = talk(memory, lambda client: client.list_tools(), mode=mode)
    assert [tool.name for tool in listed.tools] == [
        tool.name for tool in tool_registry.TOOLS if tool.profile == "core"
    ]


def test_annotations_say_what_a_tool_does(memory):
    listed = talk(memory, lambda client: client.list_tools())
    by_name = {tool.name: tool.annotations for tool in listed.tools}
    assert by_name["recall"].read_only_hint
    assert not by_name["store"].read_only_hint
    assert by_name["delete"].destructive_hint
    assert not by_name["recall"].open_world_hint


def test_the_full_profile_and_aliases_are_a_choice(tmp_path):
    settings = Settings(home=tmp_path, mcp_profile="full", mcp_aliases=True)
    with Memory.open(config=settings, embedder=FakeEmbedder()) as memory:
        listed = talk(memory, lambda client: client.list_tools())
        names = {tool.name for tool in listed.tools}
        assert {"link", "supersede", "memory_save"} <= names
        stored = call(memory, "memory_save", {"content": "Herons nest on the east pier."})
        assert not stored.is_error


@pytest.mark.parametrize("mode", GENERATIONS)
def test_a_result_is_short_text(memory, mode):
    id_ = memory.store("Deploys go through ops/deploy.sh")
    found = call(memory, "search", {"query": "how do we deploy"}, mode=mode)
    assert not found.is_error
    assert id_[:8] in found.content[0].text
    assert found.structured_content is None
    listed = talk(memory, lambda client: client.list_tools(), mode=mode)
    assert not [tool.name for tool in listed.tools if tool.output_schema]


@pytest.mark.parametrize("mode", GENERATIONS)
def test_the_same_comes_as_data_if_that_is_wanted(tmp_path, mode):
    settings = Settings(home=tmp_path, mcp_structured=True)
    with Memory.open(config=settings, embedder=FakeEmbedder()) as memory:
        id_ = memory.store("Deploys go through ops/deploy.sh")
        found = call(memory, "search", {"query": "how do we deploy"}, mode=mode)
        assert id_[:8] in found.content[0].text
        assert found.structured_content["hits"][0]["id"] == id_
        listed = talk(memory, lambda client: client.list_tools(), mode=mode)
        assert all(tool.output_schema for tool in listed.tools)


def test_what_cannot_be_done_is_told_to_the_model(memory):
    missing = call(memory, "read", {"ids": ["deadbeef-0000"]})
    assert missing.is_error
    assert "search()" in missing.content[0].text
    wrong = call(memory, "recall", {"question": "x"})
    assert wrong.is_error
    assert "needs 'query'" in wrong.content[0].text


def test_a_tool_that_does_not_exist_is_an_error_of_the_protocol(memory):
    error = refused(memory, lambda client: client.call_tool("rekall", {}))
    assert "recall" in error.message


def test_what_an_agent_stores_has_its_origin_and_project(memory, tmp_path):
    folder = tmp_path / "app"
    folder.mkdir()
    call(memory, "store", {"content": "The port is 8443."}, caller=Caller(project=str(folder)))
    (hit,) = memory.search("which port?", limit=1)
    (reading,) = memory.read([hit.id])
    assert reading.origin == "assistant"
    assert reading.fragment.project_id


def test_resources_are_index_timeline_and_fragments(memory):
    id_ = memory.store("Deploys go through ops/deploy.sh")

    async def conversation(client):
        listed = await client.list_resources()
        templates = await client.list_resource_templates()
        index = await client.read_resource("lore://index")
        timeline = await client.read_resource("lore://timeline")
        fragment = await client.read_resource(f"lore://fragment/{id_}")
        return listed, templates, index, timeline, fragment

    listed, templates, index, timeline, fragment = talk(memory, conversation)
    assert [one.uri for one in listed.resources] == ["lore://index", "lore://timeline"]
    assert [one.uri_template for one in templates.resource_templates] == ["lore://fragment/{id}"]
    assert "deploy" in index.contents[0].text.lower()
    assert timeline.contents[0].text
    assert "ops/deploy.sh" in fragment.contents[0].text


@pytest.mark.parametrize(
    "uri",
    ["lore://fragment/", "lore://fragment/deadbeef-0000", "lore://nothing", "file:///etc/passwd"],
)
def test_a_resource_that_does_not_exist_is_an_error(memory, uri):
    assert refused(memory, lambda client: client.read_resource(uri)).code == -32602


def test_prompts_fill_in_what_they_are_given(memory):
    memory.store("Deploys go through ops/deploy.sh")

    async def conversation(client):
        recalled = await client.get_prompt("recall", {"question": "how do we deploy?"})
        kept = await client.get_prompt("remember", {"what": "tabs, not spaces"})
        return recalled, kept

    recalled, kept = talk(memory, conversation)
    assert "ops/deploy.sh" in recalled.messages[0].content.text
    assert "tabs, not spaces" in kept.messages[0].content.text


@pytest.mark.parametrize(
    ("name", "given"), [("recall", {}), ("recall", {"question": " "}), ("x", {})]
)
def test_a_prompt_without_what_it_needs_is_an_error(memory, name, given):
    assert refused(memory, lambda client: client.get_prompt(name, given)).code == -32602


def test_the_tools_cost_a_prompt_little(memory):
    listed = talk(memory, lambda client: client.list_tools())
    told = [[tool.name, tool.description, tool.input_schema] for tool in listed.tools]
    assert tokens.count(json.dumps(told)) < MOST_TOKENS


def test_the_instructions_are_short_and_begin_with_when_to_search():
    assert len(INSTRUCTIONS.encode()) < 2_048
    assert INSTRUCTIONS.split(".")[0].startswith("Search this memory before")
