from __future__ import annotations

from lore.store import mentions
from lore.store.sqlite import Connection
from lore.text.entities import Mention
from tests.store.samples import add_fragment


def test_entities_are_counted_and_go_with_their_last_mention(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    mentions.add(db, a, [Mention("ada", is_title=True), Mention("paris", is_title=False)])
    mentions.add(db, b, [Mention("ada", is_title=False)])
    assert dict(db.rows("SELECT name, uses FROM entities")) == {"ada": 2, "paris": 1}
    mentions.remove(db, [a])
    mentions.remove(db, [])
    assert dict(db.rows("SELECT name, uses FROM entities")) == {"ada": 1}


def test_items_are_found_by_title_and_by_what_they_share(db: Connection) -> None:
    a, b = add_fragment(db, 1), add_fragment(db, 2)
    mentions.add(db, a, [Mention("ada", is_title=True)])
    mentions.add(db, b, [Mention("ada", is_title=False)])
    assert mentions.titled(db, ["ada", "bob", "ada"], most_each=5) == {"ada": [a]}
    (entity_n,) = db.rows("SELECT n FROM entities")[0]
    assert mentions.of_items(db, [a]).tolist() == [[a, entity_n, 1, 2]]
    assert sorted(mentions.of_entities(db, [entity_n])[:, 0].tolist()) == [a, b]
    assert mentions.names_of(db, [entity_n]) == {entity_n: "ada"}
    assert len(mentions.of_items(db, [])) == len(mentions.of_entities(db, [])) == 0
    assert mentions.names_of(db, []) == {}
