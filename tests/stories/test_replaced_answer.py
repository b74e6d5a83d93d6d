"""A person changes their mind on the command line, without a daemon."""

from __future__ import annotations

from pathlib import Path

from lore.memory import Memory
from lore.settings import Settings

OLD = "The orders service stores its data in MySQL 8."
NEW = "We switched the orders service from MySQL to Postgres 16."


def test_an_answer_marks_what_was_replaced_though_no_daemon_judged_it(tmp_path: Path):
    with Memory.open(config=Settings(home=tmp_path)) as memory:
        memory.remember(OLD, project="/code/shop")
        memory.remember(NEW, project="/code/shop")
    with Memory.open(config=Settings(home=tmp_path)) as memory:
        answer = memory.search.ask("which database does the orders service use?")
    first, second = answer.citations[:2]
    assert (first.text, first.is_outdated) == (NEW, False)
    assert (second.text, second.replaced_by) == (OLD, first.number)
