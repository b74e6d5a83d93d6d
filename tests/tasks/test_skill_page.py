"""Skills as Markdown pages: nothing is lost on the way there and back."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lore.errors import InvalidInput
from lore.tasks.skill_page import (
    CommonError,
    Section,
    SkillPage,
    format_skill,
    page_name,
    parse_skill,
)

PAGE = """\
# Skill: API Endpoint Implementation

## Prerequisites
- OpenAPI spec exists at .loki/specs/openapi.yaml
- Database schema defined

## Steps
1. Read endpoint spec from openapi.yaml
2. Create route handler in src/routes/{resource}.ts
3. Run tests, verify passing

## Common Errors & Fixes
- Missing return type: Add `: void` to handler
- Schema mismatch: Regenerate types from spec

## Exit Criteria
- All contract tests pass
- No TypeScript errors
"""

lines = st.text(st.characters(exclude_categories=("C", "Z")), min_size=1, max_size=12)
words = st.lists(lines, min_size=1, max_size=3).map(" ".join)
texts = st.lists(words, min_size=1, max_size=3).map("\n".join)
markup = st.sampled_from([
    "# a", "## Steps", "\\# b", "```", "~~~", "- x", "1. y", "a: b", "c:", "\\", "d\\: e", "  f",
    "```sh\n# comment\n## Steps\n```", "one\n\ntwo", ": g", "\\\\:",
])  # fmt: skip
items = st.one_of(texts, markup).map(str.strip).filter(bool)
pages = st.builds(
    SkillPage,
    name=words.filter(lambda name: not name.casefold().startswith("skill:")),
    steps=st.lists(items, min_size=1, max_size=12).map(tuple),
    description=st.one_of(st.just(""), items),
    prerequisites=st.lists(items, max_size=3).map(tuple),
    common_errors=st.lists(st.builds(CommonError, items, st.one_of(st.just(""), items)), max_size=3)
    .map(tuple),
    exit_criteria=st.lists(items, max_size=3).map(tuple),
    sections=st.lists(st.builds(Section, st.just("Notes"), items), max_size=2).map(tuple),
)  # fmt: skip


@given(pages)
def test_a_skill_survives_its_page(page: SkillPage) -> None:
    assert parse_skill(format_skill(page)) == page


@given(st.text())
def test_any_page_is_parsed_or_refused_and_parsed_the_same_again(text: str) -> None:
    try:
        page = parse_skill(f"# Skill: x\n{text}\n## Steps\n- {text}")
    except InvalidInput:
        return
    assert parse_skill(format_skill(page)) == page


@given(pages)
def test_a_payload_has_all_fields_of_a_skill(page: SkillPage) -> None:
    assert SkillPage.from_payload(page.to_payload()).to_payload() == page.to_payload()


def test_a_page_is_parsed() -> None:
    page = parse_skill(PAGE)
    assert page.name == "API Endpoint Implementation"
    assert page.steps[1] == "Create route handler in src/routes/{resource}.ts"
    assert page.prerequisites[1] == "Database schema defined"
    assert page.common_errors[0] == ("Missing return type", "Add `: void` to handler")
    assert page.exit_criteria == ("All contract tests pass", "No TypeScript errors")


def test_nested_lists_and_code_belong_to_their_step() -> None:
    page = parse_skill("# Deploy\n\nTo staging.\n\n## Steps\n1. Build\n   - once\n2. Run\n"
                       "   ```sh\n   # all\n   make\n   ```\n\n## Notes\nAsk Kim.\n")  # fmt: skip
    assert page.steps == ("Build\n- once", "Run\n```sh\n# all\nmake\n```")
    assert page.description == "To staging."
    assert page.sections == (("Notes", "Ask Kim."),)


def test_front_matter_names_a_skill_and_is_kept() -> None:
    text = "---\nname: deploy\ndescription: Deploys.\nlicense: MIT\n---\n\n## Steps\n- Build\n"
    page = parse_skill(text)
    assert (page.name, page.description) == ("deploy", "Deploys.")
    assert "license: MIT" in format_skill(page)
    assert parse_skill(format_skill(page)) == page


def test_paragraphs_below_steps_are_steps() -> None:
    assert parse_skill("# A\n## Steps\nBuild it.\n\nThen run it.\n").steps == (
        "Build it.",
        "Then run it.",
    )


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "needs a name"),
        ("## Steps\n- a", "needs a name"),
        ("# Skill: A\n", "no steps"),
        ("# A\n## Steps\n", "no steps"),
    ],
)
def test_a_page_without_a_name_or_a_step_is_refused(text: str, why: str) -> None:
    with pytest.raises(InvalidInput, match=why):
        parse_skill(text)


def test_a_payload_without_steps_is_refused() -> None:
    with pytest.raises(InvalidInput, match="no steps"):
        SkillPage.from_payload({"name": "A", "steps": ["", 3]})


def test_a_page_has_a_plain_file_name() -> None:
    assert page_name("API Endpoint / Implementation!") == "api-endpoint-implementation.md"
    assert page_name("../..") == "skill.md"
    assert len(page_name("\U00020000" * 300).encode()) <= 255
