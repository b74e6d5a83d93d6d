"""A tool: its name, what it takes and gives back, and the function that does it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Annotated, Generic, Literal, TypeVar

from pydantic import AfterValidator, BaseModel, ConfigDict

from lore.memory import Memory
from lore.records import Origin
from lore.text.hidden import without_hidden

A = TypeVar("A", bound="Arguments")

Profile = Literal["core", "full"]
"""Which tools MCP lists: those an agent needs every day, or all."""


Seen = Annotated[str, AfterValidator(without_hidden)]
"""Stored text in a result: a model may be shown the data too, and what a person does not see
in it would reach only the model."""


class Arguments(BaseModel):
    """What a tool or an endpoint takes: nothing that it does not name, and each within bounds."""

    model_config = ConfigDict(extra="forbid", frozen=True, str_max_length=200_000)


class Result(BaseModel):
    """What a tool gives back as data."""

    model_config = ConfigDict(frozen=True)


@dataclass(frozen=True, slots=True)
class Caller:
    """Who calls: the folder it works in, its session, in whose name it stores, its patience."""

    project: str = ""
    session: str = ""
    origin: Origin = "assistant"
    within_s: float | None = None

    def after(self, waited_s: float) -> Caller:
        """Return the caller with what is left of its patience."""
        if self.within_s is None:
            return self
        return replace(self, within_s=max(0.0, self.within_s - waited_s))


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a tool gives back: few words for a model, and the same as data."""

    text: str
    data: Result


@dataclass(frozen=True, slots=True)
class Tool(Generic[A]):
    """One tool; `description` is read by a model, so its first sentence says when to call it."""

    name: str
    title: str
    description: str
    arguments: type[A]
    result: type[Result]
    run: Callable[[Memory, A, Caller], Outcome]
    reads_only: bool = True
    destructive: bool = False
    idempotent: bool = True
    profile: Profile = "core"
