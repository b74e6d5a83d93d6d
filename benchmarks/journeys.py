"""Count the source files and functions that five everyday calls pass through.

A reader who follows a call from the first line to the last has to open each of these files:

* remember and recall, by the library;
* capture and distill, by the library: a short transcript is read and condensed;
* gateway: a streamed request of a client, with memory on, to an upstream on this machine;
* mcp: a call of the tool `recall` over HTTP.

The last two go to a daemon that a process of its own runs (`lore up`), over its port. Each journey
is made once before it is counted, so that caches are warm and modules loaded. Functions count that
are called while the journey is under way, in any thread, until nothing has been called for a while;
comprehensions and lambdas count as a part of the function around them. What also runs while nobody
asks for anything does not count: the threads of periodic work, and the idle server.

    python benchmarks/journeys.py
    python benchmarks/journeys.py --list gateway

Only public names of the product are used: `lore.Memory`, the command `lore up`, settings in the
environment, the file `access.key` of the home, and the paths `/health`, `/mcp` and `/v1/messages`.
"""

from __future__ import annotations

import argparse
import http.client
import inspect
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import lore
from lore import Memory
from lore.cli import main as run_command

SOURCE = str(Path(lore.__file__).parent) + os.sep

QUIET_S = 0.7
"""A journey has ended when no function was called for so long."""

IDLE_S = 7.0
"""Periodic work of the daemon looks every five seconds whether there is something to do."""

START_S = 120.0

MODEL = "claude-sonnet-4-5"
QUESTION = "How do we deploy the harbor service?"
FACTS = (
    "The harbor service is deployed with ops/deploy.sh, blue/green, on Tuesdays.",
    "A rollback of the harbor service is ops/deploy.sh --previous and takes two minutes.",
    "The tide tables are kept in Postgres 16, in the schema tides.",
)
TALK = (
    ("user", "From now on we use pnpm in the harbor repository. Please mend the tide table."),
    ("assistant", "I changed src/tides.ts: it took the local date. The tests pass now."),
    ("user", "Good. We decided to keep the tide table in Postgres, not in SQLite."),
    ("assistant", "Noted: the tide table stays in Postgres."),
)

Calls = set[tuple[str, str]]
"""Files, relative to the source, and the functions in them."""


class Recorder:
    """Notes which functions of the product are called, in all threads that start after it."""

    def __init__(self) -> None:
        self.is_on = False
        self.calls: dict[int, Calls] = {}
        """What was called in each thread."""
        self.background: set[int] = set()
        """Threads of periodic work, which do not count."""
        self._idle: Calls = set()
        """What the event loop calls while it waits, which does not count either."""
        self._last_s = 0.0
        self._names: dict[int, tuple[CodeType, tuple[str, str] | None]] = {}
        """By id: equal code in two files is equal, and is kept here so that no id is used twice."""
        if sys.version_info >= (3, 12):
            self._monitor()
        else:
            threading.setprofile(self._profile)
            sys.setprofile(self._profile)

    def _profile(self, frame: FrameType, event: str, _argument: object) -> None:
        if event == "call":
            self._note(frame.f_code)

    if sys.version_info >= (3, 12):

        def _monitor(self) -> None:
            watch = sys.monitoring
            watch.use_tool_id(watch.PROFILER_ID, "journeys")
            for event in (watch.events.PY_START, watch.events.PY_RESUME):
                watch.register_callback(watch.PROFILER_ID, event, self._start)
            watch.set_events(watch.PROFILER_ID, watch.events.PY_START | watch.events.PY_RESUME)

        def _start(self, code: CodeType, _offset: int) -> Any:
            return None if self._note(code) else sys.monitoring.DISABLE

    def _note(self, code: CodeType) -> bool:
        """Note a call; return whether it is one of the product's functions."""
        if id(code) not in self._names:
            self._names[id(code)] = code, _name_of(code)
        name = self._names[id(code)][1]
        if name is not None and self.is_on:
            thread = threading.get_ident()
            self.calls.setdefault(thread, set()).add(name)
            if thread not in self.background and name not in self._idle:
                self._last_s = time.monotonic()
        return name is not None

    def count(self, journey: Callable[[], object]) -> Calls:
        """Make a journey twice; return what the second one called."""
        journey()
        self._wait_until_quiet()
        self.calls, self.is_on = {}, True
        journey()
        self._wait_until_quiet()
        self.is_on = False
        counted = [calls for thread, calls in self.calls.items() if thread not in self.background]
        return set().union(*counted) - self._idle

    def find_background(self) -> None:
        """Note what is at work while nobody asks for anything."""
        self._wait_until_quiet()
        self.calls, self.is_on = {}, True
        time.sleep(IDLE_S)
        self.is_on = False
        for thread, calls in self.calls.items():
            if _runs_event_loop(thread):
                self._idle |= calls
            else:
                self.background.add(thread)

    def _wait_until_quiet(self) -> None:
        self._last_s = time.monotonic()
        while time.monotonic() - self._last_s < QUIET_S:
            time.sleep(0.05)


def _runs_event_loop(thread: int) -> bool:
    """Return whether a thread waits for requests in an event loop."""
    frame = sys._current_frames().get(thread)
    while frame is not None and frame.f_code.co_name != "run_forever":
        frame = frame.f_back
    return frame is not None


def _name_of(code: CodeType) -> tuple[str, str] | None:
    """Return file and function of a code object; None if it is none of the product's functions."""
    if not code.co_filename.startswith(SOURCE) or not code.co_flags & inspect.CO_OPTIMIZED:
        return None  # the bodies of modules and classes are not optimized
    name = code.co_qualname
    while name.endswith(">") and ".<locals>." in name:
        name = name.rpartition(".<locals>.")[0]
    return code.co_filename.removeprefix(SOURCE), name


def count_library(recorder: Recorder, folder: Path) -> dict[str, Calls]:
    """Return what the journeys of the library call."""
    texts, counted = iter(FACTS), {}
    with Memory.open(folder / "library") as memory:
        counted["remember"] = recorder.count(lambda: memory.remember(next(texts)))
        counted["recall"] = recorder.count(lambda: memory.recall(QUESTION))
        numbers = iter(range(2))

        def digest() -> None:
            session = f"00000000-0000-4000-8000-00000000000{next(numbers)}"
            memory.capture_files([write_transcript(folder, session)])
            memory.distill(session)

        counted["capture and distill"] = recorder.count(digest)
    return counted


def write_transcript(folder: Path, session: str) -> Path:
    """Write a short transcript as Claude Code does."""
    lines = [
        {
            "type": role,
            "sessionId": session,
            "uuid": f"{session[:-4]}{session[-1]}{place:03}",
            "parentUuid": None,
            "timestamp": f"2026-05-13T12:00:{place:02}.000Z",
            "cwd": "/code/harbor",
            "gitBranch": "main",
            "version": "2.1.0",
            "message": {"role": role, "content": text},
        }
        for place, (role, text) in enumerate(TALK)
    ]
    path = folder / f"{session}.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


def serve_and_count(port: int, home: Path) -> None:
    """Be the daemon; meanwhile a thread asks it, prints what was called, and ends it."""
    recorder = Recorder()

    def drive() -> None:
        try:
            counted = count_daemon(recorder, port, home)
            result = {name: sorted(calls) for name, calls in counted.items()}
            print("\n" + json.dumps(result), flush=True)
        finally:
            os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=drive, daemon=True).start()
    run_command(["up"])


def count_daemon(recorder: Recorder, port: int, home: Path) -> dict[str, Calls]:
    """Return what a request to the gateway and a call by MCP pass through."""
    wait_until_up(port)
    threading.excepthook = threading.__excepthook__  # the daemon logs what fails; print it instead
    key = (home / "access.key").read_text().strip()
    for fact in FACTS:
        call_tool(port, key, "store", {"content": fact})
    ask_gateway(port)
    recorder.find_background()
    return {
        "gateway": recorder.count(lambda: ask_gateway(port)),
        "mcp": recorder.count(lambda: call_tool(port, key, "recall", {"query": QUESTION})),
    }


def wait_until_up(port: int) -> None:
    """Wait until the daemon answers."""
    until = time.monotonic() + START_S
    while True:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=5)
        try:
            connection.request("GET", "/health")
            connection.getresponse().read()
        except OSError:
            if time.monotonic() > until:
                raise
            time.sleep(0.1)
        else:
            return
        finally:
            connection.close()


def post(port: int, path: str, tree: object, headers: dict[str, str]) -> bytes:
    """Send JSON and return the body of the answer."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        headers = {"content-type": "application/json", **headers}
        connection.request("POST", path, json.dumps(tree), headers)
        response = connection.getresponse()
        body = response.read()
        assert response.status == http.HTTPStatus.OK, body
        assert not response.getheader("x-lore-degraded"), response.getheader("x-lore-degraded")
        return body
    finally:
        connection.close()


def call_tool(port: int, key: str, name: str, arguments: dict[str, str]) -> None:
    """Call a tool by MCP."""
    headers = {
        "authorization": f"Bearer {key}",
        "accept": "application/json, text/event-stream",
        "mcp-protocol-version": "2025-06-18",
    }
    params = {"name": name, "arguments": arguments}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    answer = post(port, "/mcp", body, headers)
    assert b'"isError":true' not in answer, answer


def ask_gateway(port: int) -> None:
    """Ask a model, in a new conversation, for something that memory knows about."""
    question = f"{QUESTION} This is conversation {time.monotonic_ns()}."
    messages = [{"role": "user", "content": question}]
    body = {"model": MODEL, "max_tokens": 1024, "stream": True, "messages": messages}
    headers = {"x-api-key": "of-a-client", "anthropic-version": "2023-06-01"}
    answer = post(port, "/v1/messages", body, headers)
    assert b"message_stop" in answer, answer


ANSWER = "By ops/deploy.sh, on Tuesdays."
EVENTS: tuple[dict[str, Any], ...] = (
    {"type": "message_start",
     "message": {"id": "msg_1", "type": "message", "role": "assistant", "model": MODEL,
                 "content": [], "stop_reason": None, "stop_sequence": None,
                 "usage": {"input_tokens": 40, "output_tokens": 1}}},
    {"type": "content_block_start", "index": 0, "content_block": {"type": "text", "text": ""}},
    {"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": ANSWER}},
    {"type": "content_block_stop", "index": 0},
    {"type": "message_delta", "delta": {"stop_reason": "end_turn", "stop_sequence": None},
     "usage": {"output_tokens": 12}},
    {"type": "message_stop"},
)  # fmt: skip


class Upstream(BaseHTTPRequestHandler):
    """A provider that streams the same answer to every request."""

    def do_POST(self) -> None:
        """Read a request and stream the answer."""
        self.rfile.read(int(self.headers["content-length"]))
        stream = "".join(f"event: {one['type']}\ndata: {json.dumps(one)}\n\n" for one in EVENTS)
        self.send_response(http.HTTPStatus.OK)
        self.send_header("content-type", "text/event-stream; charset=utf-8")
        self.send_header("content-length", str(len(stream)))
        self.end_headers()
        self.wfile.write(stream.encode())

    def log_message(self, *_: object) -> None:
        """Print nothing."""


@contextmanager
def upstream() -> Iterator[str]:
    """Serve the upstream and give its address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), Upstream)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        server.server_close()


def count_in_daemon(folder: Path) -> dict[str, Calls]:
    """Run a daemon in a process of its own and return what its journeys call."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    home = folder / "daemon"
    with upstream() as address:
        settings = {
            "HOME": str(folder),
            "LORE_HOME": str(home),
            "LORE_SERVER_PORT": str(port),
            "LORE_GATEWAY_ANTHROPIC_URL": address,
            "LORE_GATEWAY_WITHIN_MS": "4000",  # counting takes time
        }
        usual = {name: value for name, value in os.environ.items() if not name.startswith("LORE_")}
        command = [sys.executable, __file__, "--daemon", str(port), str(home)]
        done = subprocess.run(
            command, env={**usual, **settings}, stdout=subprocess.PIPE, text=True, check=True
        )
    result = done.stdout.strip().rpartition("\n")[2]
    if not result.startswith("{"):
        msg = "A journey through the daemon failed; the error is printed above."
        raise RuntimeError(msg)
    journeys = json.loads(result).items()
    return {name: {(file, function) for file, function in calls} for name, calls in journeys}


def main() -> None:
    """Make all journeys and print what they passed through."""
    options = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    options.add_argument("--json", action="store_true", help="print JSON")
    options.add_argument("--list", metavar="JOURNEY", help="print the files of one journey")
    options.add_argument("--daemon", nargs=2, metavar=("PORT", "HOME"), help=argparse.SUPPRESS)
    chosen = options.parse_args()
    if chosen.daemon:
        serve_and_count(int(chosen.daemon[0]), Path(chosen.daemon[1]))
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        counted = count_library(Recorder(), folder) | count_in_daemon(folder)
    figures = {
        name: {"files": len({file for file, _ in calls}), "functions": len(calls)}
        for name, calls in counted.items()
    }
    if chosen.json:
        print(json.dumps(figures, indent=1))
    else:
        print(f"{'journey':22} {'files':>6} {'functions':>10}")
        for name, figure in figures.items():
            print(f"{name:22} {figure['files']:6} {figure['functions']:10}")
    if chosen.list:
        for file, function in sorted(counted[chosen.list]):
            print(f"{file}:{function}")


if __name__ == "__main__":
    main()
