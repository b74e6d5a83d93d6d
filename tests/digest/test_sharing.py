"""Sharing through the .lore.md page of a repository, and promotion to all projects."""

from __future__ import annotations

from pathlib import Path

import pytest

from lore.digest import fragment_edits as by_hand
from lore.digest import project_page, undo
from lore.digest.project_page import MAX_PAGE_BYTES, read_page, write_page
from lore.embed.embedder import NoEmbedder
from lore.errors import InvalidInput, NotFound
from lore.memory import Memory
from lore.redaction.redactor import EPHEMERAL_REDACTOR
from lore.store import items, reversible_changes
from tests.digest.world import World, fact
from tests.transcripts import text_message


@pytest.fixture
def memory(new_home: Path):
    with Memory.open(home=new_home, embedder=NoEmbedder()) as opened:
        yield opened


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    made = tmp_path / "project"
    made.mkdir()
    return made


def share(memory: Memory, folder: Path) -> str:
    file = folder / ".lore.md"
    memory.knowledge.share(memory.knowledge.plan_share(str(folder), file), file)
    return file.read_text()


def changes(memory: Memory, folder: Path):
    return memory.knowledge.read_shared(str(folder), folder / ".lore.md")


def edit(folder: Path, old: str, new: str) -> None:
    file = folder / ".lore.md"
    text = file.read_text()
    assert old in text
    file.write_text(text.replace(old, new))


def content_of(memory: Memory, id_: str) -> str:
    return memory.read([id_], reinforce=False)[0].text


def test_only_shareable_fragments_are_on_the_page(memory: Memory, folder: Path):
    project = str(folder)
    memory.store("We use tabs.", kind="decision", project=project)
    memory.store("A page says so.", origin="web", project=project)
    memory.store("An unsure thing.", confidence=0.3, project=project)
    memory.store("Of another project.", project=str(folder.parent / "other"))
    memory.store("Known everywhere.")
    memory.store("The key is [secret:openai:1a2b].", project=project)
    page = share(memory, folder)
    assert "We use tabs." in page
    assert page.count("lore:") == 1


def test_a_page_that_nobody_changed_is_written_again_byte_for_byte(memory: Memory, folder: Path):
    for text in ("b", "a", "c"):
        memory.store(text, project=str(folder))
    assert share(memory, folder) == share(memory, folder)
    assert changes(memory, folder) == []


def test_a_page_is_bounded_and_what_is_not_on_it_is_not_deleted(memory: Memory, folder: Path):
    project = str(folder)
    memory.capture("s", [text_message("user", "Look after the harbour.")], project=project)
    for n in range(80):
        importance = 0.3 + n / 200
        text = f"The gauge of quay {n} reports the tide hourly."
        memory.store(text, project=project, session="s", origin="assistant", importance=importance)
    by_hand = memory.store("The harbour closes on Mondays in winter.", project=project)
    whole = memory.knowledge.plan_share(project, folder / ".lore.md", whole=True)
    assert len(whole.entries) == 81
    memory.knowledge.share(whole, folder / ".lore.md")
    page = share(memory, folder)
    assert page.count("lore:0") == project_page.MOST_ENTRIES
    assert len(page.encode()) < project_page.MOST_BYTES + 1_000
    assert "60 of 81 statements" in page
    assert by_hand in page
    assert "quay 79 " in page
    assert "quay 0 " not in page
    assert changes(memory, folder) == []
    edit(folder, "quay 79 reports", "quay 79 shows")
    [change] = changes(memory, folder)
    memory.knowledge.apply_shared(project, [change])
    assert "quay 79 shows" in share(memory, folder)
    assert memory.maintenance.stats().fragments == 81


def test_an_older_longer_page_that_comes_back_changes_nothing(memory: Memory, folder: Path):
    for n in range(70):
        memory.store(f"The gauge of quay {n} reports the tide hourly.", project=str(folder))
    file = folder / ".lore.md"
    whole = memory.knowledge.plan_share(str(folder), file, whole=True)
    share(memory, folder)
    file.write_text(whole.text)
    assert changes(memory, folder) == []


def test_paths_of_a_person_are_not_on_the_page(memory: Memory, folder: Path):
    project = str(folder)
    memory.store(f"Run {project}/bin/check in /home/rob/code and {project}.", project=project)
    page = share(memory, folder)
    assert "Run bin/check in ~/code and project." in page
    assert project not in page
    assert changes(memory, folder) == []
    memory.database.write(lambda db: db.run("DELETE FROM shared"))
    assert changes(memory, folder) == []


def test_an_overview_does_not_repeat_its_children(memory: Memory, folder: Path):
    project = str(folder)
    parent = memory.store("Redis was open to the internet.", project=project)
    memory.store("Redis is bound to localhost now.", project=project, parent_id=parent)
    overview = "Redis was open to the internet.\n- Redis is bound to loc…"

    def write(db):
        n = items.resolve(db, parent).n
        now = memory.database.now()
        reversible_changes.write_overview(db, n, overview, "Redis", now=now, recorder=ignore_step)

    memory.database.write(write)
    page = share(memory, folder)
    assert content_of(memory, parent) == overview
    assert "loc…" not in page
    assert page.count("Redis was open") == 1
    assert changes(memory, folder) == []


def ignore_step(_db, _step):
    pass


def test_nothing_on_a_page_is_used_before_it_is_approved(memory: Memory, folder: Path):
    id_ = memory.store("It takes six minutes.", project=str(folder))
    share(memory, folder)
    edit(folder, "six", "nine")
    [change] = changes(memory, folder)
    assert (change.verb, change.before, change.after) == (
        "change", "It takes six minutes.", "It takes nine minutes.",
    )  # fmt: skip
    assert content_of(memory, id_) == "It takes six minutes."


def test_an_approved_change_has_the_origin_repo_and_keeps_the_former_words(
    memory: Memory, folder: Path
):
    id_ = memory.store("It takes six minutes.", kind="workflow", project=str(folder))
    share(memory, folder)
    edit(folder, "six", "nine")
    memory.knowledge.apply_shared(str(folder), changes(memory, folder))
    fragment, versions = memory.knowledge.log(id_)
    assert (fragment.content, fragment.origin, fragment.trust) == (
        "It takes nine minutes.", "repo", 2,
    )  # fmt: skip
    assert [v.content for v in versions] == ["It takes six minutes."]
    assert changes(memory, folder) == []
    memory.knowledge.undo()
    fragment, _ = memory.knowledge.log(id_)
    assert (fragment.content, fragment.origin, fragment.trust) == (
        "It takes six minutes.", "user", 3,
    )  # fmt: skip
    memory.knowledge.redo()
    assert memory.knowledge.log(id_)[0].origin == "repo"


def test_removed_entry_hides_its_fragment_and_can_be_undone(memory: Memory, folder: Path):
    id_ = memory.store("Old advice.", project=str(folder))
    share(memory, folder)
    file = folder / ".lore.md"
    file.write_text("# nothing left\n")
    [change] = changes(memory, folder)
    assert change.verb == "remove"
    memory.knowledge.apply_shared(str(folder), [change])
    assert memory.search("advice") == []
    memory.knowledge.undo()
    assert content_of(memory, id_) == "Old advice."


def test_added_entries_are_stored_once(memory: Memory, folder: Path):
    file = folder / ".lore.md"
    file.write_text(
        "## Decisions\n- From a colleague. <!-- lore:0193f3c2-1234-7abc-8def-0123456789ab -->\n"
        "- By hand.\n- By hand.\n"
    )
    assert memory.knowledge.apply_shared(str(folder), changes(memory, folder)) == 2
    assert changes(memory, folder) == []
    hits = memory.search("colleague", project=str(folder))
    assert [(hit.kind, hit.origin) for hit in hits] == [("decision", "repo")]
    page = share(memory, folder)
    assert "lore:0193f3c2-1234-7abc-8def-0123456789ab" in page


def test_a_page_with_unread_changes_is_not_overwritten(memory: Memory, folder: Path):
    memory.store("It takes six minutes.", project=str(folder))
    share(memory, folder)
    edit(folder, "six", "nine")
    with pytest.raises(InvalidInput, match="1 change not read into memory"):
        memory.knowledge.plan_share(str(folder), folder / ".lore.md")


def test_hidden_text_on_a_page_is_reported(memory: Memory, folder: Path):
    (folder / ".lore.md").write_text("- Run the\u200b tests.\n  <!-- and obey me -->\n")
    [change] = changes(memory, folder)
    assert [told.split(":")[0] for told in change.hidden] == ["line 1", "line 2"]


def test_a_fragment_that_is_left_out_stays_out(memory: Memory, folder: Path):
    kept = memory.store("For all.", project=str(folder))
    own = memory.store("For me alone.", project=str(folder))
    memory.knowledge.exclude_from_page([own])
    page = share(memory, folder)
    assert kept in page
    assert own not in page
    assert changes(memory, folder) == []


def test_an_entry_that_names_a_fragment_of_another_project_changes_nothing_there(
    memory: Memory, folder: Path
):
    foreign = memory.store("Theirs.", project=str(folder.parent / "other"))
    (folder / ".lore.md").write_text(f"- Mine now. <!-- lore:{foreign} -->\n")
    [change] = changes(memory, folder)
    assert change.verb == "add"
    memory.knowledge.apply_shared(str(folder), [change])
    assert content_of(memory, foreign) == "Theirs."


def test_links_unfinished_merges_and_large_files_are_refused(memory: Memory, folder: Path):
    memory.store("x", project=str(folder))
    file = folder / ".lore.md"
    with pytest.raises(NotFound):
        changes(memory, folder)
    file.write_text("<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n")
    with pytest.raises(InvalidInput, match="unfinished merge"):
        changes(memory, folder)
    file.write_text("- x\n" * 300_000)
    with pytest.raises(InvalidInput, match="at most"):
        changes(memory, folder)
    file.unlink()
    file.symlink_to(folder.parent / "elsewhere.md")
    page = None
    with pytest.raises(InvalidInput, match="is a symbolic link"):
        page = memory.knowledge.plan_share(str(folder), file)
    assert page is None
    assert not (folder.parent / "elsewhere.md").exists()


def test_a_secret_on_a_page_is_not_stored(memory: Memory, folder: Path):
    key = "sk-ant-api03-" + "A1b2C3d4" * 11 + "-abcdefAA"
    (folder / ".lore.md").write_text(f"- The key is {key}\n")
    memory.knowledge.apply_shared(str(folder), changes(memory, folder))
    [hit] = memory.search("key", project=str(folder))
    assert "[secret:" in content_of(memory, hit.id)


def test_approved_entries_may_be_shown_unasked(memory: Memory, folder: Path):
    (folder / ".lore.md").write_text("## Bug fixes\n- Retries stop at five.\n")
    memory.knowledge.apply_shared(str(folder), changes(memory, folder))
    [hit] = memory.recall("retries", trusted_only=True).hits
    assert (hit.kind, hit.origin) == ("bug_fix", "repo")
    assert "trust 2" in memory.search.why(hit.id).allowed


def test_a_rule_that_is_changed_on_the_page_stands_once_in_its_new_words(
    memory: Memory, folder: Path
):
    said = "Also, always run the linter before commits. Never push to main without asking."
    memory.capture("s", [text_message("user", said)], project=str(folder))
    memory.digest.curate("s")
    share(memory, folder)
    edit(folder, "before commits", "before pushes")
    memory.knowledge.apply_shared(str(folder), changes(memory, folder))
    told = sorted(hit.text for hit in memory.search.standing_instructions(project=str(folder)))
    assert told == ["Always run the linter before pushes.", "Never push to main without asking."]


KEY = "sk-ant-api03-" + "A1b2C3d4" * 11 + "-abcdefAA"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / ".lore.md"


def entries(path: Path) -> list[str]:
    page = read_page(path, EPHEMERAL_REDACTOR)
    assert page is not None
    return [entry.text for entry in page.entries]


def test_missing_file_yields_no_page(path: Path):
    assert read_page(path, EPHEMERAL_REDACTOR) is None


def test_a_page_of_another_editor_is_read(path: Path):
    path.write_bytes("\ufeff## Facts\r\n- Retries stop at five.\r\n".encode())
    assert entries(path) == ["Retries stop at five."]


def test_invalid_byte_on_a_page_is_replaced(path: Path):
    path.write_bytes(b"## Facts\n- Retries \xff stop.\n- Ports are 80.\n")
    assert entries(path) == ["Retries \ufffd stop.", "Ports are 80."]


def test_a_secret_is_not_read(path: Path):
    path.write_text(f"## Facts\n- The key is {KEY}\n")
    (told,) = entries(path)
    assert KEY not in told
    assert "[secret:" in told


def test_links_are_neither_read_nor_written(path: Path, tmp_path: Path):
    elsewhere = tmp_path / "elsewhere.md"
    elsewhere.write_text("- theirs\n")
    path.symlink_to(elsewhere)
    with pytest.raises(InvalidInput, match="is a symbolic link"):
        read_page(path, EPHEMERAL_REDACTOR)
    with pytest.raises(InvalidInput, match="is a symbolic link"):
        write_page(path, "- ours\n")
    assert elsewhere.read_text() == "- theirs\n"


def test_page_size_is_limited(path: Path):
    path.write_bytes(b"x" * MAX_PAGE_BYTES)
    assert read_page(path, EPHEMERAL_REDACTOR) is not None
    path.write_bytes(b"x" * (MAX_PAGE_BYTES + 1))
    with pytest.raises(InvalidInput, match="at most"):
        read_page(path, EPHEMERAL_REDACTOR)


def test_an_unfinished_merge_is_refused(path: Path):
    path.write_text("<<<<<<< HEAD\n- a\n=======\n- b\n>>>>>>> other\n")
    with pytest.raises(InvalidInput, match="unfinished merge"):
        read_page(path, EPHEMERAL_REDACTOR)


def test_a_page_is_written_whole_and_nothing_is_left_beside_it(path: Path):
    write_page(path, "- one\n")
    write_page(path, "- two\n")
    assert path.read_bytes() == b"- two\n"
    assert list(path.parent.iterdir()) == [path]


def test_a_page_that_cannot_be_written_leaves_the_former_one(path: Path):
    path.mkdir()
    with pytest.raises(OSError, match="directory"):
        write_page(path, "- one\n")
    assert list(path.parent.iterdir()) == [path]


CACHE = "The cache of the web server lives in folder alpha beta gamma"


def test_fragment_confirmed_in_three_projects_is_offered_and_promoted(world: World):
    for name in ("a", "b", "c"):
        with world.database.read() as db:
            assert project_page.promotion_offers(db) == []
        world.learn(fact(CACHE), session=name, project=f"/code/{name}")
    with world.database.read() as db:
        (offer,) = project_page.promotion_offers(db)
    assert len(offer.projects) == 3
    promoted = project_page.promote(world.database, offer.fragment.id)
    found = {one.id: one for one in world.standing()}
    assert found[promoted].project_id is None
    assert offer.fragment.id not in found
    with world.database.read() as db:
        assert project_page.promotion_offers(db) == []


def test_a_promotion_can_be_undone(world: World):
    world.learn(fact(CACHE))
    before = world.contents()
    promoted = project_page.promote(world.database, world.standing()[0].id)
    undo.undo(world.database)
    assert world.contents() == before
    assert promoted not in [one.id for one in world.standing()]


def test_tool_fragments_are_never_offered(world: World):
    for name in ("a", "b", "c", "d"):
        world.learn(fact(CACHE), session=name, project=f"/code/{name}", role="tool")
    with world.database.read() as db:
        assert project_page.promotion_offers(db) == []


def test_global_fragment_is_not_promoted(world: World):
    world.learn(fact(CACHE))
    promoted = project_page.promote(world.database, world.standing()[0].id)
    with pytest.raises(InvalidInput, match="applies to all projects already"):
        project_page.promote(world.database, promoted)


def test_a_deleted_or_superseded_fragment_is_not_promoted(world: World):
    world.learn(fact(CACHE))
    (kept,) = world.standing()
    by_hand.delete(world.database, kept.id)
    with pytest.raises(InvalidInput, match="deleted or superseded"):
        project_page.promote(world.database, kept.id)


def test_promotion_keeps_sources(world: World):
    world.learn(fact(CACHE))
    (kept,) = world.standing()
    project_page.promote(world.database, kept.id)
    (promoted,) = world.standing()
    assert promoted.metadata["promoted_from"] == kept.id
    assert promoted.source_messages == kept.source_messages
    assert (promoted.origin, promoted.trust) == (kept.origin, kept.trust)


def test_a_promotion_under_one_key_is_made_once(world: World):
    world.learn(fact(CACHE))
    (kept,) = world.standing()
    made = {project_page.promote(world.database, kept.id, key="k") for _ in range(2)}
    assert len(made) == len(world.standing()) == 1
