"""Drafts among what is known: attached, linked, merged, corrected, refused."""

from __future__ import annotations

import pytest

from lore.records import Edge, Extract, Fragment
from lore.store import fragments, graph, items, reversible_changes
from tests.digest.world import World, fact

CACHE = "The cache of the web server lives in folder alpha beta gamma"


def edges_of(world: World, fragment: Fragment) -> list[Edge]:
    with world.database.read() as db:
        return graph.edges_of_fragment(db, items.resolve(db, fragment.id).n)


def all_fragments(world: World) -> list[Fragment]:
    with world.database.read() as db:
        rows = db.rows("SELECT n FROM fragments ORDER BY n")
        return list(fragments.by_number(db, [row[0] for row in rows]).values())


def test_what_is_near_a_root_goes_below_it_and_reinforces_it(world: World):
    world.learn(fact(CACHE))
    assert world.learn(fact(f"{CACHE} delta epsilon zeta")).attached == 1
    root, child = world.standing()
    assert (child.parent_id, child.depth) == (root.id, 1)
    assert root.access_count == 1


def test_children_of_a_root_follow_each_other(world: World):
    world.learn(fact(CACHE))
    world.learn(fact(f"{CACHE} delta epsilon zeta"))
    world.learn(fact(f"{CACHE} eta theta iota"))
    _, first, second = world.standing()
    kinds = {(edge.source, edge.target, edge.kind) for edge in edges_of(world, second)}
    assert (first.id, second.id, "temporal") in kinds


def test_what_is_a_little_near_is_linked_with_that_weight(world: World):
    world.learn(fact(CACHE))
    world.learn(fact("The cache of the mobile app lives in memory of one phone"))
    first, second = world.standing()
    link = next(edge for edge in edges_of(world, second) if edge.kind == "associative")
    assert (link.source, link.target) == (second.id, first.id)
    assert 0.35 <= link.weight <= 0.75


def test_what_is_like_nothing_known_is_a_root_that_counts_more(world: World):
    world.learn(fact(CACHE, importance=0.5))
    assert world.standing()[0].importance == 0.75


def test_a_tree_of_one_exchange_stays_a_tree(world: World):
    tree = fact("Deployment", children=[fact("It runs on Fridays at noon", children=[fact("x y")])])
    world.learn(tree)
    assert [one.depth for one in world.standing()] == [0, 1, 2]


def test_another_project_is_no_place_to_attach_to(world: World):
    world.learn(fact(CACHE))
    made = world.learn(fact(f"{CACHE} delta epsilon"), session="t", project="/code/other")
    assert made.attached == 0
    assert [one.depth for one in world.standing()] == [0, 0]


@pytest.mark.parametrize("kind", ["episode", "insight"])
def test_nothing_is_attached_below_episodes_or_insights(world: World, kind):
    world.learn(fact(CACHE))
    world.database.write(lambda db: db.run("UPDATE fragments SET kind = :kind", kind=kind))
    assert world.learn(fact(f"{CACHE} delta epsilon")).attached == 0


def test_the_same_said_again_unites_sources_and_is_surer(world: World):
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


def test_words_that_say_less_do_not_take_the_place_of_more(world: World):
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


def test_of_two_the_same_in_one_exchange_one_is_kept(world: World):
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
    world.learn(fact(f"{CACHE} delta epsilon zeta"), session="t", role="tool")
    root, child = world.standing()
    assert (child.parent_id, child.origin) == (root.id, "tool")
    assert root.access_count == 0


def test_a_correction_takes_the_place_of_what_it_corrects(world: World):
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


def test_an_old_session_that_comes_in_late_corrects_nothing_newer(world: World):
    world.say("old", session="old")
    world.wait(days=3)
    world.learn(fact("We install the packages of this project with npm"))
    world.curate(
        lambda _: [fact("We now install the packages of this project with pnpm", corrects="npm")],
        session="old",
    )
    assert len(world.contents()) == 2


def test_what_had_faded_and_is_learned_again_is_the_same_fragment(world: World):
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


def test_a_rule_that_the_person_takes_back_is_superseded(world: World):
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
