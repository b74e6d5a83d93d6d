"""Why a statement says that something was decided, and what it was chosen over."""

from __future__ import annotations

import re
from typing import Any

from lore.llm.offline import changing

_REASON = re.compile(
    r"\b(?:because|since|so that|in order to|to avoid|to prevent)\s+(.{6,200})", re.IGNORECASE
)


def decision(text: str) -> dict[str, Any]:
    """Return a decision as a payload tells it: with its reason and the alternative, if named."""
    reason = _REASON.search(text)
    former = changing.replaced(text)
    return {
        "decision": text,
        **({"rationale": reason[1].rstrip(".")} if reason else {}),
        **({"alternatives": [former]} if former else {}),
    }
