"""Real clients, run anew: what they wrote against what was said."""

from __future__ import annotations

import pytest

from tests.clients import claude_code, codex, opencode
from tests.clients.client import PREFIX_VARIABLE, find_command
from tests.clients.comparing import differences
from tests.clients.project import BOOT_TEXT, CANARY
from tests.clients.raw import READERS
from tests.clients.run import AGENTS, Collected, run_agent
from tests.clients.said import Talk

SESSIONS = {"claude-code": claude_code, "codex": codex, "opencode": opencode}


@pytest.fixture(scope="module", params=list(AGENTS))
def fresh(request, tmp_path_factory) -> Collected:
    agent = request.param
    command, _ = AGENTS[agent]
    if find_command(command) is None:
        pytest.skip(f"{command} is not installed: name its npm prefix in {PREFIX_VARIABLE}")
    place = tmp_path_factory.mktemp(agent)
    return run_agent(agent, place / "home", place / "collected")


def get_talk(fresh: Collected, prompt: str) -> Talk:
    (found,) = [talk for talk in fresh.talks if prompt in talk.texts("prompt")]
    return found


def test_a_client_keeps_the_rules_of_its_wire_and_the_script(fresh):
    assert fresh.problems == ()


def test_a_client_asks_nothing_beyond_this_machine(fresh):
    assert fresh.strays == ()


def test_transcripts_hold_what_was_said_and_nothing_else(fresh):
    forked = SESSIONS[fresh.agent].FORKED
    kept = {(talk.session, talk.agent): talk for talk in READERS[fresh.agent](fresh.folder)}
    found = []
    for said in fresh.talks:
        copied = forked in said.texts("prompt")
        found += differences(said, kept.pop((said.session, said.agent)), copied=copied)
    assert found == []
    assert kept == {}


def test_a_subagent_has_a_transcript_of_its_own(fresh):
    talk = get_talk(fresh, SESSIONS[fresh.agent].ERRAND)
    parent = get_talk(fresh, SESSIONS[fresh.agent].DELEGATE)
    assert talk.agent
    assert talk.session == parent.session
    assert talk.texts("text") == ["One."]


def test_a_resumed_session_is_one_talk(fresh):
    sessions = SESSIONS[fresh.agent]
    talk = get_talk(fresh, sessions.FIX)
    prompts = talk.texts("prompt")
    assert [prompts.index(one) for one in (sessions.FAIL, sessions.RESUMED)] == [1, 3]
    assert sessions.AFTER in prompts


def test_a_summary_is_asked_for_and_is_no_turn_of_the_talk(fresh):
    talk = get_talk(fresh, SESSIONS[fresh.agent].AFTER)
    summaries = [event.text for event in talk.client_events if "We mended parse_day" in event.text]
    assert summaries
    assert not set(summaries) & set(talk.texts("text"))


def test_a_failing_tool_tells_the_model_so(fresh):
    talk = get_talk(fresh, SESSIONS[fresh.agent].FAIL)
    assert any("No such file" in event.text for event in talk.results())


def test_a_prompt_that_is_refused_is_said_all_the_same(fresh):
    talk = get_talk(fresh, SESSIONS[fresh.agent].BROKEN)
    assert set(talk.refused) == {SESSIONS[fresh.agent].BROKEN}


def test_an_interrupted_reply_is_followed_by_the_next_prompt(fresh):
    talk = get_talk(fresh, SESSIONS[fresh.agent].SLOW)
    assert [event.complete for event in talk.events if event.kind == "text"] == [False, True]


def test_the_secret_of_the_person_is_in_what_the_client_wrote(fresh):
    written = b"".join(path.read_bytes() for path in fresh.transcripts)
    assert CANARY.encode() in written


def test_the_boot_file_reaches_the_model_and_nobody_said_it(fresh):
    asked = [one for one in fresh.exchanges if one.body and BOOT_TEXT in str(one.body)]
    assert asked
    for talk in fresh.talks:
        assert not any(BOOT_TEXT in event.text for event in talk.events if event.kind == "prompt")
