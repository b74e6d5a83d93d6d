"""Memory in three layers, what they cost, and corrections of the layout."""

from dataclasses import replace
from datetime import timedelta

import pytest

from lore import clock
from lore.errors import NotFound
from lore.memory import Memory
from lore.memory.search import Reader
from lore.memory.tasks import START_FRAGMENTS
from lore.records import Draft, NewMessage, Part
from lore.store import candidate_rows, items, project_rows, task_rows
from lore.store.candidate_rows import Retrieval
from lore.store.database import Database
from lore.store.task_rows import CorrectionRow
from lore.tasks import corrections, disclosure
from lore.tasks.corrections import change_layout, is_bypassed, layout_to_json, parse_layout
from lore.tasks.token_economics import Finding
from lore.tasks.topics import Layout, ten_words
from lore.text import tokens
from lore.tools.tool import Caller
from lore.tools.tool_registry import call_tool
from tests.call_count import count_calls
from tests.fakes import NOON, FixedClock
from tests.homes import copy_home, make_once

HERE = "/code/almanac"
SUBJECTS = {
    "tide": "The tide parser in src/tides.py reads height {} of the harbour gauge",
    "ferry": "The ferry timetable in src/ferry.py sails from quay {} at dawn",
    "moon": "The moon phase in src/moon.py is computed by method {} of Meeus",
}


@pytest.fixture(scope="module")
def homes(tmp_path_factory):
    """Return a folder with an empty home that has the models, and a filled one."""

    def make(folder):
        with Memory.open(home=folder / "empty", now=FixedClock(NOON)) as opened:
            opened.maintenance.embed_waiting()
            opened.search("moon phase")
        copy_home(folder / "empty", folder / "filled")
        with Memory.open(home=folder / "filled", now=FixedClock(NOON)) as opened:
            fill(opened)

    return make_once(tmp_path_factory, "disclosure", make)


@pytest.fixture
def memory(homes, tmp_path):
    home = copy_home(homes / "empty", tmp_path / "home")
    with Memory.open(home=home, now=FixedClock(NOON)) as opened:
        yield opened


@pytest.fixture
def filled(homes, tmp_path):
    home = copy_home(homes / "filled", tmp_path / "home")
    with Memory.open(home=home, now=FixedClock(NOON)) as opened:
        yield opened


def fill(memory: Memory, each: int = 12) -> None:
    for text in SUBJECTS.values():
        for n in range(each):
            memory.store(text.format(n) + f", as note {n} of the almanac says.", project=HERE)
    memory.store(
        "We publish the almanac in Markdown because printers accept it",
        kind="decision",
        origin="user",
        project=HERE,
        payload={
            "decision": "We publish the almanac in Markdown",
            "rationale": "printers accept it",
        },
    )
    memory.tasks.start("Mend the harbour gauge of the tide parser", project=HERE)
    memory.tasks.end(project=HERE, outcome="partial", report={"files_changed": ["src/tides.py"]})
    memory.maintenance.embed_waiting()


def begin(memory: Memory, name: str = "s1") -> str:
    said = [NewMessage("user", (Part("text", "Good morning"),), NOON)]
    memory.capture(name, said, agent="claude-code", project=HERE)
    return name


def view(memory: Memory, layout: Layout | None = None) -> disclosure.MemoryView:
    with memory.database.read() as db:
        scope = project_rows.get_project(db, HERE)
        return disclosure.view_memory(memory.sources, db, project_n=scope, now=NOON, layout=layout)


def test_the_index_says_in_a_hundred_tokens_what_there_is(filled: Memory):
    index = filled.tasks.index(project=HERE)
    assert 0 < index.tokens <= 110
    assert index.total_memories == 38
    assert index.total_tokens > 500
    whole = filled.tasks.index(project=HERE, whole=True)
    assert len(whole.topics) == index.total_topics >= 3
    [first, *_] = filled.tasks.index(query="moon phase by Meeus", project=HERE).topics
    details = filled.tasks.details(first.id, project=HERE)
    assert all("moon" in one.text for one in details.memories)


def test_the_timeline_says_what_was_done_decided_and_left_open(filled: Memory):
    timeline = filled.tasks.timeline(project=HERE)
    assert 0 < timeline.tokens <= 500
    [action] = timeline.recent_actions
    assert (action.action, action.outcome) == (
        "Mend the harbour gauge of the tide parser", "partial",
    )  # fmt: skip
    [decision] = timeline.key_decisions
    assert decision.rationale == "printers accept it"
    assert timeline.next_up == ("Mend the harbour gauge of the tide parser",)


def test_the_timeline_dates_what_was_done_by_the_end_of_its_session(memory: Memory):
    def work(session: str, request: str, days: int) -> None:
        at = NOON - timedelta(days=days)
        said = [
            NewMessage("user", (Part("text", request),), at),
            NewMessage("assistant", (Part("text", "That works now."),), at),
        ]
        memory.capture(session, said, agent="claude-code", project=HERE)
        memory.sessions.episode(session)

    work("long", "Mend the harbour gauge of the tide parser", days=9)
    work("short", "Sort the ferries by their quay", days=5)
    work("long", "Mend the harbour gauge in winter too", days=2)
    actions = memory.tasks.timeline(project=HERE).recent_actions
    assert [(NOON - one.at).days for one in actions] == [2, 5]


def test_a_question_reads_only_the_topics_it_needs(filled: Memory):
    loaded = filled.tasks.load("how is the moon phase computed?", project=HERE)
    assert loaded.layer == "details"
    assert len(loaded.details) <= 2
    assert any("Meeus" in one.text for one in loaded.details[0].memories)
    assert loaded.details_tokens < view(filled).total_tokens
    assert filled.tasks.load("who won the chess game?", project=HERE).layer == "none"
    column = filled.tasks.load("Add a status column with progress to the moon phase", project=HERE)
    assert column.layer != "timeline"
    status = filled.tasks.load("what did we do last time?", project=HERE)
    assert (status.layer, status.details) == ("timeline", ())


def test_every_layer_is_counted_by_session_and_task(filled: Memory):
    session = begin(filled)
    filled.tasks.for_session_start(session=session, project=HERE)
    loaded = filled.tasks.load("how is the moon phase computed?", session=session)
    filled.database.write(lambda _db: None)
    report = filled.tasks.economics(session=session)
    assert report.layer1_loads == 1
    assert report.layer3_loads == len(loaded.details)
    assert report.read_tokens == loaded.details_tokens
    assert report.baseline_tokens == view(filled).total_tokens
    assert report.tokens_saved == (
        report.baseline_tokens - report.discovery_tokens - report.read_tokens
    )
    assert report.ratio == pytest.approx(report.discovery_tokens / report.read_tokens, abs=1e-3)


def test_an_index_that_is_given_before_a_session_is_stored_is_counted_later(filled: Memory):
    filled.tasks.for_session_start(session="s-early", project=HERE)
    filled.tasks.index(session="s-early", project=HERE)
    assert filled.tasks.economics(project=HERE).layer1_loads == 0
    filled.capture("s-early", [NewMessage("user", (Part("text", "hello"),), NOON)], project=HERE)
    filled.tasks.check_economics("session_end", session="s-early")
    filled.tasks.check_economics("session_end", session="s-early")
    report = filled.tasks.economics(session="s-early")
    assert (report.layer1_loads, report.baseline_tokens) == (2, view(filled).total_tokens)


def test_other_projects_are_in_no_layer(filled: Memory):
    elsewhere = "/code/elsewhere"
    filled.store("A note of its own", project=elsewhere)
    assert filled.tasks.index(project=elsewhere).total_memories == 1
    assert filled.tasks.load("moon phase", project=elsewhere).layer == "none"
    assert filled.tasks.timeline(project=elsewhere).recent_actions == ()
    assert filled.tasks.index(project="/code/unknown").topics == ()
    with pytest.raises(NotFound):
        filled.tasks.details("01a1eaa7-854a-72ba-b49b", project=HERE)


def test_what_is_forgotten_is_in_no_layer(filled: Memory):
    assert filled.tasks.index(query="moon phase", project=HERE).topics
    filled.forget(match="Meeus")
    assert filled.tasks.load("how is the moon phase computed by Meeus?", project=HERE).layer in (
        "none", "timeline",
    )  # fmt: skip
    assert "Meeus" not in str(filled.tasks.index(project=HERE, whole=True))


def test_layers_work_without_an_embedder(tmp_path):
    from lore.settings import load

    config = load({"LORE_EMBED_PROVIDER": "none"}, home=tmp_path / "plain").settings
    with Memory.open(config=config) as memory:
        fill(memory, each=3)
        assert memory.tasks.index(project=HERE).topics
        assert memory.tasks.load("moon phase computed by Meeus", project=HERE).layer == "details"


ACTIONS = {
    "compress_layer3": lambda new, old: new.topic_tokens > old.topic_tokens,
    "review_topic_relevance": lambda new, old: new.least_similarity > old.least_similarity,
    "create_specialized_index": lambda new, _old: bool(new.composites),
    "reorganize_topic_index": lambda new, old: new.index_tokens < old.index_tokens,
    "split_timeline": lambda new, old: new.scan_tokens < old.scan_tokens,
    "bypass": lambda new, _old: new.bypass_tokens > 0,
}


@pytest.mark.parametrize("action", ACTIONS)
def test_every_corrective_action_changes_the_layout(filled: Memory, action):
    now = view(filled, Layout(topic_tokens=200, least_similarity=0.3))
    changed = change_layout(filled.sources, now, action, ["the moon phase of Meeus and the tide"])
    assert ACTIONS[action](changed, now.layout)
    assert parse_layout(layout_to_json(changed)) == changed


def test_an_action_is_kept_only_if_it_helps(filled: Memory):
    layout = Layout(topic_tokens=200, least_similarity=0.3)
    finding = Finding("ratio", 0.9, 0.15, "compress_layer3")
    queries = ["how is the moon phase computed?"]

    def make(changed: Layout) -> disclosure.MemoryView:
        return view(filled, changed)

    [done] = corrections.correct(filled.sources, make, layout, [finding], queries)
    before = corrections.replay(filled.sources, make(layout), queries).ratio
    assert done.finding.value == round(before or 0, 3)
    assert done.is_kept == (done.after is None or done.after < done.finding.value)
    useless = Finding("layer2_tokens_scanned", 101, 100, "split_timeline")
    smallest = replace(layout, scan_tokens=corrections.FEWEST_SCAN_TOKENS)
    [undone] = corrections.correct(filled.sources, make, smallest, [useless], queries)
    assert not undone.is_kept


def test_a_composite_topic_answers_with_one_load(filled: Memory):
    question = "the moon phase of Meeus and the tide of the harbour gauge"
    scattered = Layout(topic_tokens=200, least_similarity=0.2)
    before = disclosure.load(filled.sources, view(filled, scattered), question)
    assert len(before.details) == 2
    changed = change_layout(
        filled.sources, view(filled, scattered), "create_specialized_index", [question]
    )
    after = disclosure.load(filled.sources, view(filled, changed), question)
    assert after.details[0].topic.title == ten_words(question)


def test_no_agent_waits_for_the_index_of_a_large_memory(memory: Memory):
    notes = [Draft(f"Tide {n} of the gauge", project=HERE) for n in range(START_FRAGMENTS)]
    memory.knowledge.store_all(notes)
    session = begin(memory)
    assert "Memory:" in memory.tasks.for_session_start(session=session, project=HERE)
    memory.store("One more tide", project=HERE)
    with count_calls(disclosure.view_memory) as views:
        assert memory.tasks.for_session_start(session=session, project=HERE) == ""
    assert not views


def test_a_small_memory_is_bypassed_and_says_so_once(memory: Memory):
    memory.store("The moon phase is computed by Meeus", project=HERE)
    memory.maintenance.embed_waiting()
    session = begin(memory)
    assert "Memory:" in memory.tasks.for_session_start(session=session, project=HERE)
    memory.tasks.load("how is the moon phase computed by Meeus?", session=session)
    done = memory.tasks.check_economics("session_end", session=session)
    assert any(line.startswith("bypass") for line in done)
    second = begin(memory, "s2")
    told = memory.tasks.for_session_start(session=second, project=HERE)
    assert "no index" in told
    memory.database.write(lambda _db: None)
    assert memory.tasks.for_session_start(session=second, project=HERE) == ""
    asked = memory.tasks.load("how is the moon phase computed by Meeus?", session=second)
    assert asked.layer == "details"
    assert memory.tasks.economics(session=session).bypassed
    fill(memory)
    assert "Memory:" in memory.tasks.for_session_start(session=second, project=HERE)


def test_a_metric_is_corrected_once_a_week(memory: Memory):
    memory.store("The moon phase is computed by Meeus", project=HERE)
    memory.maintenance.embed_waiting()
    session = begin(memory)
    memory.tasks.load("how is the moon phase computed by Meeus?", session=session)
    assert memory.tasks.check_economics("session_end", session=session)
    assert memory.tasks.check_economics("session_end", session=session) == []


def test_a_damaged_layout_is_the_usual_one(filled: Memory):
    damaged: tuple[object, ...] = (None, [], {"topic_tokens": "many", "composites": [1, ["a"]]})
    for body in damaged:
        assert parse_layout(body) == Layout()
    with filled.database.read() as db:
        project_n = project_rows.get_project(db, HERE)
    row = CorrectionRow(NOON, "ratio", "compress_layer3", 1.0, 0.5, {"kept": True, "layout": 7})
    filled.database.write(
        lambda db: task_rows.add_correction(db, row, session_n=None, project_n=project_n)
    )
    assert filled.tasks.index(project=HERE).topics


def test_a_bypass_ends_when_the_memory_has_grown():
    layout = Layout(bypass_tokens=100)
    assert is_bypassed(layout, 399)
    assert not is_bypassed(layout, 400)
    assert not is_bypassed(Layout(), 10)


def test_ten_words_leave_out_headings_asides_and_addresses():
    text = "Design concerns: `Render()` (in engine.go) calls setCache, see https://e.com/a/issues/7"
    assert ten_words(text) == "Render calls setCache, see issues 7"
    assert ten_words("Please could you mend the tide parser now") == "mend the tide parser now"
    assert len(ten_words("word " * 30).split()) == 10
    assert ten_words("2. ✅ Errors are mended by a retry") == "Errors are mended by a retry"
    assert ten_words("/api/ goes to port 3333 now") == "/api/ goes to port 3333 now"


def test_a_topic_has_the_date_of_its_newest_memory_not_of_its_last_use(filled: Memory):
    [topic, *_] = filled.tasks.index(project=HERE).topics
    with filled.database.read() as db:
        n = items.resolve(db, topic.id).n
    later = clock.to_us(NOON + timedelta(days=90))
    filled.database.write(
        lambda db: db.run("UPDATE fragments SET last_accessed = :at WHERE n = :n", at=later, n=n)
    )
    dated = disclosure.make_index(view(filled)).topics
    [read] = [one for one in dated if one.id == topic.id]
    assert (read.last_accessed, read.latest_at) == (NOON + timedelta(days=90), NOON)
    assert f" {NOON:%m-%d} " in disclosure.format_topic(read)


def test_a_topic_is_not_named_by_what_few_of_its_memories_name(memory: Memory):
    for n in range(10):
        which = " in pay_desk.py" if n < 2 else ""
        memory.store(f"The harbour gauge of quay {n} reads the tide{which} hourly", project=HERE)
    memory.maintenance.embed_waiting()
    [topic] = memory.tasks.index(project=HERE, whole=True).topics
    assert not topic.title.startswith("pay_desk.py")


def test_a_session_at_a_time_of_its_own_is_counted_apart(filled: Memory):
    first, second = begin(filled), begin(filled, "s2")
    filled.tasks.load("moon phase of Meeus", session=first)
    assert filled.tasks.economics(session=second).retrievals == 0


def counted(memory: Memory, session: str) -> tuple[int, int, int]:
    memory.database.write(lambda _db: None)  # after the log, which is written in the background
    report = memory.tasks.economics(session=session)
    return report.retrievals, report.layer3_loads, report.read_tokens


def test_recall_search_and_read_of_a_task_count_as_details(filled: Memory):
    session = begin(filled)
    caller = Caller(session=session, project=HERE)
    call_tool(filled, "recall", {"query": "moon phase"}, caller)
    assert counted(filled, session) == (0, 0, 0)  # it has neither a task nor a working state
    task = filled.tasks.start("Compute the moon phase", session=session)
    before = counted(filled, session)
    answer = filled.recall("moon phase", project=HERE, reader=Reader(session))
    assert answer.tokens > 0
    once = counted(filled, session)
    assert once == (before[0] + 1, before[1] + 1, before[2] + answer.tokens)
    (entry,) = [
        one for one in _log(filled) if one.verb == "recall" and one.task_n is not None
    ]  # fmt: skip
    assert entry.session_n is not None
    (reading,) = filled.read([answer.hits[0].id], reader=Reader(session))
    twice = counted(filled, session)
    assert twice == (once[0] + 1, once[1] + 1, once[2] + reading.tokens)
    shown = call_tool(filled, "search", {"query": "moon phase"}, caller).text
    found = counted(filled, session)
    assert found[:2] == (twice[0] + 1, twice[1] + 1)
    assert 0.5 < (found[2] - twice[2]) / tokens.count(shown) < 1.5  # titles, not texts
    report = filled.tasks.economics(session=session)
    assert report.baseline_tokens == view(filled).total_tokens
    filled.tasks.end(task.task_id, outcome="success", session=session)
    own = {one.verb: one.outcome for one in reversed(_log(filled)) if one.task_n is not None}
    assert own == {"before_task": "success", "recall": "success", "search": "success"}


def test_a_caller_without_a_session_counts_for_the_live_one_of_its_folder(filled: Memory):
    session = begin(filled)
    filled.tasks.start("Compute the moon phase", session=session)
    before = counted(filled, session)
    call_tool(filled, "recall", {"query": "moon phase"}, Caller(project=HERE))
    after = counted(filled, session)
    assert after[0] == before[0] + 1
    call_tool(filled, "recall", {"query": "moon phase"}, Caller(project="/somewhere/else"))
    call_tool(filled, "recall", {"query": "moon phase"}, Caller(session="unknown", project=HERE))
    assert counted(filled, session) == after


def test_a_read_of_a_message_is_counted_without_a_reinforcement(filled: Memory):
    session = begin(filled)
    filled.tasks.start("Compute the moon phase", session=session)
    before = counted(filled, session)
    (message, *_) = filled.sessions.messages(session)
    (reading,) = filled.read([message.id], reader=Reader(session))
    assert counted(filled, session)[2] == before[2] + reading.tokens


def test_counting_adds_no_write_to_a_recall(filled: Memory):
    session = begin(filled)
    filled.tasks.start("Compute the moon phase", session=session)
    with count_calls(Database.submit) as plain:
        filled.recall("moon phase", project=HERE)
    with count_calls(Database.submit) as counting:
        filled.recall("moon phase", project=HERE, reader=Reader(session))
    assert len(plain) == len(counting) == 1


def _log(memory: Memory) -> list[Retrieval]:
    with memory.database.read() as db:
        return candidate_rows.recent_retrievals(db)
