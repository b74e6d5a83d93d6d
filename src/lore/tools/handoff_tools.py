"""Tools that pass work on: handoff_write, handoff_read, checkpoint."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import Field

from lore.errors import InvalidInput
from lore.memory import Memory
from lore.records import AgentLedger, Handoff
from lore.tools import tool_output
from lore.tools.tool import (
    Arguments,
    Caller,
    Outcome,
    Result,
    Seen,
    Tool,
    find_session,
    require_stored,
)

_MOST = 50
"""Entries of a list; see memory/handoffs.py."""

_CHANGES = {True: ", uncommitted changes", False: ", all committed", None: ""}
"""What a ledger says about an agent's own edits."""

Agent = Annotated[str, Field(max_length=200)]
Texts = Annotated[list[Annotated[str, Field(max_length=1_000)]], Field(max_length=_MOST)]


class HandoffWriteArguments(Arguments):
    """What handoff_write takes; lists that are left out come from the session's working state."""

    to_agent: Agent = Field("", description="Agent that goes on; else anyone.")
    from_agent: Agent = Field("", description="Your name.")
    what_was_done: str = Field(
        "", max_length=8_000, description="In full; else the working state says it."
    )
    next_steps: Texts = Field(default_factory=list, description="In order.")
    artifacts: Texts = Field(default_factory=list, description="Files, pages.")
    needs_testing: Texts = Field(default_factory=list, description="Untested.")
    known_issues: Texts = Field(default_factory=list, description="What fails or blocks.")
    decisions: Texts = Field(default_factory=list, description="With reasons.")
    relevant_patterns: Texts = Field(default_factory=list, description="Ids.")


class HandoffResult(Result):
    """A handoff."""

    id: str
    from_agent: Seen
    to_agent: Seen
    timestamp: datetime
    what_was_done: Seen
    next: tuple[Seen, ...]
    artifacts: tuple[Seen, ...]
    git_state: Seen
    needs_testing: tuple[Seen, ...]
    known_issues: tuple[Seen, ...]
    decisions: tuple[Seen, ...]
    relevant_patterns: tuple[Seen, ...]
    read_at: datetime | None = None


def write_handoff(memory: Memory, arguments: HandoffWriteArguments, caller: Caller) -> Outcome:
    """Store a handoff of the caller's session."""
    _require_project(memory, caller)
    handoff = memory.handoffs.write(
        to_agent=arguments.to_agent,
        from_agent=arguments.from_agent,
        session=find_session(memory, caller),
        project=caller.project,
        what_was_done=arguments.what_was_done,
        artifacts=arguments.artifacts,
        needs_testing=arguments.needs_testing,
        known_issues=arguments.known_issues,
        relevant_patterns=arguments.relevant_patterns,
        next_steps=arguments.next_steps,
        decisions=arguments.decisions,
        reads_folder=not caller.keyed,
    )
    whom = handoff.to_agent or "whoever starts a session in this project next"
    text = f"Stored handoff {handoff.id} for {whom}; it is given at the start of that session."
    return Outcome(text, HandoffResult.model_validate(handoff))


class HandoffReadArguments(Arguments):
    """What handoff_read takes."""

    id: str = Field("", max_length=60, description="Id.")
    to_agent: Agent = Field("", description="Your name.")


def read_handoff(memory: Memory, arguments: HandoffReadArguments, caller: Caller) -> Outcome:
    """Return a handoff, which counts as taken over from then on."""
    handoff = memory.handoffs.read(
        arguments.id, to_agent=arguments.to_agent, project=caller.project
    )
    return Outcome(format_handoff(handoff), HandoffResult.model_validate(handoff))


_NAME_TOKENS = 40
"""A name or an id on its line."""


def format_handoff(handoff: Handoff) -> str:
    """Return a handoff for a model: every line of stored text is a quote."""
    names = (handoff.from_agent or "an agent", handoff.to_agent or "any agent")
    sender, receiver = (tool_output.one_line(name, _NAME_TOKENS) for name in names)
    id_ = tool_output.one_line(handoff.id, _NAME_TOKENS)
    lines = [
        f"Handoff {id_}, {handoff.timestamp:%Y-%m-%d %H:%M} UTC. {tool_output.QUOTED}",
        f"{tool_output.QUOTE_PREFIX}From {sender} to {receiver}",
        *_section("What was done", (handoff.what_was_done,)),
        *_section("Next", handoff.next),
        *_section("Known issues", handoff.known_issues),
        *_section("Needs testing", handoff.needs_testing),
        *_section("Decisions", handoff.decisions),
        *_section("Artifacts", handoff.artifacts),
        *_section("Git", (handoff.git_state,)),
        *_section("Relevant memories; read(ids) gives them", handoff.relevant_patterns),
    ]
    return tool_output.wrap_lines(lines)


def _section(title: str, texts: tuple[str, ...]) -> list[str]:
    shown = [text for text in texts if text]
    return [f"{title}:", *(tool_output.quote_lines("\n".join(shown)))] if shown else []


class CheckpointArguments(Arguments):
    """What checkpoint takes."""

    agent: Agent = Field("", description="Your name.")
    current_task: str = Field("", max_length=1_000, description="What you are doing now.")


class CheckpointResult(Result):
    """The ledger of an agent."""

    agent_id: Seen
    last_checkpoint: datetime
    tasks_completed: int
    current_task: Seen
    current_goal: Seen
    files_modified: tuple[Seen, ...]
    uncommitted_changes: bool | None
    last_git_commit: Seen
    tech_stack: tuple[str, ...]
    patterns_learned: tuple[str, ...]


def checkpoint(memory: Memory, arguments: CheckpointArguments, caller: Caller) -> Outcome:
    """Store where the calling agent stands."""
    _require_project(memory, caller)
    session = find_session(memory, caller)
    agent = arguments.agent or memory.handoffs.agent_of(session) or caller.agent
    ledger = memory.handoffs.checkpoint(
        agent=agent,
        project=caller.project,
        session=session,
        current_task=arguments.current_task,
        reads_folder=not caller.keyed,
    )
    return Outcome(_checkpoint_text(ledger), CheckpointResult.model_validate(ledger))


def _require_project(memory: Memory, caller: Caller) -> None:
    """Refuse excluded folders, and for a key those of no project: a key registers none."""
    require_stored(memory, caller)
    if caller.keyed and caller.project and memory.sessions.find_project(caller.project) is None:
        msg = "This memory has no such project."
        raise InvalidInput(msg, hint="x-lore-project names a project of this memory.")


def _checkpoint_text(ledger: AgentLedger) -> str:
    commit = f", last commit {ledger.last_git_commit}" if ledger.last_git_commit else ""
    state = _CHANGES[ledger.uncommitted_changes]
    return (
        f"Checkpoint of {tool_output.title(ledger.agent_id)}:"
        f" {ledger.tasks_completed} tasks done, {len(ledger.files_modified)} files changed"
        f"{state}{commit}."
    )


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="handoff_write",
        title="Hand over",
        description=(
            "Call this when another agent or session should go on with your work: it gets this at"
            " its start. What you leave out comes from the working state and git."
        ),
        arguments=HandoffWriteArguments,
        result=HandoffResult,
        run=write_handoff,
        reads_only=False,
        idempotent=False,
        profile="full",
    ),
    Tool(
        name="handoff_read",
        title="Take over",
        description=(
            "Call this when you go on with another's work: gives the latest handoff here, or one"
            " by its id."
        ),
        arguments=HandoffReadArguments,
        result=HandoffResult,
        run=read_handoff,
        reads_only=False,
        idempotent=False,
        profile="full",
    ),
    Tool(
        name="checkpoint",
        title="Checkpoint",
        description=(
            "Call this to record where you stand: task, changed files, git state, what you learned."
        ),
        arguments=CheckpointArguments,
        result=CheckpointResult,
        run=checkpoint,
        reads_only=False,
        profile="full",
    ),
)
"""Tools for handing work over, in the full profile only: hooks give handoffs unasked."""
