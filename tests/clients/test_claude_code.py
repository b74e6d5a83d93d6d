"""The plugin in the real Claude Code: sessions against a scripted provider, and what reached it."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.clients import claude_code
from tests.clients.machine import (
    PLUGIN,
    Machine,
    find_client,
    hook_contexts,
    json_texts,
    tool_texts,
    write_repository,
)
from tests.upstream import Call, ModelReply, Scene, SceneScript, running_upstream
from tests.waiting import eventually

TOOLS = "mcp__plugin_lore_lore__"
TELL = "From now on we print the almanac with ops/press.sh from the pier branch, never by hand."
TOLD = "Understood: ops/press.sh, from the pier branch."
ASK = "How do we print the almanac, and from which branch?"
ELSEWHERE = "What did we say about the colour of the harbour lamps?"
MORE = (
    "Good. The proofs go to Ines first; she checks the tides against the station's own tables "
    "and sends back what is wrong. We decided to print on Thursdays, because the mail leaves on "
    "Fridays at nine, and to keep forty copies in the tower."
)
FIX = "ModuleNotFoundError: No module named 'tidewise' is mended by running ops/vendor.sh once."
WIRED = "The foghorn on Skerry Point is wired to relay K7 in the cabinet below the tower stairs."
TRACE = "Which relay in the cabinet is the foghorn on Skerry Point wired to?"
FAIL = "Print the tide table of today."
DELEGATE = "Let a subagent count the tide tables."
ERRAND = "Count the tide tables below src and report the number."

SCENES = (
    Scene(claude_code.COMPACT, (ModelReply("<summary>\nHow to print.\n</summary>"),), "client"),
    Scene(TELL, (ModelReply(TOLD),)),
    Scene(
        ASK,
        (
            ModelReply(
                "I will look it up.",
                Call(f"{TOOLS}recall", {"query": "how is the almanac printed?"}),
            ),
            ModelReply("With ops/press.sh, from the pier branch."),
        ),
    ),
    Scene(MORE, (ModelReply("Noted: proofs to Ines, print on Thursdays, forty copies."),)),
    Scene(
        FAIL,
        (
            ModelReply(
                "I will run it.",
                Call(
                    "Bash",
                    {"command": "python3 -c 'import tidewise'", "description": "Print"},
                ),
            ),
            ModelReply("The module is missing."),
        ),
    ),
    Scene(TRACE, (ModelReply("To relay K7."),)),
    Scene(ELSEWHERE, (ModelReply("I do not know."),)),
    Scene(
        DELEGATE,
        (
            ModelReply(
                "A subagent will count.",
                Call(
                    "Agent",
                    {
                        "description": "Count tables",
                        "subagent_type": "general-purpose",
                        "prompt": ERRAND,
                        "run_in_background": False,
                    },
                ),
            ),
            ModelReply("The subagent counted nine."),
        ),
    ),
    Scene(ERRAND, (ModelReply("Nine tide tables."),), "agent"),
)


@dataclass(frozen=True)
class Story:
    """Sessions that were held, in order, and the machine that they were held on."""

    machine: Machine
    first: str
    second: str
    delegating: str


@pytest.fixture(scope="module")
def story(tmp_path_factory) -> Iterator[Story]:
    find_client("claude")
    place = tmp_path_factory.mktemp("machine")
    with running_upstream(SceneScript(SCENES)) as upstream:
        machine = Machine(place / "person", place / "lore", upstream)
        almanac = write_repository(machine.home / "code" / "almanac")
        harbour = write_repository(machine.home / "code" / "harbour")
        machine.start()
        try:
            yield tell(machine, almanac, harbour)
        finally:
            machine.stop()


def tell(machine: Machine, almanac: Path, harbour: Path) -> Story:
    """Hold all sessions."""
    first, second, delegating, other = (str(uuid.uuid4()) for _ in range(4))

    def say(prompt: str, *words: str, project: Path = almanac) -> None:
        client = machine.client("claude", claude_code, project)
        allowed = ("--plugin-dir", str(PLUGIN), "--allowedTools", f"{TOOLS}recall Agent Bash")
        done = client.run("-p", "--output-format", "json", *allowed, *words, input=prompt)
        assert done.status == 0, done

    say(TELL, "--session-id", first)
    machine.wait_until_indexed(first, TOLD)
    say(ASK, "--session-id", second)
    say(ELSEWHERE, "--session-id", other, project=harbour)
    machine.lore("remember", FIX, "--kind", "bug_fix", "--project", str(almanac))
    say(FAIL, "--resume", second)
    machine.lore("remember", WIRED, "--project", str(almanac))
    eventually(lambda: machine.get("/stats")["waiting"] == 0)
    say(TRACE, "--resume", second)
    say(MORE, "--resume", second)
    say("/compact", "--resume", second)
    say(DELEGATE, "--session-id", delegating)
    return Story(machine, first, second, delegating)


def test_the_client_keeps_to_the_script(story):
    assert story.machine.upstream.problems() == []
    assert story.machine.upstream.blocked_hosts() == []


def test_the_tools_are_in_the_request(story):
    told = tool_texts(story.machine.requests(ASK)[0])
    assert {f"{TOOLS}{name}" for name in ("recall", "search", "read", "store")} <= set(told)


def test_the_instructions_reach_the_model_whole(story):
    from lore.mcp.server import INSTRUCTIONS

    body = story.machine.requests(ASK)[0].json
    assert INSTRUCTIONS.strip() in "\n".join(json_texts(body))


def test_a_turn_is_stored_when_it_ends(story):
    assert story.machine.texts(story.first) == [TELL, TOLD]


def test_a_session_begins_with_what_the_one_before_it_was_about(story):
    (asked, *_) = story.machine.requests(ASK)
    memory = dict(hook_contexts(asked))["SessionStart"]
    assert "ops/press.sh" in memory


def test_a_prompt_does_not_come_with_what_its_session_began_with(story):
    (asked, *_) = story.machine.requests(ASK)
    told = [memory for _, memory in hook_contexts(asked) if f"> {TELL}" in memory]
    assert len(told) == 1


def test_a_prompt_comes_with_what_its_session_could_not_begin_with(story):
    (asked,) = story.machine.requests(TRACE)
    told = [event for event, memory in hook_contexts(asked) if f"> {WIRED}" in memory]
    assert told == ["UserPromptSubmit"]


def test_an_error_comes_with_what_mended_it_before(story):
    asked = story.machine.requests(FAIL)[-1]
    assert "ops/vendor.sh" in dict(hook_contexts(asked))["PostToolUseFailure"]


def test_the_first_session_was_given_nothing(story):
    (asked,) = story.machine.requests(TELL)
    assert hook_contexts(asked) == []


def test_another_project_is_told_nothing_of_this_one(story):
    (asked,) = story.machine.requests(ELSEWHERE)
    assert not [memory for _, memory in hook_contexts(asked) if "press.sh" in memory]


def test_what_a_tool_found_comes_back_in_words(story):
    asked = story.machine.requests(ASK)[-1]
    (result,) = [
        block
        for message in asked.json["messages"]
        for block in message["content"]
        if isinstance(block, dict) and block["type"] == "tool_result"
    ]
    text = "".join(json_texts(result["content"]))
    assert "<lore-memory>" in text
    assert f"> {TELL}" in text


def test_what_lore_put_into_a_prompt_is_not_learned_again(story):
    said = story.machine.texts(story.second)
    assert said[0] == ASK
    assert not [text for text in said if "lore-memory" in text]


def test_a_session_is_condensed_before_the_client_compacts_it(story):
    id_ = story.machine.sessions()[story.second]["id"]
    path = f"/distillations?session={id_}&limit=10"
    assert eventually(lambda: story.machine.get(path)["items"])


def test_a_subagent_is_not_mixed_with_its_parent(story):
    machine = story.machine
    agent = eventually(
        lambda: [n for n in machine.sessions() if n.startswith(f"{story.delegating}/agent-")]
    )
    (name,) = agent
    eventually(lambda: "Nine tide tables." in machine.texts(name))
    eventually(lambda: "The subagent counted nine." in machine.texts(story.delegating))
    sessions = machine.sessions()
    assert sessions[name]["parent_id"] == sessions[story.delegating]["id"]
    assert machine.texts(name) == [ERRAND, "Nine tide tables."]
    assert ERRAND not in machine.texts(story.delegating)
