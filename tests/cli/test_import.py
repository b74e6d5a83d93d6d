"""Imports of what is no export, or only half of one."""

import json
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from tests.cli.conftest import Lore, Seeded

HEADER = b'{"lore":1}\n'

GARBAGE = {
    "nothing but noise": bytes(range(256)) * 100,
    "a chat export": b'{"messages": [{"role": "user", "content": "hi"}]}\n',
    "csv": b"id,text\n1,hello\n",
    "a list": b"[1, 2, 3]\n",
    "a newer format": b'{"lore":2}\n',
    "an unknown record": HEADER + b'{"record":"cake"}\n',
    "a record that is a list": HEADER + b'{"record":[]}\n',
    "a record without anything": HEADER + b'{"record":"fragment"}\n',
    "a record that is no object": HEADER + b"5\n",
    "an item of nothing": HEADER + b'{"record":"message","id":"x","session_id":null}\n',
    "a huge line": HEADER + b'{"record":"' + b"x" * 5_000_000 + b'"}\n',
    "a deep line": HEADER + b'{"record":' + b"[" * 5_000 + b"]" * 5_000 + b"}\n",
}


@pytest.mark.parametrize("data", GARBAGE.values(), ids=GARBAGE)
def test_a_file_that_is_no_export_is_refused_and_loses_nothing(seeded: Seeded, data: bytes):
    before = seeded.export()
    seeded("import", "-", "--trust", stdin=data).fails_with(2)
    assert seeded.export() == before


def test_an_empty_import_adds_nothing(seeded: Seeded):
    assert "0 records imported" in seeded("import", "-").works().out


def test_an_export_is_imported_completely(seeded: Seeded, tmp_path: Path):
    file = tmp_path / "all.jsonl"
    seeded("export", str(file)).works()
    other = Lore(tmp_path / "other")
    brought = other("import", str(file), "--trust").works()
    assert (brought.out, brought.err) == ("4 records imported, 0 skipped.\n", "")
    assert other.export() == seeded.export()
    again = other("import", str(file), "--trust").works().out
    assert again == "0 records imported, 4 skipped.\n"


def test_an_own_export_needs_no_trust_option(seeded: Seeded):
    lines = seeded("export").works().out.encode()
    seeded("forget", seeded.child, "--yes").works()
    gone = seeded.export()
    brought = seeded("import", "-", stdin=lines).works()
    assert "skipped." in brought.out
    assert "--trust" not in brought.err
    assert seeded.export() == gone


def test_an_export_of_another_home_needs_a_trust_option(seeded: Seeded, tmp_path: Path):
    other, lines = Lore(tmp_path / "other"), seeded("export").works().out.encode()
    assert "'--trust' if it is yours" in other("import", "-", stdin=lines).fails_with(2).err
    assert other.export() == set()
    brought = other("import", "-", "--no-trust", stdin=lines).works().out
    assert brought == "4 records imported as a peer's, 0 skipped.\n"
    [hit, *_] = json.loads(other("recall", "deploys", "--json").works().out)["hits"]
    assert "said by peer" in other("why", hit["id"]).works().out


def test_a_second_import_completes_an_interrupted_one(seeded: Seeded, tmp_path: Path):
    seeded("export", str(tmp_path / "all.jsonl")).works()
    whole = (tmp_path / "all.jsonl").read_bytes()
    other = Lore(tmp_path / "other")
    other("import", "-", "--trust", stdin=whole[: len(whole) - 140]).fails_with(2)
    other("import", "-", "--trust", stdin=whole).works()
    assert other.export() == seeded.export()


def test_a_folder_and_a_missing_file_are_no_exports(seeded: Seeded, tmp_path: Path):
    seeded("import", str(tmp_path)).fails_with(2)
    seeded("import", str(tmp_path / "none")).fails_with(3)


JUNK = st.one_of(
    st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=5),
    st.lists(st.integers(), max_size=2), st.dictionaries(st.text(max_size=3), st.none()),
)  # fmt: skip


def changed(lines: list[dict[str, object]], row: int, name: str, junk: object) -> bytes:
    """Return an export in which one field of one record is something else."""
    copies = [{**line, name: junk} if at == row else line for at, line in enumerate(lines)]
    return "\n".join(json.dumps(line) for line in copies).encode()


def test_no_changed_field_causes_a_traceback(
    seed: Seeded, tmp_path_factory: pytest.TempPathFactory
):
    lines = [json.loads(line) for line in seed("export").works().out.splitlines()]
    spots = [(row, name) for row, line in enumerate(lines) if row for name in line]

    @given(st.sampled_from(spots), JUNK)
    @settings(
        max_examples=40,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    def check(spot: tuple[int, str], junk: object):
        lore = Lore(tmp_path_factory.mktemp("import"))
        outcome = lore("import", "-", "--trust", stdin=changed(lines, *spot, junk))
        assert outcome.code in (0, 2, 4), outcome

    check()


@pytest.mark.parametrize(("name", "junk"), [("relevance", ""), ("valid_from", "soon")])
def test_imported_items_can_be_read(seed: Seeded, lore: Lore, name: str, junk: object):
    lines = [json.loads(line) for line in seed("export").works().out.splitlines()]
    lore("import", "-", "--trust", stdin=changed(lines, 1, name, junk)).fails_with(2)


def test_the_knowledge_of_another_memory_is_imported_as_a_peers(tmp_path: Path):
    lore = Lore(tmp_path / "home")
    notes = tmp_path / "notes"
    notes.mkdir()
    (notes / "Tea.md").write_text("# Tea\n\n- [method] Steep it #brew\n")
    command = ("import", "--from", "basic-memory", str(notes))
    assert "3 records imported as a peer's" in lore(*command).works().out
    assert "0 records imported" in lore(*command).works().out
    lore("import", "--from", "cake", str(notes)).fails_with(2)
