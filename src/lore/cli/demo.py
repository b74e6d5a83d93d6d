"""The command `lore demo`: seven weeks of example conversations, digested, and three answers."""

from __future__ import annotations

import json as json_module
import time
from collections import Counter
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from typer import Context, Option

from lore.cli.options import Json
from lore.cli.output import (
    bold,
    called,
    counted,
    dim,
    notice,
    one_line,
    print_columns,
    print_json,
    progress_of_parts,
)
from lore.cli.search_commands import print_answer
from lore.errors import InvalidInput

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import Answer, CycleReport, DigestResult, NewMessage
    from lore.settings import Settings

QUESTIONS = (
    "What is WORKER_MAX_ATTEMPTS now, and why was it changed?",
    "Why did guests get the same SMS twice, and how was it fixed?",
    "Which index made the arrivals query fast?",
)

_RULES_SHOWN = 4
"""Enough to show what kind of sentence is stored."""


class DemoSummary(NamedTuple):
    """Figures about the digested example conversations."""

    sessions: int
    messages: int
    digested: DigestResult
    cycle: CycleReport
    kinds: dict[str, int]
    rules: list[str]
    said_tokens: int
    spent_usd: float


def demo(
    context: Context,
    keep: Annotated[Path | None, Option(help="Keep the demo's memory in this folder.")] = None,
    json: Json = False,
) -> None:
    """Digest example conversations and answer three questions.

    It needs no key and no network, and uses a temporary memory of its own.
    """
    from tempfile import TemporaryDirectory

    from lore.memory import Memory

    if keep and keep.exists() and any(keep.iterdir()):
        msg = f"{keep} is not empty; the demo needs an empty folder."
        raise InvalidInput(msg, hint="Name a folder that is new or empty.")
    started = time.perf_counter()
    with TemporaryDirectory(prefix="lore-demo-") as scratch:
        home = keep or Path(scratch)
        with Memory.open(config=_config(context, home)) as memory:
            summary = _digest(memory, quiet=json)
            answers = [
                memory.recall(question, explain=True, limit=3, budget_tokens=420)
                for question in QUESTIONS
            ]
            took_s = time.perf_counter() - started
            if json:
                print_json({
                    "kept": summary._asdict(),
                    "answers": answers,
                    "seconds": round(took_s, 2),
                })
                return
            _show(memory, summary, answers)
            _show_costs(summary, answers, took_s)
            notice(memory.notice)
            _name_what_is_next(keep)


def _config(context: Context, home: Path) -> Settings:
    """Return the settings of the demo's home, with the user's embedding model.

    The user's chat is not called: the demo costs nothing.
    """
    from dataclasses import replace

    from lore.settings import load

    own = load(home=context.obj, project_dir=Path.cwd()).settings
    config = load(home=home, project_dir=Path.cwd()).settings
    config = replace(config, chat_provider="offline")
    if config.embed_model_path or config.embed_provider != "local":
        return config
    installed = own.models / config.embed_model
    path = own.embed_model_path or (str(installed) if installed.is_dir() else "")
    return replace(config, embed_model_path=path)


def _digest(memory: Memory, *, quiet: bool) -> DemoSummary:
    """Store the conversations, distill them, and consolidate the knowledge."""
    sessions = _sessions()
    messages = 0
    with progress_of_parts(quiet=quiet) as report:
        for number, session in enumerate(sessions, 1):
            ids = memory.capture(
                session["session"],
                [_message(message) for message in session["messages"]],
                agent=session["agent"],
                project=session["project"],
                title=session["title"],
                branch=session["branch"],
            )
            messages += len(ids)
            report("storing", number, len(sessions))
        said_tokens = memory.maintenance.stats().tokens
        memory.maintenance.embed_waiting(
            progress=lambda number, total: report("embedding", number, total)
        )
        digested = memory.digest(progress=lambda number, total: report("distilling", number, total))
        cycle = memory.digest.consolidate(
            progress=lambda phase, number, total: report(f"consolidating: {phase}", number, total)
        )
    fragments = memory.knowledge.page_of_fragments(limit=500).items
    return DemoSummary(
        sessions=len(sessions),
        messages=messages,
        digested=digested,
        cycle=cycle,
        kinds=dict(Counter(fragment.kind for fragment in fragments).most_common()),
        rules=[hit.text for hit in memory.search.standing_instructions() if hit.type == "fragment"],
        said_tokens=said_tokens,
        spent_usd=memory.budget.spent_today().spent_usd,
    )


def _sessions() -> list[dict[str, Any]]:
    from importlib import resources

    text = (resources.files("lore") / "data" / "demo-sessions.jsonl").read_text("utf-8")
    return [json_module.loads(line) for line in text.splitlines() if line]


def _message(raw: dict[str, Any]) -> NewMessage:
    from lore.records import NewMessage, Part

    return NewMessage(
        role=raw["role"],
        parts=tuple(Part(**part) for part in raw["parts"]),
        created_at=datetime.fromisoformat(raw["at"]),
    )


def _show(memory: Memory, summary: DemoSummary, answers: list[Answer]) -> None:
    print(
        f"{counted(summary.sessions, 'conversation')} of a developer with two agents over seven"
        f" weeks, {counted(summary.messages, 'message')}. Three questions:\n"
    )
    for answer in answers:
        print(bold(f"? {answer.question}"))
        print_answer(memory, answer, hints=False)  # this memory is temporary, or not the usual one
        print()


def _show_costs(summary: DemoSummary, answers: list[Answer], took_s: float) -> None:
    """Print what was stored of the conversations, and what it cost."""
    print(bold("What was kept"))
    kinds = ", ".join(_plural(count, kind) for kind, count in summary.kinds.items())
    print_columns((
        ("   messages", f"{summary.messages:,}, word for word"),
        ("   logs", f"{summary.digested.distillations:,}, one for each conversation"),
        ("   fragments", f"{sum(summary.kinds.values()):,}: {kinds}"),
        ("   rules", "always at hand, in the person's own words, such as:"),
    ))
    for rule in summary.rules[:_RULES_SHOWN]:
        print(dim(f"      · {one_line(rule, 90)}"))
    answer_tokens = sum(answer.tokens for answer in answers)
    print(bold("What it cost"))
    print_columns((
        ("   money", f"${summary.spent_usd:.2f}, with no key and no network"),
        (
            "   tokens",
            f"{answer_tokens:,} for three answers, of {summary.said_tokens:,} that were said",
        ),
        ("   time", f"{took_s:.1f} s"),
    ))


def _plural(count: int, kind: str) -> str:
    """Return a count of fragments of a kind: '4 bug fixes'."""
    name = kind.replace("_", " ")
    ending = "" if count == 1 else "es" if name.endswith(("x", "s")) else "s"
    return f"{count:,} {name}{ending}"


def _name_what_is_next(keep: Path | None) -> None:
    if keep:
        from shlex import quote

        print("\nGo on in this memory:")
        here = f"{called()} --home {quote(str(keep))}"
        print(f'   {here} recall "which date library do we use?"')
        print(f"   {here} read ID      # with an id from above")
    print("\nNow your own agents:")
    print(f"   {called()} setup")
