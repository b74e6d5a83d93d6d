"""The digest as a person sees it."""

import json
from datetime import UTC, datetime, timedelta

import pytest

from lore.memory import Memory
from lore.records import NewMessage, Part, Role
from lore.settings import load
from lore.store import items, replacements
from lore.store.database import Connection
from lore.store.replacements import Replacement
from tests.cli.conftest import Lore

START = datetime(2026, 5, 13, 12, tzinfo=UTC)

TALK: list[tuple[Role, str]] = [
    ("user", "We need a queue for the reminder jobs. Which one shall we take?"),
    ("assistant", "Postgres has all we need: SELECT … FOR UPDATE SKIP LOCKED, no new service."),
    ("user", "Good. We decided to keep the queue in Postgres because Redis is one more service."),
    ("assistant", "Done: the queue is the table `jobs`, WORKER_MAX_ATTEMPTS is 3 in settings.py."),
    ("user", "From now on always run `make check` before every commit, please."),
    ("assistant", "Understood: `make check` before every commit."),
]


@pytest.fixture
def lore_with_session(lore: Lore) -> Lore:
    """Return the command line on a home with one session of talk in it."""
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    messages = [
        NewMessage(role, (Part("text", text),), START + timedelta(minutes=place))
        for place, (role, text) in enumerate(TALK)
    ]
    with Memory.open(config=config) as memory:
        memory.capture("talk", messages, project="/code", agent="codex")
    return lore


def test_distill_creates_logs_and_fragments_once(lore_with_session: Lore):
    first = json.loads(lore_with_session("distill", "talk", "--json").works().out)
    assert first["distillations"] == 1
    assert first["fragments"] >= 1
    again = json.loads(lore_with_session("distill", "--all", "--json").works().out)
    assert (again["sessions"], again["distillations"], again["fragments"]) == (1, 0, 0)
    assert "Postgres" in lore_with_session("recall", "where is the queue kept?").works().out


def test_only_logs_extracts_no_fragments(lore_with_session: Lore):
    made = json.loads(lore_with_session("distill", "talk", "--only-logs", "--json").works().out)
    assert made["fragments"] == 0
    assert "1 log and 0 fragments" not in lore_with_session("distill", "talk").works().out


def test_the_log_of_a_session_is_shown_by_its_name_or_id(lore_with_session: Lore):
    before = lore_with_session("log", "talk").works()
    assert before.out == "This session has no log yet.\n"
    assert "6 messages not in the log; 'lore distill" in before.err
    lore_with_session("distill", "talk", "--only-logs").works()
    shown = lore_with_session("log", "talk").works()
    assert shown.out.startswith("   user: We need a queue")
    assert "WORKER_MAX_ATTEMPTS is 3" in shown.out
    assert not shown.err
    record = json.loads(lore_with_session("log", "talk", "--json").works().out)
    assert record["new_messages"] == 0
    assert [one["generation"] for one in record["logs"]] == [0]
    by_id = lore_with_session("log", record["session"]["id"]).works()
    assert by_id.out == shown.out


def test_a_log_has_neither_condensed_parts_twice_nor_what_came_later(lore: Lore):
    config = load(
        {"LORE_EMBED_PROVIDER": "none", "LORE_DISTILL_META_THRESHOLD": "6"}, home=lore.home
    ).settings
    with Memory.open(config=config) as memory:
        for part in range(8):
            at = START + timedelta(hours=part)
            memory.capture(
                "talk",
                [
                    NewMessage(role, (Part("text", f"{text} (part {part})"),), at)
                    for role, text in TALK
                ],
            )
            memory.digest.distill("talk")
        memory.capture("talk", [NewMessage("user", (Part("text", "Thanks."),), at)])
    record = json.loads(lore("log", "talk", "--json").works().out)
    generations = [one["generation"] for one in record["logs"]]
    assert generations[0] == 1
    assert set(generations[1:]) == {0}
    assert record["new_messages"] == 1
    lines = [line.split(" ")[0] for line in lore("log", "talk").works().out.splitlines()]
    assert "Timeline:" in lines


def test_log_names_what_it_knows_neither_as_a_session_nor_as_a_fragment(lore_with_session: Lore):
    lore_with_session("log", "nowhere").fails_with(2)
    lore_with_session("log", "ffffffff").fails_with(3)


def test_distill_needs_session_names_or_all(lore_with_session: Lore):
    lore_with_session("distill").fails_with(2)
    lore_with_session("distill", "talk", "--all").fails_with(2)
    lore_with_session("distill", "nowhere").fails_with(3)


def test_consolidate_reports_every_phase_and_can_be_undone(lore_with_session: Lore):
    would = json.loads(lore_with_session("consolidate", "--dry-run", "--json").works().out)
    assert would["report"]["dry_run"]
    report = json.loads(lore_with_session("consolidate", "--json").works().out)["report"]
    assert [phase["phase"] for phase in report["phases"]] == [
        "learn", "digest", "rescore", "merge", "link", "resummarize", "reflect", "contradict",
        "prune_edges", "prune_fragments",
    ]  # fmt: skip
    assert report["phases"][1]["counts"]["sessions"] == 1
    told = lore_with_session("consolidate", "--history").works().out
    assert report["id"][:13] in told
    lore_with_session("consolidate", "--undo", report["id"]).works()
    assert "taken back" in lore_with_session("consolidate", "--history").works().out
    lore_with_session("consolidate", "--undo", report["id"]).fails_with(2)
    lore_with_session("consolidate", "--undo", "ffffffff").fails_with(3)


def test_one_phase_runs_alone_and_an_unknown_one_is_refused(lore_with_session: Lore):
    told = lore_with_session("consolidate", "--phase", "rescore").works().out
    assert "rescore" in told
    assert "merge" not in told
    lore_with_session("consolidate", "--phase", "dream").fails_with(2)


def test_a_doubtful_pair_is_listed_with_its_type(lore: Lore):
    older, newer = (
        lore("remember", f"The port is {port}.", "--project", "/code").works().out.strip()
        for port in (3207, 4000)
    )
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings

    def link(db: Connection) -> None:
        ns = [items.resolve(db, id_).n for id_ in (older, newer)]
        texts = ("The port is 3207.", "The port is 4000.")
        doubtful = Replacement(ns[0], texts[0], ns[1], texts[1], "may_replace", 0.5, 1)
        replacements.record(db, [], [doubtful])

    with Memory.open(config=config) as memory:
        memory.database.write(link)
    [pair] = json.loads(lore("conflicts", "--json").works().out)
    assert pair["type"] == "may_replace"


def test_unlikely_conflicts_are_counted_and_listed_with_all(lore: Lore):
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    said = NewMessage("user", (Part("text", "Mend the gauge."),), datetime(2026, 1, 1, tzinfo=UTC))
    with Memory.open(config=config) as memory:
        memory.capture("s", [said], project="/code")
        wrong, mended = (
            memory.store(f"The gauge is {state}.", session="s", origin="assistant", project="/code")
            for state in ("broken", "mended")
        )
        older, newer = (
            memory.store(text, project="/code")
            for text in ("The port is 3207.", "The quay has a port of 4000.")
        )
        memory.knowledge.link(mended, wrong, "contradicts")

        def link(db: Connection) -> None:
            ns = [items.resolve(db, id_).n for id_ in (older, newer)]
            pair = Replacement(ns[0], "The port is 3207.", ns[1], "4000.", "may_replace", 0.2, 1)
            replacements.record(db, [], [pair])

        memory.database.write(link)
    out = lore("conflicts").works().out
    assert out.startswith("No likely conflicts.\n2 unlikely pairs not shown")
    out = lore("conflicts", "--all").works().out
    assert "The gauge is mended." in out
    assert "May replace (20%)" in out
    assert len(json.loads(lore("conflicts", "--json").works().out)) == 2


def test_a_conflict_is_listed_and_resolved(lore: Lore):
    older = lore("remember", "The port is 3207.", "--project", "/code").works().out.strip()
    newer = lore("remember", "The port is 4000.", "--project", "/code").works().out.strip()
    assert "No conflicts." in lore("conflicts").works().out
    lore("link", newer, older, "--kind", "contradicts").works()
    assert "The port is 4000." in lore("conflicts").works().out
    [pair] = json.loads(lore("conflicts", "--json").works().out)
    assert pair["type"] == "conflict"
    assert {pair["newer"]["id"], pair["older"]["id"]} == {older, newer}
    lore("conflicts", newer).fails_with(2)
    lore("conflicts", newer, older).fails_with(2)
    lore("conflicts", newer, older, "--keep", "ffffffff").fails_with(2)
    settled = lore("conflicts", newer, older, "--keep", newer).works()
    assert settled.out == "Settled. 'lore undo' undoes it.\n"
    assert "No conflicts." in lore("conflicts").works().out
    assert "3207" not in lore("search", "port").works().out


def test_a_settled_pair_of_messages_says_what_takes_it_back(lore: Lore):
    texts = ("The port is 3207.", "The port is 4000.")
    said = [
        NewMessage("user", (Part("text", text),), datetime(2026, 1, day, tzinfo=UTC))
        for day, text in enumerate(texts, 1)
    ]
    config = load({"LORE_EMBED_PROVIDER": "none"}, home=lore.home).settings
    with Memory.open(config=config) as memory:
        older, newer = memory.capture("s", said, project="/code")

        def link(db: Connection) -> None:
            ns = [items.resolve(db, id_).n for id_ in (older, newer)]
            doubtful = Replacement(ns[0], texts[0], ns[1], texts[1], "may_replace", 0.5, 1)
            replacements.record(db, [], [doubtful])

        memory.database.write(link)
    keep = lore("conflicts", newer, older, "--keep", newer).works().out
    assert f"'lore conflicts {newer} {older} --both' ends that." in keep
    both = lore("conflicts", newer, older, "--both").works().out
    assert "Nothing undoes this" in both
    assert "There is no conflict" in lore("conflicts", newer, older, "--both").fails_with(3).err


def test_promote_offers_nothing_without_confirmation_by_projects(lore: Lore):
    id_ = lore("remember", "Tabs.", "--project", "/code").works().out.strip()
    assert "Nothing has been confirmed" in lore("promote").works().out
    promoted = json.loads(lore("promote", id_, "--json").works().out)["id"]
    assert promoted != id_
    lore("promote", promoted).fails_with(2)
