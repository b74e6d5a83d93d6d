"""Words, identifiers and quotes."""

from __future__ import annotations

import re
import time

import apsw
import pytest
from hypothesis import assume, example, given
from hypothesis import strategies as st

from lore.store.sqlite.full_text import TOKENIZER
from lore.text import words
from lore.text.words import QUOTE_CHARS, find_quoting

# What is not linear takes hours; what is, a fraction of a second.
HOPELESS_S = 60.0
MEGABYTES, LONG, SHORTER = 2_000_000, 500_000, 100_000


@pytest.fixture(scope="module")
def index():
    connection = apsw.Connection(":memory:")
    connection.execute(f"CREATE VIRTUAL TABLE texts USING fts5(text, tokenize='{TOKENIZER}')")
    yield connection
    connection.close()


def tokens_of(index: apsw.Connection, text: str) -> list[str]:
    name, *options = TOKENIZER.split()
    tokenizer = index.fts5_tokenizer(name, options)
    found = tokenizer(
        text.encode(),
        apsw.FTS5_TOKENIZE_QUERY,
        None,
        include_offsets=False,
        include_colocated=False,
    )
    return [str(token) for token in found]


def finds(index: apsw.Connection, query: str, text: str) -> bool:
    """Return whether a question finds a text in a real keyword index."""
    index.execute("DELETE FROM texts")
    index.execute("INSERT INTO texts (text) VALUES (?)", (words.searchable_form(text),))
    match = words.match_any(words.search_terms(query), words.quoted_phrases(query))
    if not match:
        return False
    found = index.execute("SELECT count(*) FROM texts WHERE texts MATCH ?", (match,)).get
    return bool(found)


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("What did the cat eat?", ["cat", "eat"]),
        ("the of and", ["the", "of", "and"]),
        ("what’s up with don’t", ["what's", "up", "with", "don't"]),
        ("I can't find Bob's keys", ["find", "bob's", "keys"]),
        ("x y 7 keys", ["7", "keys"]),
        ("cat cat CAT", ["cat"]),
        ("", []),
        ("?!", []),
        ("getUserName", ["getusername", "user", "name"]),
        ("get_user_name", ["user", "name"]),
        ("src/db/todos.ts", ["src", "db", "todos", "ts"]),
        ("ECONNREFUSED", ["econnrefused"]),
        ("HTTPServer2", ["httpserver2", "http", "server", "2"]),
        ("Café Ünïcode", ["cafe", "unicode"]),
        ("cafe\u0301", ["cafe"]),
        ("какой Йод", ["какой", "йод"]),
        ("한국어", ["한국어"]),
        ("ガンダム", ["ガン", "ンダ", "ダム"]),
        ("東京都", ["東京", "京都"]),
        ("木", ["木"]),
        ("Pythonの設定", ["python", "の設", "設定"]),
    ],
)
def test_terms_are_the_words_worth_searching(text, terms):
    assert words.search_terms(text) == terms


def test_terms_are_bounded_in_number():
    assert len(words.search_terms(" ".join(f"word{i}" for i in range(500)))) == 48


def test_a_long_question_is_read_to_a_limit_only():
    assert words.search_terms("a" * words.MAX_QUERY_CHARS + " tail") == [
        "a" * words.MAX_QUERY_CHARS
    ]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("getUserName", "call getUserName() first"),
        ("user name", "call getUserName() first"),
        ("userName", "the user has a name"),
        ("get_user_name", "def get_user_name(id):"),
        ("user", "def get_user_name(id):"),
        ("getUserName", "test_getUserName_twice"),
        ("name", "test_getUserName_twice"),
        ("src/db/todos.ts", "see src/db/todos.ts:14"),
        ("todos.ts", "see src/db/todos.ts:14"),
        ("todos", "see src/db/todos.ts:14"),
        ("ECONNREFUSED", "Error: connect ECONNREFUSED 127.0.0.1"),
        ("econnrefused", "Error: connect ECONNREFUSED 127.0.0.1"),
        ("HTTPServer2", "class HTTPServer2:"),
        ("http server", "class HTTPServer2:"),
        ("HTTPServer2", "an HTTP server"),
        ("lore.text.words", "import lore.text.words as w"),
        ("--no-verify", "git commit --no-verify"),
        ("std::vector", "std::vector<int> v;"),
        ("running tests", "I run a test"),
        ("cafe", "Café Müller"),
        ("Café", "cafe"),
        ("cafe\u0301", "café"),
        ("naïve", "nai\u0308ve"),
        ("Müller", "muller"),
        ("какой", "какой сегодня день"),
        ("ёлка", "ёлка"),
        ("ΟΔΟΣ", "οδος"),
        ("한국어", "한국어 문서"),
        ("東京", "私は東京に住んでいます"),
        ("ガンダム", "新しいガンダムを見た"),
        ("バージョン", "Pythonのバージョンは3.12です"),
        ("Python", "Pythonのバージョンは3.12です"),
        ("3.12", "Pythonのバージョンは3.12です"),
        ("人々", "多くの人々が来た"),
        ("数据库", "我们使用数据库存储"),
        ("PostgreSQL", "我们使用PostgreSQL存储"),
        ("ไทย", "ฉันพูดภาษาไทยได้"),
        ("กรุงเทพ", "เขาอยู่ที่กรุงเทพมหานคร"),
        ("ﾃｽﾄ", "これはﾃｽﾄです"),
        ("done", "all done🤖"),
        ("memory", "🧠memory🧠"),
        ("fix now", "fix🥳now"),
        ('"exact phrase"', "the exact phrase stands here"),
    ],
)
def test_a_question_finds_the_text(index, query, text):
    assert finds(index, query, text)


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("京都", "東京タワー"),
        ("username", "user and name"),
        ("и", "й"),
        ("か", "が"),
        ("", "text"),
    ],
)
def test_a_question_does_not_find_what_is_something_else(index, query, text):
    assert not finds(index, query, text)


@given(st.text())
@example('" OR texts MATCH "')
@example("NEAR(a b) AND NOT c* ^d {e}: -f")
@example("'\"`;--\x00")
@example("½ ² ﬁ ﷺ")
def test_the_query_of_any_text_runs(index, text):
    cleaned = words.clean(text)
    query = words.match_any(words.search_terms(cleaned), [cleaned, *words.quoted_phrases(cleaned)])
    if query:
        index.execute("SELECT count(*) FROM texts WHERE texts MATCH ?", (query,)).fetchall()


@given(st.text(st.characters(exclude_categories=("Cn", "Co", "Cs")), min_size=1, max_size=60))
@example("A")
@example("x\u0302y")
@example("ǡ")
@example("that's")
@example("0\ufd40")
@example("ok👍🏽yes")
def test_the_query_made_from_a_text_finds_it(index, text):
    text = words.clean(text)
    known = [term for term in words.search_terms(text) if tokens_of(index, term)]
    # SQLite's letters are those of Unicode 6.1: it does not know younger ones, nor their case.
    assume(known and all(tokens_of(index, c) == tokens_of(index, words.fold(c)) for c in text))
    assert finds(index, text, text)


@given(st.text())
def test_folding_is_idempotent(text):
    assert words.fold(words.fold(text)) == words.fold(text)


@given(st.text())
def test_cleaned_text_holds_nothing_that_a_store_refuses(text):
    cleaned = words.clean(text)
    assert not re.search(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ud800-\udfff]", cleaned)
    assert len(cleaned) <= len(text)
    assert words.clean(cleaned) == cleaned


@given(st.text("\x1b\x9b\x9c\x07[]0;m\\=\0K a", max_size=12))
def test_cleaning_text_of_escapes_twice_is_once(text):
    assert words.clean(words.clean(text)) == words.clean(text)


@given(st.text() | st.text("\x1b\x9b\x9c\x07[]0;m=\0K a\n\ud800é"))
def test_text_is_clean_if_cleaning_leaves_it(text):
    assert words.is_clean(text) == (words.clean(text) == text)


@given(st.lists(st.text("\x1b\x9b\t\0a\ud800é"), max_size=3))
def test_texts_are_clean_together_if_each_is(texts):
    assert words.is_clean("\n".join(texts)) == all(map(words.is_clean, texts))


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[32mgreen\x1b[0m", "green"),
        ("\x1b[38;5;12mblue\x1b[K", "blue"),
        ("\x9b1mbold\x9bm", "bold"),
        ("\x1b[?25hcursor", "cursor"),
        ("one\x1b[10Gtwo", "one two"),
        ("\x1b]8;;https://example.com\x07link\x1b]8;;\x1b\\", "link"),
        ("\x1b(B\x1b7saved", "saved"),
        ("gr\x1b[01;31m\x1b[Kee\x1b[m\x1b[Kn", "green"),
        ("\x1b]0;a title without an end\nline", "]0;a title without an end\nline"),
    ],
)
def test_cleaning_leaves_what_a_terminal_shows(text, shown):
    assert words.clean(text) == shown


def test_cleaning_leaves_nothing_between_a_name_and_its_value():
    assert words.clean("a=\0\x01b c:\x02d 'e\0'") == "a=b c:d 'e '"


def test_cleaning_keeps_lines_and_tabs():
    assert words.clean("a\tb\nc\rd\x00e\ud800f") == "a\tb\nc\rd e f"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("call getUserName now", ["getUserName"]),
        ("see src/db/todos.ts.", ["src/db/todos.ts"]),
        ("run /usr/bin/env", ["/usr/bin/env"]),
        ("get_user_name and __init__", ["get_user_name", "__init__"]),
        ("lore.text.words(", ["lore.text.words"]),
        ("std::vector", ["std::vector"]),
        ("ECONNREFUSED again", ["ECONNREFUSED"]),
        ("HTTPServer2 and URLError", ["HTTPServer2", "URLError"]),
        ("many JPEGs", ["JPEG"]),
        ("plain words only", []),
        ("fooBar fooBar", ["fooBar"]),
        ("a/b", ["a/b"]),
        ("NASA", ["NASA"]),
        ("USA", []),
    ],
)
def test_identifiers_are_found_whole(text, found):
    assert words.identifiers(text) == found


@pytest.mark.parametrize(
    ("word", "parts"),
    [
        ("getUserName", "get User Name"),
        ("HTTPServer2", "HTTP Server 2"),
        ("parseJSON", "parse JSON"),
        ("v2API", "v 2 API"),
    ],
)
def test_humps_are_the_parts_of_a_camel_case_word(word, parts):
    assert words.split_camel_case(word) == parts


def test_pairs_overlap():
    assert words.char_pairs("東京都") == "東京 京都"
    assert words.char_pairs("木") == "木"
    assert words.char_pairs("") == ""


def test_quoted_phrases_are_found_in_every_sort_of_quotes():
    assert words.quoted_phrases('say "one two" and “three four” or `five`') == [
        "one two",
        "three four",
        "five",
    ]


def test_plain_text_is_searchable_as_it_is():
    assert words.searchable_form("plain text, nothing else") == "plain text, nothing else"


def test_the_searchable_form_is_the_same_each_time():
    text = "getUserName setUserName HTTPServer2 getUserName"
    assert words.searchable_form(text) == f"{text}\nget User Name set User Name HTTP Server 2"


def test_a_phrase_of_one_word_adds_nothing_to_the_query():
    assert words.match_any(["cat"], ["dog", "big dog"]) == '"cat" OR "big dog"'


def test_raw_words_keep_their_spelling():
    assert words.raw_words("Ada's Café") == ["Ada's", "Café"]


@pytest.mark.parametrize(
    "piece",
    [
        "a",
        "A",
        '"',
        "\x1b",
        "\x1b[",
        "\x1b]",
        "\x1b]0",
        "\x9b1",
        "=\0",
        "aA",
        "'",
        "_",
        "a_",
        "/",
        "a/",
        "1",
        "é",
        "日",
        "日a",
        " ",
        "“",
        "a.",
    ],
)
def test_megabytes_of_one_thing_take_linear_time(piece):
    text = (piece * (MEGABYTES // len(piece)))[:MEGABYTES]
    started = time.thread_time()
    words.clean(text)
    words.search_terms(text)
    words.searchable_form(text[:LONG])
    words.identifiers(text[:LONG])
    words.quoted_phrases(text[:SHORTER])
    assert time.thread_time() - started < HOPELESS_S


@pytest.mark.parametrize(
    ("forms", "stem"),
    [
        (("cache", "caches", "cached", "caching"), "cach"),
        (("test", "tests", "tested", "testing"), "test"),
        (("is", "red", "sing"), None),
    ],
)
def test_a_stem_is_the_same_for_the_forms_of_a_word(forms, stem):
    assert [words.stem(form) for form in forms] == [stem or form for form in forms]


LETTERS = st.text("abcdefg ", max_size=120)


@given(LETTERS, LETTERS, LETTERS, LETTERS, st.text("abcdefg ", min_size=QUOTE_CHARS))
def test_a_shared_passage_is_always_found(a: str, b: str, c: str, d: str, stretch: str) -> None:
    assert find_quoting({7: a + stretch + b}, ["other", c + stretch + d]) == {7}


@given(st.text("abc", max_size=200), st.text("xyz", max_size=200))
def test_texts_that_share_nothing_are_not_found(a: str, b: str) -> None:
    assert find_quoting({1: a}, [b]) == set()


def test_a_few_shared_words_are_no_quotation() -> None:
    assert find_quoting(
        {1: "how do we deploy the site?"}, ["how do we deploy harbor to production"]
    ) == (set())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("“Ship it” — He SAID…", ["ship", "it", "he", "said"]),
        ("Café Olé — OK", ["cafe", "ole", "ok"]),
        ("— … “”", []),
    ],
)
def test_signs_beside_words_do_not_change_them(text: str, expected: list[str]) -> None:
    assert words.split(text) == expected


@given(st.lists(st.text() | st.sampled_from(["\x9b", "\x1b[0m", "\ud800", "a\nb", "\0", "é→"])))
def test_a_check_of_many_texts_is_that_of_each(texts: list[str]):
    assert words.are_clean(texts) == all(map(words.is_clean, texts))
