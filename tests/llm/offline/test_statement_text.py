"""The text of statements: what is left out before them, and what completes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.llm.offline import statement_text
from lore.text.statements import split_statements
from tests.llm.offline.exchanges import WORK, contents, extract_all

CAUSE = (
    "the upload failed because `save()` in `report.py` opened the file in text mode, which breaks"
    " `Box<T>` on Windows."
)
FIX = "`save()` now opens `report.csv` in binary mode, so the upload works on Windows again."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("✅ Users log in through nginx", "Users log in through nginx"),
        ("2. Fix: added a lock to `cache.py`", "added a lock to `cache.py`"),
        ("What I found: Issue: the port is open", "the port is open"),
        ("Root cause: the port is open", "Root cause: the port is open"),
        ("nginx: the port is 8080", "nginx: the port is 8080"),
        ("Before: the port was open", "Before: the port was open"),
        ('Added a "Note: read this" section', 'Added a "Note: read this" section'),
        ("--flag is read first", "--flag is read first"),
        ("127.0.0.1 is bound", "127.0.0.1 is bound"),
    ],
)
def test_marks_and_labels_without_a_subject_are_left_out(text: str, expected: str):
    assert statement_text.strip_labels(text) == expected


@pytest.mark.parametrize(
    ("heading", "subject"),
    [
        ("Summary of changes:", ""),
        ("✅ What I Fixed", ""),
        ("Here's what I did:", ""),
        ("Based on my analysis:", ""),
        ("Both changes verified:", ""),
        ("There are two issues to fix:", ""),
        ("Commit: Open the file in binary mode", "Open the file in binary mode"),
        ("2. Stale timestamps ✅ (Just Fixed)", "Stale timestamps"),
        ("The server now:", "The server now"),
    ],
)
def test_a_heading_of_a_report_has_no_subject(heading: str, subject: str):
    assert statement_text.subject_of(heading) == subject


@given(st.text(max_size=200))
def test_nothing_but_the_beginning_is_left_out(text: str):
    assert text.endswith(statement_text.strip_labels(text))


@pytest.mark.parametrize("heading", ["## Summary of changes", "**What I fixed:**", "Changes made:"])
def test_a_statement_is_kept_without_the_heading_of_the_report(heading: str):
    said = f"{heading}\n\n- ✅ Fix: {CAUSE} {FIX}"
    kept = contents(("user", "the upload fails"), WORK, ("assistant", said))
    assert any(text.startswith("The upload failed because `save()`") for text in kept)


@pytest.mark.parametrize(
    ("heading", "start"),
    [("Windows uploads", "Windows uploads: "), ("Windows works.", "Windows works. ")],
)
def test_a_heading_with_a_subject_stays_with_its_items(heading: str, start: str):
    said = f"## {heading}\n\n- {FIX}"
    kept = contents(("user", "the upload fails"), WORK, ("assistant", said))
    assert any(text.startswith(f"{start}`save()`") for text in kept)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("However, nginx needs a lock", "nginx needs a lock"),
        ("Additionally, the port is open", "The port is open"),
        ("Yes, confirmed — the port is open", "The port is open"),
        ("Also added a lock", "Added a lock"),
        ("Now when users log in", "When users log in"),
        ("Next time you build, run the tests", "Next time you build, run the tests"),
        ("Instead of a list, return a set", "Instead of a list, return a set"),
        ("Then convert the unit", "Then convert the unit"),
    ],
)
def test_a_word_that_only_joins_is_left_out(text: str, expected: str):
    assert statement_text.strip_connective(text) == expected


@pytest.mark.parametrize(
    "text", ["In this mode nothing is saved.", "Then convert the unit.", "With these, it works."]
)
def test_a_reference_to_the_sentence_before_does_not_stand_alone(text: str):
    assert not statement_text.stands_alone(text)


def _kept(said: str) -> list[str]:
    return contents(("user", "the upload fails"), WORK, ("assistant", said))


REFERENCE = f"In this mode, {CAUSE}"


def test_a_reference_takes_the_sentence_before():
    subject = "The exporter writes in text mode by default."
    assert any(text.startswith(f"{subject} In this") for text in _kept(f"{subject} {REFERENCE}"))


@pytest.mark.parametrize(
    "before", ["", "- a list\n- of items\n\n", f"The exporter {'really ' * 90}writes. "]
)
def test_a_reference_without_a_sentence_to_take_is_not_kept(before: str):
    assert not [text for text in _kept(f"{before}{REFERENCE}") if "In this mode" in text]


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ("Run the server with this:\n```bash\nlore up --detach\n```", " `lore up --detach`"),
        ("Run the server with this:\n```bash\nlore up\nlore down\n```", ""),
        ("Run the server with this:\n\nLet me check.", ""),
        ("The server runs.\n```bash\nlore up\n```", ""),
    ],
)
def test_a_statement_with_a_colon_takes_the_one_command_after_it(said: str, code: str):
    assert statement_text.introduced_code(split_statements(said)[0]) == code


def test_a_statement_that_ends_with_a_colon_is_not_kept():
    assert _kept(f"{CAUSE} {FIX}")
    assert not _kept(f"{CAUSE[:-1]}:\n\nLet me check.")


def test_a_summary_does_not_end_with_the_lead_of_its_list():
    said = f"The exporter on Windows was mended so that it:\n- {FIX}\n- {FIX.replace('csv', 'xml')}"
    [kept] = extract_all(("user", "the upload fails"), WORK, ("assistant", said))
    assert "\n- " in kept.content
    assert "binary mode" in kept.summary


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Domain for the webchat.", False),
        ("The domain is for the webchat.", True),
        ("use tabs", True),
        ("pnpm --filter worker dev", True),
        ("We don't squash.", True),
    ],
)
def test_a_mere_name_is_no_sentence(text: str, expected: bool):
    assert statement_text.is_sentence(text) == expected
