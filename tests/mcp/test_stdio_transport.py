from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SERVE = """
import sys
from lore.embed.embedder import NoEmbedder
from lore.mcp.transports import serve_stdio
from lore.memory import Memory

with Memory.open(home=sys.argv[1], embedder=NoEmbedder()) as memory:
    serve_stdio(memory, "/code/shop")
"""
HELLO = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-06-18",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


WRONG = [
    (b"no json", -32700, None),
    (b"\xff\xfe", -32700, None),
    (b"[]", -32600, None),
    (b'{"jsonrpc": "2.0", "id": 1e999, "method": "ping"}', -32600, None),
    (b'{"jsonrpc": "2.0", "id": 7, "method": "ping", "params": "\\ud800"}', -32700, 7),
    (b'{"jsonrpc": "2.0", "id": 8, "method": "ping", "params": 1}', -32600, 8),
    (b'{"jsonrpc": "1.0", "id": 9, "method": "ping"}', -32600, 9),
]


def test_every_line_that_is_no_message_is_answered(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", SERVE, str(tmp_path)],
        input=b"".join(line + b"\n" for line, _, _ in WRONG),
        capture_output=True,
        timeout=60,
        check=True,
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(one["error"]["code"], one["id"]) for one in answers] == [
        (code, id_) for _, code, id_ in WRONG
    ]


def test_a_client_is_answered_on_standard_output_until_it_hangs_up(tmp_path: Path):
    done = subprocess.run(
        [sys.executable, "-c", SERVE, str(tmp_path)],
        input=json.dumps(HELLO).encode() + b"\n",
        capture_output=True,
        timeout=60,
        check=True,
    )
    [line] = done.stdout.splitlines()
    answer = json.loads(line)
    assert answer["id"] == 1
    assert answer["result"]["serverInfo"]["name"] == "lore"
