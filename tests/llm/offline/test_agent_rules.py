from __future__ import annotations

import pytest

from lore.llm.offline import agent_rules
from lore.llm.offline.agent_rules import MAX_REPORT_CHARS, PrecedingContext
from lore.llm.offline.sentence_rules import Finding
from tests.digest.conversations import message_text

CAUSE = "The root cause is that `save()` opens `report.csv` in text mode."
FIX = "The fix is to open `report.csv` in binary mode."


def found(text: str, heard: PrecedingContext | None = None) -> list[Finding]:
    return list(
        agent_rules.find_in_agent_message(
            message_text(0, text, voice="assistant"), heard or PrecedingContext()
        )
    )


def test_a_cause_with_its_fix_is_one_bug_fix():
    (one,) = found(f"{CAUSE} {FIX}")
    assert (one.kind, one.text) == ("bug_fix", f"{CAUSE} {FIX}")
    assert (one.payload["root_cause"], one.payload["solution"]) == (CAUSE, FIX)


def test_a_cause_without_a_fix_is_open_and_not_kept():
    assert found(CAUSE) == []


def test_a_fix_stands_near_its_cause():
    between = " Then I read the file once more." * 3
    assert [one.kind for one in found(f"{CAUSE}{between} {FIX}")] == []


def test_an_unsure_cause_is_not_kept():
    assert found(f"Maybe {CAUSE[0].lower()}{CAUSE[1:]} {FIX}") == []


def test_the_symptom_is_what_the_person_saw():
    (one,) = found(f"{CAUSE} {FIX}", PrecedingContext("The upload crashes on Windows.", "m7"))
    assert one.payload["symptom"] == "The upload crashes on Windows."


def test_the_error_of_a_tool_is_the_symptom_where_it_has_a_name_of_the_fix():
    fix = "The cause turns out to be the import in `dates.py`. Fixed by using `parse_date` there."
    (one,) = found(fix, PrecedingContext(error="undefined: parse_date", error_id="t1"))
    assert (one.payload["symptom"], one.sources[1:]) == ("undefined: parse_date", ("t1",))
    (other,) = found(fix, PrecedingContext(error="disk quota reached", error_id="t1"))
    assert len(other.sources) == 1


@pytest.mark.parametrize(
    "text",
    [
        "The `strategy` package can't import `cli` because `cli` already imports it.",
        "`load_config()` must run before `open_store()` because `store.toml` names the path.",
    ],
)
def test_a_constraint_with_its_reason_is_kept(text: str):
    (one,) = found(text)
    assert one.text == text


@pytest.mark.parametrize(
    "text",
    [
        "I added `load_config()` before `open_store()`, which takes `store.toml`.",
        "Let me run `load_config()` before `open_store()` because `store.toml` names the path.",
        "`load_config()` is fine before `open_store()` because `store.toml` names the path.",
        "`test_config()` must run before `test_store()` because `store.toml` names the path.",
    ],
)
def test_progress_opinions_and_tests_are_said_in_passing(text: str):
    assert found(text) == []


def test_a_setting_is_kept_with_its_value():
    (one,) = found("WORKER_MAX_ATTEMPTS is 5 in `config/worker.toml`.")
    assert one.kind == "config"
    assert (one.payload["setting"], one.payload["value"]) == ("WORKER_MAX_ATTEMPTS", "5")


def test_a_long_complaint_is_a_log_that_someone_pasted():
    heard = PrecedingContext("The upload fails. " + "x " * MAX_REPORT_CHARS, "m7")
    announced = "Found it: `save()` opened `report.csv` in text mode. It is binary now."
    assert found(announced, heard) == []
