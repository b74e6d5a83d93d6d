from __future__ import annotations

import json

import pytest

from lore.setup import agents
from lore.setup.launch import find_plugin
from tests.setup.files import turn_plugin_on


def test_the_plugin_and_its_marketplace_have_the_name_that_is_looked_for():
    described = json.loads((find_plugin() / ".claude-plugin" / "plugin.json").read_text())
    shop = find_plugin().parent / ".claude-plugin" / "marketplace.json"
    assert f"{described['name']}@{json.loads(shop.read_text())['name']}" == agents.PLUGIN_NAME


def test_a_plugin_is_on_once_it_is_installed(tmp_path):
    assert not agents.is_plugin_on(tmp_path)
    turn_plugin_on(tmp_path)
    assert agents.is_plugin_on(tmp_path)


def test_a_plugin_of_one_project_is_on_there_and_nowhere_else(tmp_path):
    project = tmp_path / "almanac"
    project.mkdir()
    turn_plugin_on(tmp_path, project)
    assert agents.is_plugin_on(tmp_path, project)
    assert not agents.is_plugin_on(tmp_path)


def test_the_project_decides_before_the_person(tmp_path):
    turn_plugin_on(tmp_path)
    own = tmp_path / "almanac" / ".claude" / "settings.local.json"
    own.parent.mkdir(parents=True)
    own.write_text('{"enabledPlugins": {"lore@lore": false}}')
    assert agents.is_plugin_on(tmp_path)
    assert not agents.is_plugin_on(tmp_path, tmp_path / "almanac")


@pytest.mark.parametrize(
    "held",
    [
        '{"enabledPlugins": {"lore@lore": false}}', '{"enabledPlugins": {"lore@other": true}}',
        '{"enabledPlugins": []}', "[]", "", "{ broken",
    ],
)  # fmt: skip
def test_a_plugin_that_no_setting_turns_on_is_off(tmp_path, held):
    turn_plugin_on(tmp_path)
    (tmp_path / ".claude" / "settings.json").write_text(held)
    assert not agents.is_plugin_on(tmp_path)


def test_a_plugin_that_was_uninstalled_is_off(tmp_path):
    turn_plugin_on(tmp_path)
    (tmp_path / ".claude" / "plugins" / "installed_plugins.json").write_text('{"plugins": {}}')
    assert not agents.is_plugin_on(tmp_path)
