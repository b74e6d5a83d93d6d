"""What a session is told unasked: once, of its own project, by people and assistants, in time."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from lore.context import prompt_text
from lore.memory import Memory
from lore.memory.prompts import Prompts
from lore.memory.sessions import Sessions
from lore.recall import remedies
from lore.recall.prompt_hits import MOST_PROMPT_HITS
from lore.records import CaptureResult, NewMessage, Part
from lore.settings import load
from lore.store import dialogue_state, items
from lore.text import tokens
from tests.capture.adapters.samples import claude_line
from tests.fakes import NOON, FakeEmbedder, FixedClock

HERE = "/code/almanac"
PROMPT = "why does TokenCache in auth/cache.py keep expired tokens, and where is the TTL checked?"
ERROR = "E   AttributeError: TokenCache object has no attribute expire_at"
FINDING = "TokenCache in auth/cache.py keeps expired tokens since get has no TTL check: added one"


@pytest.fixture
def memory(tmp_path: Path, clock: FixedClock) -> Iterator[Memory]:
    config = load({}, home=tmp_path / "home").settings
    with Memory.open(config=config, embedder=FakeEmbedder(), now=clock) as opened:
        yield opened


def say(
    memory: Memory, session: str, *texts: str, project: str = HERE, parent: str = ""
) -> list[str]:
    """Let a person and the assistant speak in turn."""
    roles = ("user", "assistant") * len(texts)
    new = [
        NewMessage(role, (Part("text", text),), NOON - timedelta(hours=1) + timedelta(seconds=i))  # type: ignore[arg-type]  # one of the roles
        for i, (role, text) in enumerate(zip(roles, texts, strict=False))
    ]
    ids = memory.capture(session, new, agent="claude-code", project=project, parent=parent)
    memory.maintenance.embed_waiting()
    return ids


def injected(memory: Memory, prompt: str = PROMPT, session: str = "new", **more) -> str:
    """Return what a prompt is given once all that was kept before is written."""
    memory.database.write(lambda db: db.rows("SELECT 1"))
    return memory.prompts.for_prompt(
        prompt, session=session, **{"project": HERE, "threshold": 0.2, **more}
    ).text


def test_prompt_receives_related_memory(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    assert f"> {FINDING}" in injected(memory)


@pytest.mark.parametrize("threshold", [0.01, 0.1, 0.9, 1.0])
def test_threshold_drops_no_candidate_that_reaches_it(memory: Memory, threshold: float):
    say(memory, "old", "Mend the login", FINDING)
    say(memory, "other", "Where is the TTL of TokenCache?", "In auth/cache.py, in get.")
    memory.remember("TokenCache checks the TTL in auth/cache.py.", project=HERE)
    memory.maintenance.embed_waiting()
    find = partial(memory.prompts.find_candidates, PROMPT, project=HERE)
    likely = [one.hit.id for one in find() if one.probability >= max(threshold, 0.2)]
    found = {one.hit.id for one in find(threshold=threshold)}
    assert found >= {*likely}
    assert bool(found) == (threshold <= 0.1)


def test_candidates_that_cannot_reach_the_threshold_are_not_presented(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    assert memory.prompts.find_candidates(PROMPT, project=HERE)
    assert not memory.prompts.find_candidates(PROMPT, project=HERE, threshold=1.0)


def test_empty_memory_injects_nothing(memory: Memory):
    assert not injected(memory)
    assert not memory.prompts.begin_session("new", project=HERE).text


RULE = "From now on we print the almanac with ops/press.sh, from the pier branch."


@pytest.mark.parametrize(
    "said",
    [
        "hello", "thanks", "hi there, what can you do?", "How do we print the almanac?",
        "how do we print the almanac", "What do you remember about this project?",
    ],
)  # fmt: skip
@pytest.mark.parametrize("ended", [True, False], ids=["told", "at work"])
def test_small_talk_session_is_not_in_briefing(memory: Memory, said: str, *, ended: bool):
    say(memory, "old", said, "With the script for it.")
    memory.prompts.end_session("old") if ended else memory.prompts.end_turn("old")
    assert not memory.prompts.begin_session("new", project=HERE).text


@pytest.mark.parametrize(
    "said",
    ["Please mend the login", "The tide tables moved to the pier server", "can you fix the docs?"],
)
def test_short_session_with_work_is_in_briefing(memory: Memory, said: str):
    say(memory, "old", said, "Noted.")
    memory.prompts.end_session("old")
    assert said in memory.prompts.begin_session("new", project=HERE).text


@pytest.mark.parametrize("said", ["Store that", "Look in memory: press"])
def test_session_that_only_asked_memory_is_not_in_briefing(memory: Memory, said: str):
    at = NOON - timedelta(hours=1)
    name = "mcp__lore__recall"
    memory.capture(
        "old",
        [
            NewMessage("user", (Part("text", said),), at),
            NewMessage("assistant", (Part("tool_call", "{}", name, "1"),), at),
            NewMessage("user", (Part("tool_result", "Stored 01a1 as a root", name, "1"),), at),
            NewMessage("assistant", (Part("text", "It is kept."),), at),
        ],
        project=HERE,
    )
    memory.prompts.end_session("old")
    assert not memory.prompts.begin_session("new", project=HERE).text


def test_session_with_a_decision_is_in_briefing(memory: Memory):
    say(
        memory, "old", "Postgres or SQLite for the tides?", "Either.", "We keep SQLite, it is small"
    )
    memory.prompts.end_session("old")
    assert "Postgres or SQLite" in memory.prompts.begin_session("new", project=HERE).text


def test_sessions_with_same_goal_are_listed_once(memory: Memory):
    for session in ("one", "two", "three"):
        say(memory, session, "Run the nightly checks of the almanac", "All green.")
        memory.prompts.end_session(session)
    assert memory.prompts.begin_session("new", project=HERE).text.count("nightly checks") == 1


def test_rule_is_in_briefing_once_without_its_session(memory: Memory):
    say(memory, "old", RULE, "Noted.")
    memory.prompts.end_session("old")
    memory.digest()
    assert memory.prompts.begin_session("new", project=HERE).text.count("ops/press.sh") == 1


def test_prompt_receives_rule_instead_of_message_or_episode(
    memory: Memory,
):
    say(memory, "old", RULE, "Noted.")
    memory.prompts.end_session("old")
    memory.digest()
    memory.maintenance.embed_waiting()
    given = injected(memory, "which script prints the almanac from the pier branch")
    assert "Preferences:\n[" in given
    assert given.count(RULE) == 1
    assert "Goal:" not in given


def test_hits_below_threshold_are_not_injected(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    assert not injected(memory, threshold=50.0)


@pytest.mark.parametrize("prompt", ["", "go on", "yes please", "/compact", "…", "\0"])
def test_prompt_without_request_receives_nothing(memory: Memory, prompt: str):
    say(memory, "old", "go on", "yes please, the compact form goes on")
    assert not injected(memory, prompt, threshold=0.0)


def test_text_is_injected_once_per_session(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    assert injected(memory)
    assert not injected(memory)
    assert injected(memory, session="another")


def test_injected_items_leave_their_places_to_others(memory: Memory):
    names = "login logout refresh proxy worker mailer import export billing search admin".split()
    for name in names:
        memory.remember(
            f"TokenCache in auth/cache.py keeps expired tokens of the {name}: the TTL is checked"
            f" in {name}/{name}_check.py.",
            project=HERE,
        )
    memory.maintenance.embed_waiting()
    candidates = memory.prompts.find_candidates(PROMPT, project=HERE)
    assert len(candidates) == MOST_PROMPT_HITS
    with memory.database.read() as db:
        ns = items.numbers_of(db, [one.hit.id for one in candidates])
    memory.database.write(
        lambda db: dialogue_state.add_injections(db, "new", [(n, 1) for n in ns.values()], now=NOON)
    )
    assert "TokenCache" in injected(memory, threshold=0.0)


def test_equal_text_of_another_session_is_a_duplicate(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    assert FINDING in injected(memory)
    say(memory, "older", "Mend the logout", f"{FINDING}!")
    assert FINDING not in injected(memory)


def test_condensed_session_may_receive_text_again(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    assert injected(memory)
    memory.prompts.begin_session("new", project=HERE, condensed=True)
    assert injected(memory)


def test_own_messages_are_not_injected(memory: Memory):
    say(memory, "new", "Mend the login", FINDING)
    assert not injected(memory)


def test_messages_of_relatives_are_not_injected(memory: Memory):
    say(memory, "new", "Ask a helper")
    say(memory, "new/agent-1", "Mend the login", FINDING, parent="new")
    assert not injected(memory)
    assert not injected(memory, session="new/agent-1")


def test_messages_copied_by_a_fork_are_not_injected(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    memory.capture("new", [NewMessage("assistant", (Part("text", FINDING),), NOON)], agent="other")
    assert not injected(memory)


def test_other_projects_receive_nothing(memory: Memory):
    say(memory, "old", "Mend the login", FINDING, project="/code/other")
    assert not injected(memory)
    assert not injected(memory, project="/code/unknown")


def test_session_without_project_receives_nothing_of_projects(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    memory.remember("Releases of the almanac go out on Fridays", project=HERE)
    memory.remember("Answers are written in British English")
    assert not injected(memory, project="")
    told = memory.prompts.begin_session("new").text
    assert "British English" in told
    assert "Fridays" not in told


def test_global_knowledge_reaches_every_project(memory: Memory):
    memory.store(FINDING, kind="bug_fix")
    memory.maintenance.embed_waiting()
    assert "Known fixes:" in injected(memory, project="/code/unknown")


def test_superseded_items_are_not_injected(memory: Memory):
    old = memory.store(FINDING, project=HERE)
    new = memory.store("Sessions live in the gateway since May", project=HERE)
    memory.knowledge.supersede(old, new)
    memory.maintenance.embed_waiting()
    assert FINDING not in injected(memory, threshold=0.0)


def test_late_injection_is_empty_and_not_recorded(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    assert not injected(memory, within_s=0.0)
    assert injected(memory)


def test_injection_can_be_switched_off(memory: Memory):
    say(memory, "old", "Please always run make lint before a commit", FINDING)
    memory.context.settings = replace(memory.settings, inject_on=False)
    assert not injected(memory)
    assert not memory.prompts.begin_session("new", project=HERE).text
    assert not memory.prompts.for_error(
        "Bash", "{}", "Error: it broke badly here", failed=True
    ).text


def test_only_the_prompt_is_embedded(tmp_path: Path):
    embedder = FakeEmbedder()
    with Memory.open(tmp_path / "home", embedder=embedder) as memory:
        say(memory, "old", "Mend the login", FINDING)
        memory.store("waits for a vector")
        before = len(embedder.asked)
        injected(memory)
        assert len(embedder.asked) == before + 1


def test_briefing_has_instructions_sessions_and_roots(memory: Memory):
    say(memory, "old", "Please always run make lint. Fix the login test", "Done, all tests pass")
    memory.sessions.episode("old")
    memory.store("Tokens live in Redis", kind="architecture", project=HERE)
    told = memory.prompts.begin_session("new", project=HERE)
    assert told.tokens <= 500
    assert "> Please always run make lint." in told.text
    assert "Fix the login test" in told.text.split("Last sessions:")[1]
    assert "> Tokens live in Redis" in told.text.split("Known, by topic:")[1]


def known_topics(memory: Memory) -> list[str]:
    memory.maintenance.embed_waiting()
    text = memory.prompts.begin_session("new", project=HERE).text
    lines = text.split("Known, by topic:")[1].splitlines() if "Known" in text else []
    return [line.partition(" > ")[2] for line in lines if " > " in line]


def keep(memory: Memory, session: str, text: str, importance: float = 0.6, **more: Any) -> None:
    say(memory, session, f"Look after the harbour in {session}.")
    fields = {"kind": "architecture", "origin": "assistant", **more}
    memory.store(text, project=HERE, session=session, importance=importance, **fields)


def test_topics_of_the_briefing_are_recent_whole_and_not_outdated(
    memory: Memory, clock: FixedClock
):
    keep(memory, "one", "However, the proxy of the quay needs its cache behaviour.", 0.95)
    keep(memory, "one", "After: when people ask for tides, the bot will now:", 0.95)
    keep(memory, "one", "Requests for tides go to the gauge on port 3333.", 0.9)
    clock.advance(days=20)
    keep(memory, "two", "Requests for tides go to the gauge on port 4444.", 0.5)
    keep(memory, "two", "Ferries are listed by the timetable service in Go.", 0.5)
    assert known_topics(memory) == [
        "Requests for tides go to the gauge on port 4444.",
        "Ferries are listed by the timetable service in Go.",
    ]


def test_a_bare_symptom_comes_after_what_holds(memory: Memory):
    wrong = "The tide table shows nothing at all for the northern quay."
    fields = {"kind": "bug_fix", "payload": {"symptom": wrong, "solution": wrong}}
    keep(memory, "one", wrong, 0.9, **fields)
    keep(memory, "one", "Ferries are listed by the timetable service in Go.", 0.4)
    assert known_topics(memory)[-1] == wrong


def test_the_briefing_says_how_a_session_ended(memory: Memory):
    reply = "Perfect! Pushed.\n\nThe branch tide-bot is pushed, the server is untouched. Go on?"
    say(memory, "old", "Move the tide bot to the new server", reply)
    memory.sessions.episode("old")
    text = memory.prompts.begin_session("new", project=HERE).text
    assert "| ended > Pushed. The branch tide-bot is pushed, the server is untouched." in text
    assert "left open" not in text


def test_what_the_assistant_called_done_is_not_left_open(memory: Memory):
    done = "Done, the manual is updated everywhere."
    say(memory, "old", "Does rsync still work here?", "Yes, by the address.",
        "Can you update all the manuals in the repository?", done)  # fmt: skip
    memory.sessions.episode("old")
    tasks = [{"goal": "Does rsync still work here?", "outcome": "success"},
             {"goal": "Can you update all the manuals?", "outcome": "unknown"}]  # fmt: skip
    memory.database.write(
        lambda db: db.run(
            "UPDATE fragments SET payload = json_set(payload, '$.tasks', json(:tasks))"
            " WHERE kind = 'episode'",
            tasks=json.dumps(tasks),
        )
    )
    text = memory.prompts.begin_session("new", project=HERE).text
    assert f"| ended > {done}" in text
    assert "left open" not in text


def test_instructions_of_the_briefing_are_not_injected_again(memory: Memory):
    text = "Please always check the TTL of TokenCache in auth/cache.py for expired tokens"
    say(memory, "old", text)
    assert text in memory.prompts.begin_session("new", project=HERE).text
    assert text not in injected(memory, threshold=0.0)


def given_to(memory: Memory, session: str) -> set[str]:
    """Return the ids of what counts as given to a session, once it is written."""
    memory.database.write(lambda db: db.rows("SELECT 1"))
    with memory.database.read() as db:
        return set(
            items.ids_of(db, list(dialogue_state.find_injections(db, session).items)).values()
        )


def test_complete_texts_of_the_briefing_count_as_injected(memory: Memory):
    say(memory, "old", "Please always run make lint. Fix the login test", "Done, all tests pass")
    memory.sessions.episode("old")
    memory.store("Tokens live in Redis", kind="architecture", project=HERE)
    told = memory.prompts.begin_session("new", project=HERE)
    assert len(told.ids) == 3
    assert given_to(memory, "new") == set(told.ids)


def test_fragment_shown_by_title_may_be_injected_later(memory: Memory):
    long = memory.store(f"{FINDING}, {'and the same for each region, ' * 20}", project=HERE)
    memory.maintenance.embed_waiting()
    told = memory.prompts.begin_session("new", project=HERE)
    assert told.ids == (long,)
    assert not given_to(memory, "new")
    assert FINDING in injected(memory, threshold=0.0)


def test_late_briefing_is_empty_and_not_recorded(memory: Memory):
    say(memory, "old", "Please always run make lint. Fix the login test", "Done, all tests pass")
    assert not memory.prompts.begin_session("new", project=HERE, within_s=0.0).text
    assert not given_to(memory, "new")


def test_session_without_episode_is_given_by_working_state(memory: Memory):
    say(memory, "old", "Mend the login test", "Which one?", "The one with the TTL")
    memory.prompts.end_turn("old")
    given = memory.prompts.begin_session("new", project=HERE).text
    work = given.split("Open work (")[1]
    assert "Task > Mend the login test" in work
    assert "The one with the TTL" in work
    assert "Last sessions:" not in given


def test_briefing_omits_subagents(memory: Memory):
    say(memory, "old", "Ask a helper")
    say(memory, "old/agent-1", "Search all files for the TTL", "None", parent="old")
    memory.sessions.episode("old/agent-1")
    assert "Search all files" not in memory.prompts.begin_session("new", project=HERE).text


def failing_session(memory: Memory, session: str = "old") -> None:
    """Let a test fail, an edit be made, and the test pass."""

    def call(name: str, id_: str, **given: str) -> NewMessage:
        return NewMessage("assistant", (Part("tool_call", json.dumps(given), name, id_),), NOON)

    def result(text: str, id_: str, *, failed: bool = False) -> NewMessage:
        return NewMessage("tool", (Part("tool_result", text, "", id_, failed=failed),), NOON)

    memory.capture(session, [
        NewMessage("user", (Part("text", "Make the tests of the cache pass"),), NOON),
        call("Bash", "1", command="pytest tests/test_cache.py"),
        result(ERROR, "1", failed=True),
        call("Edit", "2", file_path="/code/almanac/auth/cache.py"),
        result("ok", "2"),
        call("Bash", "3", command="pytest tests/test_cache.py"),
        result("3 passed", "3"),
    ], agent="claude-code", project=HERE)  # fmt: skip
    memory.sessions.episode(session)
    memory.maintenance.embed_waiting()


def test_known_error_returns_its_resolution(memory: Memory):
    failing_session(memory)
    told = memory.prompts.for_error(
        "Bash", "{}", ERROR, session="new", project=HERE, failed=True
    ).text
    assert "gone after the assistant did:\n> Edit auth/cache.py" in told
    assert "expire_at" not in told, "what a tool printed is never handed on"


def test_fix_is_injected_once_per_session(memory: Memory):
    failing_session(memory)
    given = {"session": "new", "project": HERE, "failed": True}
    assert memory.prompts.for_error("Bash", "{}", ERROR, **given).text  # type: ignore[arg-type]  # as named
    memory.database.write(lambda db: db.rows("SELECT 1"))
    assert not memory.prompts.for_error("Bash", "{}", ERROR, **given).text  # type: ignore[arg-type]


def test_fix_is_injected_for_the_matching_error(memory: Memory):
    memory.store(f"{ERROR[4:]}: run make proto first", kind="bug_fix", project=HERE)
    memory.maintenance.embed_waiting()
    given = {"session": "new", "project": HERE, "failed": True}
    told = memory.prompts.for_error("Bash", "{}", ERROR, **given).text  # type: ignore[arg-type]
    assert "run make proto first" in told
    other = "Error: no space left on device while writing the index"
    assert not memory.prompts.for_error("Bash", "{}", other, **given).text  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("resolution", "fixes"),
    [
        ("Edit auth/cache.py", True),
        ("Bash pnpm install; Bash git status", True),
        ("Bash bun run lint:fix", True),
        ("Bash git status", False),
        ("Bash cd web && sed -n '1,9p' a.ts; Grep TTL", False),
        ("Bash bun run lint", False),
        ("tried again", False),
        ("", False),
    ],
)
def test_a_step_that_only_looks_or_checks_is_no_fix(resolution: str, fixes: bool):
    assert remedies.is_fix(resolution) is fixes


def test_mistake_in_the_use_of_a_tool_has_no_remedy(memory: Memory):
    mistake = "Error: String to replace not found in file auth/cache.py"
    memory.store(f"{mistake}: read it first", kind="bug_fix", project=HERE)
    memory.maintenance.embed_waiting()
    given = memory.prompts.for_error("Edit", "{}", mistake, project=HERE, failed=True)
    assert not given.text


def test_fix_of_a_year_ago_is_injected(memory: Memory, clock: FixedClock):
    failing_session(memory)
    clock.advance(days=365)
    given = memory.prompts.for_error("Bash", "{}", ERROR, project=HERE, failed=True)
    assert "Edit auth/cache.py" in given.text


@pytest.mark.parametrize("output", ["", "3 passed", "Exit code 1", ERROR])
def test_output_without_error_returns_nothing(memory: Memory, output: str):
    failing_session(memory)
    assert not memory.prompts.for_error("Read", "{}", output, session="new", project=HERE).text


def transcript(folder: Path, session: str, *said: str, name: str = "") -> Path:
    """Write a session of Claude Code in which a person and the assistant take turns."""
    lines = [
        claude_line(
            "assistant" if i % 2 else "user", text, uuid=f"{session}-{i}", sessionId=session
        )
        for i, text in enumerate(said)
    ]
    path = folder / f"{name or session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def test_ended_turn_is_captured_once(memory: Memory, tmp_path: Path):
    path = transcript(tmp_path, "s1", "Mend the login test", FINDING)
    first, second = memory.prompts.end_turn("s1", path), memory.prompts.end_turn("s1", path)
    assert first
    assert second
    assert (first.added, second.added) == (2, 0)
    memory.maintenance.embed_waiting()
    assert FINDING in injected(memory)


class OvertakenSessions(Sessions):
    """Sees a transcript at first as another reader did, a moment before."""

    def capture_files(self, paths: Sequence[Path] = (), **how: Any) -> CaptureResult:
        (path,) = paths
        whole = path.read_text()
        if not self.sessions():
            path.write_text(whole.splitlines(keepends=True)[0])
        captured = super().capture_files(paths, **how)
        path.write_text(whole)
        return captured


def test_turn_is_captured_despite_concurrent_reader(memory: Memory, tmp_path: Path):
    path = transcript(tmp_path, "s1", "Mend the login test", FINDING)
    prompts = Prompts(memory.context, OvertakenSessions(memory.context), memory.digest)
    prompts.end_turn("s1", path)
    assert len(memory.sessions.messages("s1")) == 2


def test_a_subagents_transcript_is_a_session_of_its_own(memory: Memory, tmp_path: Path):
    transcript(tmp_path, "s1", "Mend the login test", "I ask a helper")
    helper = transcript(tmp_path / "s1" / "subagents", "s1", "Find it", FINDING, name="agent-7")
    memory.prompts.end_turn("s1", tmp_path / "s1.jsonl")
    memory.prompts.end_turn("s1/agent-7", helper)
    known = {s.external_id: s for s in memory.sessions()}
    assert set(known) == {"s1", "s1/agent-7"}
    assert known["s1/agent-7"].parent_id == known["s1"].id
    assert FINDING not in "".join(p.text for m in memory.sessions.messages("s1") for p in m.parts)


def test_ended_session_has_an_episode(memory: Memory, tmp_path: Path):
    memory.prompts.end_session(
        "s1", transcript(tmp_path, "s1", "Mend the login test", "Done, it passes")
    )
    assert [kept.episode.goal for kept in memory.sessions.episodes()] == ["Mend the login test"]


def test_a_session_is_distilled_before_it_is_compacted(memory: Memory, tmp_path: Path):
    said = ["We use Redis for tokens, from now on", "Noted: tokens live in Redis."] * 12
    path = transcript(tmp_path, "s1", *(f"{text} ({i})" for i, text in enumerate(said)))
    made = memory.prompts.distill_now("s1", path)
    assert made
    assert memory.prompts.distill_now("unknown") == []


def test_an_injection_counts_its_tokens(memory: Memory):
    say(memory, "old", "Mend the login", FINDING)
    told = memory.prompts.for_prompt(PROMPT, session="new", project=HERE, threshold=0.2)
    assert told.tokens == tokens.count(told.text) > 0
    assert len(told.ids) == 1


def test_injected_text_is_not_learned_from_transcript(memory: Memory, tmp_path: Path):
    memory.store("Please always deploy with the blue heron script", kind="preference", project=HERE)
    memory.maintenance.embed_waiting()
    told = memory.prompts.begin_session("s1", project=HERE).text
    assert "blue heron" in told
    memory.prompts.end_turn(
        "s1", transcript(tmp_path, "s1", f"{told}\nMend the login test", "Done")
    )
    memory.maintenance.embed_waiting()
    said = [hit.text for hit in memory.recall("blue heron deploy script").hits]
    assert said == ["Please always deploy with the blue heron script"]
    assert memory.sessions.episode("s1").goal == "Mend the login test"  # type: ignore[union-attr]  # told


WORK = [f"request or answer number {n}" for n in range(20)]


def test_a_session_is_invited_to_store_once_and_after_substantial_work(memory: Memory):
    say(memory, "s", *WORK[:6])
    assert memory.prompts.invite("s") == ""
    say(memory, "s", *WORK)
    invitation = memory.prompts.invite("s")
    assert "`store`" in invitation
    assert "`corrects`" in invitation
    memory.database.write(lambda db: db.rows("SELECT 1"))
    assert memory.prompts.invite("s") == ""
    assert memory.prompts.invite("s", condensed=True) == ""


def test_a_compacted_session_is_invited_at_once(memory: Memory):
    assert memory.prompts.invite("s") == ""
    assert memory.prompts.invite("s", condensed=True)
    memory.database.write(lambda db: db.rows("SELECT 1"))
    assert memory.prompts.invite("s", condensed=True) == ""


def test_nobody_is_invited_who_wants_no_injection_or_is_a_subagent(tmp_path: Path, memory: Memory):
    assert memory.prompts.invite("s/agent-1", condensed=True) == ""
    for name in ("LORE_INJECT_INVITE", "LORE_INJECT_ON"):
        config = load({name: "false"}, home=tmp_path / name).settings
        with Memory.open(config=config, embedder=FakeEmbedder()) as quiet:
            assert quiet.prompts.invite("s", condensed=True) == ""


def test_an_invitation_is_recognized_as_text_of_lore():
    assert prompt_text.INVITATION.startswith("<lore-memory>")
