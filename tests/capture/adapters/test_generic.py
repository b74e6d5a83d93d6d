"""Plain JSON lines of roles and contents."""

from datetime import UTC, datetime

from lore.capture.adapter_protocol import Context
from lore.capture.adapters import generic
from tests.capture.adapters.samples import GENERIC, shapes, told


def test_lines_of_several_formats_yield_messages_in_order():
    messages, context = told(generic, GENERIC)
    assert shapes(messages) == [
        ("user", [("text", "Hello")]),
        ("assistant", [("text", "Hi")]),
        ("assistant", [("tool_call", "{}")]),
        ("tool", [("tool_result", "found")]),
        ("user", [("text", "One more")]),
    ]
    assert messages[0].created_at == datetime.fromtimestamp(1_770_000_000, UTC)
    assert messages[1].created_at == messages[0].created_at
    assert (messages[0].key, messages[1].model) == ("a", "m")
    assert (messages[3].origin, messages[3].parts[0].name) == ("web", "web_search")
    assert context.title == "More"


def test_the_same_words_twice_are_two_messages_and_reading_again_adds_none():
    lines = [{"role": "user", "content": "yes"}, {"role": "user", "content": "yes"}]
    once, _ = told(generic, lines)
    again, _ = told(generic, lines)
    assert once[0].key != once[1].key
    assert [m.key for m in once] == [m.key for m in again]


def test_a_conversation_in_a_line_is_a_session():
    lines = [{"messages": [{"role": "user", "content": "a"}]}, {"role": "user", "content": "b"}]
    context = Context(session="file")
    first = generic.parse_line(lines[0], context)
    second = generic.parse_line(lines[1], first.context)
    assert (first.context.session, second.context.session) == ("file/1", "file")


def test_a_system_prompt_is_an_aside_and_a_named_user_a_speaker():
    (system, user), _ = told(
        generic,
        [{"role": "system", "content": "Obey."}, {"role": "user", "content": "Hi", "name": "Ada"}],
    )
    assert shapes([system]) == [("system", [("aside", "Obey.")])]
    assert user.speaker == "Ada"


def test_results_in_the_users_place_are_results():
    block = {"type": "tool_result", "tool_use_id": "t", "content": "x", "is_error": True}
    (message,), _ = told(generic, [{"role": "user", "content": [block]}])
    assert (message.role, message.origin, message.parts[0].failed) == ("tool", "tool", True)


def test_an_openai_image_is_a_reference():
    image = {"type": "image_url", "image_url": {"url": "data:image/jpeg;base64,/9j/4AAQ"}}
    (message,), _ = told(generic, [{"role": "user", "content": [image]}])
    assert shapes([message]) == [("user", [("image", "[image/jpeg]")])]


def test_a_role_that_is_not_known_is_counted():
    assert (
        generic.parse_line({"role": "ghost", "content": "boo"}, Context()).unknown == "role ghost"
    )
    assert generic.parse_line({"content": "boo"}, Context()).unknown == "no role"
    assert generic.parse_line(3, Context()).unknown == "no object"
