"""Agent hooks over REST on a real server: input, output and rejections."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta
from pathlib import Path

import pytest

from lore.http.hooks import TRANSCRIPT_FOLDER, BackgroundWarmUp, Event, HookInput, hook_endpoints
from lore.proxy.hook_client import BLOCKING_EVENTS, HOOK_EVENTS, NOTIFICATION_EVENTS
from lore.records import NewMessage, Part
from lore.store import dialogue_state
from tests.capture.adapters.samples import claude_line
from tests.capture.adapters.test_opencode import Theirs
from tests.fakes import NOON
from tests.http_api.daemon_server import Served, serving
from tests.waiting import eventually

HERE = "/code/almanac"
FINDING = "TokenCache in auth/cache.py keeps expired tokens since get has no TTL check: added one"
LONG = "/code" + "/almanac" * 200
PROMPT = {
    "session_id": "new",
    "cwd": HERE,
    "hook_event_name": "UserPromptSubmit",
    "prompt": "why does TokenCache in auth/cache.py keep expired tokens, where is the TTL checked?",
}


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "home") as opened:
        yield opened


def remember(served: Served) -> None:
    said = [
        NewMessage("user", (Part("text", "Please always run make lint. Mend the login"),), NOON),
        NewMessage("assistant", (Part("text", FINDING),), NOON + timedelta(seconds=9)),
    ]
    served.memory.capture("old", said, agent="claude-code", project=HERE)
    served.memory.sessions.episode("old")
    served.memory.maintenance.embed_waiting()


def test_a_prompt_is_given_memory_as_the_agent_reads_it(served: Served):
    remember(served)
    status, answer = served.post("/hooks/UserPromptSubmit", PROMPT)
    assert status == 200
    given = answer["hookSpecificOutput"]
    assert given["hookEventName"] == "UserPromptSubmit"
    assert given["additionalContext"].startswith("<lore-memory>\n")
    assert FINDING in given["additionalContext"]
    assert set(answer) == {"hookSpecificOutput"}


def test_a_session_that_begins_is_told(served: Served):
    remember(served)
    _, answer = served.post("/hooks/SessionStart", {**PROMPT, "source": "startup"})
    assert "make lint" in answer["hookSpecificOutput"]["additionalContext"]


def test_a_session_that_is_resumed_is_not_told_again(served: Served):
    remember(served)
    assert served.post("/hooks/SessionStart", {**PROMPT, "source": "resume"}) == (200, {})


@pytest.mark.parametrize("event", HOOK_EVENTS)
def test_nothing_to_tell_is_an_empty_object(served: Served, event: str):
    assert served.post(f"/hooks/{event}", PROMPT) == (200, {})


@pytest.mark.parametrize("event", HOOK_EVENTS)
def test_a_folder_with_a_path_longer_than_a_name_is_no_reason_to_refuse_a_hook(
    served: Served, tmp_path: Path, event: str
):
    file = transcript(tmp_path, "new", "Mend the login")
    said = {**PROMPT, "cwd": LONG, "transcript_path": file}
    status, _ = served.post(f"/hooks/{event}", said)
    assert status == 200


def test_a_folder_with_a_path_longer_than_a_name_is_given_its_memory(served: Served):
    said = [NewMessage("assistant", (Part("text", FINDING),), NOON)]
    served.memory.capture("old", said, agent="claude-code", project=LONG)
    served.memory.maintenance.embed_waiting()
    status, answer = served.post("/hooks/UserPromptSubmit", {**PROMPT, "cwd": LONG})
    assert status == 200
    assert FINDING in answer["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_a_moment_that_two_hooks_tell_of_is_answered_once(served: Served, event: str):
    remember(served)
    said = {**PROMPT, "source": "startup"}
    with ThreadPoolExecutor(4) as pool:
        told = [pool.submit(served.post, f"/hooks/{event}", said) for _ in range(4)]
    assert [bool(one.result()[1]) for one in told].count(True) == 1


def test_a_turn_that_ends_while_the_one_before_is_stored_is_stored_too(
    served: Served, tmp_path: Path
):
    said = {"session_id": "s1", "transcript_path": transcript(tmp_path, "s1", "Mend the login")}
    begun, over = threading.Event(), threading.Event()

    def hold(_db: object) -> None:
        begun.set()
        over.wait(60)

    with ThreadPoolExecutor(3) as pool:
        pool.submit(served.memory.database.write, hold)
        assert begun.wait(30)
        first = pool.submit(served.post, "/hooks/Stop", said)
        transcript(tmp_path, "s1", "Mend the login", FINDING)
        second = pool.submit(served.post, "/hooks/Stop", said)
        over.set()
        assert first.result() == second.result() == (200, {})
    assert len(served.memory.sessions.messages("s1")) == 2


def test_an_agent_that_names_no_folder_is_told_nothing_of_any_project(served: Served):
    remember(served)
    homeless = {**PROMPT, "cwd": ""}
    assert served.post("/hooks/UserPromptSubmit", homeless) == (200, {})
    assert served.post("/hooks/SessionStart", homeless) == (200, {})


@pytest.mark.parametrize("event", sorted({*BLOCKING_EVENTS} - {"SubagentStart", "PreToolUse"}))
def test_an_agent_that_waits_no_longer_is_given_nothing(served: Served, event: str):
    remember(served)
    met = "AttributeError: TokenCache object has no attribute expire_at"
    served.memory.store(f"{met}: run make proto first", kind="bug_fix", project=HERE)
    served.memory.maintenance.embed_waiting()
    said = {**PROMPT, "tool_name": "Bash", "error": met}
    assert served.post(f"/hooks/{event}", said, **{"x-lore-within-ms": "0"}) == (200, {})
    assert served.post(f"/hooks/{event}", said)[1]


def transcript(folder: Path, session: str, *said: str, name: str = "") -> str:
    path = folder / TRANSCRIPT_FOLDER / "-code" / f"{name or session}.jsonl"
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = [
        claude_line("assistant" if i % 2 else "user", text, uuid=f"{name}{i}", sessionId=session)
        for i, text in enumerate(said)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return str(path)


def test_a_turn_that_ends_is_stored(served: Served, tmp_path: Path):
    path = transcript(tmp_path, "s1", "Mend the login test", FINDING)
    served.post("/hooks/Stop", {"session_id": "s1", "transcript_path": path, "cwd": HERE})
    assert [m.parts[0].text for m in served.memory.sessions.messages("s1")] == [
        "Mend the login test", FINDING,
    ]  # fmt: skip


def test_a_session_that_ends_is_told_as_an_episode(served: Served, tmp_path: Path):
    path = transcript(tmp_path, "s1", "Mend the login test", "Done, it passes")
    served.post("/hooks/SessionEnd", {"session_id": "s1", "transcript_path": path})
    assert [kept.episode.goal for kept in served.memory.sessions.episodes()] == [
        "Mend the login test"
    ]


ERRAND = "Count the tide tables of May"
DELEGATED = {"tool_name": "Task", "tool_input": {"prompt": ERRAND}}


@pytest.mark.parametrize(
    ("path", "session"),
    [
        ("/home/ada/.claude/projects/-code/s1.jsonl", "s1/agent-7"),
        ("/home/ada/.codex/sessions/2026/s1.jsonl", "7"),
        ("/home/ada/.local/share/opencode/opencode.db", "7"),
    ],
)
def test_a_subagent_is_named_as_capture_names_it(path: str, session: str):
    hook = HookInput(event="Stop", session_id="s1", agent_id="7", transcript_path=path)
    assert hook.session == session
    assert HookInput(event="Stop", session_id="s1", transcript_path=path).session == "s1"


def write_opencode(folder: Path, *sessions: str) -> str:
    """Write the database of opencode with a prompt in each session; return its path."""
    (folder / "opencode").mkdir()
    theirs = Theirs(folder / "opencode" / "opencode.db")
    for name in sessions:
        theirs.session(name)
        prompt = [{"type": "text", "text": f"Mend the login test of {name}"}]
        theirs.message(f"m-{name}", {"role": "user"}, prompt, session=name)
    theirs.db.close()
    return str(theirs.path)


def test_a_subagent_of_opencode_says_its_own_task(served: Served, tmp_path: Path):
    path = write_opencode(tmp_path, "ses_1", "ses_7")
    said = {
        "session_id": "ses_1", "agent_id": "ses_7", "cwd": HERE, "prompt": ERRAND,
        "transcript_path": path, "agent_transcript_path": path,
    }  # fmt: skip
    served.post("/hooks/SubagentStart", said)
    (task,) = served.memory.tasks()
    assert (task.goal, task.agent, task.state) == (ERRAND, "opencode", "open")
    served.post("/hooks/SubagentStop", said)
    (task,) = served.memory.tasks()
    assert task.state == "done"


def test_a_subagent_of_a_private_session_has_no_task(served: Served):
    served.memory.database.write(lambda db: dialogue_state.begin_private_mode(db, "s1", now=NOON))
    path = "/home/ada/.codex/sessions/2026/s1.jsonl"
    said = {**PROMPT, "session_id": "s1", "transcript_path": path}
    served.post("/hooks/PreToolUse", {**said, **DELEGATED})
    served.post("/hooks/SubagentStart", {**said, "agent_id": "7", "prompt": ERRAND})
    assert served.memory.tasks() == []


def test_an_excluded_folder_has_no_tasks_of_subagents(tmp_path: Path):
    with serving(tmp_path / "home", exclude=(f"{HERE}*",)) as served:
        served.post("/hooks/PreToolUse", {**PROMPT, **DELEGATED})
        served.post("/hooks/SubagentStart", {**PROMPT, "agent_id": "7", "prompt": ERRAND})
        assert served.memory.tasks() == []


def test_the_database_of_opencode_is_captured_when_a_turn_ends(served: Served, tmp_path: Path):
    path = write_opencode(tmp_path, "s1")
    served.post("/hooks/Stop", {"session_id": "s1", "transcript_path": path, "cwd": HERE})
    assert [m.parts[0].text for m in served.memory.sessions.messages("s1")] == [
        "Mend the login test of s1"
    ]


def test_no_other_database_is_captured(served: Served, tmp_path: Path):
    path = Path(write_opencode(tmp_path, "s1"))
    other = path.rename(path.with_name("opencode-copy.db"))
    served.post("/hooks/Stop", {"session_id": "s1", "transcript_path": str(other), "cwd": HERE})
    path.symlink_to(other)
    served.post("/hooks/Stop", {"session_id": "s1", "transcript_path": str(path), "cwd": HERE})
    assert served.memory.maintenance.stats().sessions == 0


def test_a_subagent_does_not_mix_with_its_parent(served: Served, tmp_path: Path):
    parent = transcript(tmp_path, "s1", "Mend the login test", "I ask a helper")
    helper = transcript(tmp_path, "s1", "Find it", FINDING, name="s1/subagents/agent-7")
    said = {"session_id": "s1", "transcript_path": parent}
    served.post("/hooks/Stop", said)
    told = {**said, "agent_id": "7", "agent_transcript_path": helper}
    served.post("/hooks/SubagentStop", told)
    assert len(served.memory.sessions.messages("s1")) == 2
    assert len(served.memory.sessions.messages("s1/agent-7")) == 2


def test_a_subagent_has_its_own_count_of_what_it_was_given(served: Served):
    remember(served)
    assert served.post("/hooks/UserPromptSubmit", PROMPT)[1]
    served.memory.database.write(lambda db: db.rows("SELECT 1"))
    assert not served.post("/hooks/UserPromptSubmit", PROMPT)[1]
    assert served.post("/hooks/UserPromptSubmit", {**PROMPT, "agent_id": "7"})[1]


def test_compaction_distils_first(served: Served, tmp_path: Path):
    said = ["We use Redis for tokens, from now on", "Noted: tokens live in Redis."] * 12
    path = transcript(tmp_path, "s1", *(f"{text} ({i})" for i, text in enumerate(said)))
    served.post("/hooks/PreCompact", {"session_id": "s1", "transcript_path": path})
    assert served.memory.maintenance.stats().distillations


@pytest.mark.parametrize(
    "response",
    [
        "AttributeError: TokenCache object has no attribute expire_at",
        {"stderr": "AttributeError: TokenCache object has no attribute expire_at", "stdout": ""},
        [{"type": "text", "text": "AttributeError: TokenCache object has no attribute expire_at"}],
        {"error": {"content": ["AttributeError: TokenCache object has no attribute expire_at"]}},
    ],
)
def test_an_error_brings_the_fix_that_is_known(served: Served, response: object):
    fix = "AttributeError: TokenCache object has no attribute expire_at: run make proto first"
    served.memory.store(fix, kind="bug_fix", project=HERE)
    served.memory.maintenance.embed_waiting()
    said = {"session_id": "n", "cwd": HERE, "tool_name": "Bash", "tool_input": {"command": "x"}}
    _, answer = served.post("/hooks/PostToolUseFailure", {**said, "tool_response": response})
    assert "run make proto first" in answer["hookSpecificOutput"]["additionalContext"]


@pytest.mark.parametrize(
    "path",
    ["relative.jsonl", "/etc/passwd", "/nowhere/x.jsonl", "\0.jsonl", "/" + "x" * 4_000, "/"],
)
def test_what_is_no_transcript_is_not_read(served: Served, path: str):
    assert served.post("/hooks/Stop", {"session_id": "s1", "transcript_path": path}) == (200, {})
    assert served.memory.maintenance.stats().messages == 0


def test_a_link_in_the_place_of_a_transcript_is_not_followed(served: Served, tmp_path: Path):
    real = transcript(tmp_path / "elsewhere", "s1", "Mend the login test", FINDING)
    folder = tmp_path / TRANSCRIPT_FOLDER
    (folder / "own").mkdir(parents=True)
    (folder / "own" / "s1.jsonl").symlink_to(real)
    (folder / "linked").symlink_to(Path(real).parent)
    (folder / "own" / "deep").symlink_to(tmp_path / "elsewhere")
    for path in ("own/s1.jsonl", "linked/s1.jsonl", "own/../linked/s1.jsonl", "own/deep/s1.jsonl"):
        said = {"session_id": "s1", "transcript_path": f"{folder}/{path}"}
        assert served.post("/hooks/Stop", said) == (200, {})
    assert served.memory.maintenance.stats().messages == 0


def test_a_file_that_lies_in_no_folder_of_transcripts_is_not_read(served: Served, tmp_path: Path):
    real = Path(transcript(tmp_path, "s1", "Mend the login test", FINDING))
    other = real.rename(tmp_path / real.name)
    served.post("/hooks/Stop", {"session_id": "s1", "transcript_path": str(other)})
    assert served.memory.maintenance.stats().messages == 0


def test_the_folder_of_transcripts_itself_may_be_a_link(served: Served, tmp_path: Path):
    """So it is where a person keeps it on another disk."""
    real = transcript(tmp_path / "disk", "s1", "Mend the login test", FINDING)
    (tmp_path / TRANSCRIPT_FOLDER).symlink_to(tmp_path / "disk" / TRANSCRIPT_FOLDER)
    path = tmp_path / Path(real).relative_to(tmp_path / "disk")
    served.post("/hooks/Stop", {"session_id": "s1", "transcript_path": str(path)})
    assert served.memory.maintenance.stats().messages == 2


def test_who_may_not_do_all_may_not_name_files(served: Served):
    key, _ = served.memory.access.create_key("guest", scopes=("read", "write", "push"))
    status, _ = served.post("/hooks/Stop", PROMPT, authorization=f"Bearer {key}")
    assert status == 403


def test_an_unknown_event_is_refused_and_an_unknown_field_is_not(served: Served):
    assert served.post("/hooks/Nonsense", PROMPT)[0] == 422
    assert served.post("/hooks/Stop", {**PROMPT, "of_tomorrow": [1, {"x": None}]}) == (200, {})


@pytest.mark.parametrize(
    "body", [b"", b"[]", b"{", b"null", b'{"prompt": 5}', b'{"event": "Stop"}']
)
def test_malformed_input_is_no_accident(served: Served, body: bytes):
    assert served.post("/hooks/UserPromptSubmit", body)[0] in (200, 400, 422)


@pytest.mark.parametrize("event", HOOK_EVENTS)
def test_only_what_an_agent_tells_has_threads_of_its_own(event: Event):
    [endpoint] = hook_endpoints()
    assert endpoint.limiter
    assert endpoint.takes_long(HookInput(event=event)) == (event in NOTIFICATION_EVENTS)


def test_a_prompt_does_not_wait_for_what_others_tell(served: Served, tmp_path: Path):
    remember(served)
    path = transcript(tmp_path, "s1", "Mend the login test", FINDING)
    told = [{"session_id": f"s{i}", "transcript_path": path} for i in range(8)]
    begun, over = threading.Event(), threading.Event()

    def hold(_db: object) -> None:
        begun.set()
        over.wait(60)

    with ThreadPoolExecutor(9) as pool:
        pool.submit(served.memory.database.write, hold)
        try:
            assert begun.wait(30)
            telling = [pool.submit(served.post, "/hooks/Stop", one) for one in told]
            assert served.post("/hooks/UserPromptSubmit", PROMPT)[1]
            assert not any(one.done() for one in telling)
        finally:
            over.set()
        assert all(one.result() == (200, {}) for one in telling)


def test_however_many_sessions_begin_one_thread_loads():
    warming, over, ended = BackgroundWarmUp(), threading.Event(), threading.Semaphore(0)
    loads: list[str] = []

    def load() -> None:
        loads.append("load")
        over.wait(30)
        ended.release()

    def once_more() -> bool:
        warming.start(load)
        return len(loads) > 1

    for _ in range(20):
        warming.start(load)
    over.set()
    assert ended.acquire(timeout=30)
    assert loads == ["load"]
    assert eventually(once_more)


def test_a_session_that_begins_gets_the_index_of_topics(served: Served):
    for n in range(40):
        text = f"TokenCache rule {n}: expired tokens of auth/cache.py are dropped after {n} minutes"
        served.memory.store(text, project=HERE, origin="assistant")
    served.memory.maintenance.embed_waiting()
    begin = {
        "session_id": "s1",
        "cwd": HERE,
        "hook_event_name": "SessionStart",
        "source": "startup",
    }
    _, answer = served.post("/hooks/SessionStart", begin)
    given = answer["hookSpecificOutput"]["additionalContext"]
    assert "Memory: " in given
    assert "40 memories" in given
    assert given.count("<lore-memory>") == given.count("</lore-memory>") == 1
    assert served.post("/hooks/SessionStart", begin)[1] in (None, {})


def test_a_task_of_the_task_list_is_given_what_is_known(served: Served):
    remember(served)
    served.memory.store(FINDING, project=HERE, origin="assistant")
    served.memory.maintenance.embed_waiting()
    todo = {"content": "Fix the expired tokens of TokenCache", "status": "in_progress", "id": "1"}
    call = {
        "session_id": "new",
        "cwd": HERE,
        "hook_event_name": "PostToolUse",
        "tool_name": "TodoWrite",
        "tool_input": {"todos": [todo]},
        "tool_response": {},
    }
    _, answer = served.post("/hooks/PostToolUse", call)
    given = answer["hookSpecificOutput"]["additionalContext"]
    assert "For this debugging task." in given
    assert FINDING in given
    done = {**call, "tool_input": {"todos": [{**todo, "status": "completed"}]}}
    _, answer = served.post("/hooks/PostToolUse", done)
    assert answer == {}
    [task] = served.memory.tasks.list_tasks()
    assert task.state == "open"  # how it ended shows when the turn is captured
    said = NewMessage("assistant", (Part("text", "All of them are fixed."),), NOON)
    served.memory.capture("new", [said], agent="claude-code", project=HERE)
    served.post("/hooks/Stop", {"session_id": "new", "cwd": HERE, "transcript_path": ""})
    [task] = served.memory.tasks.list_tasks()
    assert task.state == "done"
