"""Archives that people export from chat services."""

from __future__ import annotations

import io
import json
import random
import zipfile
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.capture.adapters.adapter_registry import find_adapter
from lore.capture.adapters.archives import read_objects
from lore.capture.adapters.chatgpt import adapter as chatgpt
from lore.capture.adapters.claude_ai import adapter as claude_ai
from lore.capture.message_capture import prepare
from lore.capture.transcript_capture import ReadOptions, read_file
from lore.errors import InvalidInput, NotFound
from tests.capture.adapters.samples import CHATGPT, CLAUDE_AI, shapes


def archive(path, *documents):
    with zipfile.ZipFile(path, "w") as file:
        for i, document in enumerate(documents):
            name = "conversations.json" if i == 0 else f"conversations-{i}.json"
            file.writestr(f"export/{name}", orjson.dumps(document))
        file.writestr("user.json", "{}")
    return path


@pytest.mark.parametrize(("adapter", "sample"), [(chatgpt, CHATGPT), (claude_ai, CLAUDE_AI)])
def test_an_archive_and_its_bare_json_say_the_same(tmp_path, adapter, sample):
    bare = tmp_path / "conversations.json"
    bare.write_bytes(orjson.dumps([sample]))
    packed = archive(tmp_path / "export.zip", [sample])
    for path in (bare, packed):
        assert find_adapter(path, path.read_bytes()[:100]) is adapter
    (one,) = adapter.read(bare, 0)
    (other,) = adapter.read(packed, 0)
    assert shapes(one.messages) == shapes(other.messages)
    assert (one.context, one.position) == (other.context, 1)
    for message in one.messages:
        prepare(message)


def test_chatgpt_conversation_is_read_branch_by_branch(tmp_path):
    path = archive(tmp_path / "a.zip", [CHATGPT])
    (stretch,) = chatgpt.read(path, 0)
    assert shapes(stretch.messages) == [
        ("user", [("image", "[image] file-service://f"), ("text", "What is this?")]),
        ("assistant", [("text", "A calendar.")]),
        ("assistant", [("tool_call", "print(1)")]),
        ("tool", [("tool_result", "1")]),
    ]
    assert [message.key for message in stretch.messages] == ["m1", "m2", "m3", "m4"]
    assert stretch.messages[1].model == "gpt-5"
    assert (stretch.context.session, stretch.context.title) == ("c1", "Days")


def test_messages_hidden_by_chatgpt_become_injected_parts(tmp_path):
    def said(role, content, **metadata):
        message = {"author": {"role": role}, "content": content, "metadata": metadata}
        node: Any = {"message": {"id": "m", **message}, "parent": None, "children": []}
        path = archive(tmp_path / "a.zip", [{"mapping": {"0": node}}])
        (stretch,) = chatgpt.read(path, 0)
        return shapes(stretch.messages)

    text = {"content_type": "text", "parts": ["Obey."]}
    profile = {"content_type": "user_editable_context", "user_profile": "Lives in Oslo"}
    hidden = said("user", text, is_visually_hidden_from_conversation=True)
    assert hidden == said("system", text) == [("system", [("aside", "Obey.")])]
    assert said("user", profile) == [("system", [("aside", "Lives in Oslo")])]
    thoughts = {"content_type": "thoughts", "thoughts": [{"content": "Hm."}]}
    assert said("assistant", thoughts) == [("assistant", [("reasoning", "Hm.")])]


def test_pages_that_chatgpt_opened_come_from_the_web(tmp_path):
    content = {"content_type": "tether_quote", "text": "page", "url": "x"}
    node = {"message": {"id": "m", "author": {"role": "tool", "name": "b"}, "content": content}}
    (stretch,) = chatgpt.read(archive(tmp_path / "a.zip", [{"mapping": {"0": node}}]), 0)
    assert stretch.messages[0].origin == "web"


def test_cyclic_conversation_tree_is_read_once(tmp_path):
    text = {"content_type": "text", "parts": ["round"]}
    message = {"id": "m", "author": {"role": "user"}, "content": text}
    mapping = {
        "a": {"message": message, "parent": "b", "children": ["b"]},
        "b": {"message": None, "parent": "a", "children": ["a", 3, None]},
    }
    (stretch,) = chatgpt.read(archive(tmp_path / "a.zip", [{"mapping": mapping}]), 0)
    assert len(stretch.messages) == 1


def test_claude_ai_conversation_is_read_block_by_block(tmp_path):
    (stretch,) = claude_ai.read(archive(tmp_path / "a.zip", [CLAUDE_AI]), 0)
    assert shapes(stretch.messages) == [
        ("user", [("text", "Look."), ("document", "words"), ("document", "[document] b.png")]),
        ("assistant", [("reasoning", "Hm.")]),
        ("assistant", [("tool_call", '{"q":"x"}')]),
        ("tool", [("tool_result", "page")]),
        ("assistant", [("text", "Done.")]),
    ]
    assert stretch.messages[3].origin == "web"
    assert (stretch.context.session, stretch.context.title) == ("c1", "Days")


def test_an_archive_of_several_files_is_read_whole_wherever_reading_ended(tmp_path):
    path = archive(tmp_path / "a.zip", [CHATGPT, CHATGPT], [CHATGPT])
    for position in (0, 2, 9):
        assert [stretch.position for stretch in chatgpt.read(path, position)] == [1, 2, 3]


def test_a_damaged_archive_is_an_error_that_says_so(tmp_path):
    broken = tmp_path / "a.zip"
    broken.write_bytes(b"PK\x03\x04nonsense")
    assert not chatgpt.fits(broken, broken.read_bytes())
    with pytest.raises(InvalidInput):
        list(chatgpt.read(broken, 0))
    text = tmp_path / "a.json"
    text.write_text("[{")
    with pytest.raises(InvalidInput):
        list(claude_ai.read(text, 0))
    with pytest.raises(NotFound):
        list(claude_ai.read(tmp_path / "missing.json", 0))


def test_zip_bomb_is_refused_unread(tmp_path):
    path = tmp_path / "a.zip"
    with (
        zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file,
        file.open("conversations.json", "w") as stream,
    ):
        stream.write(b'[{"mapping": {}}')
        for _ in range(20):
            stream.write(b" " * (1 << 20))
        stream.write(b"]")
    assert chatgpt.fits(path, path.read_bytes())
    with pytest.raises(InvalidInput, match="would unpack to 20 MB"):
        list(chatgpt.read(path, 0))


def test_zip_bomb_is_reported_and_other_files_are_read(tmp_path, database):
    talk = archive(tmp_path / "talk.zip", [CHATGPT])
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("conversations.json", b'[{"mapping": {}}' + b" " * (17 << 20) + b"]")
    counts = [read_file(ReadOptions(database, find_adapter), path) for path in (bomb, talk)]
    assert counts[0].problem.startswith("cannot be read: Its 16 KB would unpack to 17 MB")
    assert (counts[1].added, counts[1].problem) == (4, "")


VALUES = st.recursive(
    st.none() | st.booleans() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=12,
)
OBJECTS = st.lists(st.dictionaries(st.text(), VALUES, max_size=4), max_size=6)


class Trickle(io.BytesIO):
    """A stream that gives few bytes at a time, however many are asked for."""

    def __init__(self, data: bytes, most: int) -> None:
        super().__init__(data)
        self.most = most

    def read(self, size: int | None = -1) -> bytes:
        """Return a few bytes."""
        return super().read(min(self.most, size or 0))


def found(data: bytes, most: int = 1 << 20, *, most_bytes: int = 1 << 20) -> list[Any]:
    return [json.loads(each) for each in read_objects(Trickle(data, most), most_bytes=most_bytes)]


@given(OBJECTS, st.integers(1, 40), st.booleans(), st.sampled_from([None, 2]))
def test_the_objects_of_a_list_are_found_however_the_stream_is_cut(objects, most, ascii, indent):
    data = json.dumps(objects, ensure_ascii=ascii, indent=indent).encode("utf-8", "surrogatepass")
    assert found(data, most) == objects


@given(st.dictionaries(st.text(), VALUES, max_size=4), st.integers(1, 40))
def test_one_object_is_found_whole(told, most):
    assert found(b"\xef\xbb\xbf " + json.dumps(told).encode() + b"\n", most) == [told]


def test_list_items_that_are_no_objects_are_skipped():
    assert found(b'[1, "a]", null, {"a": "}"}, [2], true]') == [{"a": "}"}, [2]]


@pytest.mark.parametrize("data", [b"", b"  ", b"[{", b'[{"a": "b', b'"text"', b"7", b"x [{}]"])
def test_stream_that_is_no_list_or_is_truncated_raises_an_error(data):
    with pytest.raises(InvalidInput, match="not JSON"):
        found(data)


def test_an_object_that_is_too_large_is_refused_before_it_is_whole():
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return b'[{"a": "' if self.given == size else b"x" * size

    stream = Endless()
    with pytest.raises(InvalidInput, match="larger than 3 MB"):
        list(read_objects(stream, most_bytes=3 << 20))  # type: ignore[arg-type]
    assert stream.given < 16 << 20


class Drops(io.BytesIO):
    """A stream that gives a few bytes at a time."""

    size = 1

    def read(self, _most: int | None = -1, /) -> bytes:
        return super().read(self.size)


@pytest.mark.parametrize("size", [1, 7, 64, 1 << 20])
def test_120_objects_are_read_whole_wherever_the_stream_is_cut(size):
    hard = ["\\", '"', '\\"', "\\\\", "]}", "[{", '"[', "é\n\t", "{" * 9, "\\" * 7 + '"', ""]
    texts = [" ".join(hard[(n + i) % len(hard)] for i in range(n % 23 + 1)) for n in range(120)]
    stream = Drops(json.dumps([{"id": n, "text": text} for n, text in enumerate(texts)]).encode())
    stream.size = size
    objects = [json.loads(one) for one in read_objects(stream, most_bytes=1 << 20)]
    assert [one["text"] for one in objects] == texts


def test_an_export_of_120_long_conversations_is_read_whole():
    chosen = random.Random(1)
    talks = [
        {
            str(i): "".join(chosen.choices('ab \\"\n[{}]', k=chosen.randrange(3_000)))
            for i in range(20)
        }
        for _ in range(120)
    ]
    stream = io.BytesIO(json.dumps(talks).encode())
    assert [json.loads(one) for one in read_objects(stream, most_bytes=1 << 28)] == talks
