"""The chat databases of Cursor's command line, written as its format is described."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.capture.adapters import adapter_registry, cursor_cli
from lore.capture.transcript_capture import ReadOptions, read_file
from lore.projects import ProjectFinder
from lore.store import sessions
from lore.store.database import Database
from tests.capture.adapters.test_agent_transcripts import found, shapes, write_lines

CHAT = "0b8c1f7e-2222-4444-8888-aaaaaaaaaaaa"
SAID: list[Any] = [
    {"role": "system", "content": "You are Cursor."},
    {"role": "user", "content": "<user_info>Linux</user_info>"},
    {"role": "user", "content": [
        {"type": "text", "text": "<user_query>\nMend it.\n</user_query>"}]},
    {"role": "assistant", "content": [
        {"type": "reasoning", "text": "Hm."}, {"type": "text", "text": "I look."},
        {"type": "tool-call", "toolCallId": "c1", "toolName": "Read", "args": {"path": "a.py"}}]},
    {"role": "tool", "content": [
        {"type": "tool-result", "toolCallId": "c1", "toolName": "Read", "result": "x = 1"}]},
]  # fmt: skip
ANSWER = {"role": "assistant", "content": "It is mended."}


@pytest.fixture
def reading(database: Database) -> ReadOptions:
    return ReadOptions(database, adapter_registry.find_adapter, ProjectFinder(Path("/nowhere")))


def field(number: int, value: bytes) -> bytes:
    assert len(value) < 128
    return bytes((number << 3 | 2, len(value))) + value


def write_chat(home: Path, said: list[Any], root: bytes | None = None) -> Path:
    """Write a chat as Cursor does: a changed root is a new one."""
    path = home / ".cursor/chats/5f3b2c" / CHAT / "store.db"
    path.parent.mkdir(parents=True, exist_ok=True)
    db = apsw.Connection(str(path))
    db.execute("CREATE TABLE IF NOT EXISTS blobs (id TEXT PRIMARY KEY, data BLOB)")
    db.execute("CREATE TABLE IF NOT EXISTS meta (key TEXT PRIMARY KEY, value TEXT)")

    def put(data: bytes) -> bytes:
        digest = hashlib.sha256(data)
        db.execute("INSERT OR IGNORE INTO blobs VALUES (?, ?)", (digest.hexdigest(), data))
        return digest.digest()

    ids = [put(json.dumps(message).encode()) for message in said]
    tree = b"".join(field(1, id_) for id_ in ids) + b"\x28\x07" + field(9, b"file:///code/my%20app")
    meta = {
        "agentId": CHAT, "latestRootBlobId": put(tree if root is None else root).hex(),
        "name": "Mending", "createdAt": 1_777_888_800_000,
    }  # fmt: skip
    db.execute("INSERT OR REPLACE INTO meta VALUES ('0', ?)", (json.dumps(meta).encode().hex(),))
    db.close()
    return path


def test_a_chat_is_read_in_order_and_continued(reading, database, tmp_path):
    path = write_chat(tmp_path, SAID)
    assert found(tmp_path) == [path]
    read_file(reading, path)
    write_chat(tmp_path, [*SAID, ANSWER])
    assert read_file(reading, path).added == 1
    assert read_file(reading, path).added == 0
    assert [each for each in shapes(database, CHAT) if "user_info" not in each[2]] == [
        ("user", "text", "Mend it."),
        ("assistant", "reasoning", "Hm."),
        ("assistant", "text", "I look."),
        ("assistant", "tool_call", '{"path":"a.py"}'),
        ("tool", "tool_result", "x = 1"),
        ("assistant", "text", "It is mended."),
    ]
    with database.read() as db:
        n = sessions.get_session_number(db, CHAT)
        session = sessions.get_sessions(db, [n])[n]
    assert (session.agent, session.title) == ("cursor", "Mending")


def test_a_rewound_chat_stores_nothing_twice(reading, database, tmp_path):
    path = write_chat(tmp_path, [*SAID, ANSWER])
    read_file(reading, path)
    other = {"role": "assistant", "content": "It is not."}
    write_chat(tmp_path, [*SAID, other])
    write_chat(tmp_path, [*SAID[:4], other])
    read_file(reading, path)
    texts = [text for _, _, text in shapes(database, CHAT)]
    assert texts.count("Mend it.") == 1
    assert texts.count("It is not.") == 1


def test_a_chat_with_a_transcript_is_read_from_that(tmp_path):
    write_chat(tmp_path, SAID)
    transcript = tmp_path / ".cursor/projects/code/agent-transcripts" / CHAT / f"{CHAT}.jsonl"
    write_lines(transcript, {"role": "user", "message": {"content": "Mend it."}})
    assert found(tmp_path) == [transcript]


@given(root=st.binary(max_size=80))
def test_any_root_is_survived(tmp_path_factory: pytest.TempPathFactory, root: bytes):
    path = write_chat(tmp_path_factory.mktemp("home"), [], root)
    for chunk in cursor_cli.adapter.read(path, 0):
        assert not chunk.messages or chunk.position
