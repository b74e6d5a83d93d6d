"""Lore: long-term memory and context management for AI agents."""

from __future__ import annotations

TYPE_CHECKING = False  # as type checkers read it; `typing` would double the start of a hook

if TYPE_CHECKING:
    from typing import Any

    from lore.errors import LoreError
    from lore.memory import Memory
    from lore.records import (
        Answer,
        CaptureResult,
        Distillation,
        Draft,
        Edge,
        Episode,
        Fragment,
        Hit,
        Injection,
        Message,
        NewMessage,
        Part,
        Project,
        RememberResult,
        Session,
        Stats,
    )
    from lore.settings import Settings

__version__ = "0.1.0"

__all__ = [
    "Answer",
    "CaptureResult",
    "Distillation",
    "Draft",
    "Edge",
    "Episode",
    "Fragment",
    "Hit",
    "Injection",
    "LoreError",
    "Memory",
    "Message",
    "NewMessage",
    "Part",
    "Project",
    "RememberResult",
    "Session",
    "Settings",
    "Stats",
    "__version__",
]

_MODULES = {"LoreError": "lore.errors", "Memory": "lore.memory", "Settings": "lore.settings"}

_RENAMED = {
    "Captured": "CaptureResult",
    "Course": "RequestOutcome",
    "Curated": "CurationResult",
    "Digested": "DigestResult",
    "Fit": "PromptCandidate",
    "Forgettable": "ForgetPreview",
    "Happening": "FragmentEvent",
    "Imported": "ImportResult",
    "KeptEpisode": "StoredEpisode",
    "Names": "NameMatches",
    "Occurrence": "TimelineEntry",
    "Offer": "PromotionOffer",
    "Remembered": "RememberResult",
    "Reserved": "RequestHold",
    "Setback": "JobFailure",
    "UndoneCycle": "CycleUndo",
}
"""Former names of records, which programs may still import."""


def __getattr__(name: str) -> Any:
    """Import a public name when it is first used, so that `import lore` stays quick.

    Other records are found here too, for programs that import them from `lore`.
    """
    if not name[:1].isupper():  # a submodule, or nothing: importing the records takes 70 ms
        msg = f"module 'lore' has no attribute {name!r}"
        raise AttributeError(msg)
    from importlib import import_module

    new_name = _RENAMED.get(name, name)
    module = import_module(_MODULES.get(name, "lore.records"))
    if not hasattr(module, new_name):
        msg = f"module 'lore' has no attribute {name!r}"
        raise AttributeError(msg)
    return getattr(module, new_name)
