"""The JSON schemas of structured answers, and their conversion into Lore's records.

Names and docstrings of the schema classes are part of the schema that is sent to the model.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar, Union

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    ValidationError,
    create_model,
    model_validator,
)

from lore import payloads
from lore.llm.chat import ChatResponse, Usage
from lore.llm.quote_check import Grounding
from lore.payloads import SCHEMAS, Payload
from lore.records import (
    UNASKED_TRUST,
    EdgeKind,
    Extract,
    FactVerdict,
    Fragment,
    FragmentKind,
)
from lore.text import sentences


class Answer(BaseModel):
    """What all forms have in common: no other fields, no other types; null is an empty field."""

    model_config = ConfigDict(extra="forbid", strict=True)

    @model_validator(mode="before")
    @classmethod
    def _drop_nulls(cls, value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        return {name: one for name, one in value.items() if one is not None}


class Filled(Answer):
    """The payload of a fact, with the name of its schema."""

    form: str


def _form(name: str, schema: type[Payload]) -> type[Filled]:
    """Return a form with all fields of a payload schema, of plain types."""
    fields: dict[str, Any] = {"form": (Literal[name], ...)}
    for field, info in schema.model_fields.items():
        if field not in Payload.model_fields:
            fields[field] = (str, "") if info.annotation is str else (list[str], [])
    title = f"{schema.__name__}Form"
    return create_model(title, __base__=Filled, __doc__=schema.__doc__, **fields)


if TYPE_CHECKING:
    Form = Filled
else:
    Form = Union[tuple(_form(*named) for named in SCHEMAS.items())]  # noqa: UP007 - of a list


class Link(Answer):
    """What a fact is to another one of the same answer."""

    kind: Literal[
        "related_to", "elaborates", "example_of", "supports", "contradicts", "derived_from"
    ]
    to: int


class Found(Answer):
    """One fact, with the numbers of the messages that say it."""

    content: str
    kind: Literal[
        "fact", "decision", "preference", "pattern", "anti_pattern", "architecture", "config",
        "workflow", "bug_fix", "skill",
    ]  # fmt: skip
    importance: Literal["high", "medium", "low"]
    sources: list[int]
    number: int = 0
    under: int = 0
    same_as: str = ""
    corrects_id: str = ""
    corrects: str = ""
    summary: str = ""
    relations: list[Link] = []
    details: str = ""
    keywords: list[str] = []
    context: str = ""
    payload: Form | None = None


class Facts(Answer):
    """The answer to `extract`."""

    facts: list[Found]


class Insight(Answer):
    """The answer to `reflect`."""

    insight: str
    from_items: list[int]


class TaughtPattern(Answer):
    """What worked in several tasks."""

    pattern: str
    from_items: list[int]
    category: str = ""
    conditions: list[str] = []
    correct_approach: str = ""
    incorrect_approach: str = ""


class TaughtWarning(Answer):
    """What fails, and what to do instead."""

    what_fails: str
    from_items: list[int]
    why: str = ""
    prevention: str = ""


class TaughtSkill(Answer):
    """Steps that led to success in several tasks."""

    name: str
    steps: list[str]
    from_items: list[int]
    description: str = ""
    prerequisites: list[str] = []
    exit_criteria: list[str] = []


class Taught(Answer):
    """The answer to `generalize`."""

    patterns: list[TaughtPattern] = []
    anti_patterns: list[TaughtWarning] = []
    skills: list[TaughtSkill] = []


class Judged(Answer):
    """What was found of one pair."""

    pair: int
    verdict: Literal["changes", "changes_part", "contradicts", "agrees"]


class Verdicts(Answer):
    """The answer to `judge`."""

    verdicts: list[Judged]


class CheckedFact(Answer):
    """What was found of one fact at the end of its session.

    `later` is what was said last about it: a model that has to look for it judges better.
    """

    fact: int
    later: str = ""
    verdict: FactVerdict


class CheckedFacts(Answer):
    """The answer to `check`."""

    verdicts: list[CheckedFact]


class Sentence(Answer):
    """One sentence of an answer, with the numbers of the items that say it."""

    text: str
    from_items: list[int]


class Reply(Answer):
    """The answer to `ask`."""

    sentences: list[Sentence]


MAX_FACTS = 10
"""Per exchange, as specified."""

MAX_DEPTH = 2
"""Depth of the most specific fact: broad, specific, and one between them."""

NO_PARENT = 0
"""The parent number of a root."""

IMPORTANCE = {"high": 0.9, "medium": 0.5, "low": 0.2}

MAX_UNTRUSTED_IMPORTANCE = IMPORTANCE["medium"]
"""What only a tool, file or web page says is no rule of a person, and not of high importance."""

_NEEDED_FIELDS = {"architecture": "decision", "config": "setting"}
"""The field of a schema that the summary of a fact fills if a chat gives no payload."""

_UNNUMBERED = 1_000_000
"""Numbers above this one are given to facts that have none."""

_MAX_CONTENT_CHARS = 2_000
_MAX_FIELD_CHARS = 1_000
_MAX_ITEMS = 12
_MAX_LINKS = 5

Clean = Callable[[str], str]


def facts_to_extracts(
    facts: Facts,
    grounds: Grounding,
    clean: Clean,
    known: Mapping[str, Fragment] | None = None,
) -> list[Extract]:
    """Convert an answer into a tree of extracts; facts without a source message are left out.

    `known` are the fragments that were shown as a whole, by label: an answer refers to no others.
    """
    by_number: dict[int, Found] = {}
    for place, fact in enumerate(facts.facts, 1):
        number = fact.number or _UNNUMBERED + place
        if fact.content.strip() and number not in by_number and len(by_number) < MAX_FACTS:
            by_number[number] = fact.model_copy(update={"number": number})
    tree = _FactTree(by_number, grounds, clean, known or {})
    return tree.build_children(None, (), 0)


class _FactTree:
    def __init__(
        self,
        facts: dict[int, Found],
        grounds: Grounding,
        clean: Clean,
        known: Mapping[str, Fragment],
    ) -> None:
        self._known = known
        self._facts = facts
        self._grounds = grounds
        self._clean = clean
        self._parents = {number: self._parent(number) for number in facts}

    def _parent(self, number: int) -> int | None:
        """Return the parent number of a fact; None if it is missing or the chain is a cycle."""
        visited = {number}
        above = self._facts[number].under
        while above in self._facts and above != NO_PARENT:
            if above in visited:
                return None
            visited.add(above)
            above = self._facts[above].under
        under = self._facts[number].under
        return under if under in self._facts and under != NO_PARENT else None

    def build_children(
        self, parent: int | None, inherited: tuple[int, ...], depth: int
    ) -> list[Extract]:
        """Return the facts below a parent, each with its own children."""
        extracts: list[Extract] = []
        for number, fact in self._facts.items():
            if self._parents[number] == parent:
                extracts += self._extract(fact, inherited, depth)
        return extracts

    def _extract(self, fact: Found, inherited: tuple[int, ...], depth: int) -> list[Extract]:
        """Return a fact; if it has no sources, return its children in its place."""
        content = self._clean(fact.content[:_MAX_CONTENT_CHARS]).strip()
        summary = self._summary(fact)
        payload = self._payload(fact, summary)
        same = self._known.get(_label(fact.same_as))
        corrected = self._known.get(_label(fact.corrects_id))
        corrects = self._field(fact.corrects) or (corrected.summary if corrected else "")
        claimed = self._grounds.existing(fact.sources) if fact.sources else inherited
        beside = " ".join([summary, corrects, *_texts(payload)])
        sources = self._grounds.fact_sources(
            content, claimed, beside=beside, known=corrected or same
        )
        below = self.build_children(fact.number, sources, min(depth + 1, MAX_DEPTH))
        if not sources or not content:
            return below
        kind, importance = self._weigh(fact, sources)
        extract = Extract(
            content,
            summary,
            kind,
            importance,
            tuple(self._grounds.id_of(number) for number in sources),
            payload,
            corrects,
            self._links(fact),
            () if depth == MAX_DEPTH else tuple(below),
            same_as=same.id if same and not corrected else "",
            corrects_id=corrected.id if corrected else "",
        )
        return [extract, *below] if depth == MAX_DEPTH else [extract]

    def _weigh(self, fact: Found, sources: Sequence[int]) -> tuple[FragmentKind, float]:
        """Return kind and importance; only people and assistants state rules and what matters."""
        importance = IMPORTANCE[fact.importance]
        if self._grounds.trust_of(sources) >= UNASKED_TRUST:
            return fact.kind, importance
        kind: FragmentKind = "fact" if fact.kind == "preference" else fact.kind
        return kind, min(importance, MAX_UNTRUSTED_IMPORTANCE)

    def _payload(self, fact: Found, summary: str) -> dict[str, Any]:
        """Return the payload; fields of a form that does not match the kind are left out."""
        payload: dict[str, Any] = {"summary": summary}
        fields = {"details": fact.details, "keywords": fact.keywords, "context": fact.context}
        if fact.payload is not None and fact.payload.form == payloads.SCHEMA_OF[fact.kind]:
            fields |= fact.payload.model_dump(exclude={"form"})
        for name, value in fields.items():
            content = self._field(value) if isinstance(value, str) else self._items(value)
            if content:
                payload[name] = content
        if needed := _NEEDED_FIELDS.get(payloads.SCHEMA_OF[fact.kind]):
            payload.setdefault(needed, summary)  # without it the fact would lose its kind
        return payload

    def _links(self, fact: Found) -> tuple[tuple[EdgeKind, str], ...]:
        links: list[tuple[EdgeKind, str]] = []
        for link in fact.relations[:_MAX_LINKS]:
            other = self._facts.get(link.to)
            if other is not None and other is not fact:
                links.append((link.kind, self._summary(other)))
        return tuple(links)

    def _summary(self, fact: Found) -> str:
        stated = sentences.one_line(self._field(fact.summary), sentences.SUMMARY_CHARS)
        return stated or sentences.summary(self._field(fact.content))

    def _field(self, text: str) -> str:
        return self._clean(text[:_MAX_FIELD_CHARS]).strip()

    def _items(self, values: Sequence[str]) -> list[str]:
        cleaned = [self._field(item) for item in values[:_MAX_ITEMS]]
        return [item for item in cleaned if item]


def _label(text: str) -> str:
    return text.strip().strip("[]")


def _texts(payload: dict[str, Any]) -> list[str]:
    texts: list[str] = []
    for value in payload.values():
        texts += [value] if isinstance(value, str) else value
    return texts


P = TypeVar("P", bound=BaseModel)

TokenCount = Annotated[int, Field(ge=0, le=10**9)]
"""A token count as providers report it; no response takes a billion."""

MAX_RESPONSE_CHARS = 400_000
"""Ten times the longest expected response."""

TRUNCATED = "The answer was cut off at its limit; answer more briefly."
REFUSED = "The answer was refused."
EMPTY = "The answer is empty."
_TOO_LONG = "The answer is too long."

_FENCED = re.compile(r"```(?:json|JSON)?[^\S\n]*\n(.*?)\n?[^\S\n]*```", re.DOTALL)
_FIELD_NAME = re.compile(r"[A-Za-z]\w{0,30}", re.ASCII)
_MAX_ERRORS = 5
_MAX_ERROR_CHARS = 160


def parse_response(
    text: str, usage: Usage, schema: type[BaseModel] | None, problem: str = ""
) -> ChatResponse:
    """Return a response with its parsed value, or with the problem it has."""
    if not problem and len(text) > MAX_RESPONSE_CHARS:
        problem = _TOO_LONG
    if not problem and not text.strip():
        problem = EMPTY
    if problem:
        return ChatResponse(text[:MAX_RESPONSE_CHARS], usage, problem=problem)
    if schema is None:
        return ChatResponse(text, usage)
    value, problem = parse_value(text, schema)
    return ChatResponse(text, usage, value, problem)


def parse_value(text: str, schema: type[BaseModel]) -> tuple[BaseModel | None, str]:
    """Return the value in a text, or a description of the problem for the model."""
    problem = ""
    for candidate in _json_candidates(text):
        try:
            return schema.model_validate_json(candidate), ""
        except ValidationError as error:
            problem = problem or _describe_errors(error)
    return None, problem


def parse_partial(body: bytes, part: type[P]) -> P | None:
    """Parse part of a JSON document, ignoring errors elsewhere in it; None if that fails."""
    try:
        return part.model_validate_json(body)
    except ValidationError:
        return None


def schema_instruction(schema: type[BaseModel]) -> str:
    """Return an instruction to answer in JSON, for providers without structured output."""
    import json

    form = json.dumps(schema.model_json_schema(), separators=(",", ":"), sort_keys=True)
    return (
        "Answer with one JSON object that fits this JSON schema, and with nothing before or"
        f" after it:\n{form}"
    )


def complete_schema(schema: type[BaseModel]) -> dict[str, Any]:
    """Return a JSON schema in which every field is required, as strict structured output wants."""
    form = schema.model_json_schema()
    for part in (form, *form.get("$defs", {}).values()):
        if "properties" in part:
            part["required"] = list(part["properties"])
            for field in part["properties"].values():
                field.pop("default", None)
    return form


def _json_candidates(text: str) -> Iterator[str]:
    stripped = text.strip()
    yield stripped
    for fenced in _FENCED.finditer(text):
        yield fenced[1]
    start, end = stripped.find("{"), stripped.rfind("}")
    if 0 <= start < end:
        yield stripped[start : end + 1]


def _path_part(step: int | str) -> str:
    plain = isinstance(step, int) or _FIELD_NAME.fullmatch(step)
    return str(step) if plain else "(a field)"


def _describe_errors(error: ValidationError) -> str:
    """Describe validation errors without quoting input: they go into logs and jobs."""
    problems = []
    for one in error.errors(include_url=False, include_context=False, include_input=False):
        place = ".".join(_path_part(step) for step in one["loc"])[:_MAX_ERROR_CHARS]
        problems.append(f"{place}: {one['msg'][:_MAX_ERROR_CHARS]}" if place else one["msg"])
    more = f" (and {len(problems) - _MAX_ERRORS} more)" if len(problems) > _MAX_ERRORS else ""
    return "The answer does not fit the schema. " + "; ".join(problems[:_MAX_ERRORS]) + more
