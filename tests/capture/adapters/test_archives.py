"""Archives that people export from chat services."""

import zipfile
from typing import Any

import orjson
import pytest

from lore.capture.adapters import chatgpt, claude_ai
from lore.capture.adapters.registry import find_adapter
from lore.capture.files import FileReading, read_file
from lore.capture.messages import prepare
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


def test_chatgpt_is_told_branch_by_branch(tmp_path):
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


def test_what_chatgpt_hides_from_the_conversation_is_an_aside(tmp_path):
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


def test_a_tree_that_bites_its_tail_is_read_once(tmp_path):
    text = {"content_type": "text", "parts": ["round"]}
    message = {"id": "m", "author": {"role": "user"}, "content": text}
    mapping = {
        "a": {"message": message, "parent": "b", "children": ["b"]},
        "b": {"message": None, "parent": "a", "children": ["a", 3, None]},
    }
    (stretch,) = chatgpt.read(archive(tmp_path / "a.zip", [{"mapping": mapping}]), 0)
    assert len(stretch.messages) == 1


def test_claude_ai_is_told_block_by_block(tmp_path):
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


def test_what_unpacks_to_far_more_than_talk_does_is_refused_unread(tmp_path):
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


def test_a_bomb_is_told_in_one_sentence_and_the_rest_goes_on(tmp_path, database):
    talk = archive(tmp_path / "talk.zip", [CHATGPT])
    bomb = tmp_path / "bomb.zip"
    with zipfile.ZipFile(bomb, "w", zipfile.ZIP_DEFLATED) as file:
        file.writestr("conversations.json", b'[{"mapping": {}}' + b" " * (17 << 20) + b"]")
    counts = [read_file(FileReading(database, find_adapter), path) for path in (bomb, talk)]
    assert counts[0].problem.startswith("cannot be read: Its 16 KB would unpack to 17 MB")
    assert (counts[1].added, counts[1].problem) == (4, "")
