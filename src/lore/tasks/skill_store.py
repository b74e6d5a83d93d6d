"""Skills of a person: a Markdown page stored as a fragment, and replaced by its next version."""

from __future__ import annotations

from lore.digest import fragment_edits
from lore.errors import InvalidInput
from lore.records import TRUST, Draft, Fragment, Origin
from lore.redaction.redactor import Redactor
from lore.store import project_rows, task_memories
from lore.store.database import Database
from lore.tasks.skill_page import SkillPage, format_skill, parse_skill

IMPORTANCE = 0.7
"""A person wrote it down to be used."""


def store_page(
    database: Database, text: str, *, project: str, origin: Origin, redactor: Redactor
) -> str:
    """Store the skill that a page describes, and return its id.

    The same page again changes nothing; another page of that name supersedes the former skill,
    unless that is more trusted.
    """
    page = parse_skill(redactor.redact(text))
    payload = {name: value for name, value in page.to_payload().items() if value}
    former = _find_named(database, page.name, redactor.redact(project))
    if former and former.payload == payload and former.origin == origin:
        return former.id
    if former and TRUST[origin] < former.trust:
        msg = f"Only the person can replace the skill '{page.name}'."
        raise InvalidInput(msg, hint="Give the page another title.")
    draft = Draft(
        content=content_of(page),
        summary=page.name,
        kind="skill",
        depth=0,
        importance=IMPORTANCE,
        origin=origin,
        project=project,
        payload=payload,
        metadata={"page": format_skill(page)} if page.front or page.sections else {},
    )
    if former:
        return fragment_edits.store_successor(database, draft, former.id, redactor=redactor)
    return fragment_edits.store(database, draft, redactor=redactor)


def content_of(page: SkillPage) -> str:
    """Return a skill as the text by which it is searched and given."""
    steps = "; ".join(f"{place}. {step}" for place, step in enumerate(page.steps, 1))
    described = f"{page.description.rstrip('.')}. " if page.description else ""
    return f"{page.name}: {described}{steps}"


def _find_named(database: Database, name: str, project: str) -> Fragment | None:
    with database.read() as db:
        project_n = project_rows.find_project(db, project) if project else None
        if project and project_n is None:
            return None
        named = [
            one
            for one in task_memories.lessons(db, "skill", project_n=project_n)
            if str(one.payload.get("name", "")).casefold() == name.casefold()
            and bool(one.project_id) == bool(project)
        ]
        return max(named, key=lambda one: one.trust, default=None)
