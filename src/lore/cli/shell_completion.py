"""Values for shell completion, loaded when they are needed."""

from __future__ import annotations


def kinds() -> list[str]:
    """Return the kinds of fragments."""
    from lore.records import FRAGMENT_KINDS

    return list(FRAGMENT_KINDS)


def origins() -> list[str]:
    """Return the origins."""
    from lore.records import ORIGINS

    return list(ORIGINS)


def scopes() -> list[str]:
    """Return the scopes of a recall."""
    from lore.records import SCOPES

    return list(SCOPES)


def edge_kinds() -> list[str]:
    """Return the kinds of edges that can be drawn by hand."""
    from lore.records import EDGE_KINDS

    return [kind for kind in EDGE_KINDS if kind != "supersedes"]


def recipes() -> list[str]:
    """Return the ranking recipes."""
    return ["learned", "weighted", "rrf"]


def directions() -> list[str]:
    """Return the directions from a fragment."""
    return ["children", "parent", "associations"]


def setting_keys() -> list[str]:
    """Return the keys of all settings."""
    from dataclasses import fields

    from lore.settings import Settings, key_of

    return [key_of(spec.name) for spec in fields(Settings)]
