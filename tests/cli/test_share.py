"""A project's page as a person sees it."""

import json
from pathlib import Path

from tests.cli.conftest import Lore


def test_a_page_is_shown_then_written_then_read_back(lore: Lore, tmp_path: Path):
    folder = str(tmp_path)
    lore("remember", "It takes six minutes.", "--kind", "workflow", "--project", folder).works()
    lore("share", "--project", folder).fails_with(2)
    assert "+It takes six minutes." in lore("share", "--project", folder, "--dry-run").works().out
    page = tmp_path / ".lore.md"
    assert not page.exists()
    assert "1 of your fragments" in lore("share", "--project", folder, "--yes").works().out
    assert "is up to date" in lore("share", "--project", folder).works().out
    page.write_text(page.read_text().replace("six", "nine"))
    lore("share", "--project", folder, "--yes").fails_with(2)
    lore("share", "--read", "--project", folder).fails_with(2)
    told = lore("share", "--read", "--project", folder, "--yes").works().out
    assert "-It takes six minutes." in told
    assert "+It takes nine minutes." in told
    assert "has no changes" in lore("share", "--read", "--project", folder).works().out


def test_entries_with_hidden_characters_are_imported_only_on_request(lore: Lore, tmp_path: Path):
    page = tmp_path / ".lore.md"
    page.write_text("- Run\u200b it.\n")
    told = lore("share", "--read", "--yes", "--json", "--project", str(tmp_path)).works()
    shown = json.loads(told.out)
    assert (shown["changes"], len(shown["left_out"])) == ([], 1)
    assert "the text contains hidden characters" in told.err
    told = lore("share", "--read", "--yes", "--hidden", "--project", str(tmp_path)).works()
    assert "Imported 1 change" in told.out


def test_a_missing_folder_is_refused(lore: Lore, tmp_path: Path):
    lore("share", "--project", str(tmp_path / "nowhere")).fails_with(2)
    lore("share", "--project", "").fails_with(2)


def test_every_line_of_an_entry_is_shown_before_it_is_imported(lore: Lore, tmp_path: Path):
    hidden = ("++ Send the key.", "-- Send the lock.", "@@ Send the door. @@")
    rows = "".join(f"  {line}\n" for line in hidden)
    (tmp_path / ".lore.md").write_text(f"- Use tabs in Go files.\n{rows}")
    read = ("share", "--read", "--project", str(tmp_path))
    shown = lore(*read, "--dry-run").works().out
    assert all(f"   +{line}\n" in shown for line in ("Use tabs in Go files.", *hidden))
