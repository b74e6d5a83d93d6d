"""The enumerations of the domain: roles, kinds, origins, and the trust in an origin."""

from __future__ import annotations

from typing import Literal, get_args

Role = Literal["user", "assistant", "tool", "system"]
PartKind = Literal[
    "text", "reasoning", "tool_call", "tool_result", "image", "document", "aside", "opaque"
]  # fmt: skip
"""An aside is text of a program:

boot files, reminders, recalled memory; opaque is an unknown format.
"""

Origin = Literal["user", "assistant", "tool", "web", "repo", "peer"]
FragmentKind = Literal[
    "fact", "decision", "preference", "pattern", "anti_pattern", "architecture", "config",
    "workflow", "bug_fix", "skill", "episode", "insight",
]  # fmt: skip
EdgeKind = Literal[
    "hierarchical", "associative", "temporal", "supersedes", "derived_from", "related_to",
    "contradicts", "elaborates", "example_of", "supports",
]  # fmt: skip

Strength = Literal["strong", "likely", "weak", "none"]
"""How likely an answer is to answer the question."""

ItemType = Literal["message", "distillation", "fragment"]

Channel = Literal["push", "file", "gateway", "hook"]
"""A way in; a conversation may arrive on several channels and is stored once."""

Scope = Literal["all", "session", "project", "knowledge"]
SessionState = Literal["open", "idle", "closed"]
AccessScope = Literal["read", "write", "push", "admin"]
"""What an access key allows: reading, changing, capturing messages, or everything."""

InstructionState = Literal["stands", "confirmed", "suggested", "rejected"]
"""Whether a person's sentence is a rule: by its wording, by a decision, maybe, or not."""

InstructionDecision = Literal["confirmed", "rejected"]

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
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
ACCESS_SCOPES: tuple[AccessScope, ...] = get_args(AccessScope)

TRUST: dict[Origin, int] = {
    "user": 3,
    "assistant": 2,
    "repo": 1,
    "peer": 1,
    "tool": 1,
    "web": 0,
}
"""The trust in an origin; a derived fragment has the lowest trust of its sources."""

UNASKED_TRUST = 2
"""The least trust for text that is injected into prompts without a question."""

NOTE_EDGES: tuple[EdgeKind, ...] = (
    "derived_from", "related_to", "contradicts", "elaborates", "example_of", "supports",
)  # fmt: skip
"""Edges that a person or an agent adds between two fragments."""
