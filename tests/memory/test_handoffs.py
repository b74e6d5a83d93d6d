"""Working states, ledgers, handoffs, metrics and CONTINUITY.md through the library."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path

import pytest

from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.records import NewMessage, Part
from lore.settings import Settings
from tests.fakes import NOON, FakeEmbedder, FixedClock

TASK = "Add leap years to the tide table."
REPORT = "The code is written.\n\nNext steps:\n- Write tests for 2100\n- Ask Ines"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return make_project(tmp_path / "code" / "almanac")


def make_project(folder: Path) -> Path:
    folder.mkdir(parents=True)
    (folder / "pyproject.toml").write_text("")
    git = ["git", "-c", "user.name=Ada", "-c", "user.email=ada@example.org", "-C", str(folder)]
    for words in (["init", "-qb", "main"], ["add", "."], ["commit", "-qm", "Begin the almanac"]):
        subprocess.run([*git, *words], check=True)
    return folder


@pytest.fixture
def clock() -> FixedClock:
    return FixedClock(NOON)


@pytest.fixture
def memory(new_home: Path, clock: FixedClock) -> Iterator[Memory]:
    settings = Settings(home=new_home, tasks_continuity_folders=("with-page",))
    with Memory.open(config=settings, embedder=FakeEmbedder(), now=clock) as memory:
        yield memory


def work(memory: Memory, project: Path, session: str = "one", *, at=NOON, report=REPORT) -> None:
    """Let an agent work on a task and report."""
    given = {"file_path": str(project / "tides.py"), "content": "x = 1"}
    memory.capture(session, [
        NewMessage("user", (Part("text", TASK),), at),
        NewMessage("assistant", (Part("tool_call", json.dumps(given), "Write", "1"),), at),
        NewMessage("tool", (Part("tool_result", "written", "", "1"),), at),
        NewMessage("assistant", (Part("text", report),), at),
    ], agent="claude-code", project=str(project))  # fmt: skip


def test_the_state_of_a_session_is_read_on_request(memory: Memory, project: Path):
    work(memory, project)
    state = memory.handoffs.state("one")
    assert state.task == TASK
    assert state.next == ("Write tests for 2100", "Ask Ines")
    assert state.context["uncommitted"] == ["tides.py"]
    assert state.updated_at == NOON


def test_a_turn_without_new_messages_changes_nothing(memory: Memory, project: Path):
    work(memory, project)
    assert memory.handoffs.update("one").added["task"] == (TASK,)
    assert not memory.handoffs.update("one")


def test_sessions_without_hooks_are_caught_up(memory: Memory, project: Path):
    work(memory, project)
    assert memory.handoffs.open_work(project=str(project)) == []
    assert memory.handoffs.catch_up() == 1
    [open_work] = memory.handoffs.open_work(project=str(project))
    assert (open_work.agent, open_work.state.task) == ("claude-code", TASK)
    assert memory.handoffs.catch_up() == 0


def test_open_work_of_another_project_is_not_given(memory: Memory, project: Path, tmp_path: Path):
    work(memory, project)
    memory.handoffs.catch_up()
    other = tmp_path / "code" / "harbour"
    other.mkdir()
    subprocess.run(["git", "init", "-q", str(other)], check=True)
    assert memory.handoffs.open_work(project=str(other)) == []
    assert memory.handoffs.open_work() == []
    assert "leap years" not in memory.prompts.begin_session("new", project=str(other)).text


def test_work_that_a_later_session_went_on_with_is_not_given_twice(
    memory: Memory, project: Path, clock: FixedClock
):
    work(memory, project)
    clock.moment += timedelta(hours=1)
    work(memory, project, "two", at=clock.moment, report="All of it is done.")
    memory.handoffs.catch_up()
    given = [one.session_id for one in memory.handoffs.open_work(project=str(project))]
    assert len(given) <= 1
    text = memory.prompts.begin_session("new", project=str(project)).text
    assert text.count("Task > ") <= 1


def test_old_work_is_not_given(memory: Memory, project: Path, clock: FixedClock):
    work(memory, project)
    memory.handoffs.catch_up()
    clock.moment += timedelta(days=15)
    assert memory.handoffs.open_work(project=str(project)) == []


def test_a_session_that_was_compacted_gets_its_own_state(memory: Memory, project: Path):
    work(memory, project)
    memory.prompts.end_turn("one")
    text = memory.prompts.begin_session("one", project=str(project), condensed=True).text
    assert f"Task > {TASK}" in text
    assert "Next > Write tests for 2100" in text


def test_a_handoff_says_what_the_state_and_git_say(memory: Memory, project: Path):
    work(memory, project)
    handoff = memory.handoffs.write(session="one", project=str(project), to_agent="codex")
    assert (handoff.from_agent, handoff.to_agent) == ("claude-code", "codex")
    assert TASK.rstrip(".") in handoff.what_was_done
    assert handoff.next == ("Write tests for 2100", "Ask Ines")
    assert handoff.artifacts == ("tides.py",)
    assert handoff.needs_testing == ("No check was seen after changes to tides.py",)
    assert handoff.git_state.startswith("branch main, commit ")
    assert handoff.git_state.endswith(", 1 changed files not committed")
    assert memory.handoffs.read(project=str(project), mark=False) == handoff


def test_words_of_the_caller_come_before_the_state(memory: Memory, project: Path):
    work(memory, project)
    handoff = memory.handoffs.write(
        session="one", project=str(project), what_was_done="Wrote it.", next_steps=["Sleep"],
        known_issues=["2100 fails"],
    )  # fmt: skip
    assert (handoff.what_was_done, handoff.next) == ("Wrote it.", ("Sleep",))
    assert handoff.known_issues == ("2100 fails",)


def test_a_handoff_is_given_to_the_agent_it_is_for_until_it_is_taken_over(
    memory: Memory, project: Path
):
    folder = str(project)
    memory.handoffs.write(what_was_done="Printed it.", to_agent="codex", project=folder)
    other = memory.prompts.begin_session("new", project=folder, agent="claude-code").text
    assert "Printed it." not in other
    given = memory.prompts.begin_session("two", project=folder, agent="codex").text
    assert "Done > Printed it." in given
    work(memory, project, "two")
    memory.prompts.end_turn("two")
    later = memory.prompts.begin_session("three", project=folder, agent="codex").text
    assert "Printed it." not in later
    [taken] = memory.handoffs.recent(project=folder)
    assert taken.read_at == NOON


def test_reading_takes_a_handoff_over(memory: Memory, project: Path):
    written = memory.handoffs.write(what_was_done="Printed it.", project=str(project))
    assert memory.handoffs.read(written.id[:13]).id == written.id
    with pytest.raises(NotFound, match="no unread handoff"):
        memory.handoffs.read(project=str(project))
    assert memory.handoffs.recent(project=str(project), unread=True) == []


def test_an_id_names_no_handoff_of_another_project(memory: Memory, project: Path, tmp_path: Path):
    other = tmp_path / "code" / "harbour"
    other.mkdir()
    written = memory.handoffs.write(what_was_done="Printed it.", project=str(project))
    for id_ in (written.id, written.id[:8]):
        with pytest.raises(NotFound, match="no handoff"):
            memory.handoffs.read(id_, project=str(other))
    [waiting] = memory.handoffs.recent(project=str(project))
    assert waiting.read_at is None
    assert memory.handoffs.read(written.id[:8], project=str(project)).id == written.id


def test_bad_handoffs_are_refused(memory: Memory, project: Path):
    with pytest.raises(InvalidInput, match="needs what_was_done"):
        memory.handoffs.write(project=str(project))
    with pytest.raises(InvalidInput, match="at most 50 entries"):
        memory.handoffs.write(what_was_done="x", artifacts=["a"] * 51)
    with pytest.raises(InvalidInput, match="more than 200 characters"):
        memory.handoffs.write(what_was_done="x", to_agent="a" * 201)
    with pytest.raises(NotFound, match="no handoff '_%'"):
        memory.handoffs.read("_%")
    assert memory.handoffs.recent(project=str(project)) == []


def test_secrets_in_a_handoff_are_redacted(memory: Memory, project: Path):
    key = "AKIA" + "Q3LORETEST7CANRY"
    memory.handoffs.write(what_was_done=f"The key is {key}", next_steps=[f"Use {key}"],
                          project=str(project))  # fmt: skip
    assert key not in str(memory.handoffs.recent(project=str(project)))


def test_a_checkpoint_has_the_git_state_and_the_tech_stack(memory: Memory, project: Path):
    work(memory, project)
    (project / "tides.py").write_text("x = 1")
    ledger = memory.handoffs.checkpoint(
        agent="claude-code", session="one", project=str(project), current_task="leap years"
    )
    assert ledger.current_goal == TASK
    assert ledger.current_task == "leap years"
    assert ledger.files_modified == ("tides.py",)
    assert ledger.uncommitted_changes
    assert len(ledger.last_git_commit) >= 7
    assert ledger.tech_stack == ("python",)
    qa = memory.handoffs.checkpoint(agent="qa", project=str(project))
    assert qa.uncommitted_changes is None
    assert [one.agent_id for one in memory.handoffs.ledgers(project=str(project))] == [
        "qa", "claude-code",
    ]  # fmt: skip
    with pytest.raises(InvalidInput, match="name of an agent"):
        memory.handoffs.checkpoint(agent=" ", project=str(project))


def test_the_subject_of_a_commit_is_not_given_unasked(memory: Memory, project: Path):
    memory.handoffs.write(what_was_done="Printed it.", project=str(project))
    text = memory.prompts.begin_session("new", project=str(project)).text
    assert "Git > branch main, commit " in text
    assert "Begin the almanac" not in text


def test_metrics_are_of_the_tasks_of_the_last_seven_days(
    memory: Memory, project: Path, clock: FixedClock
):
    folder = str(project)
    assert memory.handoffs.metrics(project=folder).tasks == 0
    for outcome in ("success", "failure"):
        task = memory.tasks.start(f"Print it with {outcome}", project=folder, agent="codex")
        clock.moment += timedelta(minutes=10)
        errors = [{"type": "Bash", "message": "no paper", "retry": "lp page"}]
        report = {"retries": 2} if outcome == "success" else {"errors": errors}
        memory.tasks.end(task.task_id, outcome=outcome, project=folder, report=report)
    summary = memory.handoffs.metrics(project=folder)
    assert (summary.tasks, summary.success_rate) == (2, 0.5)
    assert summary.outcomes == {"success": 1, "failure": 1}
    assert summary.mean_duration_s == 600
    assert summary.outcome_reward == 0.0
    assert summary.by_agent == {"codex": 2}
    assert (summary.mean_retries, summary.efficiency_reward) == (1.5, 0.684)
    clock.moment += timedelta(days=8)
    assert memory.handoffs.metrics(project=folder).tasks == 0


def test_what_is_forgotten_is_in_no_state_and_no_handoff(memory: Memory, project: Path):
    work(memory, project, report="Next: call Xylander about 2100.")
    memory.handoffs.catch_up()
    memory.handoffs.write(what_was_done="Spoke with Xylander.", project=str(project))
    memory.handoffs.checkpoint(agent="x", project=str(project), current_task="meet Xylander")
    memory.forget(match="Xylander")
    memory.handoffs.catch_up()
    assert "Xylander" not in str(memory.handoffs.recent(project=str(project)))
    assert "Xylander" not in str(memory.handoffs.ledgers(project=str(project)))
    assert "Xylander" not in memory.prompts.begin_session("new", project=str(project)).text


@pytest.mark.parametrize("word", ["client Zanzibar", 'the "Zanzibar" job'])
def test_a_handoff_is_forgotten_by_what_it_says(memory: Memory, project: Path, word: str):
    memory.handoffs.write(what_was_done=word.replace(" Z", "\nZ"), project=str(project))
    memory.forget(match=word)
    assert memory.handoffs.recent(project=str(project)) == []


def test_private_sessions_and_a_switch_keep_states_from_being_given(
    memory: Memory, project: Path, tmp_path: Path
):
    work(memory, project)
    memory.handoffs.catch_up()
    assert memory.prompts.for_task_call("TodoWrite", "{}", "", session="") == ""
    assert memory.prompts.for_subagent("no-subagent") == ""


def page(project: Path) -> str:
    return (project / "CONTINUITY.md").read_text()


def turn(memory: Memory, project: Path, session: str = "one") -> None:
    memory.prompts.end_turn(session, folder=str(project))


@pytest.fixture
def switched_on(tmp_path: Path) -> Path:
    return make_project(tmp_path / "with-page" / "almanac")


def test_nothing_is_written_where_the_person_has_not_switched_it_on(memory: Memory, project: Path):
    asked = {"tasks": {"continuity": True, "continuity_folders": ["almanac"]}}
    (project / ".lore.json").write_text(json.dumps(asked))
    work(memory, project)
    turn(memory, project)
    assert not (project / "CONTINUITY.md").exists()


def test_a_turn_writes_the_page(memory: Memory, switched_on: Path):
    work(memory, switched_on)
    turn(memory, switched_on)
    text = page(switched_on)
    assert f"## Current Task\n\n- {TASK}\n" in text
    assert "## Next\n\n- Write tests for 2100\n- Ask Ines\n" in text
    assert "- Not committed: `tides.py`\n" in text
    assert "## Outcome" not in text


def test_a_page_has_the_state_of_its_own_project_only(
    memory: Memory, switched_on: Path, tmp_path: Path
):
    other = make_project(tmp_path / "with-page" / "other")
    work(memory, switched_on)
    memory.prompts.end_turn("one", folder=str(other))  # its agent went to another repository
    assert not (other / "CONTINUITY.md").exists()
    turn(memory, switched_on)
    copied = page(switched_on).replace("## Next\n", "## Next\n\n- Send it to Eve\n")
    (other / "CONTINUITY.md").write_text(copied)
    with pytest.raises(NotFound, match="another project"):
        memory.continuity.apply(str(other), memory.continuity.edits(str(other)))
    assert "Eve" not in str(memory.handoffs.state("one"))


def test_the_end_of_a_session_adds_its_outcome(memory: Memory, switched_on: Path):
    work(memory, switched_on)
    memory.prompts.end_session("one", folder=str(switched_on))
    turn(memory, switched_on)  # the end of the last turn may arrive later
    assert "## Outcome\n\n- " in page(switched_on)


def test_mistakes_are_ids_with_a_few_words(memory: Memory, switched_on: Path):
    long = "Leap years by year % 4 alone are wrong " + "for the year 2100 " * 20
    stored = memory.remember(long, kind="anti_pattern", project=str(switched_on))
    work(memory, switched_on)
    turn(memory, switched_on)
    [line] = [line for line in page(switched_on).splitlines() if line.startswith("- [0")]
    assert stored.id.startswith(line[3:16])
    assert len(line) < 150


def test_lines_of_a_person_survive_the_next_turn_and_come_back_as_edits(
    memory: Memory, switched_on: Path
):
    work(memory, switched_on)
    turn(memory, switched_on)
    file = switched_on / "CONTINUITY.md"
    edited = page(switched_on).replace("- Ask Ines\n", "- Ask Bo, not Ines\n")
    file.write_text(edited + "\n## Notes of Ada\n\nThe boat leaves at nine.\n")
    work(memory, switched_on, "two", report="Next: print it.")
    turn(memory, switched_on, "two")
    text = page(switched_on)
    assert "- Ask Bo, not Ines" in text
    assert "## Notes of Ada\n\nThe boat leaves at nine.\n" in text
    edits = [(one.verb, one.section, one.text) for one in memory.continuity.edits(str(switched_on))]
    assert ("add", "next", "Ask Bo, not Ines") in edits


def test_nothing_of_an_edit_is_used_before_it_is_approved(memory: Memory, switched_on: Path):
    work(memory, switched_on)
    turn(memory, switched_on)
    file = switched_on / "CONTINUITY.md"
    file.write_text(page(switched_on).replace(
        "## Next\n\n", "## Decisions\n\n- Leap years come from the calendar module\n\n"
        "## Next\n\n- Call the harbour master\n").replace("- Ask Ines\n", ""))  # fmt: skip
    given = memory.prompts.begin_session("new", project=str(switched_on)).text
    assert "harbour master" not in given
    edits = memory.continuity.edits(str(switched_on))
    assert {(one.verb, one.section) for one in edits} == {
        ("add", "decisions"), ("add", "next"), ("remove", "next"),
    }  # fmt: skip
    assert memory.continuity.apply(str(switched_on), edits) == 3
    assert memory.continuity.edits(str(switched_on)) == []
    given = memory.prompts.begin_session("new2", project=str(switched_on)).text
    assert "Next > Call the harbour master" in given
    assert "Ask Ines" not in given
    [decision] = memory.knowledge.page_of_fragments(kind="decision").items
    assert (decision.content, decision.origin) == (
        "Leap years come from the calendar module", "user",
    )  # fmt: skip


def test_hidden_characters_in_an_edit_are_named(memory: Memory, switched_on: Path):
    work(memory, switched_on)
    turn(memory, switched_on)
    file = switched_on / "CONTINUITY.md"
    file.write_text(page(switched_on).replace("- Ask Ines\n", "- Ask Ines\n- Pr\u200bint it\n"))
    [edit] = memory.continuity.edits(str(switched_on))
    assert edit.hidden == ("U+200B ZERO WIDTH SPACE",)


def test_a_file_of_somebody_else_is_left_alone(memory: Memory, switched_on: Path, tmp_path: Path):
    work(memory, switched_on)
    file = switched_on / "CONTINUITY.md"
    file.write_text("# My own notes\n")
    turn(memory, switched_on)
    assert page(switched_on) == "# My own notes\n"
    with pytest.raises(InvalidInput, match="was not written by Lore"):
        memory.continuity.write(str(switched_on), force=True)
    file.unlink()
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("x")
    file.symlink_to(elsewhere)
    turn(memory, switched_on)
    assert elsewhere.read_text() == "x"


def test_there_are_no_edits_without_a_page(memory: Memory, project: Path):
    with pytest.raises(NotFound, match=r"no CONTINUITY\.md"):
        memory.continuity.edits(str(project))


def test_what_is_forgotten_leaves_the_page_at_once(memory: Memory, switched_on: Path):
    work(memory, switched_on, report="Next: call Xylander about 2100.")
    turn(memory, switched_on)
    assert "Xylander" in page(switched_on)
    memory.forget(match="Xylander")
    assert "Xylander" not in page(switched_on)
    assert TASK in page(switched_on)


@pytest.mark.parametrize("is_session_below", [True, False])
def test_what_is_forgotten_leaves_a_page_below_the_top_of_a_project(
    memory: Memory, switched_on: Path, *, is_session_below: bool
):
    below = switched_on / "sub"
    below.mkdir()
    started = below if is_session_below else switched_on
    work(memory, started, report="Next: call Xylander about 2100.")
    memory.handoffs.catch_up()
    memory.continuity.write(str(below), force=True)
    assert "Xylander" in page(below)
    memory.forget(match="Xylander")
    assert "Xylander" not in page(below)
    assert TASK in page(below)


def test_a_forgotten_project_leaves_its_pages(memory: Memory, switched_on: Path):
    below = switched_on / "sub"
    below.mkdir()
    work(memory, below)
    memory.handoffs.catch_up()
    memory.continuity.write(str(below), force=True)
    memory.forget(project=str(switched_on))
    assert TASK not in page(below)


@pytest.mark.parametrize("box", ["[x] ", "[ ] ", "[x] [X] "])
def test_what_is_forgotten_leaves_the_page_also_behind_a_check_box(
    memory: Memory, switched_on: Path, box: str
):
    report = f"Next steps:\n- {box}Write the Zebrafish exporter\n- Ask Ines"
    todos = [{"content": f"{box}Feed the Zebrafish", "status": status}
             for status in ("completed", "pending")]  # fmt: skip
    call = Part("tool_call", json.dumps({"todos": todos}), "TodoWrite", "2")
    memory.capture("one", [NewMessage("user", (Part("text", TASK),), NOON),
                           NewMessage("assistant", (call,), NOON)],
                   agent="claude-code", project=str(switched_on))  # fmt: skip
    work(memory, switched_on, report=report)
    turn(memory, switched_on)
    assert "Zebrafish" in page(switched_on)
    assert memory.continuity.edits(str(switched_on)) == []
    memory.forget(match="Zebrafish")
    assert "Zebrafish" not in page(switched_on)


def test_the_page_of_a_forgotten_session_keeps_only_lines_of_the_person(
    memory: Memory, switched_on: Path
):
    work(memory, switched_on)
    turn(memory, switched_on)
    file = switched_on / "CONTINUITY.md"
    file.write_text(page(switched_on).replace("- Ask Ines\n", "- Ask Ines\n- Feed the cat\n"))
    memory.forget(session="one")
    assert "leap years" not in page(switched_on)
    assert "- Feed the cat" in page(switched_on)
