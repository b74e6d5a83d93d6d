"""`lore hook` as agents start it: what it prints, and that nothing can make it fail or stay."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from lore.daemon import daemon_lock
from lore.proxy.hook_client import HOOK_EVENTS, START_LOCK_FILE
from tests.capture.adapters.samples import SESSION, claude_line
from tests.cli.conftest import PROGRAM, environment, run_process
from tests.fakes import NOON
from tests.http_api.daemon_server import serving
from tests.http_api.test_hooks import FINDING, PROMPT, remember
from tests.waiting import eventually

INPUT = json.dumps(PROMPT).encode()


def answered(home: Path, event: str = "UserPromptSubmit", stdin: bytes = INPUT) -> bytes:
    """Run the hook until it was in time: a machine may have much else to do."""

    def once() -> bytes:
        done = run_hook(home, event, stdin=stdin, LORE_INJECT_WITHIN_MS="4000")
        assert (done.returncode, done.stderr) == (0, b"")
        return done.stdout

    return eventually(once)


def run_hook(
    home: Path, *words: str, stdin: bytes = INPUT, **env: str
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [*PROGRAM, "--home", str(home), "hook", *words],
        input=stdin,
        capture_output=True,
        env=environment(home, **env),
        timeout=60,
        check=False,
    )


def says_nothing(done: subprocess.CompletedProcess[bytes]) -> bool:
    return (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_what_the_server_gives_is_printed_as_it_is(tmp_path: Path):
    with serving(tmp_path) as served:
        remember(served)
        told = json.loads(answered(tmp_path, "SessionStart"))
        assert "make lint" in told["hookSpecificOutput"]["additionalContext"]
        told = json.loads(answered(tmp_path))
        assert FINDING in told["hookSpecificOutput"]["additionalContext"]
        assert told["hookSpecificOutput"]["hookEventName"] == "UserPromptSubmit"


def test_nothing_is_printed_where_there_is_nothing_to_tell(tmp_path: Path):
    with serving(tmp_path):
        assert says_nothing(run_hook(tmp_path, "UserPromptSubmit"))
        assert says_nothing(run_hook(tmp_path, "Stop"))


def test_what_an_agent_tells_is_passed_on_after_the_hook_has_ended(tmp_path: Path):
    path = tmp_path / "projects" / "-code-harbor" / f"{SESSION}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_text(json.dumps(claude_line("user", "The lamp is lit at dusk.")) + "\n")
    told = {"session_id": SESSION, "transcript_path": str(path), "cwd": "/code/harbor"}
    with serving(tmp_path / "home") as served:
        home = tmp_path / "home"
        assert says_nothing(run_hook(home, "Stop", stdin=json.dumps(told).encode()))
        eventually(served.memory.sessions)
        assert (
            served.memory.sessions.messages(SESSION)[0].parts[0].text == "The lamp is lit at dusk."
        )


@pytest.mark.parametrize(
    "stdin", [b"", b"{", b"[]", b"\xff\xfe", b"null", b"{}" * 9, b"x" * 5_000_000]
)
def test_input_that_is_no_hooks_is_no_failure(tmp_path: Path, stdin: bytes):
    with serving(tmp_path):
        assert says_nothing(run_hook(tmp_path, "UserPromptSubmit", stdin=stdin))


@pytest.mark.parametrize("event", ["Nonsense", "../logins", "a b", "%2e%2e", "é", "x" * 3_000])
def test_an_event_that_nobody_knows_is_no_failure(tmp_path: Path, event: str):
    with serving(tmp_path):
        assert says_nothing(run_hook(tmp_path, event))


@pytest.mark.parametrize(
    "words",
    [["Stop", "extra"], ["Stop", "--loud"], ["--loud", "Stop"], ["-x"], ["--home", "/code"]],
)
def test_words_that_are_too_many_are_no_failure(tmp_path: Path, words: list[str]):
    assert says_nothing(run_hook(tmp_path, *words))


def test_without_an_event_it_says_so_to_people_only(tmp_path: Path):
    done = run_hook(tmp_path)
    assert (done.returncode, done.stdout) == (0, b"")
    assert b"lore hook --help" in done.stderr


def test_its_help_names_the_events(tmp_path: Path):
    assert all(event.encode() in run_hook(tmp_path, "--help").stdout for event in HOOK_EVENTS)


@pytest.mark.parametrize("event", ["UserPromptSubmit", "Stop", "PostToolUse"])
def test_without_a_home_nothing_happens(tmp_path: Path, event: str):
    assert says_nothing(run_hook(tmp_path / "home", event))
    assert not (tmp_path / "home").exists()


@contextmanager
def mute(home: Path, answer: bytes = b"") -> Iterator[None]:
    """Pretend to be a daemon that takes what it is sent and gives a wrong answer or none."""
    held = daemon_lock.take_lock(home, now=NOON, version="test")
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port = listening.getsockname()[1]
        said = {"host": "127.0.0.1", "port": port, "pid": os.getpid()}
        (home / "server.json").write_text(json.dumps(said))
        (home / "access.key").write_text("k" * 50)
        if answer:
            (home / "answer").write_bytes(answer)
            script = (
                "import socket, sys; s = socket.socket(fileno=int(sys.argv[1]));\n"
                "while True:\n c, _ = s.accept(); c.recv(99999);"
                " c.sendall(open(sys.argv[2], 'rb').read()); c.close()"
            )
            os.set_inheritable(listening.fileno(), True)
            helper = subprocess.Popen(
                [sys.executable, "-c", script, str(listening.fileno()), str(home / "answer")],
                close_fds=False,
            )
        yield
        if answer:
            helper.kill()
            helper.wait()
    held.release()


def test_a_daemon_that_does_not_answer_is_not_waited_for(tmp_path: Path):
    with mute(tmp_path):
        assert says_nothing(run_hook(tmp_path, "UserPromptSubmit"))


@pytest.mark.parametrize(
    "answer",
    [
        b"nonsense",
        b"HTTP/1.1 500 No\r\ncontent-length: 2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\ncontent-length: 99\r\n\r\n{",
        b'HTTP/1.1 403 No\r\ncontent-length: 11\r\n\r\n{"detail":1}',
        b"HTTP/1.1 200 OK\r\ncontent-length: x\r\n\r\n{}",
    ],
)
def test_a_daemon_that_answers_nonsense_is_not_believed(tmp_path: Path, answer: bytes):
    with mute(tmp_path, answer):
        assert says_nothing(run_hook(tmp_path, "UserPromptSubmit"))


def test_an_agent_that_never_ends_its_input_is_not_waited_for(tmp_path: Path):
    with serving(tmp_path):
        command = [*PROGRAM, "--home", str(tmp_path), "hook", "UserPromptSubmit"]
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=environment(tmp_path)
        ) as running:
            assert running.wait(timeout=60) == 0
            assert running.stdout
            assert running.stdout.read() == b""


def test_output_that_nobody_reads_is_no_failure(tmp_path: Path):
    with serving(tmp_path) as served:
        remember(served)
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [*PROGRAM, "--home", str(tmp_path), "hook", "SessionStart"],
            input=INPUT, stdout=writing, stderr=subprocess.PIPE, env=environment(tmp_path),
            timeout=60, check=False,
        )  # fmt: skip
        os.close(writing)
        assert (done.returncode, done.stderr) == (0, b"")


@pytest.mark.parametrize("event", ["SessionStart", "UserPromptSubmit"])
def test_a_session_without_a_daemon_wakes_one_and_does_not_wait_for_it(tmp_path: Path, event: str):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text('[server]\nport = 0\n[embed]\nprovider = "none"\n')
    try:
        eventually(
            lambda: says_nothing(run_hook(home, event)) and daemon_lock.find_holder(home),
            every_s=2.0,
        )
        eventually((home / "server.json").exists)
    finally:
        run_process("down", home=home)


def test_sessions_that_begin_together_wake_one_daemon(tmp_path: Path):
    (tmp_path / "config.toml").write_text("[mcp]\nstart = false\n")
    waking = tmp_path / START_LOCK_FILE
    eventually(lambda: says_nothing(run_hook(tmp_path, "SessionStart")) and waking.exists())
    begun = waking.stat().st_mtime_ns
    assert says_nothing(run_hook(tmp_path, "SessionStart"))
    assert says_nothing(run_hook(tmp_path, "UserPromptSubmit"))
    assert waking.stat().st_mtime_ns == begun
    os.utime(waking, (1, 1))
    eventually(
        lambda: (
            says_nothing(run_hook(tmp_path, "UserPromptSubmit"))
            and waking.stat().st_mtime_ns > begun
        )
    )


ALONE = """
import os, sys
from lore.proxy import hook_client

def disk_of(home):
    files, left, blocks = map(int, sys.argv[2:])
    return os.statvfs_result((4096, 4096, 9, blocks, blocks, files, left, left, 0, 255))

start, answer = lambda home: print("woken"), lambda *_: b"alone"
hook_client.run_hook("SessionStart", sys.argv[1], start, answer, disk_of)
"""


def alone_on(home: Path, *disk: int) -> bytes:
    """Return what a hook says on a disk of so many files, of which so many and blocks are left."""
    command = [sys.executable, "-c", ALONE, str(home), *map(str, disk)]
    done = subprocess.run(
        command, input=INPUT, capture_output=True, env=environment(home), timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, b"")
    return done.stdout


@pytest.mark.parametrize("disk", [(9, 9, 0), (9, 0, 9), (0, 0, 0)])
def test_a_session_that_begins_on_a_full_disk_is_answered_alone(
    tmp_path: Path, disk: tuple[int, int, int]
):
    waking = tmp_path / START_LOCK_FILE
    waking.mkdir()  # nothing can be written there, as where a disk has no room
    os.utime(waking, (1, 1))
    eventually(lambda: alone_on(tmp_path, *disk) == b"alone")


@pytest.mark.parametrize("disk", [(9, 9, 9), (0, 0, 9)])
def test_a_disk_with_room_or_that_counts_no_files_is_not_full(
    tmp_path: Path, disk: tuple[int, int, int]
):
    (tmp_path / START_LOCK_FILE).touch()
    assert alone_on(tmp_path, *disk) == b""


def test_a_daemon_that_hangs_holds_up_no_session_that_begins(tmp_path: Path):
    with mute(tmp_path):
        assert says_nothing(run_hook(tmp_path, "SessionStart"))


def test_the_daemon_is_left_asleep_where_that_is_wanted(tmp_path: Path):
    home = tmp_path / "home"
    home.mkdir()
    (home / "config.toml").write_text("[mcp]\nstart = false\n")
    done = subprocess.run(
        [*PROGRAM, "--home", str(home), "hook", "Wake"],
        capture_output=True, env=environment(home), timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode == 0
    assert daemon_lock.find_holder(home) is None


def test_a_hook_loads_little(tmp_path: Path):
    script = "import lore.cli.fast_path, lore.proxy.hook_client, sys; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    heavy = {"typing", "dataclasses", "subprocess", "pathlib", "http", "email", "ssl", "asyncio",
             "argparse", "typer", "lore.memory", "lore.settings"}  # fmt: skip
    assert not heavy & set(done.stdout.split())
