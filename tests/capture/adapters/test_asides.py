from __future__ import annotations

import pytest

from lore.capture.adapters import asides
from lore.text import marks

GIVEN = marks.wrap("The staging port is 5436.")
WORDS = marks.inside(GIVEN)


@pytest.mark.parametrize(
    "text",
    [
        GIVEN,
        f"The hook says: {GIVEN} And so on.",
        f"The hook says: <lore-memory>{WORDS}",
        f"{WORDS}</lore-memory> And so on.",
        f"{GIVEN} Once more: <lore-memory>{WORDS}… (cut off)",
        f"<lore-memory>{WORDS}<lore-memory>{WORDS}</lore-memory>",
    ],
)
def test_an_aside_repeats_nothing_that_memory_gave_though_its_marks_were_cut_off(text: str):
    told = asides.aside(text).text
    assert "5436" not in told
    assert asides.GIVEN in told
    wrapped = f"<system-reminder>\n{text}\n</system-reminder>"
    assert "5436" not in "".join(part.text for part in asides.typed(wrapped))


def test_an_aside_keeps_what_stands_outside_of_the_marks():
    told = asides.aside(f"The hook says: {GIVEN} And so on.").text
    assert told.startswith("The hook says: ")
    assert told.endswith(" And so on.")


def test_what_a_person_typed_beside_half_of_a_mark_is_kept():
    (typed, aside) = asides.typed("Why is it cut off? <lore-memory>The staging")
    assert (typed.kind, typed.text) == ("text", "Why is it cut off? ")
    assert aside.kind == "aside"
