from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.llm.offline.condensing import SECTIONS, condense
from lore.llm.offline.digester import OfflineDigester
from lore.text import tokens
from tests.distill.talk import TOPICS

LOGS = (
    "2026-05-13\nuser: We decided to pay for berths in advance\nuser: The lamp is broken",
    "2026-05-14\nuser: The crew switched from hemp to nylon ropes\nassistant: The berth is paid",
)

STATED = tuple(text.format(i=i) for i, text in enumerate(TOPICS))


@given(st.lists(st.text(max_size=300), max_size=6), st.text(max_size=300), st.integers(0, 300))
def test_a_condensed_log_keeps_its_limit(logs: list[str], former: str, limit: int):
    log = condense(logs, former, limit_tokens=limit)
    assert not log.lines or tokens.count(log.text) <= limit


@given(st.lists(st.sampled_from(STATED), min_size=1, unique=True), st.integers(60, 300))
def test_what_fits_is_told_and_nothing_else(stated: list[str], limit: int):
    log = condense([f"2026-05-13\nuser: {text}" for text in stated], "", limit_tokens=limit)
    told = [line.text for line in log.lines if not line.text.endswith(":")]
    assert told
    assert tokens.count(log.text) <= limit
    assert set(told) <= {f"2026-05-13 user: {text}" for text in stated}


def test_with_room_for_all_every_line_is_told_once():
    logs = [f"2026-05-13\nuser: {text}" for text in STATED]
    told = condense(logs, "", limit_tokens=2_000).text.split("\n")
    assert sorted(line for line in told if not line.endswith(":")) == sorted(
        f"2026-05-13 user: {text}" for text in STATED
    )


def test_decisions_and_changes_stand_in_sections_of_their_own_with_their_days():
    text = OfflineDigester().condense(LOGS, "", limit_tokens=200).text
    assert "Decisions:\n2026-05-13 user: We decided to pay for berths in advance" in text
    assert "Changes:\n2026-05-14 user: The crew switched from hemp to nylon ropes" in text
    assert [line.rstrip(":") for line in text.split("\n") if line.endswith(":")] == [
        section for section in SECTIONS if f"{section}:" in text
    ]


def test_a_former_log_keeps_its_sections_and_days():
    former = condense(LOGS, "", limit_tokens=200).text
    again = condense(["2026-05-20\nuser: The lamp is mended"], former, limit_tokens=300).text
    assert "Decisions:\n2026-05-13 user: We decided to pay for berths in advance" in again
    assert "2026-05-20 user: The lamp is mended" in again


def test_where_room_is_short_decisions_last_longest():
    log = condense(LOGS, "", limit_tokens=36)
    assert "decided" in log.text or "switched" in log.text
    assert "berth is paid" not in log.text
