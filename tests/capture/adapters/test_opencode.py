"""Sessions of opencode: its database, and the folder of files before it."""

import apsw
import orjson
import pytest

from lore.capture.adapters import opencode
from lore.capture.adapters.adapter_registry import find_adapter
from lore.capture.message_capture import prepare
from tests.capture.adapters.samples import OPENCODE, shapes

START = 1_770_000_000_000
SCHEMA = (
    "CREATE TABLE session (id TEXT PRIMARY KEY, parent_id TEXT, title TEXT, directory TEXT,"
    " version TEXT, time_created INTEGER)",
    "CREATE TABLE message (id TEXT PRIMARY KEY, session_id TEXT, time_created INTEGER,"
    " time_updated INTEGER, data TEXT)",
    "CREATE TABLE part (id TEXT PRIMARY KEY, message_id TEXT, data TEXT)",
)
SAID = [
    ("user", [("text", "Mend it."), ("aside", "Called the read tool."),
              ("image", "[image/png] p.png")]),
    ("assistant", [("reasoning", "Hm.")]),
    ("assistant", [("text", "I look.")]),
    ("assistant", [("tool_call", '{"filePath":"/code/a.py"}')]),
    ("tool", [("tool_result", "x")]),
    ("assistant", [("tool_call", '{"command":"ls"}')]),
    ("tool", [("tool_result", "no")]),
    ("assistant", [("opaque", '{"type":"novelty","shape":3}')]),
]  # fmt: skip


class Theirs:
    """A database as opencode makes it."""

    def __init__(self, path):
        self.path = path
        self.db = apsw.Connection(str(path))
        for statement in SCHEMA:
            self.db.execute(statement)
        self.parts = 0

    def session(self, id="s1", *, parent=None, title="Days", created=START - 1000):
        row = (id, parent, title, "/code/almanac", "1.18.33", created)
        self.db.execute("INSERT INTO session VALUES (?, ?, ?, ?, ?, ?)", row)

    def message(self, id, record, parts, *, session="s1", at=START, updated=None):
        row = (id, session, at, updated or at, orjson.dumps(record).decode())
        self.db.execute("INSERT OR REPLACE INTO message VALUES (?, ?, ?, ?, ?)", row)
        for part in parts:
            self.parts += 1
            data = orjson.dumps(part).decode()
            self.db.execute("INSERT INTO part VALUES (?, ?, ?)", (f"p{self.parts:04}", id, data))


@pytest.fixture
def theirs(tmp_path):
    made = Theirs(tmp_path / "opencode.db")
    yield made
    made.db.close()


def texts(stretches):
    messages = [message for stretch in stretches for message in stretch.messages]
    for message in messages:
        prepare(message)
    return [part.text for message in messages for part in message.parts]


def user(text):
    return {"role": "user"}, [{"type": "text", "text": text}]


def assistant(text, *, done=True):
    record = {"role": "assistant", "time": {"completed": 1} if done else {}}
    return record, [{"type": "text", "text": text}]


def test_session_yields_its_messages_in_order(theirs):
    theirs.session()
    for i, (record, parts) in enumerate(OPENCODE):
        theirs.message(f"m{i}", record, parts, at=START + i)
    (stretch,) = opencode.read(theirs.path, 0)
    assert shapes(stretch.messages) == SAID
    context = stretch.context
    assert (context.session, context.title, context.folder) == ("s1", "Days", "/code/almanac")
    assert context.files == ("/code/a.py", "/code/b.py")
    assert stretch.messages[1].usage == {
        "input_tokens": 3,
        "output_tokens": 2,
        "cache_read_input_tokens": 1,
    }
    assert stretch.messages[6].parts[0].failed
    assert stretch.position == START + 1
    assert find_adapter(theirs.path, theirs.path.read_bytes()[:100]) is opencode


def test_new_messages_are_read_and_an_unfinished_response_waits(theirs):
    theirs.session()
    theirs.message("m1", *user("one"))
    theirs.message("m2", *assistant("two", done=False), at=START + 5)
    stretches = list(opencode.read(theirs.path, 0))
    assert texts(stretches) == ["one"]
    position = stretches[-1].position
    theirs.message("m2", assistant("two")[0], [], at=START + 5, updated=START + 9)
    theirs.message("m3", *user("three"), at=START + 10)
    later = list(opencode.read(theirs.path, position))
    assert texts(later) == ["two", "three"]
    assert later[-1].position == START + 10


def test_abandoned_response_is_read_once_other_sessions_continue(theirs):
    theirs.session()
    theirs.message("m1", *assistant("half", done=False))
    theirs.message("m2", *user("go on"), at=START + 5)
    assert texts(opencode.read(theirs.path, 0)) == ["half", "go on"]


def test_the_position_moves_only_with_the_last_session(theirs):
    theirs.session("s1")
    theirs.session("s2")
    theirs.message("m1", *user("a"), session="s1", at=START + 3)
    theirs.message("m2", *user("b"), session="s2", at=START + 4)
    assert [stretch.position for stretch in opencode.read(theirs.path, 7)] == [7, START + 4]


def test_a_child_session_is_linked_and_its_prompt_is_the_parents(theirs):
    theirs.session("s2", parent="s1", title="Child session - 2026")
    theirs.message("m1", *user("Always count."), session="s2")
    (stretch,) = opencode.read(theirs.path, 0)
    assert (stretch.context.parent, stretch.context.title) == ("s1", "")
    assert (stretch.messages[0].origin, stretch.messages[0].speaker) == ("assistant", "agent")


def test_fork_copies_are_read_only_if_the_original_is_gone(theirs):
    theirs.session("s1")
    theirs.session("s2", created=START + 100)
    theirs.message("m1", *user("here"), session="s1", at=START + 1)
    theirs.message("m2", *user("here"), session="s2", at=START + 1, updated=START + 100)
    theirs.message("m3", *user("gone"), session="s2", at=START + 2, updated=START + 100)
    theirs.message("m4", *user("new"), session="s2", at=START + 101)
    assert texts(opencode.read(theirs.path, 0)) == ["here", "gone", "new"]


def test_a_fork_comes_from_the_session_of_its_last_copy_and_is_no_subagent(theirs):
    theirs.session("s1")
    theirs.session("s2", created=START + 100)
    theirs.session("s3", created=START + 200)
    theirs.message("m1", *user("one"), session="s1", at=START + 1)
    theirs.message("m2", *user("one"), session="s2", at=START + 1, updated=START + 100)
    theirs.message("m3", *user("two"), session="s2", at=START + 101)
    theirs.message("m4", *user("one"), session="s3", at=START + 1, updated=START + 200)
    theirs.message("m5", *user("two"), session="s3", at=START + 101, updated=START + 200)
    theirs.message("m6", *user("three"), session="s3", at=START + 201)
    stretches = list(opencode.read(theirs.path, 0))
    assert [stretch.context.parent for stretch in stretches] == ["", "s1", "s2"]
    assert [message.speaker for each in stretches for message in each.messages] == ["", "", ""]
    (last,) = opencode.read(theirs.path, START + 201)
    assert last.context.parent == "s2"


def test_a_summary_after_compaction_is_an_aside(theirs):
    theirs.session()
    record = {"role": "assistant", "summary": True, "time": {"completed": 1}}
    theirs.message("m1", record, [{"type": "text", "text": "So far."}])
    (stretch,) = opencode.read(theirs.path, 0)
    assert shapes(stretch.messages) == [("system", [("aside", "So far.")])]


def test_failures_are_seen_where_opencode_calls_them_completed(theirs):
    def tool(name, **state):
        return {"type": "tool", "tool": name, "state": {"status": "completed", **state}}

    theirs.session()
    parts = [
        tool("bash", output="no", metadata={"exit": 1}),
        tool("bash", output="yes", metadata={"exit": 0}),
        tool("invalid", output="unknown", input={"tool": "no_such_tool"}),
    ]
    theirs.message("m1", {"role": "assistant", "time": {"completed": 1}}, parts)
    (stretch,) = opencode.read(theirs.path, 0)
    results = [message.parts[0] for message in stretch.messages if message.role == "tool"]
    assert [part.failed for part in results] == [True, False, True]
    assert results[2].name == "no_such_tool"
    calls = [message.parts[0] for message in stretch.messages if message.role == "assistant"]
    assert (calls[2].name, calls[2].text) == ("no_such_tool", "")


def test_invalid_rows_are_ignored(theirs):
    theirs.session()
    theirs.db.execute("INSERT INTO message VALUES ('x', 's1', 1, 'soon', '{')")
    theirs.db.execute("INSERT INTO message VALUES (NULL, NULL, NULL, 9, 7)")
    theirs.db.execute("INSERT INTO message VALUES ('y', 's1', 1, 9, '{\"role\": \"user\"}')")
    theirs.db.execute("INSERT INTO part VALUES ('p', 'y', '[[]]'), ('q', 'y', NULL)")
    theirs.message("z", {"role": "ghost"}, [])
    theirs.message("m", *user("sound"), at=START + 1)
    stretches = list(opencode.read(theirs.path, 0))
    assert "sound" in texts(stretches)
    assert any("role ghost" in stretch.unknown for stretch in stretches)


def test_database_without_the_tables_yields_nothing(tmp_path):
    path = tmp_path / "opencode.db"
    apsw.Connection(str(path)).execute("CREATE TABLE other (id TEXT)")
    assert list(opencode.read(path, 0)) == []


def test_folder_of_older_versions_yields_the_same_messages(tmp_path):
    storage = tmp_path / ".local" / "share" / "opencode" / "storage"
    session = storage / "session" / "project" / "ses_1.json"
    session.parent.mkdir(parents=True)
    session.write_bytes(orjson.dumps({"id": "ses_1", "title": "Days", "directory": "/code"}))
    for i, (record, parts) in enumerate(OPENCODE):
        file = storage / "message" / "ses_1" / f"msg_{i}.json"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(orjson.dumps(record))
        for j, part in enumerate(parts):
            file = storage / "part" / f"msg_{i}" / f"prt_{j}.json"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(orjson.dumps(part))
    assert list(opencode.session_files.find(tmp_path)) == [session]
    assert find_adapter(session, session.read_bytes()) is opencode.session_files
    (stretch,) = opencode.session_files.read(session, 0)
    assert shapes(stretch.messages) == SAID
    assert (stretch.position, stretch.context.folder) == (2, "/code")
    assert list(opencode.session_files.read(session, 2)) == []


def test_only_regular_databases_are_found(tmp_path):
    folder = tmp_path / ".local" / "share" / "opencode"
    folder.mkdir(parents=True)
    (folder / "opencode.db").write_bytes(b"")
    (folder / "opencode-dev.db").symlink_to(folder / "opencode.db")
    assert [path.name for path in opencode.find(tmp_path)] == ["opencode.db"]
