"""Commands that are routine in a project."""

from __future__ import annotations

from lore.records import Action, Episode
from lore.tasks.routine_commands import find_routine


def _episode(*commands: str, result: str = "ok") -> Episode:
    actions = tuple(Action(0, "Bash", command, result) for command in commands)  # type: ignore[arg-type]
    return Episode("goal", "success", "", actions=actions)


def test_what_two_sessions_ran_with_success_is_routine() -> None:
    episodes = [
        _episode("cd /app && bun run lint 2>&1 | tail -20", "bun run test", "ls -la src"),
        _episode("bun run lint", "git status && bun run test", "bun run once"),
        _episode("bun run lint"),
        _episode("bun run broken", result="failed"),
        _episode("bun run broken", result="failed"),
    ]
    assert find_routine(episodes, "add a page") == ["bun run lint", "bun run test"]


def test_what_the_goal_names_is_left_out() -> None:
    episodes = [_episode("bun run lint", "bun run test")] * 2
    assert find_routine(episodes, "fix it, then run `bun run lint`") == ["bun run test"]


def test_a_command_with_a_file_of_its_task_counts_without_it() -> None:
    episodes = [_episode("go test ./src/a/b.go"), _episode("go test -run /app/x ./...")]
    assert find_routine(episodes, "") == []
    longer = [
        _episode("mise run test"),
        _episode("mise run test --race"),
        _episode("mise run test"),
    ]
    assert find_routine([*longer, _episode("mise run test --race")], "") == ["mise run test"]


def test_quoted_text_and_everyday_programs_are_no_routine() -> None:
    episodes = [_episode("grep -n 'a|b c' x.go", "git log --oneline", 'python3 -c "pass"')] * 3
    assert find_routine(episodes, "") == []
