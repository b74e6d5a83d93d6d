"""The command `lore demo`: seven weeks of example conversations, and three answers."""

from __future__ import annotations

import json as json_module
import shlex
import tempfile
import time
from dataclasses import replace
from datetime import datetime
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from lore.cli.finding import print_answer
from lore.cli.output import Json, bold, counted, notice, print_json, progress

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import Answer, NewMessage
    from lore.settings import Settings

QUESTIONS = (
    "What is WORKER_MAX_ATTEMPTS now, and why was it changed?",
    "Why did guests get the same SMS twice, and how was it fixed?",
    "Which index made the arrivals query fast?",
)


def demo(
    context: typer.Context,
    keep: Annotated[
        Path | None, typer.Option(help="Keep the demo's memory in this folder.")
    ] = None,
    json: Json = False,
) -> None:
    """Store example conversations and answer three questions.

    No key, no network; in a memory of its own that is gone afterwards.
    """
    from lore.memory import Memory

    started = time.perf_counter()
    with tempfile.TemporaryDirectory(prefix="lore-demo-") as scratch:
        home = keep or Path(scratch)
        with Memory.open(config=_config(context, home)) as memory:
            stored = _store(memory, quiet=json)
            answers = [
                memory.recall(question, explain=True, limit=3, budget_tokens=420)
                for question in QUESTIONS
            ]
            took_s = time.perf_counter() - started
            if json:
                print_json({"stored": stored, "answers": answers, "seconds": round(took_s, 2)})
                return
            _show(memory, stored, answers, took_s, keep)


def _config(context: typer.Context, home: Path) -> Settings:
    """Return the settings of the demo's home, with the models of the person's own."""
    from lore.settings import load

    own = load(home=context.obj, project_dir=Path.cwd()).settings
    config = load(home=home, project_dir=Path.cwd()).settings
    if config.embed_model_path or config.embed_provider != "local":
        return config
    installed = own.models / config.embed_model
    path = own.embed_model_path or (str(installed) if installed.is_dir() else "")
    return replace(config, embed_model_path=path)


def _store(memory: Memory, *, quiet: bool) -> dict[str, int]:
    sessions = _sessions()
    messages = 0
    with progress("storing", quiet=quiet) as report:
        for done, session in enumerate(sessions, 1):
            ids = memory.capture(
                session["session"],
                [_message(message) for message in session["messages"]],
                agent=session["agent"],
                project=session["project"],
                title=session["title"],
                branch=session["branch"],
            )
            messages += len(ids)
            report(done, len(sessions))
    with progress("embedding", quiet=quiet) as report:
        vectors = memory.embed_waiting(progress=report)
    return {"sessions": len(sessions), "messages": messages, "vectors": vectors}


def _sessions() -> list[dict[str, Any]]:
    text = (resources.files("lore") / "data" / "demo-sessions.jsonl").read_text("utf-8")
    return [json_module.loads(line) for line in text.splitlines() if line]


def _message(raw: dict[str, Any]) -> NewMessage:
    from lore.records import NewMessage, Part

    return NewMessage(
        role=raw["role"],
        parts=tuple(Part(**part) for part in raw["parts"]),
        created_at=datetime.fromisoformat(raw["at"]),
    )


def _show(
    memory: Memory,
    stored: dict[str, int],
    answers: list[Answer],
    took_s: float,
    keep: Path | None,
) -> None:
    print(
        f"Stored {counted(stored['sessions'], 'conversation')}"
        f" ({counted(stored['messages'], 'message')}, {counted(stored['vectors'], 'vector')})"
        " of a developer with two agents over seven weeks.\n"
    )
    for answer in answers:
        print(bold(f"? {answer.question}"))
        print_answer(memory, answer)
        print()
    given = sum(answer.tokens for answer in answers)
    print(
        f"Three answers cost {given:,} tokens; the conversations have"
        f" {memory.stats().tokens:,}. All of it took {took_s:.1f} s."
    )
    notice(memory.notice)
    if keep:
        print("Go on in this memory:")
        print(f'   lore --home {shlex.quote(str(keep))} recall "which date library do we use?"')
    else:
        print("Now your own:")
        print("   lore capture --all      # what your agents have kept on this machine")
        print('   lore remember "We deploy with ops/deploy.sh, never by hand"')
        print('   lore recall "how do we deploy?"')
