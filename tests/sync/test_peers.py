"""Peers that misbehave: an answer without an end, and a link that is dead."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from lore.errors import PeerUnreachable, SyncError
from lore.sync.peers import PeerOptions, PipePeer, open_peer
from lore.sync.wire_format import LONGEST_PAGE

PIECE = b"x" * 1_000_000


class Endless(BaseHTTPRequestHandler):
    """Answers with more than any page has."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        with suppress(ConnectionError):
            for _ in range(0, 2 * LONGEST_PAGE, len(PIECE)):
                self.wfile.write(PIECE)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def endless() -> Iterator[str]:
    with HTTPServer(("127.0.0.1", 0), Endless) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def test_a_server_that_sends_without_end_is_left(endless: str) -> None:
    options = PeerOptions(access_key="lore_x_y")
    with open_peer(endless, options) as peer, pytest.raises(SyncError, match="at once"):
        peer.describe()


def test_a_machine_that_sends_without_end_is_left() -> None:
    answers = io.BytesIO(b'{"lore_sync":1}\n' + b"x" * (LONGEST_PAGE + 1))
    peer = PipePeer("laptop:", io.BytesIO(), answers)
    with pytest.raises(SyncError, match="at once"):
        peer.changes("", "aa")


@pytest.mark.parametrize("command", ["ssh", "my-tunnel"])
def test_ssh_gives_up_a_dead_link_and_other_commands_get_no_options(
    tmp_path: Path, command: str
) -> None:
    program = tmp_path / command
    program.write_text('#!/bin/sh\necho "called with $@" >&2\nexit 255\n')
    program.chmod(0o700)
    opened = open_peer("me@laptop:", PeerOptions(ssh=str(program)))
    with opened as peer, pytest.raises(PeerUnreachable) as failure:
        peer.describe()
    options, _, rest = str(failure.value).partition("called with ")[2].partition("-- ")
    assert rest.startswith("me@laptop lore sync --stdio")
    gives_up = ("ServerAliveInterval=15", "ConnectTimeout=30")
    assert all((option in options) == (command == "ssh") for option in gives_up)
