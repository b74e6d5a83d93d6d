"""The text of statements: what is left out before them, and what completes them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.llm.offline import statement_text
from tests.llm.offline.exchanges import WORK, contents

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


def test_a_heading_with_a_subject_stays_with_its_items():
    said = f"## Windows uploads\n\n- {FIX}"
    kept = contents(("user", "the upload fails"), WORK, ("assistant", said))
    assert any(text.startswith("Windows uploads: `save()`") for text in kept)
