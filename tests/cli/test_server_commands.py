"""Commands of a server for many people: owner, team, key, publish, and what they refuse."""

import json

import pytest

from tests.cli.conftest import Lore


@pytest.fixture
def people(lore: Lore) -> Lore:
    """Return a command line whose home has a server with two owners in a team."""
    for name in ("ann", "ben"):
        lore("owner", "add", name).works()
    lore("team", "add", "harbor").works()
    for name in ("ann", "ben"):
        lore("team", "join", "harbor", name).works()
    return lore


def test_owners_are_listed_with_their_budgets(people: Lore):
    people("owner", "budget", "ann", "2.5").works()
    lines = people("owner", "list").works().out.splitlines()
    assert [line.split()[0] for line in lines] == ["ann", "ben"]
    assert "$2.50 a day" in lines[0]
    assert "no budget" in lines[1]
    listed = json.loads(people("owner", "list", "--json").works().out)
    assert [one["name"] for one in listed] == ["ann", "ben"]


def test_a_budget_is_shown_set_and_cleared(people: Lore):
    shared = {"LORE_DAILY_BUDGET": "9"}
    for words in (("owner", "budget", "ann"), ("team", "budget", "harbor")):
        shown = f"{words[2]}: $9.00 a day (of the server)\n"
        assert people(*words, env=shared).works().out == shown
        assert people(*words).works().out == f"{words[2]}: no budget\n"
        people(*words, "2.5").works()
        assert people(*words, env=shared).works().out == f"{words[2]}: $2.50 a day\n"
        assert people(*words, "--clear", env=shared).works().out == shown
        people(*words, "1", "--clear").fails_with(2)


def test_teams_have_members_and_a_quorum(people: Lore):
    assert people("team", "members", "harbor").works().out == "ann\nben\n"
    assert "2 members  2 approvals" in people("team", "list").works().out
    people("team", "quorum", "harbor", "1").works()
    people("team", "leave", "harbor", "ben").works()
    assert "1 member  1 approval" in people("team", "list").works().out


def test_the_setting_names_the_quorum_of_new_teams(people: Lore):
    people("team", "add", "pier", env={"LORE_TEAM_QUORUM": "3"}).works()
    assert "3 approvals" in people("team", "list").works().out


def test_keys_of_the_server_are_apart_from_those_of_the_memory(people: Lore):
    secret = people("key", "create", "k", "--owner", "ann", "--expires", "12h").works().out.strip()
    people(
        "key", "create", "lead", "--owner", "ben", "--team", "harbor", "--scope", "admin"
    ).works()
    people("key", "create", "prometheus", "--operator").works()
    listed = people("key", "list", "--server").works().out
    assert "ben for harbor" in listed
    assert "operator" in listed
    assert secret not in listed
    assert people("key", "list").works().out == "No access keys.\n"
    assert "lead" not in people("key", "list", "--owner", "ann").works().out
    assert "is revoked" in people("key", "revoke", "k", "--server").works().out
    assert "revoked" in people("key", "list", "--owner", "ann").works().out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("owner", "add", "ann"), 2),
        (("owner", "budget", "nobody", "1"), 3),
        (("owner", "remove", "nobody", "--yes"), 3),
        (("team", "remove", "nobody", "--yes"), 3),
        (("team", "join", "nowhere", "ann"), 3),
        (("team", "join", "harbor", "nobody"), 3),
        (("team", "add", "harbor"), 2),
        (("key", "create", "k", "--owner", "nobody"), 3),
        (("key", "create", "k", "--owner", "ann", "--operator"), 2),
        (("key", "create", "k", "--team", "harbor"), 2),
        (("key", "create", "k", "--owner", "ann", "--expires", "soon"), 2),
        (("key", "create", "k", "--owner", "ann", "--scope", "root"), 2),
        (("key", "revoke", "nothing", "--server"), 3),
        (("publish", "ID", "--team", "harbor"), 2),
        (("team", "approve", "harbor", "ID", "--server", "ftp://x", "--key", "k"), 2),
        (("team", "publications", "harbor", "--server", "http://127.0.0.1:1", "--key", "k"), 12),
        (("backup", "--server"), 2),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(people: Lore, arguments, code: int):
    people(*arguments).fails_with(code)


def test_without_a_server_the_commands_say_how_to_begin(lore: Lore):
    for arguments in (("serve",), ("owner", "list"), ("key", "list", "--server")):
        assert "lore owner add" in lore(*arguments).fails_with(3).err


def test_a_provider_key_is_read_from_standard_input(people: Lore):
    people("team", "provider-key", "harbor", "anthropic").fails_with(2)
    stored = people("team", "provider-key", "harbor", "anthropic", stdin=b"sk-ant-x\n").works()
    assert stored.out == "harbor: keys for anthropic\n"
    removed = people("team", "provider-key", "harbor", "anthropic", "--remove").works()
    assert removed.out == "harbor: keys for no provider\n"


@pytest.mark.parametrize("kind", ["owner", "team"])
def test_removing_nobody_is_refused_before_it_asks(people: Lore, kind: str):
    refused = people(kind, "remove", "nobody", stdin=b"y\n").fails_with(3)
    assert refused.out == ""
    assert f"There is no {kind} 'nobody'" in refused.err


def test_removing_asks_first(people: Lore):
    assert "Nothing was removed" in people("owner", "remove", "ann", stdin=b"n\n").works().out
    assert "deleted now" in people("owner", "remove", "ann", stdin=b"y\n").works().out
    assert "Nothing was removed" in people("team", "remove", "harbor", stdin=b"n\n").works().out
    assert "deleted now" in people("team", "remove", "harbor", stdin=b"y\n").works().out
    assert people("team", "members", "harbor").code == 3
    assert "ann" not in people("owner", "list").works().out
