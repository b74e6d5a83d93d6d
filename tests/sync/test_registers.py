"""The merge of registers: any order and any number of merges end in the same state."""

from __future__ import annotations

from functools import reduce

from hypothesis import given
from hypothesis import strategies as st

from lore.sync.registers import (
    MOST_PAST,
    Register,
    Registers,
    Stamp,
    from_wire,
    is_concurrent,
    known_registers,
    merge,
    pack_known,
    stamp_changes,
    to_wire,
    unpack_known,
)

times = st.integers(0, 4)
machines = st.sampled_from(("a", "b"))
stamps = st.builds(Stamp, times, machines)
values = st.one_of(st.none(), st.sampled_from(("x", "y")), st.dictionaries(st.just("k"), times))


def registers(value: st.SearchStrategy[object]) -> st.SearchStrategy[Register]:
    past = st.lists(stamps, max_size=2).map(tuple)
    return st.builds(Register, times, machines, value, past)


records = st.fixed_dictionaries(
    {}, optional={"text": registers(values), "shown": registers(values), "use": registers(times)}
)


@given(records, records)
def test_the_order_of_two_states_does_not_matter(one: Registers, other: Registers) -> None:
    assert merge(one, other) == merge(other, one)


@given(records, records, records)
def test_the_grouping_of_merges_does_not_matter(a: Registers, b: Registers, c: Registers) -> None:
    assert merge(merge(a, b), c) == merge(a, merge(b, c))


tasks = st.fixed_dictionaries({
    "self": registers(
        st.one_of(
            st.none(),
            st.fixed_dictionaries({
                "state": st.sampled_from(("open", "done")),
                "phase": st.sampled_from("xy"),
            }),
        )
    )
})


@given(tasks, tasks, tasks)
def test_the_order_and_the_grouping_of_states_of_a_task_do_not_matter(
    a: Registers, b: Registers, c: Registers
) -> None:
    assert merge(a, b, "task") == merge(b, a, "task")
    assert merge(merge(a, b, "task"), c, "task") == merge(a, merge(b, c, "task"), "task")


@given(records, records)
def test_a_state_that_arrives_twice_changes_nothing(one: Registers, other: Registers) -> None:
    merged = merge(one, other)
    assert merge(merged, other) == merged
    assert merge(one, one) == one


@given(st.lists(records, min_size=1, max_size=5), st.randoms(use_true_random=False))
def test_any_order_of_arrivals_ends_in_the_same_state(states: list[Registers], random) -> None:
    shuffled = [*states, *states]
    random.shuffle(shuffled)
    nothing: Registers = {}
    assert reduce(merge, shuffled, nothing) == reduce(merge, states, nothing)


@given(records)
def test_registers_survive_the_wire_and_the_store(record: Registers) -> None:
    assert from_wire(to_wire(record)) == record
    known = known_registers(record)
    assert unpack_known(pack_known(known)) == known


@given(registers(values), values, st.integers(-1_000, 1_000))
def test_a_change_wins_over_what_it_replaced_whatever_the_clock_says(
    before: Register, value: object, now_us: int
) -> None:
    known = known_registers({"text": before})
    changed = stamp_changes(known, {"text": (value, None)}, machine="c", now_us=now_us)
    merged = merge({"text": before}, changed)
    assert merged == changed
    assert changed["text"].us >= before.us
    if value != before.value:
        assert not is_concurrent(before, changed["text"])


def test_a_later_edit_of_the_same_text_is_no_conflict_but_a_parallel_one_is() -> None:
    base = Register(10, "a", "base")
    known = known_registers({"text": base})
    mine = stamp_changes(known, {"text": ("mine", None)}, machine="a", now_us=20)["text"]
    yours = stamp_changes(known, {"text": ("yours", None)}, machine="b", now_us=15)["text"]
    known = known_registers({"text": mine})
    later = stamp_changes(known, {"text": ("later", None)}, machine="a", now_us=30)["text"]
    assert is_concurrent(mine, yours)
    assert is_concurrent(later, yours)
    assert not is_concurrent(later, base)
    assert len(later.past) <= MOST_PAST


def test_a_time_ahead_of_the_clock_counts_as_now() -> None:
    first = stamp_changes({}, {"text": ("x", 5_000)}, machine="a", now_us=1_000)
    assert first["text"].us == 1_000


def test_a_rejection_by_a_person_wins_over_later_confirmations_of_the_machine() -> None:
    suggested = Register(10, "a", "suggested")
    known = known_registers({"self": suggested})
    rejected = stamp_changes(known, {"self": ("rejected", 10)}, machine="a", now_us=1_000)
    confirmed = stamp_changes(known, {"self": ("confirmed", 11)}, machine="b", now_us=9_000)
    assert merge(confirmed, rejected)["self"].value == "rejected"
    restored = stamp_changes(
        known_registers(rejected), {"self": ("stands", 10)}, machine="b", now_us=9_500
    )
    assert merge(restored, rejected)["self"].value == "stands"
