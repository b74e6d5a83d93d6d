from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from lore.digest.consolidation.clusters import LARGEST, SMALLEST, clusters, is_news

links = st.lists(
    st.tuples(st.integers(0, 40), st.integers(0, 40), st.floats(0, 1)), max_size=120
).map(lambda found: sorted(found, key=lambda link: -link[2]))


def test_clusters_are_never_larger_than_can_be_read():
    chain = [(i, i + 1, 0.9) for i in range(100)]
    found = clusters(chain)
    assert all(len(cluster) <= LARGEST for cluster in found)
    assert sum(len(cluster) for cluster in found) > 80


def test_half_new_is_news():
    assert is_news((1, 2, 3, 4), [{1, 2}])
    assert not is_news((1, 2, 3), [{1, 2}])
    assert is_news((1, 2, 3), [])


def test_the_strongest_links_are_grouped_first():
    weak = [(i, i + 1, 0.5) for i in range(10, 20)]
    assert (1, 2, 3) in clusters([(1, 2, 0.9), (2, 3, 0.8), *weak])


def test_two_roots_are_no_cluster():
    assert clusters([(1, 2, 0.9), (3, 4, 0.9)]) == []


@given(links)
def test_a_root_is_in_one_cluster_at_most_and_each_can_be_read(found):
    grouped = clusters(found)
    together = [n for cluster in grouped for n in cluster]
    assert len(together) == len(set(together))
    assert all(SMALLEST <= len(cluster) <= LARGEST for cluster in grouped)
