"""The gateway's address in the files of agents: put in once, known again, taken out to the byte."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.errors import InvalidInput
from lore.setup import config_changes
from lore.setup.agents import editor_of, get_agent
from lore.setup.gateway_address import ADDRESS_KEYS, GatewayAddress, with_gateway
from tests.setup.files import FILES, as_on_windows, write

LORE = ("/code/bin/lore",)
URL, MOVED, OTHER = "http://127.0.0.1:3207", "http://127.0.0.1:4100", "http://127.0.0.1:4000"
EVERY = pytest.mark.parametrize("name", list(ADDRESS_KEYS))
FILE = {
    "claude-code": ".claude/settings.json",
    "codex": ".codex/config.toml",
    "opencode": ".config/opencode/opencode.jsonc",
}


class Person:
    """A home with the files of an agent, and a home of Lore."""

    def __init__(self, place: Path, name: str) -> None:
        self.agent = get_agent(name)
        self.place, self.lore = place / "person", place / "lore"
        self.place.mkdir()
        self.held = write(self.place, [name])
        self.file = self.place / FILE[name]

    def plan(self, url: str = "", *, undo: bool = False, memory: bool = True):
        address = GatewayAddress(url, config_changes.stored_addresses(self.lore, self.agent))
        edits = self.agent.edits(self.place, LORE)
        edits = with_gateway(self.agent.name, edits, address, puts=bool(url), memory=memory)
        return (config_changes.plan_undo if undo else config_changes.plan)(
            self.lore, self.agent, edits
        )

    def set_up(self, url: str = "", *, memory: bool = True):
        changes = self.plan(url, memory=memory)
        config_changes.apply(self.lore, self.agent, changes, undo=False, address=url)
        return changes

    def undo(self) -> None:
        config_changes.apply(self.lore, self.agent, self.plan(undo=True), undo=True)

    def addresses(self) -> list[str]:
        text = self.file.read_text("utf-8-sig")
        return [
            editor_of(self.file).read(text, spot.place) for spot in ADDRESS_KEYS[self.agent.name]
        ]

    def is_as_before(self) -> bool:
        return all(path.read_bytes() == content for path, content in self.held.items())

    def add_remark(self) -> None:
        """Change the file as its owner does later."""
        mark = "# mine, later\n" if self.file.suffix == ".toml" else "// mine, later\n"
        for path in self.held:
            if path == self.file:
                path.write_text(mark + path.read_text())
                self.held[path] = mark.encode() + self.held[path]


def expected(name: str, url: str) -> list[str]:
    return [url + spot.below for spot in ADDRESS_KEYS[name]]


@pytest.fixture
def person(name, tmp_path):
    return Person(tmp_path, name)


@EVERY
def test_the_address_is_written_beside_the_server_entry(name, person):
    without = person.plan()
    person.set_up(URL)
    assert person.addresses() == expected(name, URL)
    assert config_changes.is_set_up(person.plan())
    assert not config_changes.is_set_up(without)


@EVERY
def test_setup_is_idempotent_and_undo_restores_the_bytes(name, person):
    person.set_up(URL)
    assert config_changes.is_set_up(person.set_up(URL))
    person.undo()
    assert person.is_as_before()
    assert not list((person.lore / config_changes.FOLDER).iterdir())


@EVERY
def test_undo_restores_the_bytes_of_unusual_files(name, person):
    for path in person.held:
        person.held[path] = as_on_windows(path.read_text()) + b"\r\n\r\n"
        path.write_bytes(person.held[path])
    person.set_up(URL)
    assert person.addresses() == expected(name, URL)
    person.undo()
    assert person.is_as_before()


@EVERY
def test_nothing_of_the_user_is_lost(name, person):
    person.set_up(URL)
    kept = [line.rstrip(",") for line in FILES[name][FILE[name]].splitlines()]
    assert all(line in person.file.read_text() for line in kept)


@EVERY
@pytest.mark.parametrize("again", [False, True], ids=["once", "and again without the gateway"])
def test_undo_removes_the_address_and_keeps_later_changes(name, person, again):
    person.set_up(URL)
    person.add_remark()
    if again:
        person.set_up()
        assert person.addresses() == expected(name, URL)
        person.add_remark()
    person.undo()
    assert person.is_as_before()


@EVERY
def test_a_new_port_replaces_the_former_address(name, person):
    person.set_up(URL)
    person.add_remark()
    person.set_up(MOVED)
    assert person.addresses() == expected(name, MOVED)
    person.undo()
    assert person.is_as_before()


@EVERY
def test_an_address_of_the_user_is_not_replaced(name, person):
    theirs = with_gateway(
        name, person.agent.edits(person.place, LORE), GatewayAddress(OTHER), puts=True
    )
    [edit] = [edit for edit in theirs if edit.path == person.file]
    person.file.write_text(edit.put(person.file.read_text()))
    before = person.file.read_bytes()
    with pytest.raises(InvalidInput, match=OTHER) as caught:
        person.plan(URL)
    assert "gateway.anthropic_url" in (caught.value.hint or "")
    assert person.file.read_bytes() == before
    person.set_up()
    person.undo()
    assert person.addresses() == expected(name, OTHER)


@EVERY
def test_an_address_that_the_user_wrote_later_is_kept(name, person):
    person.set_up(URL)
    person.file.write_text(person.file.read_text().replace(URL, OTHER))
    person.undo()
    assert person.addresses() == expected(name, OTHER)


def test_an_agent_with_the_plugin_gets_only_the_address(tmp_path):
    person = Person(tmp_path, "claude-code")
    person.set_up(URL, memory=False)
    assert person.addresses() == [URL]
    assert "lore" not in person.file.read_text().replace("LORE", "")
    person.undo()
    assert person.is_as_before()


def test_an_agent_without_an_address_key_still_gets_memory(tmp_path):
    edits = get_agent("cursor").edits(tmp_path, LORE)
    [told] = with_gateway("cursor", edits, GatewayAddress(URL), puts=True)
    assert told.put("{}") == edits[0].put("{}")
