"""Layouts of `.loki` for tests: the example of its description, and generated ones."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import strategies as st

EPISODE = {
    "id": "ep-2026-01-06-001",
    "task_id": "task-042",
    "timestamp": "2026-01-06T10:30:00Z",
    "duration_seconds": 342,
    "agent": "eng-001-backend",
    "context": {
        "phase": "development",
        "goal": "Implement POST /api/todos endpoint",
        "constraints": ["No third-party deps", "< 200ms response"],
        "files_involved": ["src/routes/todos.ts", "src/db/todos.ts"],
    },
    "action_log": [
        {"t": 0, "action": "read_file", "target": "openapi.yaml"},
        {"t": 5, "action": "write_file", "target": "src/routes/todos.ts"},
        {"t": 120, "action": "run_test", "result": "fail", "error": "missing return type"},
        {"t": 140, "action": "edit_file", "target": "src/routes/todos.ts"},
        {"t": 180, "action": "run_test", "result": "pass"},
    ],
    "outcome": "success",
    "errors_encountered": [
        {
            "type": "TypeScript compilation",
            "message": "Missing return type annotation",
            "resolution": "Added explicit :void to route handler",
        }
    ],
    "artifacts_produced": ["src/routes/todos.ts", "tests/todos.test.ts"],
    "git_commit": "abc123",
}
PATTERN = {
    "id": "sem-001",
    "pattern": "Express route handlers require explicit return types in strict mode",
    "category": "typescript",
    "conditions": [
        "Using TypeScript strict mode",
        "Writing Express route handlers",
        "Handler doesn't return a value",
    ],
    "correct_approach": "Add `: void` to handler signature: `(req, res): void =>`",
    "incorrect_approach": "Omitting return type annotation",
    "confidence": 0.95,
    "source_episodes": ["ep-2026-01-06-001", "ep-2026-01-05-012"],
    "usage_count": 8,
    "last_used": "2026-01-06T14:00:00Z",
    "links": [
        {"to": "sem-005", "relation": "related_to"},
        {"to": "sem-012", "relation": "supersedes"},
    ],
}
SKILL = """\
# Skill: API Endpoint Implementation

## Prerequisites
- OpenAPI spec exists at .loki/specs/openapi.yaml
- Database schema defined

## Steps
1. Read endpoint spec from openapi.yaml
2. Create route handler in src/routes/{resource}.ts
3. Implement request validation using spec schema
4. Implement business logic
5. Add database operations if needed
6. Return response matching spec schema
7. Write contract tests
8. Run tests, verify passing

## Common Errors & Fixes
- Missing return type: Add `: void` to handler
- Schema mismatch: Regenerate types from spec

## Exit Criteria
- All contract tests pass
- Response matches OpenAPI spec
- No TypeScript errors
"""
LEDGER = {
    "agent_id": "eng-001-backend",
    "last_checkpoint": "2026-01-06T10:00:00Z",
    "tasks_completed": 12,
    "current_task": "task-042",
    "state": {
        "files_modified": ["src/routes/todos.ts"],
        "uncommitted_changes": True,
        "last_git_commit": "abc123",
    },
    "context": {
        "tech_stack": ["express", "typescript", "sqlite"],
        "patterns_learned": ["sem-001", "sem-005"],
        "current_goal": "Implement CRUD for todos",
    },
}
HANDOFF = {
    "id": "handoff-001",
    "from_agent": "eng-001-backend",
    "to_agent": "qa-001-testing",
    "timestamp": "2026-01-06T11:00:00Z",
    "context": {
        "what_was_done": "Implemented POST /api/todos endpoint",
        "artifacts": ["src/routes/todos.ts"],
        "git_state": "commit abc123",
        "needs_testing": ["unit tests for validation", "contract tests"],
        "known_issues": [],
        "relevant_patterns": ["sem-001"],
    },
}
INDEX = {
    "version": "1.0",
    "last_updated": "2026-01-25T10:00:00Z",
    "topics": [
        {
            "id": "auth-system",
            "summary": "JWT authentication implementation",
            "relevance_score": 0.92,
            "last_accessed": "2026-01-25T09:30:00Z",
            "token_count": 2400,
        }
    ],
    "total_memories": 47,
    "total_tokens_available": 28500,
}
TIMELINE = {
    "version": "1.0",
    "last_updated": "2026-01-25T10:00:00Z",
    "recent_actions": [
        {
            "timestamp": "2026-01-25T09:45:00Z",
            "action": "Implemented refresh token rotation",
            "outcome": "success",
            "topic_id": "auth-system",
        }
    ],
    "key_decisions": [
        {
            "decision": "Use RS256 for JWT signing",
            "rationale": "Better security for distributed verification",
            "date": "2026-01-24",
            "topic_id": "auth-system",
        }
    ],
    "active_context": {"current_focus": "auth-system", "blocked_by": [], "next_up": ["testing"]},
}
ECONOMICS = {
    "session_id": "session-2026-01-25-001",
    "metrics": {
        "discovery_tokens": 150,
        "read_tokens": 2400,
        "ratio": 0.0625,
        "savings_vs_full_load": "78%",
    },
    "breakdown": {"layer1_loads": 1, "layer1_tokens": 100, "layer3_tokens": 2400},
    "baseline_comparison": {"traditional_approach_tokens": 11500, "tokens_saved": 8950},
}
STRATEGY = {
    "query_id": "q-20260125-001",
    "timestamp": "2026-01-25T10:30:00Z",
    "retrieval_strategies": [{"type": "vector", "results": 3, "latency_ms": 45}],
    "selected_memories": ["sem-042", "ep-2026-01-20-007"],
    "outcome": "success",
    "task_completed": True,
}


def dump(value: Any) -> bytes:
    """Return a value as JSON."""
    return json.dumps(value, ensure_ascii=False).encode()


EXAMPLE: dict[str, bytes] = {
    "memory/index.json": dump(INDEX),
    "memory/timeline.json": dump(TIMELINE),
    "memory/token_economics.json": dump(ECONOMICS),
    "memory/episodic/2026-01-06/task-001.json": dump(EPISODE),
    "memory/episodic/2026-01-05/task-012.json": dump(
        EPISODE | {"id": "ep-2026-01-05-012", "outcome": "failure", "reviewed_by": ["kim"]}
    ),
    "memory/episodic/index.json": dump({"2026-01-06": ["task-001"], "2026-01-05": ["task-012"]}),
    "memory/semantic/patterns.json": dump(
        {"version": "1.0", "patterns": [
            PATTERN,
            {"id": "sem-005", "pattern": "Contract tests need a running database", "by": {"x": 1}},
            {"id": "sem-012", "pattern": "Handlers may omit return types", "confidence": 0.4},
        ]}
    ),
    "memory/semantic/anti-patterns.json": dump([
        {"what_fails": "TypeScript compilation", "why": "Missing return type annotation",
         "prevention": "Added explicit :void to route handler", "source": "ep-2026-01-06-001"},
    ]),
    "memory/semantic/facts.json": dump([{"id": "fact-1", "fact": "The API runs on port 4000."}]),
    "memory/semantic/links.json": dump([
        {"from": "sem-001", "to": "sem-005", "relation": "derived_from"},
        {"from": "sem-001", "to": "sem-012", "relation": "contradicts"},
    ]),
    "memory/skills/api-implementation.md": SKILL.encode(),
    "memory/skills/notes.md": b"Only notes, no skill.\n",
    "memory/ledgers/eng-001.json": dump(LEDGER),
    "memory/ledgers/qa-001.json": dump(LEDGER | {"agent_id": "qa-001-testing", "mood": "fine"}),
    "memory/handoffs/handoff-001.json": dump(HANDOFF),
    "memory/learnings/2026-01-06.json": dump({"date": "2026-01-06", "learnings": [
        {"type": "Lint", "message": "Unused import", "resolution": "Removed it", "task": "t-9"},
    ]}),
    "metrics/efficiency/task-042.json": dump(
        {"task_id": "task-042", "time_seconds": 342, "agents": 2, "retries": 1}
    ),
    "metrics/rewards/task-042.json": dump(
        {"task_id": "task-042", "outcome": 1.0, "efficiency": 0.7, "preference": 0.5}
    ),
    "metrics/dashboard.json": dump({"window_days": 7, "tasks": 12}),
    "metrics/memory-strategy/q-20260125-001.json": dump(STRATEGY),
}  # fmt: skip
"""Every file that the description of the layout shows, with its values."""

_words = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20)
_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | _words
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_words, inner, max_size=3),
    max_leaves=6,
)  # fmt: skip


def _records(example: dict[str, Any]) -> st.SearchStrategy[Any]:
    """Return records like the example: fields missing, strange values, unknown fields."""
    known = {name: st.one_of(st.just(value), _values) for name, value in example.items()}
    return st.builds(
        lambda fields, others: {**others, **fields},
        st.fixed_dictionaries({}, optional=known),
        st.dictionaries(_words, _values, max_size=2),
    )


def _listed(name: str, example: dict[str, Any]) -> st.SearchStrategy[Any]:
    listed = st.lists(st.one_of(_records(example), _values), max_size=4)
    return st.one_of(listed, listed.map(lambda rows: {"version": 1, name: rows}), _values)


_FILES: dict[str, st.SearchStrategy[bytes]] = {
    "memory/episodic/2026-01-06/task-001.json": _records(EPISODE).map(dump),
    "memory/episodic/index.json": _values.map(dump),
    "memory/semantic/patterns.json": _listed("patterns", PATTERN).map(dump),
    "memory/semantic/anti-patterns.json": _listed(
        "anti_patterns", {"what_fails": "x", "why": "y", "prevention": "z", "source": "e"}
    ).map(dump),
    "memory/semantic/facts.json": _listed("facts", {"fact": "f", "id": "fact-1"}).map(dump),
    "memory/semantic/links.json": _values.map(dump),
    "memory/skills/api.md": st.one_of(st.just(SKILL), st.text()).map(
        lambda text: text.encode("utf-8", "replace")
    ),
    "memory/ledgers/eng-001.json": _records(LEDGER).map(dump),
    "memory/handoffs/handoff-001.json": _records(HANDOFF).map(dump),
    "memory/learnings/2026-01-06.json": _listed(
        "learnings", {"type": "t", "message": "m", "resolution": "r"}
    ).map(dump),
    "metrics/efficiency/t.json": _records({"task_id": "t", "retries": 1}).map(dump),
    "metrics/rewards/t.json": _values.map(dump),
    "memory/other.json": st.binary(max_size=40),
}

layouts = st.fixed_dictionaries({}, optional=_FILES)
"""Layouts with any of the files, right or strange."""


_plain_words = st.text("abcdefgh äöü", min_size=1, max_size=8)
_plain_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-99, 99) | _plain_words,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_plain_words, inner, max_size=3),
    max_leaves=5,
)


def _plain_records(example: dict[str, Any]) -> st.SearchStrategy[Any]:
    known = {name: st.one_of(st.just(value), _plain_values) for name, value in example.items()}
    return st.builds(
        lambda fields, others: {**others, **fields},
        st.fixed_dictionaries({}, optional=known),
        st.dictionaries(_plain_words, _plain_values, max_size=2),
    )


def _plain_list(example: dict[str, Any]) -> st.SearchStrategy[bytes]:
    return st.lists(st.one_of(_plain_records(example), _plain_values), max_size=4).map(dump)


plain_layouts = st.fixed_dictionaries(
    {},
    optional={
        "memory/episodic/2026-01-06/task-001.json": _plain_records(EPISODE).map(dump),
        "memory/semantic/patterns.json": _plain_list(PATTERN),
        "memory/semantic/anti-patterns.json": _plain_list({"what_fails": "x", "source": "e"}),
        "memory/semantic/facts.json": _plain_list({"fact": "f", "id": "fact-1"}),
        "memory/skills/api.md": st.one_of(st.just(SKILL), _plain_words).map(str.encode),
        "memory/ledgers/eng-001.json": _plain_records(LEDGER).map(dump),
        "memory/handoffs/handoff-001.json": _plain_records(HANDOFF).map(dump),
        "memory/learnings/2026-01-06.json": _plain_list({"type": "t", "message": "m"}),
        "metrics/efficiency/t.json": _plain_records({"task_id": "t", "retries": 1}).map(dump),
    },
)
"""Layouts without what the redactor or the store changes: secrets and control characters."""


def same(one: bytes, other: bytes) -> bool:
    """Return whether two files say the same: the same bytes, or the same JSON in the same order."""
    if one == other:
        return True
    try:
        return json.dumps(json.loads(one)) == json.dumps(json.loads(other))
    except ValueError:
        return False
