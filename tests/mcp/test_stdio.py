from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

SERVE = """
import sys
from lore.embed.none import NoEmbedder
from lore.mcp.stdio import serve
from lore.memory import Memory

with Memory.open(home=sys.argv[1], embedder=NoEmbedder()) as memory:
    serve(memory, "/code/shop")
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
