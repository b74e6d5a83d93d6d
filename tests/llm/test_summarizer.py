from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import lore.llm
from lore.errors import ProviderUnavailable
from lore.llm import OpenedSummarizer, open_summarizer
from lore.llm.chat import ChatMessage, ChatRequest, LazyChat
from lore.llm.presets import PRESETS, check_base_url, resolve_provider
from lore.settings import USUAL_KEYS, Settings, load
from tests.llm.fakes import CountingLedger, ScriptedChat, summarizer

OFFLINE = summarizer(ScriptedChat())

LOADED = """
import sys
from lore.llm import open_summarizer
from lore.settings import Settings
opened = open_summarizer(Settings(chat_provider=sys.argv[1], chat_model="m", chat_api_key="k"),
                       offline=None, ledger=None)
print(opened.summarizer.identity if opened.summarizer else "offline", opened.notice, sep="|")
print(sorted({"anthropic", "openai", "httpx2", "genai_prices", "pydantic"} & set(sys.modules)))
"""


def open_with(tmp_path: Path, **settings: Any) -> OpenedSummarizer:
    return open_summarizer(
        Settings(home=tmp_path, **settings), offline=OFFLINE, ledger=CountingLedger()
    )


def run(provider: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOADED, provider], capture_output=True, text=True, check=True
    )
    return done.stdout.splitlines()


def test_the_package_exports_its_names_in_order():
    assert lore.llm.__all__ == sorted(lore.llm.__all__)


def test_offline_is_the_default_and_needs_no_notice(tmp_path):
    assert open_with(tmp_path) == OpenedSummarizer(OFFLINE, "")


def test_the_offline_provider_imports_no_sdk():
    assert run("offline") == ["offline|", "[]"]


@pytest.mark.parametrize("provider", PRESETS)
def test_opening_a_chat_imports_no_sdk(provider):
    assert run(provider) == [f"{provider}:m|", "['pydantic']"]


def test_an_api_key_in_the_environment_selects_no_provider(tmp_path):
    environ = dict.fromkeys(USUAL_KEYS.values(), "sk-lies-about")
    loaded = load(environ, home=tmp_path)
    assert loaded.settings.chat_provider == "offline"
    assert loaded.settings.chat_api_key == ""


@pytest.mark.parametrize(("provider", "variable"), USUAL_KEYS.items())
def test_a_selected_provider_reads_its_usual_api_key(tmp_path, provider, variable):
    environ = {"LORE_CHAT_PROVIDER": provider, **dict.fromkeys(USUAL_KEYS.values(), "other")}
    environ[variable] = "mine"
    loaded = load(environ, home=tmp_path)
    assert loaded.settings.chat_api_key == "mine"
    (value,) = [one for one in loaded.values if one.key == "chat.api_key"]
    assert (value.source, value.secret) == (variable, True)
    environ["LORE_CHAT_API_KEY"] = "set"
    assert load(environ, home=tmp_path).settings.chat_api_key == "set"


def test_a_project_sets_no_chat_and_no_budget(tmp_path):
    keys = ["provider", "model", "base_url", "api_key", "timeout_s"]
    chat = ", ".join(f'"{key}": "x"' for key in keys)
    (tmp_path / ".lore.json").write_text(f'{{"chat": {{{chat}}}, "daily_budget": 1000}}')
    loaded = load({}, home=tmp_path, project_dir=tmp_path)
    assert loaded.settings.chat_provider == "offline"
    assert loaded.settings.daily_budget is None
    assert loaded.settings.background_daily_budget == 1.0
    assert "which only the user may set" in loaded.warning


def test_the_budget_is_set_by_its_own_variable(tmp_path):
    assert load({"LORE_DAILY_BUDGET": "2.5"}, home=tmp_path).settings.daily_budget == 2.5


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({"chat_provider": "anthropic"}, "needs an API key"),
        ({"chat_provider": "openai"}, "needs an API key"),
        ({"chat_provider": "ollama"}, "has no default model"),
        ({"chat_provider": "openrouter", "chat_api_key": "k"}, "has no default model"),
        ({"chat_provider": "openai", "chat_api_key": "k\u00e9"}, "no API key has"),
        (
            {"chat_provider": "openai", "chat_api_key": "k", "chat_base_url": "http://10.0.0.1/"},
            "https",
        ),
    ],
)
def test_an_unavailable_chat_falls_back_to_offline_with_a_notice(tmp_path, settings, told):
    found = open_with(tmp_path, **settings)
    assert found.summarizer is OFFLINE
    assert told in found.notice
    assert "offline" in found.notice


def test_claude_cli_without_its_command_falls_back_to_offline(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    found = open_with(tmp_path, chat_provider="claude-cli")
    assert found.summarizer is OFFLINE
    assert "claude" in found.notice


def test_claude_cli_with_its_command_is_used(tmp_path):
    found = open_summarizer(
        Settings(home=tmp_path, chat_provider="claude-cli"),
        offline=OFFLINE,
        ledger=CountingLedger(),
        command=tmp_path / "claude",
    )
    assert (found.summarizer.identity, found.notice) == ("claude-cli:haiku", "")


@pytest.mark.parametrize(
    "url",
    [
        "http://example.org/v1", "ftp://127.0.0.1/", "https://", "", "127.0.0.1:8000",
        "https://a b/", "https://x:99999999/", "https://[::1", "https://e\u00e9.org/", "file:///code/x",
        "http://127.0.0.1.evil.example/",
    ],
)  # fmt: skip
def test_an_unencrypted_or_missing_address_is_rejected(url):
    with pytest.raises(ProviderUnavailable):
        check_base_url(url)


@pytest.mark.parametrize(
    "url", ["https://example.org/v1", "http://127.0.0.1:8000", "http://[::1]:1/"]
)
def test_a_safe_address_is_accepted(url):
    check_base_url(url)


@pytest.mark.parametrize("preset", PRESETS.values(), ids=PRESETS)
def test_every_preset_has_a_safe_address(preset):
    check_base_url(preset.base_url)


def test_a_custom_server_needs_no_api_key():
    chosen = resolve_provider(Settings(chat_provider="vllm", chat_model="m"))
    assert (chosen.base_url, chosen.identity) == ("http://127.0.0.1:8000/v1", "vllm:m")


def test_a_lazy_chat_is_created_once_on_first_use():
    made: list[ScriptedChat] = []

    def make() -> ScriptedChat:
        made.append(ScriptedChat("One.", "Two."))
        return made[-1]

    chat = LazyChat("a:b", make)
    chat.close()
    assert not made
    ask = ChatRequest("s", (ChatMessage("user", "Well?"),), 10)
    assert [chat.complete(ask).text, chat.complete(ask).text] == ["One.", "Two."]
    chat.close()
    assert [one.closed for one in made] == [True]


def test_the_documentation_lists_every_provider():
    page = (Path(__file__).parents[2] / "docs" / "reference" / "chats.md").read_text("utf-8")
    for name, preset in PRESETS.items():
        cells = [
            f"`{name}`",
            f"`{preset.model}`" if preset.model else "",
            f"`{preset.base_url}`",
            f"`{USUAL_KEYS[name]}`" if preset.needs_key else "",
            "yes" if preset.structured else "no",
        ]
        assert f"| {' | '.join(cells)} |".replace("|  |", "| |") in page
