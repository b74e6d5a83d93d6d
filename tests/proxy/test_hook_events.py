from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

from lore.http import hooks
from lore.proxy.hook_client import HOOK_EVENTS

PLUGIN = Path(__file__).parents[2] / "plugins" / "claude-code" / "hooks" / "hooks.json"


def test_the_server_takes_each_event_and_no_other():
    assert get_args(hooks.Event) == HOOK_EVENTS


def test_the_plugin_has_a_hook_for_each_event_and_no_other():
    hooks = json.loads(PLUGIN.read_text())["hooks"]
    assert tuple(hooks) == HOOK_EVENTS
    for event, entries in hooks.items():
        assert [one["command"] for entry in entries for one in entry["hooks"]] == [
            f"lore hook {event}"
        ]
