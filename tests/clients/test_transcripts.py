"""Real clients, run anew: what they wrote against what was said."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from lore.capture.adapters import adapter_registry
from lore.memory import Memory
from lore.records import CaptureResult, Message, Session
from tests.clients import claude_code, codex, opencode
from tests.clients.client import PREFIX_VARIABLE, RECORDING_VARIABLE, find_command
from tests.clients.comparison import differences, order_differences
from tests.clients.conversation import Conversation
from tests.clients.project import BOOT_TEXT, CANARY
from tests.clients.recorder import AGENTS, Recording, read_recording, run_agent
from tests.clients.stored_events import by_people, misattributed, name_of, read_events
from tests.clients.transcript_readers import READERS
from tests.fakes import FakeEmbedder

SESSIONS = {"claude-code": claude_code, "codex": codex, "opencode": opencode}


@pytest.fixture(scope="module", params=list(AGENTS))
def fresh(request, tmp_path_factory) -> Recording:
    agent = request.param
    collected = os.environ.get(RECORDING_VARIABLE)
    if collected:
        if not Path(collected, agent).is_dir():
            pytest.skip(f"nothing of {agent} was collected")
        # A reader of a database makes files beside it, and other readers may be there.
        copy = tmp_path_factory.mktemp(agent) / "collected"
        shutil.copytree(Path(collected, agent), copy, ignore=shutil.ignore_patterns("*-shm"))
        return read_recording(copy)
    command, _ = AGENTS[agent]
    if find_command(command) is None:
        pytest.skip(f"{command} is not installed: name its npm prefix in {PREFIX_VARIABLE}")
    place = tmp_path_factory.mktemp(agent)
    return run_agent(agent, place / "home", place / "collected")


@dataclass(frozen=True, slots=True)
class Stored:
    """What Lore has of a run: sessions by the agent's names, and their messages."""

    memory: Memory
    home: Path
    paths: list[Path]
    captured: CaptureResult
    sessions: dict[str, Session]
    messages: dict[str, list[Message]]

    def parent_of(self, name: str) -> str:
        """Return the name of the session that one comes from."""
        ids = {session.id: session.external_id for session in self.sessions.values()}
        return ids.get(self.sessions[name].parent_id or "", "")


@pytest.fixture(scope="module")
def stored(fresh, tmp_path_factory) -> Iterator[Stored]:
    home = tmp_path_factory.mktemp("lore")
    paths = [path for each in adapter_registry.ADAPTERS for path in each.find(fresh.folder)]
    with Memory.open(home, embedder=FakeEmbedder()) as memory:
        captured = memory.capture_files(paths)
        sessions = {one.external_id: one for one in memory.sessions(limit=100)}
        messages = {name: memory.sessions.messages(one.id) for name, one in sessions.items()}
        yield Stored(memory, home, paths, captured, sessions, messages)


def find_conversation(fresh: Recording, prompt: str) -> Conversation:
    (found,) = [
        conversation
        for conversation in fresh.conversations
        if prompt in conversation.texts("prompt")
    ]
    return found


def test_a_client_keeps_the_rules_of_its_wire_and_the_script(fresh):
    assert fresh.problems == ()


def test_a_client_asks_nothing_beyond_this_machine(fresh):
    assert fresh.blocked_hosts == ()


def test_transcripts_hold_what_was_said_and_nothing_else(fresh):
    forked = SESSIONS[fresh.agent].FORKED
    kept = {
        (conversation.session, conversation.agent): conversation
        for conversation in READERS[fresh.agent](fresh.folder)
    }
    found = []
    for said in fresh.conversations:
        copied = forked in said.texts("prompt")
        found += differences(said, kept.pop((said.session, said.agent)), copied=copied)
    assert found == []
    assert kept == {}


def test_a_subagent_has_a_transcript_of_its_own(fresh):
    conversation = find_conversation(fresh, SESSIONS[fresh.agent].ERRAND)
    parent = find_conversation(fresh, SESSIONS[fresh.agent].DELEGATE)
    assert conversation.agent
    assert conversation.session == parent.session
    assert conversation.texts("text") == ["One."]


def test_a_resumed_session_is_one_talk(fresh):
    sessions = SESSIONS[fresh.agent]
    conversation = find_conversation(fresh, sessions.FIX)
    prompts = conversation.texts("prompt")
    assert [prompts.index(one) for one in (sessions.FAIL, sessions.RESUMED)] == [1, 3]
    assert sessions.AFTER in prompts


def test_a_summary_is_asked_for_and_is_no_turn_of_the_talk(fresh):
    conversation = find_conversation(fresh, SESSIONS[fresh.agent].AFTER)
    summaries = [
        event.text for event in conversation.client_events if "We mended parse_day" in event.text
    ]
    assert summaries
    assert not set(summaries) & set(conversation.texts("text"))


def test_a_failing_tool_tells_the_model_so(fresh):
    conversation = find_conversation(fresh, SESSIONS[fresh.agent].FAIL)
    assert any("No such file" in event.text for event in conversation.results())


def test_a_prompt_that_is_refused_is_said_all_the_same(fresh):
    conversation = find_conversation(fresh, SESSIONS[fresh.agent].BROKEN)
    assert set(conversation.refused) == {SESSIONS[fresh.agent].BROKEN}


def test_an_interrupted_reply_is_followed_by_the_next_prompt(fresh):
    conversation = find_conversation(fresh, SESSIONS[fresh.agent].SLOW)
    assert [event.complete for event in conversation.events if event.kind == "text"] == [
        False,
        True,
    ]


def test_the_secret_of_the_person_is_in_what_the_client_wrote(fresh):
    # The first reader of a database may have put the log beside it into it.
    written = b"".join(path.read_bytes() for path in fresh.transcripts if path.exists())
    assert CANARY.encode() in written


def test_the_boot_file_reaches_the_model_and_nobody_said_it(fresh):
    asked = [one for one in fresh.exchanges if one.body and BOOT_TEXT in str(one.body)]
    assert asked
    for conversation in fresh.conversations:
        assert not any(
            BOOT_TEXT in event.text for event in conversation.events if event.kind == "prompt"
        )


def test_what_lore_stores_is_what_was_said(fresh, stored):
    left = set(stored.sessions)
    found = []
    for conversation in fresh.conversations:
        name = name_of(fresh.agent, conversation)
        left.remove(name)
        said = by_people(conversation)
        kept = Conversation(
            conversation.session, conversation.agent, read_events(stored.messages[name])
        )
        found += differences(said, kept) + order_differences(said, kept)
    assert found == []
    assert left == set()


def test_lore_reads_every_line_without_a_problem(stored):
    assert stored.captured.files == len(stored.paths)
    assert stored.captured.skipped == {}
    assert stored.captured.problems == ()


def test_what_lore_stores_is_attributed_to_who_said_it(fresh, stored):
    for conversation in fresh.conversations:
        messages = stored.messages[name_of(fresh.agent, conversation)]
        assert misattributed(messages, subagent=bool(conversation.agent)) == []


def test_boot_files_reminders_and_summaries_are_asides_for_lore(fresh, stored):
    summaries = [
        event.text for conversation in fresh.conversations for event in conversation.client_events
    ]
    for messages in stored.messages.values():
        for part in (part for message in messages for part in message.parts):
            beside = (BOOT_TEXT, "<system-reminder>", "This session is being continued", *summaries)
            if part.kind == "text":
                assert not any(text in part.text for text in beside)


def test_lore_links_a_subagent_and_a_fork_to_where_they_come_from(fresh, stored):
    sessions = SESSIONS[fresh.agent]
    first = find_conversation(fresh, sessions.FIX).session
    for prompt in (sessions.ERRAND, sessions.FORKED):
        assert stored.parent_of(name_of(fresh.agent, find_conversation(fresh, prompt))) == first
    assert sum(bool(session.parent_id) for session in stored.sessions.values()) == 2


def test_lore_puts_all_sessions_of_a_repository_into_one_project(stored):
    (project,) = {session.project_id for session in stored.sessions.values()}
    assert project


def test_lore_stores_nothing_when_it_reads_once_more(fresh, stored, tmp_path):
    assert stored.memory.capture_files(stored.paths).added == 0
    shutil.copytree(fresh.folder, tmp_path / "copy", ignore=shutil.ignore_patterns("*-shm"))
    paths = [path for each in adapter_registry.ADAPTERS for path in each.find(tmp_path / "copy")]
    again = stored.memory.capture_files(paths)
    assert (again.added, again.known) == (0, stored.captured.added + stored.captured.known)


def test_the_secret_of_the_person_is_in_no_byte_of_lore(stored):
    assert sum(stored.captured.redactions.values()) == 1
    for path in stored.home.rglob("*"):
        if path.is_file():
            assert CANARY.encode() not in path.read_bytes(), path
