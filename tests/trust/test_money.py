"""Money on a kill: what agents' requests cost is known, whatever happens to the daemon."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

from lore.daemon import daemon_lock
from lore.memory import Memory
from lore.settings import load
from tests.cli.conftest import environment
from tests.gateway.faulty_upstream import HEAD, Peer, chunk, faulty
from tests.gateway.store_lock import locked
from tests.trust.test_passing import free_port
from tests.waiting import PATIENCE_S, eventually

STREAMS = 50

BODY = (
    b'{"model": "dear", "max_tokens": 100, "stream": true,'
    b' "messages": [{"role": "user", "content": "Hello"}]}'
)
REQUEST = (
    b"POST /v1/messages HTTP/1.1\r\nhost: 127.0.0.1\r\nx-api-key: k\r\n"
    b"content-type: application/json\r\ncontent-length: %d\r\n\r\n" % len(BODY)
)

STARTED = chunk(b'event: ping\ndata: {"type": "ping"}\n\n')


def stream_on(peer: Peer) -> None:
    peer.send(HEAD + STARTED)
    peer.wait_until_left()


def test_every_stream_that_left_is_paid_for_after_a_kill_on_a_locked_store(tmp_path: Path):
    home, port = tmp_path / "home", free_port()
    with faulty(stream_on) as up, ExitStack() as stack:
        settings = {
            "LORE_GATEWAY_ANTHROPIC_URL": up.url,
            "LORE_SERVER_PORT": str(port),
            "LORE_PRICES": "dear input=1000 output=1000",
            "LORE_DAILY_BUDGET": "1000000",
        }
        daemon = subprocess.Popen(
            [sys.executable, "-c", "from lore.cli import main; main()", "up"],
            env=environment(home, **settings),
        )
        stack.enter_context(daemon)
        stack.callback(daemon.kill)
        eventually(lambda: is_listening(port))
        with locked(home / "memory.db"):
            for _ in range(STREAMS):
                line = socket.create_connection(("127.0.0.1", port), PATIENCE_S)
                stack.enter_context(line).sendall(REQUEST + BODY)
            eventually(lambda: len(up.requests) == STREAMS)
            os.kill(daemon.pid, signal.SIGKILL)
            daemon.wait(PATIENCE_S)
    assert daemon_lock.find_holder(home) is None
    with Memory.open(config=load({}, home=home).settings) as memory:
        memory.budget.load_prices()
        eventually(lambda: len(memory.budget.page_of_spend(limit=500).items) == STREAMS)
        report = memory.budget.spend_report()
    assert report.total.estimated == report.total.requests == STREAMS
    assert all(line.usd > 0 for line in report.lines)
    assert not list(home.glob("memory.db-spend-*"))


def is_listening(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), PATIENCE_S).close()
    except OSError:
        return False
    return True
