"""Selection of hits and of distillation lines."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

import numpy as np
import pytest

from lore.recall import hit_selection
from lore.recall.hit_selection import Limits, Selection, select_hits
from lore.recall.question import parse
from lore.records import Hit, ItemType, Origin
from tests.fakes import NOON


def made(
    id_: str,
    text: str,
    *,
    type_: ItemType = "message",
    tokens: int = 10,
    origin: Origin = "user",
    sources: tuple[str, ...] = (),
) -> Hit:
    return Hit(id_, type_, text, "", 0.0, "", NOON, tokens, origin=origin, sources=sources)


def messages(count: int) -> list[Hit]:
    return [made(f"m{n}", f"number{n} of many{n}") for n in range(count)]


def log(id_: str, *tells: str, tokens: int = 10) -> Hit:
    return made(id_, f"line {id_}", type_="distillation", tokens=tokens, sources=tells)


def chosen(hits: Sequence[Hit], limits: Limits) -> Selection:
    """Choose among hits in the order of their rank; a log that tells nothing new is empty."""

    def show(places: Sequence[int], told: Collection[str]) -> Iterator[tuple[int, Hit]]:
        for place in places:
            hit = hits[place]
            known = hit.type == "distillation" and set(hit.sources) <= set(told)
            yield place, made(hit.id, "", type_="distillation", tokens=0) if known else hit

    logs = {place for place, hit in enumerate(hits) if hit.type == "distillation"}
    return select_hits(range(len(hits)), logs, show, limits)


def ids(found: Selection) -> list[str]:
    return [hit.id for hit in found.hits]


def test_a_share_of_the_hits_is_kept_for_logs_that_rank_below_the_limit():
    hits = [*messages(20), log("l0", "x"), log("l1", "y"), log("l2", "z")]
    found = chosen(hits, Limits(10, 1_000, log_share=0.2))
    assert ids(found) == [*(f"m{n}" for n in range(8)), "l0", "l1"]


def test_a_share_of_the_tokens_is_kept_for_logs_too():
    hits = [*messages(20), log("l0", "x"), log("l1", "y"), log("l2", "z")]
    assert ids(chosen(hits, Limits(50, 100, log_share=0.2)))[-3:] == ["m7", "l0", "l1"]


def test_what_logs_leave_of_their_share_goes_to_the_next_hits():
    hits = [*messages(20), log("l0", "x")]
    found = chosen(hits, Limits(10, 1_000, log_share=0.2))
    assert ids(found) == [*(f"m{n}" for n in range(9)), "l0"]


def test_a_log_that_tells_only_what_is_shown_takes_no_place():
    hits = [*messages(20), log("l0", "m1"), log("l1", "x")]
    found = chosen(hits, Limits(5, 1_000, log_share=0.2))
    assert ids(found) == ["m0", "m1", "m2", "m3", "l1"]
    assert found.reasons["l0"] == "hits above already show what its lines say"


def test_a_log_that_ranks_high_stands_where_it_ranks():
    hits = [log("l0", "x"), *messages(3), log("l1", "y")]
    assert ids(chosen(hits, Limits(10, 1_000, log_share=0.2))) == ["l0", "m0", "m1", "m2", "l1"]


@pytest.mark.parametrize("limits", [Limits(4, 1_000, log_share=0.2), Limits(4, 1_000)])
def test_where_the_share_makes_no_whole_hit_the_order_alone_decides(limits: Limits):
    assert ids(chosen([*messages(4), log("l0", "x")], limits)) == ["m0", "m1", "m2", "m3"]


def test_each_hit_says_at_which_place_it_is_shown():
    hits = [*messages(6), log("l0", "x")]
    found = chosen(hits, Limits(5, 1_000, log_share=0.2))
    assert found.reasons == {
        **{f"m{n}": f"shown as hit {n + 1}" for n in range(4)},
        "l0": "shown as hit 5",
    }


def test_what_finds_no_room_says_so_and_the_fewest_are_shown_in_any_case():
    found = chosen(messages(3), Limits(10, 15, fewest=2))
    assert ids(found) == ["m0", "m1"]
    assert found.reasons["m2"] == "cut by the budget of 15 tokens"


def test_of_two_that_say_the_same_the_more_trusted_is_shown_once():
    hits = [made("a", "the same words", origin="tool"), made("b", "the same words")]
    found = chosen(hits, Limits(10, 1_000))
    assert [(hit.id, hit.same) for hit in found.hits] == [("b", ("a",))]
    assert found.reasons == {"a": "says nearly the same as b", "b": "shown as hit 1"}


def test_a_fragment_that_a_shown_message_already_says_is_no_hit_of_its_own():
    said = "we talked for a while, and then: deploys go through ops/deploy.sh, never by hand"
    hits = [
        made("m", said),
        made("f", "Deploys go through ops/deploy.sh", type_="fragment", sources=("m",)),
        made("other", "Deploys go through ops/deploy.sh", type_="fragment", sources=("n",)),
    ]
    found = chosen(hits, Limits(5, 1_000))
    assert ids(found) == ["m", "other"]
    assert found.hits[0].same == ("f",)
    assert found.reasons["f"] == "says nearly the same as m"


def test_a_corrected_fragment_is_shown_beside_the_message_it_was_made_of():
    said = "the deploy port of harbor is 8080 on staging, remember that for the compose file"
    now = "The deploy port of harbor is 9090 on staging"
    hits = [made("m", said), made("f", now, type_="fragment", sources=("m",))]
    assert ids(chosen(hits, Limits(5, 1_000))) == ["m", "f"]


@pytest.mark.parametrize(
    ("said", "now"),
    [
        ("we always deploy harbor on Friday", "We never deploy harbor on Friday"),
        ("we never deploy harbor on Friday", "We always deploy harbor on Friday"),
        ("no tea, please; the cache of harbor is not enabled", "The cache of harbor is enabled"),
    ],
)
def test_a_fragment_that_was_turned_round_is_shown_beside_its_message(said: str, now: str):
    hits = [made("m", said), made("f", now, type_="fragment", sources=("m",))]
    assert ids(chosen(hits, Limits(5, 1_000))) == ["m", "f"]


def test_a_message_that_a_shown_line_tells_nearly_whole_is_no_hit_of_its_own():
    told = made("l", "Mara: the berth costs 40", type_="distillation", sources=("m",))
    found = chosen([told, made("m", "the berth costs 40")], Limits(10, 1_000))
    assert [(hit.id, hit.same) for hit in found.hits] == [("l", ("m",))]


LOG = "2026-05-13\nMara: The berth costs 40 crowns\nOle: The lamp is broken\n2026-05-14\nMara: Tea"
TOLD: tuple[tuple[str, ...], ...] = ((), ("m1",), ("m2",), (), ("m3",))


def choose(
    question: str, known: tuple[str, ...] = (), most: int = 220
) -> hit_selection.SelectedLines:
    parsed = parse(question, NOON)
    rarity = np.ones(len(parsed.terms))
    return hit_selection.select_lines(
        LOG, TOLD, parsed, rarity, most_tokens=most, already_shown=known
    )


def test_only_lines_that_fit_are_shown_with_their_day_and_messages():
    shown = choose("What does the berth cost in crowns?")
    assert shown == ("2026-05-13\nMara: The berth costs 40 crowns", ("m1",))


def test_a_log_that_was_found_by_its_meaning_is_shown_whole():
    assert choose("okapi") == (LOG, ("m1", "m2", "m3"))


def test_a_line_whose_message_is_shown_already_is_left_out():
    assert choose("berth lamp", known=("m1",)).sources == ("m2",)
    assert choose("berth", known=("m1", "m2", "m3")) == ("", ())


def test_the_messages_of_the_line_that_fits_best_come_first():
    assert choose("the broken lamp of Ole, the berth").sources[0] == "m2"


def test_lines_are_shown_while_they_fit_the_budget_and_at_least_one():
    assert choose("okapi", most=1).sources == ("m1",)
    assert choose("okapi", most=10).sources == ("m1", "m3")
