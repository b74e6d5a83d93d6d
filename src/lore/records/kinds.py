"""The closed lists of the domain: roles, kinds, origins, and what trust an origin has."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["user", "assistant", "tool", "system"]
PartKind = Literal[
    "text", "reasoning", "tool_call", "tool_result", "image", "document", "aside", "opaque"
]  # fmt: skip
"""An aside is what a program put beside the talk: boot files, reminders, recalled memory; what
an agent wrote in a form that nobody knows is opaque."""

Origin = Literal["user", "assistant", "tool", "web", "repo", "peer"]
FragmentKind = Literal[
    "fact", "decision", "preference", "pattern", "anti_pattern", "architecture", "config",
    "workflow", "bug_fix", "skill", "episode", "insight",
]  # fmt: skip
EdgeKind = Literal[
    "hierarchical", "associative", "temporal", "supersedes", "derived_from", "related_to",
    "contradicts", "elaborates", "example_of", "supports",
]  # fmt: skip

ItemType = Literal["message", "distillation", "fragment"]

Channel = Literal["push", "file", "gateway", "hook"]
"""A way in: the same conversation may come in by several, and is stored once."""

Scope = Literal["all", "session", "project", "knowledge"]
SessionState = Literal["open", "idle", "closed"]
AccessScope = Literal["read", "write", "push", "admin"]
"""What an access key opens: looking and asking, changing, bringing in messages, or all of it."""

Outcome = Literal["success", "failure", "partial", "unknown"]

Storing = Literal["stored", "known", "updated"]

ROLES: tuple[Role, ...] = get_args(Role)
PART_KINDS: tuple[PartKind, ...] = get_args(PartKind)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
FRAGMENT_KINDS: tuple[FragmentKind, ...] = get_args(FragmentKind)
EDGE_KINDS: tuple[EdgeKind, ...] = get_args(EdgeKind)
ITEM_TYPES: tuple[ItemType, ...] = get_args(ItemType)
CHANNELS: tuple[Channel, ...] = get_args(Channel)
SCOPES: tuple[Scope, ...] = get_args(Scope)
ACCESS_SCOPES: tuple[AccessScope, ...] = get_args(AccessScope)

TRUST: dict[Origin, int] = {
    "user": 3,
    "assistant": 2,
    "repo": 1,
    "peer": 1,
    "tool": 1,
    "web": 0,
}
"""What an origin may do; a derived fragment has the lowest trust of what it came from."""

UNASKED_TRUST = 2
"""Only this trust and more may be put into a prompt that did not ask for it."""

NOTE_EDGES: tuple[EdgeKind, ...] = (
    "derived_from", "related_to", "contradicts", "elaborates", "example_of", "supports",
)  # fmt: skip
"""Edges that a person or an agent draws between two fragments."""
