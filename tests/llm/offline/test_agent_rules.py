"""Transient statements of an agent are left out; lasting ones are kept."""

from __future__ import annotations

import pytest

from lore.llm.offline import agent_rules
from lore.llm.offline.agent_rules import MAX_REPORT_CHARS, PrecedingContext
from lore.llm.offline.sentence_rules import Finding
from tests.digest.conversations import message_text
from tests.llm.offline.exchanges import WORK, contents, extract_all

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


def test_a_fix_far_from_its_cause_is_ignored():
    between = " Then I read the file once more." * 3
    assert [one.kind for one in found(f"{CAUSE}{between} {FIX}")] == []


def test_an_unsure_cause_is_not_kept():
    assert found(f"Maybe {CAUSE[0].lower()}{CAUSE[1:]} {FIX}") == []


def test_the_symptom_is_taken_from_the_request():
    (one,) = found(f"{CAUSE} {FIX}", PrecedingContext("The upload crashes on Windows.", "m7"))
    assert one.payload["symptom"] == "The upload crashes on Windows."


def test_a_tool_error_is_the_symptom_if_it_shares_a_name_with_the_fix():
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
def test_progress_opinions_and_tests_are_not_kept(text: str):
    assert found(text) == []


def test_a_setting_is_kept_with_its_value():
    (one,) = found("WORKER_MAX_ATTEMPTS is 5 in `config/worker.toml`.")
    assert one.kind == "config"
    assert (one.payload["setting"], one.payload["value"]) == ("WORKER_MAX_ATTEMPTS", "5")


def test_a_long_complaint_is_a_pasted_log():
    heard = PrecedingContext("The upload fails. " + "x " * MAX_REPORT_CHARS, "m7")
    announced = "Found it: `save()` opened `report.csv` in text mode. It is binary now."
    assert found(announced, heard) == []


ASKED = ("user", "go on")
LIMIT = "The `store` package can't import `cli` because `cli` already imports it."
EDIT = ("assistant", "[Edit] /code/app/sender.go")


def said(text: str) -> list[str]:
    return contents(ASKED, WORK, ("assistant", text))


@pytest.mark.parametrize(
    "text",
    [
        "`read_page()` requires a `cursor_id` because pages are cut. Let me rewrite the caller:",
        "`read_page()` always returns `last_cursor` first. I need to look at the tests.",
        "`read_page()` falls back to `last_cursor` because the index is gone."
        " Wait, it reads the index before that.",
        "`total_rows` is capped by `page_size` because it was declared with `:=` above.",
        "The `errcheck` linter always fires because `close_all()` drops its result.",
        "`old_sender` never waited for `flush_all()`, so it was also losing lines.",
        "We need a run that fails. The row must exist for `find_row` to return `true`,"
        " but then `save_row` must fail.",
        "`send_mail` now takes a `Writer` instead of a `Context`, so it no longer sees `row_id`.",
        "Used `path.Sep` instead of a slash so the prefix check of `cut_path` works on Windows.",
        "For archived rows, group by `owner_id` instead of showing `all_rows`.",
    ],
)
def test_a_step_of_the_work_is_not_kept(text):
    assert said(text) == []


@pytest.mark.parametrize("after", ["", " I'll use a literal:", " Let me run the tests."])
def test_a_limitation_is_kept_whatever_the_next_step_is(after):
    assert said(LIMIT + after) == [LIMIT]


def test_a_statement_followed_by_a_check_is_kept():
    fact = "The hook format requires `extraContext` to be nested under `hookOutput`."
    assert said(f"{fact} Let me verify this in the docs.") == [fact]


def test_a_list_of_names_with_remarks_in_brackets_is_no_sentence():
    assert said("Entry types (`RedEntry` has no `Name`, `BlueEntry` requires it)") == []


def test_items_of_an_agents_plan_are_not_kept():
    assert said("Let me fix both:\n\n- `row_count` requires `max_rows` because pages are cut") == []


DEFECT = "`install_hooks` always writes to `shared_settings` regardless of `is_local`."


def test_a_defect_that_is_edited_soon_is_not_kept_as_a_fact():
    assert contents(ASKED, WORK, ("assistant", DEFECT), EDIT, ("tool", "ok")) == []


def test_a_defect_with_its_repair_is_a_bug_fix():
    done = ("assistant", "Changed `install_hooks` to write to `local_settings`.")
    found = extract_all(ASKED, WORK, ("assistant", DEFECT), EDIT, ("tool", "ok"), done)
    assert [(one.kind, one.content) for one in found] == [("bug_fix", f"{DEFECT} {done[1]}")]
    assert found[0].payload["solution"] == done[1]
    assert found[0].sources == ("m2", "m5")


def test_a_defect_that_is_repaired_in_a_later_exchange_is_not_kept_as_a_fact():
    later = [("user", "can we mend that?"), EDIT]
    assert contents(ASKED, WORK, ("assistant", DEFECT), later=later) == []


def test_a_defect_that_nobody_repairs_is_kept():
    assert contents(ASKED, WORK, ("assistant", DEFECT)) == [DEFECT]


def test_writing_a_plan_repairs_nothing():
    plan = ("assistant", "[Write] /code/docs/plan.md")
    assert contents(ASKED, WORK, ("assistant", DEFECT), plan) == [DEFECT]


def test_praise_of_a_fix_is_no_fix():
    text = (
        "`cut_path()` fails because `/var` and `/private/var` share no prefix."
        " The fix in `cut_path()` is correct."
    )
    assert said(text) == []


def test_a_compiler_complaint_is_no_bug_fix():
    text = (
        "The issue was that `send_mail` used an undefined `message` variable."
        " I changed `send_mail` to build `message` first."
    )
    assert said(text) == []


CLAIM = "`app.local.json` always overrides `app.json` because it is read last."


def test_an_undisputed_claim_is_kept():
    later = [("user", "thanks"), ("assistant", "You're right to ask, `other.json` is gone.")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == [CLAIM]


@pytest.mark.parametrize(
    "answer",
    [
        "Uh oh, both were read: `app.local.json` and `app.json` are merged.",
        "I was wrong: `app.json` and `app.local.json` are merged.",
        "Turns out `app.local.json` does not replace `app.json`.",
    ],
)
def test_a_withdrawn_claim_is_not_kept(answer):
    later = [("user", "please try it"), ("assistant", answer)]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == []


def test_a_claim_that_the_user_doubts_is_not_kept():
    later = [("user", "can we double check that app.local.json overrides it?")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == []


def test_a_withdrawal_of_another_claim_changes_nothing():
    later = [("assistant", "You're right, `mailer.py` is never called.")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == [CLAIM]
