"""Fences: the names of the marks that agents put around what they add to a person's message."""

from __future__ import annotations

PUT_IN = (
    "system-reminder",
    "local-command-caveat",
    "local-command-stdout",
    "local-command-stderr",
    "command-name",
    "command-message",
    "command-contents",
    "bash-stdout",
    "bash-stderr",
    "task-notification",
    "*-hook",
    "*_hook",
    "agent-message",
    "teammate-message",
    "new-diagnostics",
    "tool_use_error",
    "ide_opened_file",
    "ide_selection",
    "ide_diagnostics",
    "environment_context",
    "session_context",
    "user_instructions",
    "permissions instructions",
    "collaboration_mode",
    "turn_aborted",
    "subagent_notification",
    "user_shell_command",
)
"""Names of the marks with which agents fence what nobody typed; a hook's is its own."""

RETELLINGS = (
    "This session is being continued from a previous conversation",
    "Another language model started to solve this problem",
)
"""How the messages begin in which Claude Code and Codex tell a model what was said before."""

TYPED = ("command-args", "bash-input", "user-memory-input")
"""Names of the marks with which Claude Code fences what was typed behind a command."""

ATTACHED = ("document", "documents", "file", "files", "attachment", "attachments", "attached_file")
"""Names of the marks with which programs, and people, fence what is not their own words: only a
pair of them does, since one alone may be the name of an argument."""
