from __future__ import annotations

from datetime import timedelta

from lore.memory import Memory
from lore.tools.session import find_session
from lore.tools.tool import Caller
from tests.fakes import NOON
from tests.recall.talk import say

HERE = Caller(project="/code/a")


def found(memory: Memory, caller: Caller) -> str:
    """Return the agent's own name of the session that a caller has."""
    session = find_session(memory, caller)
    return next((one.external_id for one in memory.sessions() if one.id == session), session)


def test_a_caller_has_the_session_that_goes_on_in_its_project(memory: Memory):
    say(memory, "old", "We moor herons here.", at=NOON - timedelta(minutes=30), project="/code/a")
    say(memory, "new", "We moor herons here.", at=NOON - timedelta(minutes=10), project="/code/a")
    say(memory, "other", "We moor herons here.", at=NOON, project="/code/b")
    assert found(memory, HERE) == "new"


def test_a_session_that_was_long_silent_is_not_the_present_one(memory: Memory):
    say(memory, "old", "We moor herons here.", at=NOON - timedelta(hours=2), project="/code/a")
    assert found(memory, HERE) == ""


def test_a_caller_in_no_project_has_no_session(memory: Memory):
    say(memory, "a", "We moor herons here.", project="/code/a")
    say(memory, "b", "We moor herons here.")
    assert found(memory, Caller()) == ""


def test_no_other_session_is_taken_for_the_one_that_a_caller_names(memory: Memory):
    say(memory, "new", "We moor herons here.", project="/code/a")
    assert found(memory, Caller(project="/code/a", session="new")) == "new"
    assert found(memory, Caller(project="/code/a", session="unheard")) == ""
