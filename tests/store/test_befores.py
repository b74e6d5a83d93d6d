from __future__ import annotations

import pytest

from lore.store.befores import NOTHING, Before, Link, Successor, Whose, Words, pack, unpack
from lore.store.edges import Drawn

EDGE = Drawn(0.5, "so it is")


@pytest.mark.parametrize(
    "before",
    [
        NOTHING,
        Before(words=Words("one", "two")),
        Before(words=Words("one", "two", Whose("repo", 2, "fact")), after=Words("a", "b")),
        Before(link=Link(7, "related_to")),
        Before(link=Link(7, "hierarchical", EDGE, 3), together="decision", after=EDGE),
        Before(successor=Successor(7)),
        Before(successor=Successor(7, "former")),
        Before(together="revocation", standing=(1, 2)),
    ],
)
def test_what_is_kept_comes_back(before: Before) -> None:
    assert unpack(pack(before)) == before


@pytest.mark.parametrize(
    ("kept", "before"),
    [
        ("{}", NOTHING),
        ('{"together": "revocation", "standing": []}', Before(together="revocation")),
        (
            '{"target": 7, "kind": "hierarchical", "edge": null, "parent": null, "after": null}',
            Before(link=Link(7, "hierarchical")),
        ),
        ('{"newer": 7, "former": null, "after": null}', Before(successor=Successor(7))),
    ],
)
def test_what_was_kept_with_empty_fields_is_read(kept: str, before: Before) -> None:
    assert unpack(kept) == before
