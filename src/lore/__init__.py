"""Lore: long-term memory and context management for AI agents."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers read it; `typing` would double the start of a hook

if TYPE_CHECKING:
    from typing import Any

    from lore.errors import LoreError
    from lore.memory import Memory
    from lore.records import (
        AccessKey,
        Answer,
        Captured,
        CaptureEstimate,
        Conflict,
        Course,
        Curated,
        CycleReport,
        DayBudget,
        Digested,
        Distillation,
        Draft,
        Edge,
        Episode,
        Fit,
        Forgettable,
        Fragment,
        FragmentVersion,
        Happening,
        Hit,
        Imported,
        Injection,
        Job,
        KeptEpisode,
        Message,
        ModelPrice,
        Names,
        NewMessage,
        Occurrence,
        Offer,
        Outline,
        Page,
        Part,
        PastTurns,
        Project,
        Provenance,
        Queues,
        Reading,
        Remembered,
        Reserved,
        Revocation,
        Session,
        SessionHit,
        Setback,
        SharedChange,
        SharedPage,
        Spend,
        SpendCounter,
        SpendLine,
        SpendPressure,
        SpendReport,
        SpentToday,
        Stats,
        Title,
        TokenUse,
        UndoneCycle,
    )
    from lore.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "AccessKey",
    "Answer",
    "CaptureEstimate",
    "Captured",
    "Conflict",
    "Course",
    "Curated",
    "CycleReport",
    "DayBudget",
    "Digested",
    "Distillation",
    "Draft",
    "Edge",
    "Episode",
    "Fit",
    "Forgettable",
    "Fragment",
    "FragmentVersion",
    "Happening",
    "Hit",
    "Imported",
    "Injection",
    "Job",
    "KeptEpisode",
    "LoreError",
    "Memory",
    "Message",
    "ModelPrice",
    "Names",
    "NewMessage",
    "Occurrence",
    "Offer",
    "Outline",
    "Page",
    "Part",
    "PastTurns",
    "Project",
    "Provenance",
    "Queues",
    "Reading",
    "Remembered",
    "Reserved",
    "Revocation",
    "Session",
    "SessionHit",
    "Setback",
    "Settings",
    "SharedChange",
    "SharedPage",
    "Spend",
    "SpendCounter",
    "SpendLine",
    "SpendPressure",
    "SpendReport",
    "SpentToday",
    "Stats",
    "Title",
    "TokenUse",
    "UndoneCycle",
    "__version__",
]

_ROOMS = {"LoreError": "lore.errors", "Memory": "lore.memory", "Settings": "lore.settings"}


def __getattr__(name: str) -> Any:
    """Bring a public name in when it is first used: `import lore` itself stays quick."""
    from importlib import import_module

    if name not in __all__:
        msg = f"module 'lore' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(import_module(_ROOMS.get(name, "lore.records")), name)
