"""Episodes and revocations as a person sees them."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from lore.cli.output import format_duration
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.settings import load
from tests.cli.conftest import Lore

NOON = datetime(2026, 5, 13, 12, tzinfo=UTC)


def message(role, second: int, *parts: Part) -> NewMessage:
    return NewMessage(role, parts, NOON + timedelta(seconds=second))


@pytest.fixture
def lore_with_work(lore: Lore) -> Lore:
    """Return the command line on a home with one session of work in it."""
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    edit = Part("tool_call", json.dumps({"file_path": "/code/dates.py"}), "Edit", "1")
    run = Part("tool_call", json.dumps({"command": "pytest"}), "Bash", "2")
    with Memory.open(config=config) as memory:
        ids = memory.capture("work", [
            message("user", 0, Part("text", "Please mend the date parser. Always run the tests.")),
            message("assistant", 5, edit),
            message("tool", 6, Part("tool_result", "updated", "", "1")),
            message("assistant", 7, run),
            message("tool", 9, Part("tool_result", "error: \x1b[31mleap", "", "2", failed=True)),
            message("tool", 10, Part("tool_result", "from a page", origin="web")),
        ], project="/code", agent="codex")  # fmt: skip
        memory.store("Pages say so", origin="assistant", source_messages=[ids[-1]])
    return lore


def test_an_episode_is_described_listed_and_found(lore_with_work: Lore):
    told = lore_with_work("episode", "work").works().out
    assert "Please mend the date parser" in told
    assert "failure: the last test failed" in told
    assert "/code/dates.py" in told
    assert "\x1b[31m" not in told
    assert "failure" in lore_with_work("episodes").works().out
    assert "mend the date parser" in lore_with_work("recall", "date parser").works().out


def test_an_episode_lists_the_tasks_of_its_session(lore_with_work: Lore):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore_with_work.home).settings
    with Memory.open(config=config) as memory:
        asked = message("user", 60, Part("text", "Add a dark theme to the settings page"))
        answer = message("assistant", 61, Part("text", "Added."))
        memory.capture("work", [asked, answer], project="/code", agent="codex")
    told = lore_with_work("episode", "work").works().out
    assert "1. Please mend the date parser" in told
    assert "2. Add a dark theme to the settings page" in told
    assert "messages 0 to 5, 2 tool calls, 1 file changed, 1 error not fixed" in told
    tasks = json.loads(lore_with_work("episode", "work", "--json").works().out)["tasks"]
    assert [task["outcome"] for task in tasks] == ["failure", "unknown"]


def test_durations_are_formatted_for_people():
    told = [format_duration(seconds) for seconds in (0, 40, 720, 3_600, 4_180, 273_600)]
    assert told == ["0 s", "40 s", "12 min", "1 h", "1 h 9 min", "3 d 4 h"]


def test_the_date_of_an_episode_is_that_of_its_session(lore_with_work: Lore):
    lore_with_work("episode", "work").works()
    [listed] = json.loads(lore_with_work("episodes", "--json").works().out)
    [read] = json.loads(lore_with_work("read", listed["id"], "--json").works().out)
    assert read["created_at"] == listed["at"]


def test_the_latest_sessions_are_listed_without_a_question(lore_with_work: Lore):
    [session] = json.loads(lore_with_work("sessions", "--json").works().out)
    assert session["external_id"] == "work"
    assert session["id"] in lore_with_work("sessions").works().out


def test_an_episode_as_json_has_stable_keys(lore_with_work: Lore):
    found = json.loads(lore_with_work("episode", "work", "--json").works().out)
    assert set(found) == {
        "goal", "outcome", "reason", "agent", "calls", "actions", "errors", "files_read",
        "files_changed", "artifacts", "commits", "tasks", "duration_s", "tokens", "sources",
        "titled", "task_id", "phase", "constraints", "retries",
    }  # fmt: skip
    [listed] = json.loads(lore_with_work("episodes", "--json", "--project", "/code").works().out)
    assert set(listed) == {"id", "session_id", "project_id", "at", "episode"}
    again = json.loads(lore_with_work("episode", listed["id"], "--json").works().out)
    assert again == found


def test_describing_a_session_twice_stores_one_episode(lore_with_work: Lore):
    lore_with_work("episode", "work").works()
    lore_with_work("episode", "work").works()
    assert len(json.loads(lore_with_work("episodes", "--json").works().out)) == 1


def test_without_episodes_the_command_to_create_one_is_shown(lore_with_work: Lore):
    assert "lore episode" in lore_with_work("episodes").works().out
    lore_with_work("episode", "nowhere").fails_with(3)


def test_why_names_origin_and_trust_of_each_message_and_what_they_allow(lore_with_work: Lore):
    [hit] = json.loads(lore_with_work("search", "pages", "--json").works().out)
    told = lore_with_work("why", hit["id"]).works().out
    assert "origin web, trust 0" in told
    assert "found by asking only" in told


def test_revoke_previews_confirms_and_can_be_undone(lore_with_work: Lore):
    assert (
        "would be revoked" in lore_with_work("revoke", "--origin", "web", "--dry-run").works().out
    )
    assert "--yes" in lore_with_work("revoke", "--origin", "web").fails_with(2).err
    done = lore_with_work("revoke", "--origin", "web", "--yes").works().out
    assert "Pages say so" in done
    assert "Revoked: 1 fragment" in done
    assert json.loads(lore_with_work("search", "pages", "--json").works().out) == []
    assert "revocation" in lore_with_work("undo").works().out
    assert len(json.loads(lore_with_work("search", "pages", "--json").works().out)) == 1


def test_revoke_session_lists_its_standing_instructions(lore_with_work: Lore):
    told = lore_with_work("revoke", "--session", "work", "--yes").works().out
    assert "standing: Always run the tests." in told
    assert (
        "Nothing was derived" in lore_with_work("revoke", "--session", "work", "--yes").works().out
    )


@pytest.mark.parametrize(
    "given", [[], ["--session", "work", "--origin", "web"], ["--origin", "nobody"]]
)
def test_revoke_needs_a_target(lore_with_work: Lore, given):
    lore_with_work("revoke", "--yes", *given).fails_with(2)
