"""Tools about strategies: the profiles that choose memories, how they did, and learning."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from lore.memory import Memory
from lore.records import Interval, ProfileReport
from lore.tools import tool_output
from lore.tools.tool import Arguments, Caller, Outcome, Result, Seen, Tool

_MOST = 20
"""Profiles of an experiment; each keeps a tenth of the sessions, so ten are already many."""


class NoArguments(Arguments):
    """What strategy_list takes: nothing."""


class ListedProfile(Result):
    """A profile, and its share of new sessions."""

    name: Seen
    description: Seen
    source: str
    share: float


class StrategiesResult(Result):
    """The mode, and all profiles."""

    mode: Literal["fixed", "random", "learn"]
    profiles: tuple[ListedProfile, ...]


def list_strategies(memory: Memory, _arguments: Arguments, _caller: Caller) -> Outcome:
    """Return the profiles with their shares."""
    state, shares = memory.strategies.state()
    result = StrategiesResult(
        mode=state.mode,
        profiles=tuple(
            ListedProfile(
                name=name,
                description=profile.description,
                source=profile.source,
                share=shares.get(name, 0.0),
            )
            for name, profile in memory.strategies.profiles().items()
        ),
    )
    lines = [
        f"{_name(one.name)} {100 * one.share:.0f} % {tool_output.one_line(one.description, 30)}"
        for one in result.profiles
    ]
    return Outcome(tool_output.wrap_lines([f"mode {result.mode}", *lines]), result)


class ReportArguments(Arguments):
    """What strategy_report takes."""

    since: str = Field("", max_length=100, description="Only newer: 2026-05-08, 'last week'.")


class Figure(Result):
    """A figure with its 95 % interval, and of how many observations it is."""

    value: float
    low: float
    high: float
    n: int


class ReportedProfile(Result):
    """The figures of one profile; null where nothing is known."""

    profile: Seen
    share: float
    sessions: int
    retrievals: int
    completion: Figure | None
    latency_ms: Figure | None
    tokens: Figure | None
    satisfaction: Figure | None
    used: Figure | None


class StrategyReport(Result):
    """How the sessions of each profile went."""

    mode: Literal["fixed", "random", "learn"]
    rollbacks: int
    profiles: tuple[ReportedProfile, ...]


def report_strategies(memory: Memory, arguments: ReportArguments, _caller: Caller) -> Outcome:
    """Return how the sessions of each profile went."""
    rows = memory.strategies.report(since=arguments.since)
    state, _ = memory.strategies.state()
    result = StrategyReport(
        mode=state.mode,
        rollbacks=state.rollbacks,
        profiles=tuple(map(ReportedProfile.model_validate, rows)),
    )
    heading = f"mode {state.mode}, rollbacks {state.rollbacks}; figures with 95 % intervals"
    return Outcome(tool_output.wrap_lines([heading, *map(_report_line, rows)]), result)


def _report_line(row: ProfileReport) -> str:
    figures = {
        "completed": row.completion,
        "latency ms": row.latency_ms,
        "tokens": row.tokens,
        "satisfied": row.satisfaction,
        "used": row.used,
    }
    known = [f"{name} {_figure(one)}" for name, one in figures.items() if one is not None]
    counts = f"{100 * row.share:.0f} %, {row.sessions} sessions"
    return ", ".join([f"{_name(row.profile)} {counts}", *known])


def _figure(one: Interval) -> str:
    return f"{one.value:.2f} ({one.low:.2f} to {one.high:.2f}, n={one.n})"


class UseArguments(Arguments):
    """What strategy_use takes."""

    profiles: list[Annotated[str, Field(min_length=1, max_length=60)]] = Field(
        min_length=1,
        max_length=_MOST,
        description="One for all sessions, or 'random' and those to compare.",
    )


class SharesResult(Result):
    """The mode, and the share of new sessions that each profile gets."""

    mode: Literal["fixed", "random", "learn"]
    shares: dict[str, float]


def use_strategy(memory: Memory, arguments: UseArguments, _caller: Caller) -> Outcome:
    """Choose the profiles of new sessions."""
    memory.strategies.choose(arguments.profiles)
    return _shares(memory)


class LearnArguments(Arguments):
    """What strategy_learn takes."""

    on: bool = Field(description="Whether shares follow the outcomes.")


def learn_strategy(memory: Memory, arguments: LearnArguments, _caller: Caller) -> Outcome:
    """Switch learning on or off."""
    memory.strategies.learn(on=arguments.on)
    return _shares(memory)


def _shares(memory: Memory) -> Outcome:
    state, shares = memory.strategies.state()
    listed = ", ".join(f"{_name(name)} {100 * share:.0f} %" for name, share in shares.items())
    text = f"Mode {state.mode}; new sessions get: {listed}."
    return Outcome(text, SharesResult(mode=state.mode, shares=shares))


def _name(profile: str) -> str:
    return tool_output.one_line(profile, 20)


TOOLS: tuple[Tool[Any], ...] = (
    Tool(
        name="strategy_list",
        title="Strategies",
        description=(
            "Call this to see the profiles by which memories are chosen for tasks, and the share"
            " of sessions that each gets."
        ),
        arguments=NoArguments,
        result=StrategiesResult,
        run=list_strategies,
        profile="full",
    ),
    Tool(
        name="strategy_report",
        title="Strategy report",
        description="Call this to see how the sessions of each profile went, with intervals.",
        arguments=ReportArguments,
        result=StrategyReport,
        run=report_strategies,
        profile="full",
    ),
    Tool(
        name="strategy_use",
        title="Use a strategy",
        description=(
            "Call this if the person wants another profile for new sessions, or an experiment:"
            " 'random' assigns sessions at random to those that follow it."
        ),
        arguments=UseArguments,
        result=SharesResult,
        run=use_strategy,
        reads_only=False,
        profile="full",
    ),
    Tool(
        name="strategy_learn",
        title="Learn a strategy",
        description=(
            "Call this if the person wants profiles that succeed to get more sessions, or no"
            " longer."
        ),
        arguments=LearnArguments,
        result=SharesResult,
        run=learn_strategy,
        reads_only=False,
        profile="full",
    ),
)
"""Tools for comparing strategies, in the full profile only."""
