"""What a person keeps out of memory stays out of it through the gateway too."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.test_memory_plugin import HERE, life
from tests.upstream import Call, ModelReply, Text, Upstream, running_upstream
from tests.waiting import eventually

CANARY = "zebrafish"


@pytest.fixture
def up() -> Iterator[Upstream]:
    with running_upstream() as served:
        yield served
        assert not served.rejected


def bytes_of(home: Path) -> bytes:
    return b"".join(file.read_bytes() for file in home.rglob("*") if file.is_file())


def test_a_private_span_reaches_the_model_and_no_file(tmp_path: Path, up: Upstream):
    question = f"Where do penguins live? <private>Ours is called {CANARY}.</private> Be brief."
    with life(tmp_path, up) as talk:
        up.reply_with(
            ModelReply(Call("recall", {"query": "penguins"})), ModelReply(Text("In the south."))
        )
        talk.ask(question)
        talk.ask("And in winter?")
        assert CANARY in talk.prompt()
        eventually(lambda: talk.stored()[-1:] == ["Understood."])
        assert talk.stored()[0] == "Where do penguins live? [private] Be brief."
    assert CANARY.encode() not in bytes_of(tmp_path)


@pytest.mark.parametrize("exclude", [(HERE,), ("claude-code:/code/*",), ("almanac",)])
def test_nothing_of_an_excluded_folder_is_stored(tmp_path: Path, up: Upstream, exclude: Any):
    with life(tmp_path, up, capture_exclude=exclude) as talk:
        up.reply_with(
            ModelReply(Call("recall", {"query": f"the {CANARY} of the house"})),
            ModelReply(Text(f"A {CANARY}, I think.")),
        )
        talk.ask(f"Is the pet a {CANARY}? Always answer in one word.")
        talk.ask("Are you sure?")
        assert CANARY in talk.prompt()
    assert CANARY.encode() not in bytes_of(tmp_path)


def test_folders_beside_an_excluded_one_are_stored(tmp_path: Path, up: Upstream):
    with life(tmp_path, up, capture_exclude=("codex:/code/*", "/code/secret*")) as talk:
        talk.ask(f"Is the pet a {CANARY}?")
        eventually(lambda: len(talk.stored()) == 2)
