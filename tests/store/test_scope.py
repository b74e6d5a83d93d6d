"""Where an item applies: to its project, to sessions without one, or to all projects."""

from lore import clock
from lore.store import fragments, items, keywords, project_rows, sessions
from lore.store.fragments import FragmentFilter, NewFragment
from lore.store.items import NO_PROJECT, UNKNOWN_PROJECT
from lore.store.keywords import SearchScope
from tests.fakes import NOON


def add(db, content, *, project_n=None, session_n=None):
    new = NewFragment(
        clock.new_id(NOON), content, content, "fact", NOON, project_n=project_n, session_n=session_n
    )
    return fragments.add(db, new, now=NOON)


def fill(db):
    """Return a project and the fragments of it, of a session without one, and of none."""
    project_n = project_rows.ensure_project(db, "/p/a", now=NOON)
    chat_n = sessions.ensure_session(db, "chat", agent="x", project_n=None, started_at=NOON)
    own = add(db, "Owls sleep here", project_n=project_n)
    chat = add(db, "Owls sleep late", session_n=chat_n)
    shared = add(db, "Owls sleep well")
    return project_n, own, chat, shared


def test_each_scope_has_its_own_and_what_applies_to_all(db):
    project_n, own, chat, shared = fill(db)
    for scope, ns in [
        (project_n, {own, shared}),
        (NO_PROJECT, {chat, shared}),
        (UNKNOWN_PROJECT, {shared}),
        (None, {own, chat, shared}),
    ]:
        assert {n for n, _ in fragments.roots(db, project_n=scope, limit=9)} == ns
        assert fragments.filter_visible(db, FragmentFilter(project_n=scope)) == ns
        hits = keywords.search(
            db, "fragment_words", '"owls"', limit=9, weights=(1.0, 1.0, 1.0),
            within=SearchScope(scope),
        )  # fmt: skip
        assert {n for n, _ in hits} == ns
    assert items.for_all_projects(db) == [shared]


def test_an_item_follows_its_session_into_a_project(db):
    project_n, _, chat, _ = fill(db)
    assert items.scopes_of(db, [chat]) == {chat: NO_PROJECT}
    session_n = sessions.get_session_number(db, "chat")
    sessions.fill_session(db, session_n, project_n=project_n, branch="", parent_n=None)
    assert items.scopes_of(db, [chat]) == {chat: project_n}


def test_what_is_derived_belongs_where_its_sources_do(db):
    project_n, own, chat, shared = fill(db)
    assert items.find_home(db, [own]) == (project_n, None)
    assert items.find_home(db, [shared, chat]) == (
        None, sessions.get_session_number(db, "chat"),
    )  # fmt: skip
    assert items.find_home(db, [shared]) == (None, None)
