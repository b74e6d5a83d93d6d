"""Transient statements of an agent are left out; lasting ones are kept."""

from __future__ import annotations

import pytest

from tests.llm.offline.exchanges import WORK, contents, extract_all

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
def test_what_cannot_be_done_is_kept_whatever_the_next_step_is(after):
    assert said(LIMIT + after) == [LIMIT]


def test_an_agent_that_goes_on_to_check_takes_what_it_said_as_settled():
    fact = "The hook format requires `extraContext` to be nested under `hookOutput`."
    assert said(f"{fact} Let me verify this in the docs.") == [fact]


def test_a_list_of_names_with_remarks_in_brackets_is_no_sentence():
    assert said("Entry types (`RedEntry` has no `Name`, `BlueEntry` requires it)") == []


def test_items_under_what_an_agent_is_about_to_do_are_not_kept():
    assert said("Let me fix both:\n\n- `row_count` requires `max_rows` because pages are cut") == []


DEFECT = "`install_hooks` always writes to `shared_settings` regardless of `is_local`."


def test_a_defect_that_is_edited_soon_is_not_kept_as_a_fact():
    assert contents(ASKED, WORK, ("assistant", DEFECT), EDIT, ("tool", "ok")) == []


def test_a_defect_with_what_was_done_about_it_is_a_bug_fix():
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


def test_a_judgement_of_the_fix_is_no_remedy():
    text = (
        "`cut_path()` fails because `/var` and `/private/var` share no prefix."
        " The fix in `cut_path()` is correct."
    )
    assert said(text) == []


def test_what_a_compiler_says_of_an_edit_is_no_bug_fix():
    text = (
        "The issue was that `send_mail` used an undefined `message` variable."
        " I changed `send_mail` to build `message` first."
    )
    assert said(text) == []


CLAIM = "`app.local.json` always overrides `app.json` because it is read last."


def test_a_claim_that_stands_is_kept():
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
def test_a_claim_that_is_taken_back_later_is_not_kept(answer):
    later = [("user", "please try it"), ("assistant", answer)]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == []


def test_a_claim_that_a_person_wants_checked_is_not_kept():
    later = [("user", "can we double check that app.local.json overrides it?")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == []


def test_a_reversal_of_something_else_takes_nothing_back():
    later = [("assistant", "You're right, `mailer.py` is never called.")]
    assert contents(("user", "which wins?"), WORK, ("assistant", CLAIM), later=later) == [CLAIM]
