"""The events of an agent's session that Lore has hooks for."""

from __future__ import annotations

ANSWERED = ("SessionStart", "UserPromptSubmit", "PostToolUse", "PostToolUseFailure")
"""The events at which an agent waits for what it is given."""

TOLD = ("PreCompact", "Stop", "SubagentStop", "SessionEnd")
"""The events at which an agent tells and is given nothing."""

EVENTS = (*ANSWERED, *TOLD)
