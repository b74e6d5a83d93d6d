"""Economics: a made-up long session, replayed with every strategy by the real parts."""

from __future__ import annotations

import gzip
import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from lore.errors import EvaluationError
from lore.evals import economics, layers_picture
from lore.evals.evidence import Remembered, in_prompt, specifics
from lore.evals.long_talks import Question, Talk, read_talks
from lore.evals.replaying import Outcome, Setting, Size, replay
from lore.evals.strategies import STRATEGIES
from lore.records import Message, Part
from lore.records.dialogues import ModelPrice, Pins, Plan, Summary
from tests.fakes import NOON

PRICE = ModelPrice(3.0, 15.0, 0.3, 3.75, 6.0, 40_000)


def message(index: int, role: str, content: str, at_s: float) -> dict[str, object]:
    return {
        "index": index,
        "role": role,
        "content": content,
        "tokens": len(content) // 4,
        "timestamp": int(at_s * 1000),
    }


def write(folder: Path, *, turns: int = 6, answers: int = 8, size: int = 3_000) -> Path:
    """Write a session in which a person asks and an assistant calls tools."""
    said: list[dict[str, object]] = []
    at_s = 1_750_000_000.0
    for turn in range(turns):
        at_s += 900
        said.append(message(len(said), "user", f"Please mend harbour number {turn}.", at_s))
        for step in range(answers):
            at_s += 20
            words = f"Looking at pier {turn}.{step}, berth fee {100 * turn + step} crowns."
            output = f"\n[tool:bash] line {turn}.{step}\n" + "ropes and lamps\n" * (size // 16)
            said.append(message(len(said), "assistant", words + output, at_s))
    questions = [
        {
            "question": "What is the berth fee at pier 2.3?",
            "answer": "The berth fee is 203 crowns.",
            "type": "detail",
            "message_index": 2 * (answers + 1) + 4,
        }
    ]
    raw = {"session_id": "harbour", "project_path": "/code/harbour", "messages": said}
    path = folder / "long-session-harbour.jsonl.gz"
    with gzip.open(path, "wt") as stream:
        stream.write(json.dumps(raw | {"questions": questions}) + "\n")
    return path


@pytest.fixture
def talk(tmp_path: Path) -> Talk:
    return read_talks(write(tmp_path))[0]


def logs(talk: Talk) -> Remembered:
    """Return a log of each turn, there from the next one on."""
    ends = [n for n, one in enumerate(talk.said) if one.role == "user" and n]
    made = [
        (talk.ends[end - 1], Summary(f"log-{end}", f"turn until {end}", 60, talk.ends[end - 1]))
        for end in ends
    ]
    return Remembered((), tuple(made))


def outcomes(talk: Talk, model: str = "claude") -> dict[str, Outcome]:
    setting = Setting(model, PRICE, logs(talk), (True,))
    return {name: replay(talk, name, setting) for name in STRATEGIES}


def test_each_answer_is_a_request_with_all_that_was_said_before(talk: Talk):
    assert len(talk.requests) == 48
    assert talk.requests[0].entries == 1
    assert talk.requests[1].entries == 3
    assert talk.entries[1].blocks[-1].kind == "call"
    assert talk.entries[2].blocks[0].kind == "result"
    assert talk.entries[2].blocks[0].call_id == talk.entries[1].blocks[-1].call_id
    assert talk.entries_of(4) == range(7, 9)


def test_a_captured_answer_in_pieces_is_one_request():
    from lore.evals.long_talks import talk_of

    def said(ordinal: int, role: str, *parts: Part) -> Message:
        return Message(f"m{ordinal}", "s", ordinal, role, parts, 5, NOON, "user")  # type: ignore[arg-type]

    made = talk_of(
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


def test_layers_cost_less_than_full_context_and_keep_the_current_turn(talk: Talk):
    found = outcomes(talk)
    assert found["full"].busts == 0
    assert found["gradient_horizon"].usd < found["gradient_seed"].usd < found["full"].usd
    assert found["gradient_horizon"].busts > 0
    longest = max(size.tokens for size in found["gradient_horizon"].sizes)
    assert longest < 40_000


def test_a_provider_that_caches_by_itself_is_replayed_too(talk: Talk):
    found = outcomes(talk, "gpt-5.1")
    assert found["gradient_horizon"].usd < found["full"].usd


def test_only_what_goes_through_lore_has_recall(talk: Talk):
    found = outcomes(talk)
    assert found["full"].by_recall == 0
    assert found["full"].by_prompt == 1
    assert found["gradient_horizon"].by_recall == 1
    assert found["gradient_horizon"].available == 1


def test_evidence_is_in_the_prompt_as_it_was_or_by_its_specifics(talk: Talk):
    question = talk.questions[0]
    start = talk.entries_of(question.message).start
    assert in_prompt(talk, question, Plan(1, Pins(), start))
    later = Plan(1, Pins(), start + 2)
    assert not in_prompt(talk, question, later)
    told = Summary("s", "Looking at pier 2.3, berth fee 203 crowns", 9, start + 2)
    vague = Summary("v", "Looking at berth fee of a pier in crowns", 9, start + 2)
    assert in_prompt(talk, question, Plan(1, Pins(), start + 2, (told,)))
    assert not in_prompt(talk, question, Plan(1, Pins(), start + 2, (vague,)))


def test_an_annotated_output_is_not_at_hand(talk: Talk):
    question = talk.questions[0]
    own = talk.entries_of(question.message)
    hidden = talk.entries[own[-1]].blocks[0].call_id
    assert not in_prompt(talk, question, Plan(2, Pins(), annotated=frozenset({hidden})))


def test_specifics_are_numbers_names_in_code_and_paths():
    told = "It is 49.20% in src/lib/app.ts, see releaseChannel and 'the old way'."
    assert specifics(told) == {"49.20%", "src/lib/app.ts", "releasechannel", "the old way"}


def test_a_question_without_specifics_is_not_answered_by_summaries(talk: Talk):
    question = Question("Who?", "The harbour master", 4)
    told = Summary("s", "The harbour master", 9, 99)
    assert not in_prompt(talk, question, Plan(1, Pins(), 99, (told,)))


def test_the_whole_evaluation_runs_and_draws(tmp_path: Path):
    write(tmp_path, turns=3, answers=4, size=600)
    result = economics.run(tmp_path, models=("claude-sonnet-4-5",), cache=tmp_path / "vectors")
    shown = result.as_json()["sessions"]
    assert isinstance(shown, dict)
    found = shown["long-session-harbour"]
    assert list(found) == list(STRATEGIES)
    assert found["full"].keys() == {
        "usd", "tokens_in", "busts", "available", "questions", "available_by",
    }  # fmt: skip
    assert found["gradient_horizon"]["available"] == 1
    assert "long-session-harbour" in result.as_table()
    ET.fromstring(layers_picture.draw(result))


def test_a_picture_tells_the_session_and_its_busts():
    sizes = [Size(0.0, n % 3, 100, 1_000 * n, busts=n == 5) for n in range(20)]
    one = Outcome(usd=1.5, questions=2, available=1, sizes=sizes)
    result = economics.Result("", {"m": {"long <session>": {"full": one, "gradient_horizon": one}}})
    drawn = ET.fromstring(layers_picture.draw(result))
    told = "".join(drawn.itertext())
    assert "long <session>" in told
    assert "1 of 2" in told
    assert sum(line.get("stroke") == "#b3261e" for line in drawn.iter()) == 1


def test_a_folder_without_sessions_is_refused(tmp_path: Path):
    with pytest.raises(EvaluationError, match="no long-session"):
        economics.run(tmp_path)
    with pytest.raises(EvaluationError, match="no folder"):
        economics.run(tmp_path / "gone")


def test_a_broken_file_is_named(tmp_path: Path):
    (tmp_path / "long-session-x.jsonl.gz").write_bytes(b"no gzip")
    with pytest.raises(EvaluationError, match="long-session-x"):
        economics.run(tmp_path)


def test_a_model_without_a_price_is_refused(tmp_path: Path):
    write(tmp_path, turns=1)
    with pytest.raises(EvaluationError, match="price of nobody"):
        economics.run(tmp_path, models=("nobody-1",))
