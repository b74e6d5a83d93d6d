from __future__ import annotations

from lore.store import figures, jobs
from lore.store.sqlite import Connection
from tests.store.samples import NOON, add_fragment, add_messages, new_session


def test_everything_is_counted(db: Connection) -> None:
    add_messages(db, new_session(db, project="/p"), "Always use tabs.", "two", speaker="")
    add_fragment(db, 1)
    jobs.ensure(db, "embed", "m", total=3, now=NOON)
    stats = figures.stats(db, embedder="none", notice="well")
    assert (stats.messages, stats.fragments, stats.sessions, stats.standing) == (2, 1, 1, 1)
    assert (stats.waiting, stats.vectors, stats.journal) == (3, 0, "wal")
    assert stats.projects == (("/p", 2),)
    assert stats.bytes > 4096
    assert stats.tokens > 0
    assert [job.kind for job in stats.jobs] == ["embed"]
    assert stats.notice == "well"
