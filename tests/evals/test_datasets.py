"""Evaluation files as retrieval tasks, and recorded sessions as requests."""

from __future__ import annotations

import gzip
import json
from datetime import UTC, datetime
from pathlib import Path

import pytest

from lore.errors import EvaluationError
from lore.evals.datasets import (
    ReplaySession,
    RetrievalTask,
    read_long_sessions,
    read_tasks,
    replay_session_of,
)
from lore.memory import Memory
from lore.records import Message, Part
from lore.settings import Settings
from tests.evals.sample_session import write
from tests.fakes import NOON, FakeEmbedder, FixedClock


@pytest.fixture
def memory(tmp_path):
    config = Settings(home=tmp_path / "home")
    with Memory.open(config=config, embedder=FakeEmbedder(), now=FixedClock()) as opened:
        yield opened


def written(folder: Path, name: str, *rows: object) -> Path:
    path = folder / name
    with gzip.open(path, "wt", encoding="utf-8") as stream:
        stream.writelines(json.dumps(row) + "\n\n" for row in rows)
    return path


def only(path: Path, corpus: Path | None = None) -> RetrievalTask:
    (trial,) = read_tasks(path, corpus)
    return trial


LOCOMO = {
    "id": "c1",
    "turns": [
        {"id": "D1:1", "session": 1, "date": "1:56 pm on 8 May, 2023", "speaker": "Ada",
         "text": "I adopted a grey cat."},
        {"id": "D1:2", "session": 1, "date": "1:56 pm on 8 May, 2023", "speaker": "Bob",
         "text": "", "caption": "a photo of a red bicycle"},
        {"id": "D2:1", "session": 2, "date": "9:00 am on 1 June, 2023", "speaker": "Ada",
         "text": "My garden has tomatoes now."},
    ],
    "questions": [
        {"question": "What cat did Ada adopt?", "category": "single", "evidence": ["D1:1", "D9:9"]},
        {"question": "What did nobody say?", "category": "adversarial", "evidence": ["D9:9"]},
    ],
}  # fmt: skip


def test_locomo_turns_are_messages_of_speakers(tmp_path, memory):
    trial = only(written(tmp_path, "locomo.jsonl.gz", LOCOMO))
    assert [doc.unit for doc in trial.documents] == ["D1:1", "D1:2", "D2:1"]
    assert trial.documents[1].text == "Bob:  a photo of a red bicycle"
    assert trial.separate_categories == {"adversarial", "unanswerable"}
    units = trial.fill(memory)
    assert sorted(units.values()) == ["D1:1", "D1:2", "D2:1"]
    first, second = memory.sessions.messages("c1-1")
    assert first.created_at == datetime(2023, 5, 8, 13, 56, tzinfo=UTC)
    assert (first.speaker, second.parts[0].kind) == ("Ada", "image")
    (ask,) = trial.queries
    assert ask.gold == {"D1:1"}
    assert ask.cluster == "c1-1"
    assert trial.rank(memory, ask, "learned", units)[0] == frozenset({"D1:1"})


BEAM = {
    "id": 7,
    "messages": [
        {"id": 0, "role": "user", "content": "I bake bread. ->-> 1,1", "batch": 1,
         "time": "March-15-2024"},
        {"id": 1, "role": "assistant", "content": "Which flour?", "batch": 1},
        {"id": 2, "role": "user", "content": "Rye flour.", "batch": 2, "time": "no date"},
        {"id": 3, "role": "assistant", "content": "Rye is good.", "batch": 2},
    ],
    "questions": {
        "facts": [
            {"question": "Which flour?", "source_chat_ids": [2]},
            {"question": "All?", "source_chat_ids": {"first": [0, [1]], "second": {"x": 3}}},
            {"question": "None?", "source_chat_ids": [99, True, "2", None]},
            {"question": "Missing?"},
        ]
    },
}  # fmt: skip


def test_beam_units_are_exchanges_with_nested_sources(tmp_path, memory):
    trial = only(written(tmp_path, "beam-100k.jsonl.gz", BEAM))
    assert [(doc.unit, doc.text) for doc in trial.documents] == [
        ("0", "I bake bread."),
        ("0", "Which flour?"),
        ("1", "Rye flour."),
        ("1", "Rye is good."),
    ]
    assert [(ask.text, ask.category, sorted(ask.gold)) for ask in trial.queries] == [
        ("Which flour?", "facts", ["1"]),
        ("All?", "facts", ["0", "1"]),
    ]
    assert [ask.cluster for ask in trial.queries] == ["7-2", "7-1"]
    units = trial.fill(memory)
    assert sorted(units.values()) == ["0", "0", "1", "1"]
    said = memory.sessions.messages("7-1")
    assert said[0].created_at == datetime(2024, 3, 15, 0, 0, 1, tzinfo=UTC)
    assert said[1].created_at > said[0].created_at


CODING = [
    {"sid": "s1", "created": "2024-01-01T10:00:00", "files": ["src/app.py"],
     "turns": [["user", "Add a login page", None], ["tool", "git commit -m login", None],
               ["summary", "Added the login page", "2024-01-01T11:00:00+00:00"]]},
    {"sid": "s2", "created": "2024-01-02T10:00:00Z",
     "turns": [["user", "  ", None], ["tool", "x", None]]},
]  # fmt: skip
QUERIES = [
    {"query": "login page", "sessions": ["s1", "gone"], "date": "2024-02-01"},
    {"query": "unknown", "sessions": ["gone"], "date": "2024-02-01"},
]


def test_coding_sessions_exclude_tool_traffic(tmp_path, memory):
    written(tmp_path, "coding-sessions.jsonl.gz", *CODING)
    trial = only(written(tmp_path, "coding-queries.jsonl.gz", *QUERIES))
    assert [doc.text for doc in trial.documents] == ["Add a login page", "Added the login page"]
    ask, undated = trial.queries
    assert ask.gold == {"s1"}
    assert ask.now == datetime(2024, 2, 1, tzinfo=UTC)
    assert undated.now is None
    assert trial.separate_categories == {undated.category}
    units = trial.fill(memory)
    assert list(units.values()) == ["s1"]
    assert trial.rank(memory, ask, "learned", units) == [frozenset({"s1"})]


def test_coding_corpus_may_be_in_another_folder(tmp_path):
    (tmp_path / "elsewhere").mkdir()
    written(tmp_path / "elsewhere", "coding-sessions.jsonl.gz", *CODING)
    path = written(tmp_path, "coding-queries-dev.jsonl.gz", *QUERIES)
    assert len(only(path, tmp_path / "elsewhere").queries) == 2


def test_coding_without_its_corpus_is_refused_with_a_hint(tmp_path):
    path = written(tmp_path, "coding-queries.jsonl.gz", *QUERIES)
    with pytest.raises(EvaluationError, match="needs coding-sessions") as caught:
        read_tasks(path, None)
    assert "--corpus" in caught.value.hint


MULTIHOP = {
    "passages": [
        {"title": "Ada Lovelace", "text": "Ada Lovelace was born in London."},
        {"title": "London", "text": "London lies on the Thames."},
        {"title": "Rome", "text": ""},
    ],
    "questions": [
        {"question": "On which river was Ada Lovelace born?", "gold": [0, 1]},
        {"question": "Nothing?", "gold": []},
    ],
}


def test_multihop_passages_are_fragments(tmp_path, memory):
    trial = only(written(tmp_path, "multihop-musique.jsonl.gz", MULTIHOP))
    (ask,) = trial.queries
    assert ask.category == "2-passage"
    assert ask.gold == {"0", "1"}
    units = trial.fill(memory)
    assert sorted(units.values()) == ["0", "1", "2"]
    assert set(trial.rank(memory, ask, "learned", units)[:2]) == {
        frozenset({"0"}),
        frozenset({"1"}),
    }


LONG = {
    "session_id": "night",
    "project_path": "/code/app",
    "messages": [
        {"index": 10, "role": "user", "content": "Deploy on port 8443",
         "timestamp": 1_700_000_000_000},
        {"index": 11, "role": "assistant", "content": "Deployed.", "timestamp": 1_700_000_001_000},
    ],
    "questions": [
        {"question": "Which port?", "message_index": 10},
        {"question": "Nothing?", "message_index": None},
        {"question": "First?", "message_index": 0, "type": "order"},
    ],
}  # fmt: skip


def test_a_long_session_is_one_session_of_a_project(tmp_path, memory):
    trial = only(written(tmp_path, "long-session-cli.jsonl.gz", LONG))
    assert [(ask.category, sorted(ask.gold)) for ask in trial.queries] == [
        ("detail", ["10"]),
        ("order", ["0"]),
    ]
    units = trial.fill(memory)
    assert sorted(units.values()) == ["10", "11"]
    assert trial.rank(memory, trial.queries[0], "learned", units)[0] == frozenset({"10", "11"})


def test_file_with_unknown_name_has_no_tasks(tmp_path):
    assert read_tasks(written(tmp_path, "notes.jsonl.gz", {}), None) == []


def packed(content: bytes) -> bytes:
    """Pack without the time, which would be part of a test's name."""
    return gzip.compress(content, mtime=0)


@pytest.mark.parametrize("name", ["locomo.jsonl.gz", "beam-1.jsonl.gz", "multihop-x.jsonl.gz"])
@pytest.mark.parametrize(
    "content",
    [b"no gzip", packed(b"no json"), packed(b'{"id": 1}'), packed(b"[1]"),
     packed(b'{"id": 1}' * 99)[:20], packed(b"\xff")],
)  # fmt: skip
def test_a_file_that_cannot_be_read_is_refused(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(EvaluationError, match=f"{name} cannot be read"):
        read_tasks(tmp_path / name, None)


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(EvaluationError):
        read_tasks(tmp_path / "locomo.jsonl.gz", None)


def test_empty_file_has_no_tasks(tmp_path):
    assert read_tasks(written(tmp_path, "locomo.jsonl.gz"), None) == []


@pytest.fixture
def talk(tmp_path: Path) -> ReplaySession:
    return read_long_sessions(write(tmp_path))[0]


def test_each_response_is_a_request_with_all_entries_before_it(talk: ReplaySession):
    assert len(talk.requests) == 48
    assert talk.requests[0].entries == 1
    assert talk.requests[1].entries == 3
    assert talk.entries[1].blocks[-1].kind == "call"
    assert talk.entries[2].blocks[0].kind == "result"
    assert talk.entries[2].blocks[0].call_id == talk.entries[1].blocks[-1].call_id
    assert talk.entries_of(4) == range(7, 9)


def test_a_captured_answer_in_pieces_is_one_request():
    def said(ordinal: int, role: str, *parts: Part) -> Message:
        return Message(f"m{ordinal}", "s", ordinal, role, parts, 5, NOON, "user")  # type: ignore[arg-type]

    made = replay_session_of(
        "s",
        [
            said(0, "user", Part("text", "why?")),
            said(1, "assistant", Part("text", "let me look")),
            said(2, "assistant", Part("tool_call", "{}", name="bash", call_id="c")),
            said(3, "user", Part("tool_result", "nothing", call_id="c")),
            said(4, "assistant", Part("text", "because")),
        ],
    )
    assert [request.entries for request in made.requests] == [1, 4]


def test_questions_over_coding_sessions_have_alternatives(memory: Memory, tmp_path: Path) -> None:
    sessions = [
        {"sid": "s1", "created": "2026-01-05T10:00:00Z", "turns": [
            ["user", "why does the build fail?", None],
            ["tool", "Bash make", None],
            ["result", "error: no rule", None],
            ["assistant", "The Makefile lacks the target deploy.", "2026-01-05T10:01:00Z"],
        ]},
        {"sid": "s2", "created": "2026-01-06T10:00:00Z", "turns": [
            ["assistant", "Again the target deploy was missing in the Makefile.", None],
        ]},
    ]  # fmt: skip
    questions = [
        {"kind": "fix", "question": "what was wrong with the Makefile?", "session": "s1",
         "evidence": [3], "also": [["s2", 0]]},
        {"kind": "cross", "question": "how often?", "evidence_all": [[["s1", 3]], [["s2", 0]]]},
        {"kind": "unanswerable", "question": "who is the mayor?", "session": None, "evidence": []},
    ]  # fmt: skip
    written(tmp_path, "coding-sessions-x.jsonl.gz", *sessions)
    task = only(written(tmp_path, "coding-qa-x.jsonl.gz", *questions))
    first, cross, nowhere = task.queries
    assert first.groups == (frozenset({"s1:3", "s2:0"}),)
    assert [sorted(group) for group in cross.groups] == [["s1:3"], ["s2:0"]]
    assert nowhere.groups == ()
    assert [ask.cluster for ask in task.queries] == ["s1", "s1", ""]
    units = task.fill(memory)
    assert sorted(units.values()) == ["s1:0", "s1:1", "s1:2", "s1:3", "s2:0"]
    assert task.rank(memory, first, "learned", units)[0] & first.gold


def test_questions_within_a_session_are_asked_of_it_alone(memory: Memory, tmp_path: Path) -> None:
    sessions = [
        {"sid": sid, "created": "2026-01-05T10:00:00Z", "turns": [
            ["user", "run the tests", None],
            ["tool", "Bash pytest", None],
            ["result", f"{count} failed in 3.1 s", None],
        ]}
        for sid, count in (("first-session", 7), ("other-session", 9))
    ]  # fmt: skip
    question = {
        "kind": "value", "question": "how many tests failed?", "session": "first-session",
        "within": "first-session", "evidence": [2],
    }  # fmt: skip
    written(tmp_path, "coding-sessions-x.jsonl.gz", *sessions)
    task = only(written(tmp_path, "session-qa-x.jsonl.gz", question))
    assert task.name == "x/first-se"
    assert [document.unit for document in task.documents] == [
        f"first-session:{place}" for place in range(3)
    ]
    units = task.fill(memory)
    assert set(units.values()) == {document.unit for document in task.documents}


def test_coding_questions_need_their_sessions(tmp_path: Path) -> None:
    path = written(tmp_path, "coding-qa-x.jsonl.gz")
    with pytest.raises(EvaluationError, match=r"coding-sessions-x\.jsonl\.gz"):
        read_tasks(path, None)
