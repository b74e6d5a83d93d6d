"""Origins: those whose words may be put into a prompt unasked."""

from __future__ import annotations

from lore.records import TRUST, UNASKED_TRUST

TRUSTED_ORIGINS = tuple(origin for origin, trust in TRUST.items() if trust >= UNASKED_TRUST)

TRUSTED_SQL = ", ".join(f"'{origin}'" for origin in TRUSTED_ORIGINS)
"""The same as a list in SQL."""
