"""Configuration files as people have them: comments, tabs, marks of other systems."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

CLAUDE_STATE = """\
{
  "numStartups": 184,
  "installMethod": "native",
  "autoUpdates": false,
  "tipsHistory": { "new-user-warmup": 3, "shift-enter": 96 },
  "oauthAccount": { "emailAddress": "ada@example.org" },
  "projects": {
    "/code/almanac": { "allowedTools": [], "mcpServers": {}, "hasTrustDialogAccepted": true }
  }
}
"""

CLAUDE_SETTINGS = """\
{
  "model": "opus",
  "permissions": {
    "allow": ["Bash(git status:*)", "Bash(just test:*)"]
  },
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "afplay /code/ding.aiff" }] }
    ],
    "PostToolUse": [
      { "matcher": "Edit|Write", "hooks": [{ "type": "command", "command": "just format" }] }
    ]
  }
}
"""

CODEX = """\
# how Ada likes it
model = "gpt-5.5"            # the big one
approval_policy = "on-request"

[mcp_servers.docs] # looks things up
command = "npx"
args = [
  "-y",
  "docs-server", # pinned in the lock file
]
env = { "TOKEN" = "x#y" }

[projects."/code/almanac"]
trust_level = "trusted"
"""

CODEX_HOOKS = """\
{
  "hooks": {
    "Stop": [
      { "hooks": [{ "type": "command", "command": "notify-send done" }] }
    ]
  }
}
"""

OPENCODE = """\
// opencode
{
\t"$schema": "https://opencode.ai/config.json",
\t/* the one that works offline */
\t"model": "local/granite",
\t"mcp": {
\t\t"docs": { "type": "remote", "url": "http://127.0.0.1:9/mcp" }, // for manuals
\t},
}
"""

CURSOR = """\
{
    "mcpServers": {
        "github": {
            "command": "docker",
            "args": ["run", "-i", "--rm", "github-mcp"]
        }
    }
}"""

GEMINI = """\
{
  "theme": "GitHub",
  "selectedAuthType": "oauth-personal",
  "mcpServers": {
    "docs": { "httpUrl": "http://127.0.0.1:9/mcp" }
  }
}
"""

FILES = {
    "claude-code": {".claude.json": CLAUDE_STATE, ".claude/settings.json": CLAUDE_SETTINGS},
    "codex": {".codex/config.toml": CODEX, ".codex/hooks.json": CODEX_HOOKS},
    "opencode": {".config/opencode/opencode.jsonc": OPENCODE},
    "cursor": {".cursor/mcp.json": CURSOR},
    "gemini": {".gemini/settings.json": GEMINI},
}
"""What each agent's person has, by the path below the home."""


def as_on_windows(text: str) -> bytes:
    """Return a text as an editor of Windows writes it."""
    return b"\xef\xbb\xbf" + text.replace("\n", "\r\n").encode()


def write(home: Path, names: Sequence[str] = tuple(FILES)) -> dict[Path, bytes]:
    """Write the files of agents into a home and return what they hold."""
    held = {}
    for name in names:
        for path, text in FILES[name].items():
            held[home / path] = text.encode()
            (home / path).parent.mkdir(parents=True, exist_ok=True)
            (home / path).write_text(text)
    return held


def turn_plugin_on(user_home: Path, project: Path | None = None) -> None:
    """Write what Claude Code writes when the plugin is installed, by a person or a project."""
    plugins = user_home / ".claude" / "plugins" / "installed_plugins.json"
    plugins.parent.mkdir(parents=True, exist_ok=True)
    plugins.write_text('{"version": 2, "plugins": {"lore@lore": [{"version": "0.1.0"}]}}')
    settings = (project or user_home) / ".claude" / "settings.json"
    settings.parent.mkdir(exist_ok=True)
    settings.write_text('{"enabledPlugins": {"lore@lore": true}}')
