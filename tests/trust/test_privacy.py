"""What one project knows stays there, and what was not to be stored is not, by whatever way."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.settings import load
from tests.capture.adapters.samples import claude_line
from tests.fakes import FakeEmbedder
from tests.gateway.gateway_server import Proxied, proxied
from tests.upstream import Call, ModelReply, Text, Upstream, running_upstream
from tests.waiting import eventually

HERE, THERE = "/code/almanac", "/code/harbor"
ON, OFF = "/lore:amnesia on", "/lore:amnesia off"


def stored(memory: Memory) -> str:
    """Return all that is stored of any session."""
    return "\n".join(
        part.text
        for session in memory.sessions()
        for message in memory.sessions.messages(session.id)
        for part in message.parts
    )


class Gate:
    """A gateway with its memory, which many talk through."""

    def __init__(self, memory: Memory, gateway: Proxied, up: Upstream) -> None:
        self.memory = memory
        self.gateway = gateway
        self.up = up

    def talk(self, session: str = "", project: str = HERE, **headers: str) -> Talk:
        return Talk(self, session, project, headers)

    def stored(self) -> str:
        return stored(self.memory)

    def settled(self) -> str:
        """Return all that is stored once what was said last is."""
        last = self.talk("witness")
        word = f"Witness {len(self.up.requests)} was here."
        last.ask(word)
        eventually(lambda: word in self.stored())
        return self.stored()


class Talk:
    """One conversation, as a client keeps it."""

    def __init__(self, gate: Gate, session: str, project: str, headers: dict[str, str]) -> None:
        self.gate = gate
        self.headers = {"x-api-key": "of a client", "x-lore-project": project}
        self.headers |= {"x-claude-code-session-id": session} if session else {}
        self.headers |= {name.replace("_", "-"): value for name, value in headers.items()}
        self.messages: list[Any] = []

    def ask(self, text: str) -> str:
        """Say something, and return what upstream was told by that."""
        asked = len(self.gate.up.requests)
        self.messages.append({"role": "user", "content": text})
        body = {"model": "claude-sonnet-4-5", "max_tokens": 1000, "messages": self.messages}
        got = self.gate.gateway.ask("/v1/messages", body, self.headers)
        assert got.status == 200, got.body
        assert not got.header("x-lore-degraded")
        self.messages.append({"role": "assistant", "content": got.json["content"]})
        return "".join(json.dumps(one.json) for one in self.gate.up.requests[asked:])


@contextmanager
def gate(home: Path, up: Upstream) -> Iterator[Gate]:
    config = replace(load({}, home=home).settings)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = MemoryPlugin(memory, PromptComposer(memory))
        with proxied(home, up.url, plugin=plugin) as gateway:
            yield Gate(memory, gateway, up)
        plugin.close()


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served


def remember_both(memory: Memory) -> None:
    memory.remember("The vault of the almanac is 7391", kind="decision", project=HERE)
    memory.remember("The harbor deploys on Tuesdays", kind="decision", project=THERE)


@pytest.mark.parametrize("session", ["", "s-1"])
def test_the_same_words_in_another_project_are_not_told_what_the_first_one_knows(
    tmp_path: Path, up: Upstream, session: str
):
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        assert "7391" in house.talk(session).ask("Hello, please run the tests")
        told = house.talk(session, THERE).ask("Hello, please run the tests")
        assert "7391" not in told
        assert "Tuesdays" in told


def test_a_talk_that_moves_to_another_project_leaves_what_it_was_told_behind(
    tmp_path: Path, up: Upstream
):
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        talk = house.talk("s-1")
        assert "7391" in talk.ask("Hello, please run the tests")
        talk.headers["x-lore-project"] = THERE
        told = talk.ask("And now these.")
        assert "7391" not in told
        assert "Tuesdays" in told


def test_after_a_restart_the_same_words_are_still_those_of_another_project(
    tmp_path: Path, up: Upstream
):
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        talk = house.talk()
        talk.ask("Good day to you")
        assert "7391" in talk.ask("Anything new?")
        house.settled()
    with gate(tmp_path, up) as house:
        assert "7391" not in house.talk("", THERE).ask("Good day to you")


def test_a_talk_without_a_name_is_stored_as_one_and_goes_on_after_a_restart(
    tmp_path: Path, up: Upstream
):
    up.reply_with(
        ModelReply(Text("Good day.")), ModelReply(Text("Nothing.")), ModelReply(Text("Hello you."))
    )
    with gate(tmp_path, up) as house:
        remember_both(house.memory)
        talk, other = house.talk(), house.talk()
        first = talk.ask("Good day to you")
        talk.ask("Anything new?")
        other.ask("Good day to you")
        house.settled()
    up.reply_with(ModelReply(Text("Not at all.")))
    with gate(tmp_path, up) as house:
        again = talk.messages
        talk = house.talk()
        talk.messages = again
        told = talk.ask("And by now?")
        assert json.loads(first)["system"] == json.loads(told)["system"]
        house.settled()
        texts = [
            [
                part.text
                for message in house.memory.sessions.messages(session.id)
                for part in message.parts
            ]
            for session in house.memory.sessions()
        ]
        assert [
            "Good day to you", "Good day.", "Anything new?", "Nothing.", "And by now?",
            "Not at all.",
        ] in texts  # fmt: skip
        assert ["Good day to you", "Hello you."] in texts


def test_what_an_unnamed_talk_costs_is_entered_for_its_session(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        talk = house.talk()
        talk.ask("Good day to you")
        talk.ask("Anything new?")
        eventually(lambda: len(house.memory.sessions()) == 1)
        [session] = house.memory.sessions()
        lines = eventually(
            lambda: [
                one
                for one in house.memory.budget.spend_report(by="session").lines
                if one.requests == 2
            ]
        )
        assert [one.name for one in lines] == [session.id]


def silenced(talk: Talk) -> Talk:
    """Return a talk that has begun, and is not to be stored from now on."""
    talk.ask("Hello there, what is new?")
    talk.ask(ON)
    return talk


def test_amnesia_of_a_talk_without_a_name_survives_a_restart(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        house.talk().ask("Hello there, what is new?")
        talk = silenced(house.talk())
        talk.ask("The merger is on the ninth.")
        house.settled()
    with gate(tmp_path, up) as house:
        house.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        again = house.talk()
        again.messages = talk.messages
        told = again.ask("The merger costs nine millions.")
        assert "ops/deploy.sh" not in told
        assert '"recall"' not in told
        assert "merger" not in house.settled()
        again.ask(OFF)
        again.ask("The weather is fine.")
        assert "merger" not in house.settled()
        assert "weather" in house.stored()


@pytest.mark.parametrize(
    ("parent", "child", "grandchild"),
    [
        ({"x-claude-code-session-id": "s-1"}, {"x-claude-code-agent-id": "7"}, {}),
        (
            {"x-session-id": "ses_1", "user-agent": "opencode/1.18"},
            {"x-session-id": "ses_2", "x-parent-session-id": "ses_1"},
            {"x-session-id": "ses_3", "x-parent-session-id": "ses_2"},
        ),
    ],
)
def test_helpers_of_an_amnesic_session_are_not_stored_either(
    tmp_path: Path, up: Upstream, parent: dict[str, str], child: dict[str, str],
    grandchild: dict[str, str],
):  # fmt: skip
    with gate(tmp_path, up) as house:
        talk = silenced(house.talk(**parent))
        helper = house.talk(**parent | child)
        assert '"recall"' not in helper.ask("Look up what the merger costs.")
        below = house.talk(**parent | child | grandchild)
        below.ask("Look up who the merger is with.")
        assert "merger" not in house.settled()
        talk.ask(OFF)
        helper.ask("Go on.")
        assert "merger" not in house.settled()
        house.talk(**parent | child | {next(iter(child)): "9"}).ask("Look up the weather.")
        assert "weather" in house.settled()


def test_a_fork_does_not_bring_what_was_said_in_amnesia(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        talk = silenced(house.talk("s-1"))
        talk.ask("The merger is on the ninth.")
        during = house.talk("s-2")
        during.messages = [*talk.messages]
        during.ask("And who knows of the merger?")
        house.talk("s-2", **{"x-claude-code-agent-id": "7"}).ask("Tell me of the merger.")
        talk.ask(OFF)
        after = house.talk("s-3")
        after.messages = [*talk.messages]
        after.ask("What is the weather?")
        assert "merger" not in house.settled()
        assert "weather" in house.stored()


def test_what_is_under_way_when_amnesia_ends_is_not_stored(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        talk = silenced(house.talk("s-1"))
        branch = house.talk("s-1")
        branch.messages = [*talk.messages]
        held = threading.Event()
        up.reply_with(ModelReply(Text("I see."), hold=held))
        with ThreadPoolExecutor(1) as apart:
            asked = len(up.requests)
            late = apart.submit(branch.ask, "The merger is on the ninth.")
            eventually(lambda: len(up.requests) > asked)
            talk.ask(OFF)
            held.set()
            late.result()
        assert "merger" not in house.settled()
        talk.messages += branch.messages[-2:]
        talk.ask("The weather is fine.")
        assert "merger" not in house.settled()
        assert "weather" in house.stored()


def test_amnesia_that_is_said_to_one_gateway_holds_for_another(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house, gate(tmp_path, up) as other:
        house.memory.remember("Deploys go through ops/deploy.sh", kind="decision", project=HERE)
        talk, same = house.talk("s-1"), other.talk("s-1")
        talk.ask("Hello there, what is new?")
        same.messages = talk.messages
        assert "ops/deploy.sh" in same.ask("And how do we deploy?")
        talk.ask(ON)
        # A client that does not send the command on.
        same.messages = talk.messages[:-2]
        told = same.ask("The merger is on the ninth.")
        assert "ops/deploy.sh" not in told
        assert '"recall"' not in told
        assert "merger" not in other.settled()


def transcript(path: Path, *said: tuple[str, Any, int], session: str, **more: Any) -> Path:
    """Write lines of Claude Code: who speaks, what, and at which minute."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        claude_line(
            kind, text, uuid=f"u{minute}", sessionId=session,
            timestamp=f"2026-05-08T10:{minute:02}:00.000Z", **more,
        )
        for kind, text, minute in said
    ]  # fmt: skip
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    config = load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder()) as opened:
        yield opened


SAID = (
    ("user", "Hello there, what is new?", 1),
    ("user", ON, 2),
    ("user", "The merger is on the ninth.", 3),
    ("user", OFF, 4),
    ("user", "The weather is fine.", 5),
)


def test_a_transcript_tells_itself_what_was_said_in_amnesia(memory: Memory, tmp_path: Path):
    first = transcript(tmp_path / "p" / "s-1.jsonl", *SAID, session="s-1")
    fork = transcript(
        tmp_path / "p" / "s-2.jsonl", *SAID, ("user", "The sea is calm.", 6), session="s-2"
    )
    memory.capture_files([first, fork])
    assert "merger" not in stored(memory)
    assert "weather" in stored(memory)
    assert "calm" in stored(memory)


def test_a_fork_from_inside_amnesia_is_known_by_its_copies(memory: Memory, tmp_path: Path):
    first = transcript(tmp_path / "p" / "s-1.jsonl", *SAID, session="s-1")
    fork = transcript(
        tmp_path / "p" / "s-2.jsonl", SAID[2], ("user", "The sea is calm.", 6), session="s-2"
    )
    memory.capture_files([first])
    memory.capture_files([fork])
    assert "merger" not in stored(memory)
    assert "calm" in stored(memory)


def test_transcripts_of_helpers_of_an_amnesic_session_are_not_stored(
    memory: Memory, tmp_path: Path
):
    main = transcript(tmp_path / "p" / "s-1.jsonl", *SAID, session="s-1")
    memory.capture_files([main])
    told = ("user", "Look up what the merger costs.", 3), ("user", "Look up the tide.", 6)
    helper = tmp_path / "p" / "s-1" / "subagents" / "agent-7.jsonl"
    transcript(helper, *told, session="s-1", isSidechain=True, agentId="7")
    memory.capture_files([helper])
    assert "merger" not in stored(memory)
    assert "tide" in stored(memory)


def test_what_an_agent_calls_an_amnesic_session_is_not_stored(memory: Memory, tmp_path: Path):
    path = transcript(tmp_path / "p" / "s-1.jsonl", *SAID, session="s-1")
    with path.open("a") as lines:
        lines.write(json.dumps({"type": "ai-title", "aiTitle": "Merger", "sessionId": "s-1"}))
        lines.write("\n")
    memory.capture_files([path])
    [session] = memory.sessions()
    assert "erger" not in session.title
    with memory.database.read() as db:
        assert "erger" not in str(db.rows("SELECT context FROM watermarks"))


SECRET = "The vault of the almanac is 7391"


def test_what_memory_gave_is_forgotten_with_what_it_gave(tmp_path: Path, up: Upstream):
    with gate(tmp_path, up) as house:
        kept = house.memory.remember(SECRET, kind="decision", project=HERE)
        up.reply_with(
            ModelReply(Call("recall", {"query": "vault of the almanac"})),
            ModelReply(Text("I looked it up.")),
        )
        assert "7391" in house.talk("s-1").ask("Look it up, please.")
        assert "looked it up" in house.settled()
        house.memory.forget(id=kept.id)
        with house.memory.database.read() as db:
            assert "7391" not in str(db.rows("SELECT parts FROM messages"))


def test_what_a_tool_of_lore_gave_is_not_stored_by_a_transcript(memory: Memory, tmp_path: Path):
    call = {"type": "tool_use", "id": "c1", "name": "mcp__lore__recall", "input": {"query": "x"}}
    result = {"type": "tool_result", "tool_use_id": "c1", "content": f"[01a] {SECRET}"}
    path = transcript(
        tmp_path / "p" / "s-1.jsonl",
        ("assistant", [call], 1), ("user", [result], 2), session="s-1",
    )  # fmt: skip
    memory.capture_files([path])
    assert "7391" not in stored(memory)
    assert len(memory.sessions.messages("s-1")) == 2


@pytest.mark.parametrize("way", ["match", "session"])
def test_what_was_forgotten_does_not_come_back_with_a_fork(tmp_path: Path, up: Upstream, way: str):
    up.reply_with(
        ModelReply(Text("The word was swordfish indeed, as you said.")),
        ModelReply(Text("You are welcome.")),
    )
    with gate(tmp_path, up) as house:
        talk = house.talk("s-1")
        talk.ask("What was the word that we agreed on?")
        talk.ask("Thanks for the swordfish")
        assert "swordfish" in house.settled()
        if way == "match":
            house.memory.forget(match="swordfish")
        else:
            house.memory.forget(session="s-1")
        for session in ("s-1", "s-2", ""):
            fork = house.talk(session)
            fork.messages = [*talk.messages]
            fork.ask("What is the weather?")
        assert "swordfish" not in house.settled()
        assert "weather" in house.stored()
        if way == "session":
            assert "agreed" not in house.stored()


def test_what_many_talks_say_is_forgotten_in_one_of_them_only(tmp_path: Path, up: Upstream):
    def begin(house: Gate, session: str, then: str) -> None:
        up.reply_with(ModelReply(Text("Shall I go on?")), ModelReply(Text(then)))
        talk = house.talk(session)
        talk.ask("Please review the changes on this branch as usual.")
        talk.ask("yes")

    with gate(tmp_path, up) as house:
        begin(house, "s-1", "The engine is well described by now.")
        house.settled()
        house.memory.forget(session="s-1")
        begin(house, "s-2", "The cellar is described rather badly.")
        house.settled()
        said = [part.text for one in house.memory.sessions.messages("s-2") for part in one.parts]
        assert said[1:] == ["Shall I go on?", "yes", "The cellar is described rather badly."]
        assert said[0].startswith("Please review")


def test_talks_that_begin_and_are_answered_alike_do_not_share_amnesia(tmp_path: Path, up: Upstream):
    up.reply_with(ModelReply(Text("Hi.")), ModelReply(Text("I see.")), ModelReply(Text("Hi.")))
    with gate(tmp_path, up) as house:
        talk = silenced(house.talk())
        talk.ask("The merger is on the ninth.")
        other = house.talk()
        other.ask("Hello there, what is new?")
        other.ask("The weather is fine.")
        told = house.settled()
        assert "weather" in told
        assert "merger" not in told
