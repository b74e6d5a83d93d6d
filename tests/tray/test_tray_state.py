"""What the tray icon shows and offers for each status of the daemon."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from lore.daemon.status_file import PASSING, Status, TaskStatus
from lore.tray.tray_icon import draw
from lore.tray.tray_state import (
    COMMANDS,
    STATES,
    Action,
    CommandResult,
    Entry,
    Problem,
    View,
    failure_of,
    find_news,
    summary_of,
    view_of,
)

RUNNING = Status(running=True, state="idle", pid=1, server="http://localhost:3207")
STOPPED = Status()


def entry(view: View, action: Action) -> Entry:
    """Return the entry of the menu for an action."""
    (one,) = [each for each in view.menu if each.action == action]
    return one


@pytest.mark.parametrize(
    ("doing", "state"),
    [
        ("idle", "idle"),
        ("looking", "idle"),
        ("capturing", "capturing"),
        ("capturing, embedding", "capturing"),
        ("embedding, distilling", "consolidating"),
        ("consolidating", "consolidating"),
        ("syncing, consolidating", "syncing"),
        (PASSING, "error"),
    ],
)
def test_the_icon_shows_the_most_important_work(doing: str, state: str):
    view = view_of(Status(running=True, state=doing, pid=1))
    assert view.state == state
    assert view.sentence.endswith(".")


def test_a_stopped_daemon_can_be_started_but_not_explored():
    view = view_of(STOPPED)
    assert view.state == "stopped"
    assert entry(view, "start").is_enabled
    assert not entry(view, "explore").is_enabled
    assert "start Lore first" in entry(view, "explore").label
    assert not [one for one in view.menu if one.action == "stop"]


def test_a_running_daemon_can_be_stopped_and_explored():
    view = view_of(RUNNING)
    assert entry(view, "stop").is_enabled
    assert entry(view, "explore") == Entry("Open explorer", "explore")


def test_sync_says_why_it_is_not_available():
    assert entry(view_of(RUNNING), "sync") == Entry(
        "Sync (no target is set)", "sync", is_enabled=False
    )
    assert entry(view_of(RUNNING, can_sync=True), "sync") == Entry("Sync now", "sync")
    assert view_of(RUNNING, in_progress="sync", can_sync=True).state == "syncing"


def test_every_enabled_entry_has_something_to_do():
    for status in (RUNNING, STOPPED):
        for one in view_of(status).menu:
            if one.is_enabled:
                assert one.action in COMMANDS or one.action in ("logs", "quit")


def test_while_a_command_runs_no_other_can_be_started():
    view = view_of(RUNNING, in_progress="capture")
    assert view.state == "capturing"
    for action in ("stop", "capture", "consolidate", "explore"):
        assert not entry(view, action).is_enabled
    assert entry(view, "quit").is_enabled


def test_progress_is_part_of_the_sentence():
    task = TaskStatus("embed", 5, running=True, part="items", done=1_200, total=3_000)
    view = view_of(Status(running=True, state="embedding", pid=1, chores=(task,)))
    assert view.sentence == "Lore captures: items, 1,200 of 3,000."


def test_the_menu_begins_with_the_sentence_since_not_every_panel_has_tooltips():
    view = view_of(RUNNING)
    assert view.menu[0] == Entry(view.sentence, None, is_enabled=False)


def test_a_failing_task_is_an_error_with_a_next_step():
    task = TaskStatus("capture", 30, failures=2, last_error="The disk is full. " * 40)
    view = view_of(Status(running=True, state="idle", pid=1, chores=(task,)))
    assert view.state == "error"
    assert view.problem
    assert len(view.problem.message) <= 200
    assert "lore logs" in view.problem.next_step


def test_an_error_is_notified_once():
    broken = view_of(Status(running=True, state=PASSING, pid=1, last_error="Not a database."))
    idle = view_of(RUNNING)
    assert find_news(idle, broken, was_stopped=False) == broken.problem
    assert find_news(None, broken, was_stopped=False) == broken.problem
    assert find_news(broken, broken, was_stopped=False) is None
    assert find_news(broken, idle, was_stopped=False) is None


def test_a_daemon_that_ends_by_itself_is_notified_but_not_one_that_was_stopped():
    idle, stopped = view_of(RUNNING), view_of(STOPPED)
    assert find_news(idle, stopped, was_stopped=False)
    assert find_news(idle, stopped, was_stopped=True) is None
    assert find_news(None, stopped, was_stopped=False) is None
    assert find_news(stopped, stopped, was_stopped=False) is None


def test_a_failed_command_speaks_for_itself():
    result = CommandResult(15, err="lore: Another cycle runs.\n      Wait until it ends.\n")
    assert failure_of("consolidate", result) == Problem(
        "Another cycle runs.", "Wait until it ends."
    )
    assert failure_of("consolidate", CommandResult(0, err="lore: A notice.")) is None
    silent = failure_of("start", CommandResult(-9))
    assert silent
    assert "-9" in silent.message
    assert silent.next_step


def test_a_browser_that_does_not_open_is_a_failure():
    result = CommandResult(0, out="http://localhost:3207/login?ticket=secret\n")
    failure = failure_of("explore", result)
    assert failure
    assert "secret" not in f"{failure.message}{failure.next_step}"


def test_only_capture_and_consolidation_tell_what_they_did():
    result = CommandResult(0, out="12 messages stored, 0 known, in 1 session of 1 file.\n")
    assert summary_of("capture", result).startswith("12 messages")
    assert summary_of("capture", CommandResult(0))
    assert summary_of("consolidate", CommandResult(0))
    assert not summary_of("start", result)
    assert not summary_of("capture", CommandResult(1, err="lore: No."))


def test_each_state_has_its_own_drawing():
    drawings = {draw(state) for state in STATES}
    assert len(drawings) == len(STATES)
    for drawing in drawings:
        assert ElementTree.fromstring(drawing).attrib["viewBox"] == "0 0 32 32"
