"""Tasks and layers of memory on the command line."""

import json

import pytest

from lore.daemon.periodic_tasks import store_episode
from lore.memory import Memory
from lore.settings import load
from tests.cli.conftest import Lore
from tests.recall.talk import say

HERE = "/code/almanac"


@pytest.fixture
def filled(lore: Lore) -> Lore:
    """Return the command line on a home with a few memories of one project."""
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    with Memory.open(config=config) as memory:
        memory.store("Tide heights are parsed in src/tides.py with Decimal", project=HERE)
        memory.store(
            "We print the tide table on Mondays", kind="decision", origin="user", project=HERE
        )
    return lore


def test_a_task_is_started_ended_listed_and_shown(filled: Lore):
    place = ("--project", HERE)
    started = filled("task", "start", "Fix the tide heights", *place).works().out
    id_ = started.split()[0]
    assert "debugging" in started
    assert "src/tides.py" in started
    ended = filled(
        "task", "end", id_, "--outcome", "success", "--changed", "src/tides.py",
        "--error", "ValueError: no sign => read the sign first", *place,
    ).works().out  # fmt: skip
    assert ended.startswith("success: Fix the tide heights")
    assert "used (path)" in ended
    assert "success" in filled("task", "list").works().out
    shown = filled("task", "show", id_).works().out
    assert "used (path), helped" in shown
    listed = json.loads(filled("task", "list", "--json").works().out)
    assert [one["outcome"] for one in listed] == ["success"]
    found = filled("recall", "read the sign first", "--task-type", "debugging").works().out
    assert "Fix the tide heights" in found


def test_the_layers_are_printed_for_people_and_programs(filled: Lore):
    place = ("--project", HERE)
    assert "tides.py" in filled("index", *place).works().out
    index = json.loads(filled("index", "--all", "--json", *place).works().out)
    assert index["total_memories"] == 2
    topic = index["topics"][0]["id"]
    assert "> " in filled("index", "--read", topic, *place).works().out
    recent = filled("timeline", *place).works().out
    assert "We print the tide table on Mondays" in recent
    assert json.loads(filled("timeline", "--json", *place).works().out)["key_decisions"]
    loaded = filled("task", "load", "where are tide heights parsed", *place).works().out
    assert "tokens to find it" in loaded
    assert "ratio" in filled("task", "economics", *place).works().out


def test_a_timeline_with_an_id_is_still_the_history_of_a_fragment(filled: Lore):
    found = json.loads(filled("search", "tide heights", "--json").works().out)
    assert "learned" in filled("timeline", found[0]["id"]).works().out


def test_a_project_that_does_not_exist_is_refused(filled: Lore):
    for command in (("timeline",), ("index",), ("task", "load", "tides"), ("task", "economics")):
        refused = filled(*command, "--project", "nonsense").fails_with(3)
        assert "No project is called 'nonsense'." in refused.err


def test_a_timeline_says_that_sessions_are_still_to_be_summarized(filled: Lore):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=filled.home).settings
    with Memory.open(config=config) as memory:
        say(memory, "imported", "Mend the harbour gauge of the tide parser", "Done", project=HERE)
    place = ("--project", HERE)
    missing = "What was done in 1 session is not summarized yet"
    assert missing in filled("timeline", *place).works().err
    with Memory.open(config=config) as memory:
        memory.digest.queue_episodes(quiet_s=0, limit=9)
        [job] = memory.digest.jobs()
        memory.digest.run_job(job.id, lambda: store_episode(memory, job))
    shown = filled("timeline", *place).works()
    assert "Mend the harbour gauge" in shown.out
    assert missing not in shown.err


@pytest.mark.parametrize(
    ("words", "complaint"),
    [
        (("task", "start", " "), "needs a goal"),
        (("task", "start", "x", "--type", "cooking"), "'cooking' is not a task type"),
        (("task", "end", "nope"), "There is no task 'nope'"),
        (("task", "end", "--outcome", "fine"), "'fine' is not an outcome"),
        (("task", "end", "--report", "[1]"), "must be a JSON object"),
        (("task", "end", "--report", "{"), "is not JSON"),
        (("task", "end", "--report", "[" * 50_000), "nested too deeply"),
        (("task", "end", "--report", '{"tokens": ' + "9" * 5_000 + "}"), "is not JSON"),
        (("task", "end", "--report", '{"tokens": ' + "9" * 30 + "}"), "more than 64 bits"),
        (("task", "end", "--report", '{"x": ' + "[" * 300 + "]" * 300 + "}"), "100 levels"),
        (("task", "end", "--error", "=> fix"), "needs a message"),
        (("task", "list", "--state", "lost"), "is not a state of a task"),
        (("task", "show", "nope"), "There is no task 'nope'"),
        (("recall", "x", "--task-type", "cooking"), "'cooking' is not a task type"),
    ],
)
def test_bad_input_is_refused_in_a_sentence(filled: Lore, words, complaint):
    outcome = filled(*words)
    assert outcome.code in (2, 3, 4), outcome
    assert complaint in outcome.err
    assert "Traceback" not in outcome.err
