"""Drafts among what is known: attached, linked, merged, corrected, refused."""

from __future__ import annotations

from datetime import timedelta

import numpy as np
import pytest

from lore.digest import draft_writer
from lore.digest.draft_writer import SAME_AS_FORMER, SAME_NAMED_SUBJECT, SAME_SUBJECT
from lore.digest.drafts import DraftFragment
from lore.records import Edge, Extract, Fragment, FragmentKind
from lore.store import fragments, graph, items, reversible_changes
from tests.digest.samples import candidate
from tests.digest.world import World, fact
from tests.fakes import NOON

CACHE = "The cache of the web server lives in folder alpha beta gamma"
NEAR_CACHE = f"{CACHE} delta epsilon zeta kappa lambda omicron rho tau chi psi phi nu mu xi"


def edges_of(world: World, fragment: Fragment) -> list[Edge]:
    with world.database.read() as db:
        return graph.edges_of_fragment(db, items.resolve(db, fragment.id).n)


def all_fragments(world: World) -> list[Fragment]:
    with world.database.read() as db:
        rows = db.rows("SELECT n FROM fragments ORDER BY n")
        return list(fragments.by_number(db, [row[0] for row in rows]).values())


def test_similar_draft_becomes_a_child_and_reinforces_its_root(world: World):
    world.learn(fact(CACHE))
    assert world.learn(fact(NEAR_CACHE)).attached == 1
    root, child = world.standing()
    assert (child.parent_id, child.depth) == (root.id, 1)
    assert root.access_count == 1


def test_children_of_a_root_follow_each_other(world: World):
    world.learn(fact(CACHE))
    world.learn(fact(NEAR_CACHE))
    world.learn(fact(f"{CACHE} eta theta iota sigma upsilon omega pi ro si ka la po du be"))
    _, first, second = world.standing()
    kinds = {(edge.source, edge.target, edge.kind) for edge in edges_of(world, second)}
    assert (first.id, second.id, "temporal") in kinds


def test_related_draft_is_linked_with_its_cosine_as_weight(world: World):
    world.learn(fact(CACHE))
    world.learn(fact("The cache of the mobile app lives in memory of one phone"))
    first, second = world.standing()
    link = next(edge for edge in edges_of(world, second) if edge.kind == "associative")
    assert (link.source, link.target) == (second.id, first.id)
    assert 0.35 <= link.weight <= 0.75


def test_the_first_draft_of_a_memory_becomes_a_root_of_its_own_importance(world: World):
    world.learn(fact(CACHE, importance=0.5))
    assert world.standing()[0].importance == 0.5


def test_a_tree_of_one_exchange_stays_a_tree(world: World):
    tree = fact("Deployment", children=[fact("It runs on Fridays at noon", children=[fact("x y")])])
    world.learn(tree)
    assert [one.depth for one in world.standing()] == [0, 1, 2]


def test_draft_is_not_attached_in_another_project(world: World):
    world.learn(fact(CACHE))
    made = world.learn(fact(f"{CACHE} delta epsilon"), session="t", project="/code/other")
    assert made.attached == 0
    assert [one.depth for one in world.standing()] == [0, 0]


@pytest.mark.parametrize("kind", ["episode", "insight"])
def test_nothing_is_attached_below_episodes_or_insights(world: World, kind):
    world.learn(fact(CACHE))
    world.database.write(lambda db: db.run("UPDATE fragments SET kind = :kind", kind=kind))
    assert world.learn(fact(f"{CACHE} delta epsilon")).attached == 0


def test_repeated_draft_merges_sources_and_raises_confidence(world: World):
    world.learn(fact(CACHE))
    made = world.learn(fact(CACHE), session="t")
    kept = world.standing()
    assert (made.merged, len(kept)) == (1, 1)
    assert len(kept[0].source_messages) == 2
    assert kept[0].confidence == pytest.approx(0.75)
    assert kept[0].version == 1


def test_newer_words_are_shown_and_the_former_stay_readable(world: World):
    world.learn(fact("I keep all my invoices in the green box below the desk"))
    world.learn(fact("I keep all my invoices in the green box below that desk"), session="t")
    kept = world.standing()[0]
    assert kept.content == "I keep all my invoices in the green box below that desk"
    with world.database.read() as db:
        former = fragments.get_versions(db, items.resolve(db, kept.id).n)
    assert [one.content for one in former] == [
        "I keep all my invoices in the green box below the desk"
    ]


def test_wording_with_fewer_values_does_not_replace_one_with_more(world: World):
    long = "I keep all my 40 invoices from Ana in the green box below the desk of my old room"
    world.learn(fact(long))
    world.learn(
        fact("I keep all my invoices from Ana in the green box below the desk of my old room"),
        session="t",
    )
    assert world.contents() == [long]
    assert len(world.standing()[0].source_messages) == 2


def test_another_number_is_another_fragment(world: World):
    world.learn(fact("The monthly budget for food of our family in the new town is $550"))
    world.learn(fact("The monthly budget for food of our family in the new town is $600"))
    assert len(world.contents()) == 2


def test_another_command_is_another_workflow(world: World):
    for name in ("test", "lint"):
        command = f"mise run {name}"
        extract = Extract(f"Use `{command}`.", command, "workflow", 0.5, (), {"command": command})
        world.learn(extract)
    assert len(world.contents()) == 2


def test_duplicate_in_one_exchange_is_stored_once(world: World):
    world.learn(fact(CACHE), fact(CACHE))
    assert world.contents() == [CACHE]


def test_lower_trust_changes_nothing_that_higher_trust_said(world: World):
    world.learn(fact(CACHE))
    before = world.standing()
    made = world.learn(fact(CACHE), session="t", role="tool")
    assert (made.known, made.merged) == (1, 0)
    assert world.standing() == before


def test_higher_trust_supersedes_a_duplicate_of_lower_trust(world: World):
    world.learn(fact(CACHE), role="tool")
    world.learn(fact(CACHE), session="t")
    low, high = all_fragments(world)
    assert (low.origin, low.superseded_by) == ("tool", high.id)
    assert (high.origin, high.superseded_by) == ("user", None)


def test_an_untrusted_draft_does_not_reinforce_its_parent(world: World):
    world.learn(fact(CACHE))
    world.learn(fact(NEAR_CACHE), session="t", role="tool")
    root, child = world.standing()
    assert (child.parent_id, child.origin) == (root.id, "tool")
    assert root.access_count == 0


def test_correction_supersedes_what_it_corrects(world: World):
    world.learn(fact("We install the packages of this project with npm"))
    made = world.learn(
        fact("We now install the packages of this project with pnpm", corrects="npm")
    )
    assert made.superseded == 1
    assert world.contents() == ["We now install the packages of this project with pnpm"]


def test_a_correction_of_lower_trust_only_contradicts(world: World):
    world.learn(fact("We install the packages of this project with npm"))
    made = world.learn(
        fact("We now install the packages of this project with pnpm", corrects="npm"),
        session="t",
        role="tool",
    )
    assert (made.superseded, made.contradicted) == (0, 1)
    assert len(world.contents()) == 2
    assert "contradicts" in {edge.kind for edge in edges_of(world, world.standing()[0])}


def test_a_tools_repetition_makes_no_conflict_of_two_statements_of_a_person(world: World):
    world.learn(fact("We install the packages of this project with npm"))
    world.learn(fact(CACHE))
    made = world.learn(
        fact(CACHE, corrects="We install the packages of this project with npm"),
        session="t",
        role="tool",
    )
    assert (made.known, made.contradicted) == (1, 0)
    assert not any(edge.kind == "contradicts" for edge in edges_of(world, world.standing()[0]))


def test_an_old_session_that_comes_in_late_corrects_nothing_newer(world: World):
    world.say("old", session="old")
    world.wait(days=3)
    world.learn(fact("We install the packages of this project with npm"))
    world.curate(
        lambda _: [fact("We now install the packages of this project with pnpm", corrects="npm")],
        session="old",
    )
    assert len(world.contents()) == 2


def test_faded_fragment_learned_again_is_the_same_fragment(world: World):
    world.learn(fact(CACHE, importance=0.2))
    world.wait(days=50)
    world.database.write(lambda db: fragments.decay_relevance(db, now=world.clock()))
    assert world.contents() == []
    world.learn(fact(CACHE, importance=0.2), session="t")
    assert world.contents() == [CACHE]
    assert len(all_fragments(world)) == 1


def test_confirmations_are_counted_by_project(world: World):
    for session in ("a", "b"):
        world.learn(fact(CACHE), session=session)
    kept = world.standing()[0]
    with world.database.read() as db:
        counted = reversible_changes.confirmations_by_project(db, items.resolve(db, kept.id).n)
    assert list(counted.values()) == [2]


def test_relations_that_extraction_names_become_edges(world: World):
    one = Extract("Alpha", "Alpha", "fact", 0.5, (), {}, "", (("supports", "Beta"),))
    world.learn(one, fact("Beta"))
    first = world.standing()[0]
    assert "supports" in {edge.kind for edge in edges_of(world, first)}


def setting(value: str, *, text: str = "", location: str = "") -> Extract:
    told = text or f"`MAX_TRIES` is {value} now."
    payload = {"setting": "MAX_TRIES", "value": value, "location": location}
    return Extract(told, told, "config", 0.5, (), payload)


def test_the_newest_value_of_a_setting_stands_alone(world: World):
    for value in ("3", "5", "4"):
        world.learn(setting(value))
        world.wait(days=1)
    assert world.contents() == ["`MAX_TRIES` is 4 now."]


def test_an_old_value_that_arrives_late_is_superseded_at_once(world: World):
    world.say("old", session="old")
    world.wait(days=3)
    world.learn(setting("4"))
    world.curate(lambda _: [setting("3")], session="old")
    assert world.contents() == ["`MAX_TRIES` is 4 now."]


def test_a_setting_of_lower_trust_supersedes_nothing(world: World):
    world.learn(setting("3"))
    world.wait(days=1)
    world.learn(setting("5"), session="t", role="tool")
    assert "`MAX_TRIES` is 3 now." in world.contents()


def test_a_setting_may_have_another_value_elsewhere(world: World):
    world.learn(setting("3", text="`MAX_TRIES` is 3 in dev."))
    world.wait(days=1)
    world.learn(setting("5", text="`MAX_TRIES` is 5 in prod."))
    world.learn(setting("6", location="b.py"), setting("7", location="a.py"))
    assert {"`MAX_TRIES` is 6 now.", "`MAX_TRIES` is 7 now."} <= set(world.contents())


def test_a_late_draft_is_superseded_by_its_correction(world: World):
    world.say("old", session="old")
    world.wait(days=3)
    world.learn(fact("We now install the packages of this project with pnpm", corrects="npm"))
    world.curate(
        lambda _: [fact("We install the packages of this project with npm")], session="old"
    )
    assert world.contents() == ["We now install the packages of this project with pnpm"]


LINT = "Always run the linter before commits."
NO_LINT = "You no longer need to run the linter before commits, CI does it."


def test_rule_withdrawn_by_the_user_is_superseded(world: World):
    world.say(LINT)
    world.say("Never push to the main branch without asking.")
    world.curate()
    world.say(NO_LINT, session="t")
    assert world.curate(session="t").superseded == 1
    assert LINT not in world.contents()
    assert "Never push to the main branch without asking." in world.contents()


def test_a_rule_of_the_user_is_not_withdrawn_by_lower_trust(world: World):
    world.say(LINT)
    world.curate()
    taken = fact("You no longer need to run the linter before commits.", kind="preference",
                 corrects="run the linter before commits")  # fmt: skip
    made = world.learn(taken, session="t", role="tool")
    assert made.superseded == 0
    assert LINT in world.contents()


LATER = NOON + timedelta(days=1)
NPM = "We install the packages with npm"
PNPM = "We install the packages with pnpm now"


def draft(
    content: str = PNPM, corrects: str = "npm", vector: list[float] | None = None
) -> DraftFragment:
    found = None if vector is None else np.array(vector, np.float32)
    return DraftFragment(content, content, "fact", 0.5, {}, ("m",), None, corrects, (), None, found)


def test_similar_fragment_with_the_former_value_is_corrected():
    known = candidate(NPM, cosine=SAME_SUBJECT)
    assert draft_writer.find_corrected(draft(), LATER, [known], {}) == known
    assert (
        draft_writer.find_corrected(
            draft(), LATER, [candidate(NPM, cosine=SAME_SUBJECT - 0.01)], {}
        )
        is None
    )


def test_fragment_without_the_former_value_is_not_corrected():
    assert (
        draft_writer.find_corrected(draft(), LATER, [candidate("We use yarn", cosine=0.9)], {})
        is None
    )


def test_shared_name_lowers_the_required_similarity():
    draft_ = draft("In `web_app` we install with pnpm")
    named = candidate("We install `web_app` with npm", cosine=SAME_NAMED_SUBJECT)
    unnamed = candidate("We install with npm", cosine=SAME_NAMED_SUBJECT)
    assert draft_writer.find_corrected(draft_, LATER, [named], {}) == named
    assert draft_writer.find_corrected(draft_, LATER, [unnamed], {}) is None


@pytest.mark.parametrize(("cosine", "is_corrected"), [(SAME_AS_FORMER + 0.01, True), (0.5, False)])
def test_fragment_similar_to_the_corrected_words_is_corrected(cosine: float, *, is_corrected: bool):
    row = np.array([cosine, (1 - cosine**2) ** 0.5], np.float32)
    known = candidate("Another wording of it", cosine=0.1)
    found = draft_writer.find_corrected(draft(vector=[1.0, 0.0]), LATER, [known], {known.n: row})
    assert (found == known) == is_corrected


def test_nothing_newer_is_corrected():
    known = candidate(NPM, cosine=0.9)
    assert draft_writer.find_corrected(draft(), NOON, [known], {}) is None


@pytest.mark.parametrize("kind", ["episode", "insight"])
def test_episodes_and_insights_are_not_corrected(kind: FragmentKind):
    assert (
        draft_writer.find_corrected(draft(), LATER, [candidate(NPM, cosine=0.9, kind=kind)], {})
        is None
    )


def test_a_draft_that_names_nothing_former_corrects_nothing():
    assert (
        draft_writer.find_corrected(draft(corrects=""), LATER, [candidate(NPM, cosine=0.9)], {})
        is None
    )


def test_late_draft_finds_its_correction():
    newer = candidate(PNPM, cosine=0.9, payload={"replaces": "npm"}, at=LATER)
    assert draft_writer.find_correction(draft(NPM, ""), NOON, [newer]) == newer
    assert draft_writer.find_correction(draft(NPM, ""), LATER, [newer]) is None
    other = candidate(PNPM, cosine=0.9, payload={"replaces": "yarn"}, at=LATER)
    assert draft_writer.find_correction(draft(NPM, ""), NOON, [other]) is None


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("PORT is 80", "PORT is 90", True),
        ("PORT is 80 in production", "PORT is 90 in prod", True),
        ("PORT is 80 in production", "PORT is 90", True),
        ("PORT is 80 in production", "PORT is 90 on staging", False),
    ],
)
def test_a_setting_may_have_one_value_for_each_surrounding(one: str, other: str, *, same: bool):
    assert draft_writer.is_same_setting((one, {}), (other, {})) == same


def test_a_setting_may_have_one_value_in_each_file():
    here, there = {"location": "a.env"}, {"location": "b.env"}
    assert not draft_writer.is_same_setting(("PORT is 80", here), ("PORT is 90", there))
    assert draft_writer.is_same_setting(("PORT is 80", here), ("PORT is 90", {}))
