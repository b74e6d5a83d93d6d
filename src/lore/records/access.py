"""Access: who may use the server; and pages of what it lists."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Generic, TypeVar

from lore.records.kinds import AccessScope

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class AccessKey:
    """What is known of an access key; the key itself is with whoever was given it."""

    prefix: str
    name: str
    scopes: tuple[AccessScope, ...]
    created_at: datetime
    expires_at: datetime | None = None
    revoked_at: datetime | None = None

    def opens(self, now: datetime) -> bool:
        """Tell whether it opens anything at a moment."""
        return self.revoked_at is None and (self.expires_at is None or now < self.expires_at)


@dataclass(frozen=True, slots=True)
class Grant:
    """Who asks, and what is open to them; `browser` if a person does, by a cookie."""

    name: str
    scopes: frozenset[AccessScope]
    browser: bool = False

    def allows(self, *scopes: AccessScope) -> bool:
        """Tell whether all of this is open."""
        return "admin" in self.scopes or self.scopes.issuperset(scopes)


@dataclass(frozen=True, slots=True)
class Page(Generic[T]):
    """Some of a long list, and the cursor with which the list goes on; none at its end."""

    items: tuple[T, ...]
    next: str | None = None
