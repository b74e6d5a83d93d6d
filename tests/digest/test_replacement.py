"""What holds now: newer statements replace older ones, and every reader sees it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime, timedelta
from pathlib import Path

import pytest

from lore.context import prompt_text
from lore.daemon.periodic_tasks import periodic_tasks
from lore.digest import native_share, replacement
from lore.digest.pair_judge import (
    Claim,
    Judgement,
    ModelJudge,
    Pair,
    RuleJudge,
    can_replace,
    is_settled,
)
from lore.digest.replacement import ReplacementFinder
from lore.embed.pair_model import PairModel
from lore.errors import EmbedderError
from lore.memory import Memory
from lore.recall import session_start
from lore.records import (
    Hit,
    NewMessage,
    Origin,
    Part,
    Replaced,
    Role,
    SessionBriefing,
    StandingInstruction,
)
from lore.settings import Settings
from lore.store import dialogue_state, graph, items, project_rows, replacements
from lore.store.database import Connection
from lore.store.replacements import Replacement
from tests.fakes import NOON, FakeEmbedder, FixedClock

OLD = "the orders database runs on Postgres 14"
NEW = "the orders database runs on Postgres 16 now"
OTHER = "the orders database has nightly backups"
QUESTION = "Which Postgres does the orders database run on?"
SHOP, FARM = "/code/shop", "/code/farm"


class ScriptedJudge:
    """Judges by whether a pair is on its list."""

    def __init__(self, certainty: float = 0.9) -> None:
        self.certainty = certainty
        self.judged: list[tuple[str, str]] = []
        self.replaced: list[tuple[str, str]] = [("Postgres 14", "Postgres 16")]

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Return a judgement of each pair."""
        self.judged += [(pair.older.text, pair.newer.text) for pair in pairs]
        return [self._judge(pair) for pair in pairs]

    def _judge(self, pair: Pair) -> Judgement:
        listed = any(a in pair.older.text and b in pair.newer.text for a, b in self.replaced)
        return Judgement("replaces", self.certainty) if listed else Judgement("none", 0.9)


class Shop:
    """A memory whose pairs a script judges."""

    def __init__(self, memory: Memory, judge: ScriptedJudge) -> None:
        self.memory = memory
        self.judge = judge
        self._count = 0
        sources = memory.sources
        memory.context.finder = ReplacementFinder(
            memory.database, sources.embedder, sources.nearest, judge
        )

    def say(
        self,
        *texts: str,
        day: int,
        role: Role = "user",
        project: str = SHOP,
        origin: Origin | None = None,
    ) -> list[str]:
        """Capture a session with these messages, and embed and judge them."""
        self._count += 1
        at = NOON + timedelta(days=day)
        new = [
            NewMessage(role, (Part("text", text),), at + timedelta(minutes=i), origin=origin)
            for i, text in enumerate(texts)
        ]
        ids = self.memory.capture(f"s{self._count}", new, project=project)
        self.memory.maintenance.embed_waiting()
        return ids

    def ask(self, question: str = QUESTION, project: str = SHOP) -> list[Hit]:
        """Return the hits of a recall in a project."""
        return list(self.memory.recall(question, project=project).hits)

    def number_of(self, id_: str) -> int:
        """Return the number of an item."""
        with self.memory.database.read() as db:
            return items.resolve(db, id_).n

    def outdated(self) -> dict[str, str]:
        """Return the texts of outdated hits with their notes."""
        return {hit.text: hit.note for hit in self.ask() if hit.is_outdated}


@pytest.fixture
def shop(tmp_path: Path) -> Iterator[Shop]:
    """A fresh memory whose pairs a script judges."""
    clock = FixedClock(NOON + timedelta(days=100))
    embedder = FakeEmbedder(dimension=256)
    with Memory.open(home=tmp_path / "home", embedder=embedder, now=clock) as memory:
        yield Shop(memory, ScriptedJudge())


@pytest.mark.parametrize("days", [(1, 30), (30, 1)])
def test_the_newer_statement_stands_first_whatever_was_captured_first(
    shop: Shop, days: tuple[int, int]
) -> None:
    said = {1: OLD, 30: NEW}
    for day in days:
        shop.say(said[day], day=day)
    hits = shop.ask()
    assert [hit.text for hit in hits[:2]] == [NEW, OLD]
    assert shop.outdated() == {OLD: f"replaced on 2026-06-12 by: {NEW}"}
    assert shop.judge.judged == [(OLD, NEW)]


def test_there_and_back_again_the_last_statement_holds(shop: Shop) -> None:
    back = "the orders database runs on Postgres 14 again"
    shop.judge.replaced.append(("Postgres 16", "14 again"))
    shop.say(OLD, day=1)
    shop.say(NEW, day=30)
    shop.say(back, day=60)
    assert set(shop.outdated()) == {OLD, NEW}
    assert shop.outdated()[OLD].endswith(back)


def test_what_another_project_says_replaces_nothing(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30, project=FARM)
    assert shop.outdated() == {}
    assert shop.judge.judged == []


@pytest.mark.parametrize("role", ["tool", "system"])
def test_the_words_of_tools_and_programs_replace_nothing(shop: Shop, role: Role) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30, role=role)
    assert shop.outdated() == {}


def test_a_web_page_in_a_persons_message_replaces_nothing(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30, origin="web")
    assert shop.outdated() == {}


def test_a_page_that_an_assistant_repeats_puts_nothing_in_doubt(shop: Shop) -> None:
    shop.say(OLD, day=1)
    at = NOON + timedelta(days=30)
    repeated = NewMessage("assistant", (Part("text", NEW, origin="web"),), at)
    shop.memory.capture("quotes", [repeated], project=SHOP)
    shop.memory.maintenance.embed_waiting()
    assert shop.judge.judged == []
    assert shop.ask()[0].replaced is None


def test_what_a_person_quotes_replaces_nothing(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(f'The page says "{NEW}."', day=30)
    assert shop.judge.judged == []


def test_an_assistants_word_only_puts_a_persons_in_doubt(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30, role="assistant")
    hits = shop.ask()
    assert [hit.text for hit in hits[:2]] == [NEW, OLD]
    assert hits[1].note.startswith("may be replaced on 2026-06-12 by: ")
    assert not hits[1].is_outdated
    (pair,) = shop.memory.knowledge.doubtful_pairs(project=SHOP)
    assert (pair.newer.text, pair.older.text) == (NEW, OLD)


def test_a_person_settles_a_doubtful_pair(shop: Shop) -> None:
    shop.judge.certainty = 0.5
    (older,) = shop.say(OLD, day=1)
    (newer,) = shop.say(NEW, day=30)
    shop.memory.knowledge.resolve(newer, older, "keep")
    assert list(shop.outdated()) == [OLD]
    assert shop.memory.knowledge.doubtful_pairs() == []


@pytest.mark.parametrize("settles", ["message", "fragment"])
def test_a_decision_settles_all_that_repeats_the_older_statement(shop: Shop, settles: str) -> None:
    shop.judge.certainty = 0.5
    turns: list[tuple[Role, str]] = [("user", OLD), ("assistant", "Noted: Postgres 14.")]
    new = [
        NewMessage(role, (Part("text", text),), NOON + timedelta(minutes=i))
        for i, (role, text) in enumerate(turns)
    ]
    ids = {"message": shop.memory.capture("first", new, project=SHOP)[0]}
    ids["fragment"] = shop.memory.store(
        OLD, kind="fact", origin="user", project=SHOP, source_messages=[ids["message"]]
    )
    (newer,) = shop.say(NEW, day=30)
    assert len(shop.memory.knowledge.doubtful_pairs()) >= 2
    shop.memory.knowledge.resolve(newer, ids[settles], "dismiss")
    assert [hit.text for hit in shop.ask() if hit.replaced] == []
    assert shop.memory.knowledge.doubtful_pairs() == []


def test_a_decision_settles_a_doubtful_pair_that_is_a_conflict_too(shop: Shop) -> None:
    older, newer = (
        shop.memory.store(text, kind="fact", origin="user", project=SHOP) for text in (OLD, NEW)
    )
    ns = [shop.number_of(id_) for id_ in (older, newer)]
    doubt = Replacement(ns[0], OLD, ns[1], NEW, "may_replace", 0.5, 100)

    def put(db: Connection) -> None:
        replacements.record(db, ns, [doubt])
        graph.put_edge(db, ns[0], ns[1], "contradicts", now=NOON)

    shop.memory.database.write(put)
    shop.memory.knowledge.resolve(newer, older, "dismiss")
    assert shop.memory.knowledge.doubtful_pairs() == []
    assert shop.memory.knowledge.conflicts() == []


def test_an_answer_that_repeats_a_replaced_statement_is_outdated_too(shop: Shop) -> None:
    turns: list[tuple[Role, str]] = [("user", OLD), ("assistant", "Noted: Postgres 14.")]
    new = [
        NewMessage(role, (Part("text", text),), NOON + timedelta(minutes=i))
        for i, (role, text) in enumerate(turns)
    ]
    shop.memory.capture("first", new, project=SHOP)
    shop.say(NEW, day=30)
    assert set(shop.outdated()) == {OLD, "Noted: Postgres 14."}


def test_a_message_of_which_one_sentence_is_replaced_is_given_with_a_mark(shop: Shop) -> None:
    shop.say(f"{OLD}\n{OTHER}", day=1)
    shop.say(NEW, day=30)
    prompt = "write the compose file of the orders database with Postgres backups"
    hits = [one.hit for one in shop.memory.prompts.find_candidates(prompt, project=SHOP)]
    (hit,) = (one for one in hits if OTHER in one.text)
    worded = prompt_text.format_hits([hit], {hit.id: "1234abcd"}, budget_tokens=500)
    assert f"replaced on 2026-06-12 by > {NEW}" in worded.text


def test_a_replaced_message_is_not_given_to_a_prompt(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30)
    prompt = "write the compose file of the orders database with Postgres"
    hits = [one.hit for one in shop.memory.prompts.find_candidates(prompt, project=SHOP)]
    assert [hit.text for hit in hits] == [NEW]


RULE, CHANGED = (
    "always run make check before you push",
    "run just verify before you push these days",
)


def test_a_replaced_rule_no_longer_stands(shop: Shop) -> None:
    shop.judge.replaced.append(("make check", "just verify"))
    shop.say(RULE, day=1)
    assert RULE in shop.memory.prompts.begin_session("new", project=SHOP).text
    shop.say(CHANGED, day=30)
    assert RULE not in shop.memory.prompts.begin_session("new", project=SHOP).text
    assert shop.memory.search.standing_instructions(project=SHOP) == []


def test_a_rule_in_doubt_stands_with_the_newer_statement_beside_it(shop: Shop) -> None:
    shop.judge.certainty = 0.6
    shop.judge.replaced.append(("make check", "just verify"))
    shop.say(RULE, day=1)
    shop.say(CHANGED, day=30)
    text = shop.memory.prompts.begin_session("new", project=SHOP).text
    assert f"{RULE} | may be replaced on 2026-06-12 by > {CHANGED}" in text


def test_forgetting_the_newer_statement_lets_the_older_one_hold_again(shop: Shop) -> None:
    shop.say(OLD, day=1)
    (newer,) = shop.say(NEW, day=30)
    shop.memory.forget(id=newer)
    assert shop.outdated() == {}


def test_revoking_a_session_takes_back_what_it_replaced(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30)
    shop.memory.knowledge.revoke(session="s2")
    assert shop.outdated() == {}


def test_a_fragment_made_of_a_replaced_message_is_left_off_the_page(shop: Shop) -> None:
    shop.say(OLD, day=1)
    (message,) = shop.memory.sessions.messages("s1")
    shop.memory.store(OLD, kind="fact", origin="user", project=SHOP, source_messages=[message.id])
    shop.memory.maintenance.embed_waiting()
    page = Path("absent/.lore.md")
    assert OLD in shop.memory.knowledge.plan_share(SHOP, page).text
    shop.say(NEW, day=30)
    assert OLD not in shop.memory.knowledge.plan_share(SHOP, page).text


def test_a_fragment_made_of_a_replaced_message_is_not_shared_with_agents(
    shop: Shop, tmp_path: Path
) -> None:
    def shared() -> str:
        with shop.memory.database.read() as db:
            plan = native_share.plan_share(db, "claude-code", tmp_path, SHOP, SHOP)
        return "".join(change.after or "" for change in plan.changes)

    (message,) = shop.say(OLD, day=1)
    shop.memory.store(OLD, kind="fact", origin="user", project=SHOP, source_messages=[message])
    shop.memory.maintenance.embed_waiting()
    assert OLD in shared()
    shop.say(NEW, day=30)
    assert OLD not in shared()


def test_a_running_session_is_told_what_holds_in_place_of_what_it_was_given(shop: Shop) -> None:
    (message,) = shop.say(OLD, day=1)
    n = shop.number_of(
        shop.memory.store(OLD, kind="fact", origin="user", project=SHOP, source_messages=[message])
    )
    shop.memory.maintenance.embed_waiting()
    shop.memory.database.write(
        lambda db: dialogue_state.add_injections(db, "now", [(n, 1)], now=NOON)
    )
    shop.say(NEW, day=30)
    project_n = shop.memory.database.write(lambda db: project_rows.get_project(db, SHOP))
    with shop.memory.database.read() as db:
        news = session_start.find_news(db, "now", project_n=project_n, without=(), since=None)
    assert [(one.text, heir.text if heir else "") for one, heir in news.gone] == [(OLD, NEW)]


def test_a_deleted_successor_lets_a_rule_stand_again(shop: Shop) -> None:
    shop.judge.replaced.append(("make check", "just verify"))
    shop.say(RULE, day=1)
    newer = shop.memory.store(CHANGED, kind="fact", origin="user", project=SHOP)
    shop.memory.maintenance.embed_waiting()
    assert shop.memory.search.standing_instructions(project=SHOP) == []
    shop.memory.knowledge.delete(newer)
    (standing,) = shop.memory.search.standing_instructions(project=SHOP)
    assert standing.text == RULE


def test_an_answer_cites_the_current_statement_first(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30)
    result = shop.memory.search.ask(QUESTION, project=SHOP)
    assert result.citations[0].text == NEW
    assert not result.citations[0].is_outdated


def test_what_was_judged_waits_no_longer(shop: Shop) -> None:
    shop.say(OLD, day=1)
    shop.say(NEW, day=30)
    shop.memory.maintenance.embed_waiting()
    assert shop.judge.judged == [(OLD, NEW)]


def fail_to_load(_texts: Sequence[str]) -> None:
    msg = "the weights are damaged"
    raise EmbedderError(msg)


def test_a_broken_pair_model_leaves_the_rules_and_the_search_by_meaning(shop: Shop) -> None:
    sources = shop.memory.sources
    judge = ModelJudge(
        PairModel(
            FakeEmbedder(before=fail_to_load), {"relations.weight": [[0]], "relations.bias": [0]}
        )
    )
    shop.memory.context.finder = ReplacementFinder(
        shop.memory.database, sources.embedder, sources.nearest, judge
    )
    changed = "we switched the orders database from Postgres 14 to Postgres 16"
    shop.say(OLD, day=1)
    shop.say(changed, day=30)
    assert shop.outdated() == {OLD: f"replaced on 2026-06-12 by: {changed}"}
    assert not shop.memory.sources.missing


class RefusingJudge(ScriptedJudge):
    """Raises an error for pairs with some word."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def judge(self, pairs: Sequence[Pair]) -> list[Judgement]:
        """Raise the error if a pair is about backups."""
        if any("backups" in pair.newer.text for pair in pairs):
            raise self.error
        return super().judge(pairs)


@pytest.mark.parametrize("error", [ValueError("odd"), EmbedderError("refused")])
def test_an_item_that_cannot_be_judged_does_not_block_those_behind_it(
    shop: Shop, error: Exception
) -> None:
    judge = RefusingJudge(error)
    sources = shop.memory.sources
    shop.memory.context.finder = ReplacementFinder(
        shop.memory.database, sources.embedder, sources.nearest, judge
    )
    shop.say(OLD, day=1)
    shop.say(OTHER, day=2)
    shop.say(NEW, day=30)
    shop.memory.maintenance.judge_waiting()
    assert list(shop.outdated()) == [OLD]


def test_a_recall_embeds_and_does_not_judge(shop: Shop) -> None:
    said = [NewMessage("user", (Part("text", text),), NOON) for text in (OLD, NEW)]
    for place, one in enumerate(said):
        shop.memory.capture(f"s{place}", [one], project=SHOP)
    assert {hit.text for hit in shop.ask()} == {OLD, NEW}
    assert shop.judge.judged == []
    assert shop.memory.maintenance.queues().unjudged == 2
    task = next(one for one in periodic_tasks(Settings()) if one.name == "judge")
    assert task.run(shop.memory, lambda: False).counts == {"judged": 2}
    assert shop.judge.judged == [(OLD, NEW)]
    assert shop.memory.maintenance.queues().unjudged == 0


def claim(text: str, *, trust: int = 3, at: datetime = NOON, n: int = 1) -> Claim:
    return Claim(n, text, "", trust, int(at.timestamp() * 1e6))


@pytest.mark.parametrize(
    "text",
    [
        "should we move to Postgres 16?",
        "we could move to Postgres 16",
        "Kemal suggests Postgres 16",
        "from February on we'll use Postgres 16",
        "we plan to move to Postgres 16",
        "vielleicht nehmen wir Postgres 16",
    ],
)
def test_questions_proposals_and_announcements_settle_nothing(text: str) -> None:
    assert not is_settled(text)
    assert is_settled(NEW)


def test_an_assistant_replaces_only_by_reporting_a_change() -> None:
    assert can_replace(claim("docker-compose.yml now uses postgres:16", trust=2))
    assert not can_replace(claim("Postgres 16 is a relational database", trust=2))


def test_a_less_trusted_or_uncertain_claim_is_doubtful_and_an_untrusted_one_nothing() -> None:
    def relate(trust: int, certainty: float) -> str | None:
        pair = Pair(claim(OLD), claim(NEW, trust=trust), 0.5)
        return replacement.relation_of(pair, Judgement("replaces", certainty))

    assert relate(3, 0.95) == "replaces"
    assert relate(2, 0.95) == "may_replace"
    assert relate(3, 0.5) == "may_replace"
    assert relate(3, 0.1) is None
    assert relate(1, 0.95) is None


def test_rules_find_withdrawals_and_named_replacements() -> None:
    judge = RuleJudge()
    pairs = [
        Pair(claim("we use Sentry for error tracking"), claim("we no longer use Sentry")),
        Pair(claim(OLD), claim("we switched the orders database from Postgres 14 to Postgres 16")),
        Pair(claim(OLD), claim(OTHER)),
    ]
    verdicts = [one.verdict for one in judge.judge(pairs)]
    assert verdicts == ["replaces", "replaces", "none"]


def capture_turns(
    shop: Shop, name: str, day: int, *turns: tuple[Role, Part], minutes: int = 1
) -> list[str]:
    """Capture a session of messages with one part each, and embed and judge them."""
    at = NOON + timedelta(days=day)
    new = [
        NewMessage(role, (part,), at + timedelta(minutes=minutes * place))
        for place, (role, part) in enumerate(turns)
    ]
    ids = shop.memory.capture(name, new, project=SHOP)
    shop.memory.maintenance.embed_waiting()
    return ids


def links_of(shop: Shop, id_: str) -> list[Replacement]:
    """Return the links of an older item."""
    n = shop.number_of(id_)
    with shop.memory.database.read() as db:
        return replacements.links_of(db, [n]).get(n, [])


def say_text(text: str) -> Part:
    """Return a part of spoken text."""
    return Part("text", text)


def test_a_short_reply_is_read_with_the_question_that_it_answers(shop: Shop) -> None:
    shop.judge.replaced = [("Mondays", "Wednesday")]
    (older,) = shop.say("the sprint starts on Mondays", day=1)
    capture_turns(
        shop, "reply", 30,
        ("assistant", say_text("On which weekday does the sprint start?")),
        ("user", say_text("Wednesday")),
    )  # fmt: skip
    (link,) = links_of(shop, older)
    assert link.newer_text == "On which weekday does the sprint start? Wednesday"


EDIT = Part("tool_call", "db.toml: - pool_size = 20 + pool_size = 60", "Edit", call_id="1")
POOL = "we run with a pool of 20 connections"


def test_an_edit_of_a_value_puts_what_a_person_said_in_doubt(shop: Shop) -> None:
    (older,) = shop.say(POOL, day=1)
    ids = capture_turns(
        shop, "edit", 30,
        ("user", say_text("the load test fails, please repair the pool")),
        ("assistant", EDIT),
        ("tool", Part("tool_result", "db.toml updated", call_id="1")),
        ("assistant", say_text("The load test passes with the larger pool now.")),
    )  # fmt: skip
    (link,) = links_of(shop, older)
    assert (link.relation, link.newer_text) == ("may_replace", "db.toml: pool_size = 60")
    assert link.newer_n == shop.number_of(ids[1])
    hits = shop.ask("How large is the pool of connections?")
    assert [hit.id for hit in hits[:2]] == [ids[1], older]
    assert "pool_size = 60" in hits[0].text


@pytest.mark.parametrize(
    "turns",
    [
        (("tool", Part("tool_result", "Error: no such file", call_id="1", failed=True)),),
        (("assistant", Part("tool_call", '{"command": "git checkout db.toml"}', "Bash")),),
        (
            (
                "assistant",
                Part("tool_call", "db.toml: - pool_size = 60 + pool_size = 20", "Edit"),
            ),
        ),
    ],
    ids=["failed", "discarded", "taken back"],
)
def test_an_edit_that_did_not_last_replaces_nothing(
    shop: Shop, turns: tuple[tuple[Role, Part], ...]
) -> None:
    (older,) = shop.say(POOL, day=1)
    capture_turns(
        shop, "edit", 30,
        ("user", say_text("try a larger pool")),
        ("assistant", EDIT),
        *turns,
        ("assistant", say_text("It did not help, the pool is what it was.")),
    )  # fmt: skip
    assert links_of(shop, older) == []


def test_a_value_that_is_said_again_may_replace_the_one_between(shop: Shop) -> None:
    shop.judge.replaced = [("use npm", "use bun")]
    shop.say("we use npm for packages", day=1)
    (between,) = shop.say("we use bun for packages", day=10)
    (last,) = shop.say("we are back to npm for packages", day=20)
    (link,) = links_of(shop, between)
    assert (link.relation, link.newer_n) == ("may_replace", shop.number_of(last))


def test_a_neighbour_with_less_in_common_is_only_doubtful(shop: Shop) -> None:
    shop.judge.replaced = [("runs at", "runs at 25")]
    (own,) = shop.say("the accelerometer runs at 100 Hz", day=1)
    (neighbour,) = shop.say("the gyroscope runs at 200 Hz", day=2)
    shop.say("the accelerometer runs at 25 Hz", day=30)
    assert "replaces" in [link.relation for link in links_of(shop, own)]
    assert [link.relation for link in links_of(shop, neighbour)] == ["may_replace"]


def test_an_answer_nearer_to_the_newer_statement_hides_no_statement_of_a_person(
    shop: Shop,
) -> None:
    shop.judge.replaced = [("10.0.4.12", "10.0.9.40")]
    ids = capture_turns(
        shop, "old", 1,
        ("user", say_text("staging is the old rented box in the cellar, 10.0.4.12")),
        ("assistant", say_text("the address of staging in the ssh config is 10.0.4.12")),
    )  # fmt: skip
    shop.say("the address of staging in the ssh config is 10.0.9.40", day=30)
    assert [link.relation for link in links_of(shop, ids[0])] != []


def test_one_sentence_of_a_long_message_in_prose_replaces_something(shop: Shop) -> None:
    (older,) = shop.say(OLD, day=1)
    filler = [f"Number {place} on my list can wait until August." for place in range(9)]
    shop.say(" ".join([*filler[:5], "The orders database runs on Postgres 16 now.", *filler[5:]]),
             day=30)  # fmt: skip
    assert [link.relation for link in links_of(shop, older)] == ["replaces"]
    pasted = "\n".join(f"- {line}" for line in [*filler, "the orders database runs on Postgres 16"])
    shop.say(OLD.replace("orders", "returns"), day=31)
    judged = len(shop.judge.judged)
    shop.say(pasted, day=40)
    assert len(shop.judge.judged) == judged


def test_the_same_words_again_are_no_pair(shop: Shop) -> None:
    shop.say("commit this now", day=1)
    shop.say("commit this now", day=30)
    assert shop.judge.judged == []


def test_what_is_dated_far_ahead_counts_as_said_when_it_was_captured(shop: Shop) -> None:
    (ahead,) = shop.say(OLD, day=4000)
    with shop.memory.database.read() as db:
        place = replacements.place_of(db, shop.number_of(ahead))
    assert place.at == int((NOON + timedelta(days=100)).timestamp() * 1_000_000)


def test_a_suggested_rule_that_may_be_replaced_says_so_at_a_session_start() -> None:
    newer = Replaced("may_replace", "b" * 8, "put them into src/views", NOON)
    rule = StandingInstruction("a" * 8, 1, "put views here", "suggested", NOON, replaced=newer)
    short = {rule.id: rule.id}
    text = prompt_text.format_session_start(
        SessionBriefing(suggested=(rule,)), short, budget_tokens=500
    ).text
    assert f"put views here | {newer.label} by > put them into src/views" in text


def test_a_topic_that_may_be_replaced_begins_with_the_newer_text_and_has_both_dates(
    shop: Shop,
) -> None:
    shop.judge.certainty = 0.5
    older = shop.memory.store(OLD, project=SHOP)
    shop.memory.maintenance.embed_waiting()
    newer = shop.memory.store(NEW, project=SHOP)
    shop.memory.maintenance.embed_waiting()
    text = shop.memory.prompts.begin_session("new", project=SHOP).text
    assert links_of(shop, older)[0].newer_n == shop.number_of(newer)
    assert f"> {NEW} (" in text
    assert text.index(NEW) < text.index(OLD)


def test_a_proposal_is_neither_on_the_page_nor_a_topic(shop: Shop) -> None:
    proposal = "Kemal suggests LoRaWAN for the sensor nodes"
    shop.memory.store(proposal, project=SHOP)
    shop.memory.store(OLD, project=SHOP)
    page = shop.memory.knowledge.plan_share(SHOP, Path("absent/.lore.md")).text
    start = shop.memory.prompts.begin_session("new", project=SHOP).text
    assert proposal not in page
    assert proposal not in start
    assert OLD in page
    assert OLD in start
