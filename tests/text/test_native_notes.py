"""The files of agents are split into notes: one statement each, with its line."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.text import native_notes
from lore.text.native_notes import find_imports, parse

MEMORY = """---
name: orders-db
description: Which database the orders use
metadata:
  node_type: memory
  type: project
  originSessionId: 7f1c
colour: green
---

We decided that orders are stored in MySQL 8. See [[deploy-host]] and [[ci]].

**Why:** the team knows it.
"""

HANDBOOK = """# Task Group: orders service
scope: storage of orders
applies_to: cwd=/code/orders; reuse_rule=same checkout

## Task 1: migrate, success

### rollout_summary_files

- <rollout_summaries/a.md> (cwd=/elsewhere, rollout_path=/y, thread_id=1)

### keywords

- orders, migration

## User preferences

- when migrating, the user asked for small commits [Task 1][Task 2]

## Failures and how to do differently

- the pool ran dry -> it was too small -> set it to 20 [Task 1]

# Task Group: anything else
scope: the rest

## Reusable knowledge

- the staging host is st-4
"""


def test_a_memory_is_one_note_with_its_type_links_and_unknown_keys():
    (note,) = parse("memory", MEMORY, "orders_db")
    assert note.text.startswith("We decided that orders are stored in MySQL 8.")
    assert note.title == "Which database the orders use"
    assert (note.type, note.kind, note.line) == ("project", "decision", 11)
    assert note.links == ("deploy-host", "ci")
    assert note.fields == {
        "name": "orders-db", "node_type": "memory", "originSessionId": "7f1c", "colour": "green",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("type_", "kind"),
    [("user", "preference"), ("feedback", "preference"), ("project", "fact"),
     ("reference", "fact"), ("", "fact"), ("odd", "fact")],
)  # fmt: skip
def test_the_type_of_a_memory_gives_its_kind(type_, kind):
    (note,) = parse("memory", f"---\ntype: {type_}\n---\nThe harbour opens at nine.", "x")
    assert note.kind == kind


def test_a_memory_without_a_body_is_its_description():
    (note,) = parse("memory", "---\nname: a\ndescription: The mail leaves at nine.\n---\n", "a")
    assert note.text == "The mail leaves at nine."


def test_an_index_has_only_the_notes_that_are_no_links():
    text = "# Memory\n\n- [DB](db.md) — which database\n- Use tabs in this repository.\n"
    assert [note.text for note in parse("index", text, "MEMORY")] == [
        "Use tabs in this repository."
    ]


def test_rules_are_split_with_their_lines_and_what_introduces_them():
    text = (
        "# Rules\n\nAnswer briefly.\n\n## Tests\nBefore a push:\n- run `just verify`\n"
        "  - all of it\n- read the diff\n\n```sh\njust verify\n```\n\n---\n\nNever skip a test.\n"
    )
    notes = parse("instructions", text, "CLAUDE")
    assert [(note.line, note.heading, note.text) for note in notes] == [
        (3, "Rules", "Answer briefly."),
        (7, "Rules › Tests", "Before a push: run `just verify`\n  - all of it"),
        (9, "Rules › Tests", "Before a push: read the diff\n\n```sh\njust verify\n```"),
        (17, "Rules › Tests", "Never skip a test."),
    ]


def test_a_long_text_and_a_listing_among_rules_are_facts():
    text = f"Use tabs here.\n\n{'It was like this. ' * 50}\n\n# Layout\n```\nsrc/ the code\n```\n"
    notes = parse("instructions", text, "CLAUDE")
    assert [note.kind for note in notes] == ["preference", "fact", "fact"]


def test_comments_and_pointers_to_imports_are_no_rules():
    text = "<!-- written by hand\nlong ago -->\nSee @docs/style.md\n\n- @more.md\n\nUse tabs here."
    notes = parse("instructions", text, "CLAUDE")
    assert [(note.text, note.line) for note in notes] == [("Use tabs here.", 7)]


def test_imports_are_found_outside_of_code_only():
    text = "See @docs/a.md, @~/.claude/b.md and a@b.md.\n`@no.md`\n```\n@neither.md\n```\n@c.md"
    assert find_imports(text) == ["docs/a.md", "~/.claude/b.md", "c.md"]


def test_the_handbook_of_codex_gives_notes_with_the_folder_of_their_group():
    notes = parse("codex", HANDBOOK, "MEMORY")
    assert [(note.kind, note.folder, note.text) for note in notes] == [
        ("preference", "/code/orders", "when migrating, the user asked for small commits"),
        ("anti_pattern", "/code/orders", "the pool ran dry -> it was too small -> set it to 20"),
        ("fact", "", "the staging host is st-4"),
    ]


def test_the_index_in_the_summary_of_codex_is_no_note():
    text = "v1\n\n## User preferences\n\n- wants small commits\n\n## What's in Memory\n\n- a b c\n"
    assert [note.text for note in parse("codex-summary", text, "memory_summary")] == [
        "wants small commits"
    ]


def test_a_line_that_leads_to_a_file_is_no_note_of_codex():
    text = "v1\n\n## General Tips\n\n- [Lore](lore-orders-1.md) — what was decided\n"
    assert parse("codex-summary", text, "memory_summary") == []


def test_a_recap_is_one_note_with_its_title_and_folder():
    text = "thread_id: 1\ncwd: /code/orders\n\n# Migrate the orders\n\nIt took two tries."
    (note,) = parse("whole", text, "recap")
    assert (note.title, note.folder) == ("Migrate the orders", "/code/orders")


def test_a_file_gives_a_bounded_number_of_bounded_notes():
    text = "\n".join(
        f"- the rule number {n} {'x' * 20_000 if n == 1 else ''}" for n in range(2_000)
    )
    notes = parse("instructions", text, "CLAUDE")
    assert len(notes) == native_notes.MAX_NOTES
    assert max(len(note.text) for note in notes) <= native_notes.MAX_CHARS


@given(st.text(alphabet="-*#:`<>!@[]() \n\tab1.", max_size=300))
def test_no_text_makes_a_parser_fail(text):
    for form in ("memory", "index", "instructions", "codex", "codex-summary", "whole"):
        assert isinstance(parse(form, text, "x"), list)
