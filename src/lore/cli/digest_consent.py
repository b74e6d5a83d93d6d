"""Ask once whether an agent's command may digest conversations, and remember the answer."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer
from typer import Context

from lore.cli import invocation
from lore.cli.output import notice, open_memory
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.records import CallEstimate

PROVIDERS = {"claude-code": "claude-cli", "codex": "codex-cli", "gemini": "gemini-cli"}
"""The provider of each agent that has a small model by default."""

_COMMANDS = {"claude-cli": "claude -p", "codex-cli": "codex exec", "gemini-cli": "gemini -p"}


def settle_consent(
    context: Context, agents: Sequence[str], answer: bool | None, *, may_ask: bool = True
) -> None:
    """Store whether an agent's command digests: the answer of an option, or of the person.

    Any stored `chat.provider` is an answer, 'offline' too. Nobody is asked twice, and only on a
    terminal; without an answer nothing is sent.
    """
    if not agents or (answer is None and not may_ask):
        return
    provider = _find_provider(agents)
    if answer and not provider:
        msg = "None of these agents' commands can digest conversations."
        raise InvalidInput(msg, hint="'--chat' needs claude-code, codex or gemini installed.")
    if answer is None:
        if not provider or _is_answered(context) or not _has_terminal():
            return
        answer = typer.confirm(_question(provider, _estimate(context)))
    _remember(context, provider if answer else "offline")


def _find_provider(agents: Iterable[str]) -> str:
    chosen = (PROVIDERS[agent] for agent in agents if agent in PROVIDERS)
    path = os.pathsep.join(os.get_exec_path())
    installed = (one for one in chosen if shutil.which(_COMMANDS[one].partition(" ")[0], path=path))
    return next(installed, "")


def _is_answered(context: Context) -> bool:
    from lore.settings import load

    loaded = load(invocation.environ(), home=context.obj)
    return any(one.key == "chat.provider" and one.source != "default" for one in loaded.values)


def _has_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def _estimate(context: Context) -> CallEstimate:
    with open_memory(context, or_empty=True) as memory:
        return memory.digest.estimate_calls()


def _question(provider: str, estimate: CallEstimate) -> str:
    """Return the question: one sentence, with what it would cost."""
    size = "a few calls for each session"
    if estimate.calls:
        size = (
            f"about {estimate.calls:,} calls a day by your last two weeks"
            f" ({estimate.sessions:g} sessions and {estimate.tokens:,} tokens a day)"
        )
    return (
        f"May Lore digest your conversations with '{_COMMANDS[provider]}', which sends their"
        f" redacted text to that agent's provider on your account, {size}; otherwise Lore digests"
        " offline?"
    )


def _remember(context: Context, provider: str) -> None:
    from lore.cli.output import load_settings
    from lore.settings import write_user_setting

    write_user_setting(load_settings(context).home, "chat.provider", provider)
    who = "Lore digests offline" if provider == "offline" else f"'{provider}' digests"
    notice(f"{who} from now on; 'lore config chat.provider' changes it.")
