"""A gateway with a memory whose one model is dear: what was paid is seen at a glance.

with paying(home, up.url) as (memory, gateway): …  # total(memory) is what the ledger has by now
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

from lore.gateway.memory_plugin import MemoryPlugin
from lore.gateway.session.prompt_composer import PromptComposer
from lore.memory import Memory
from lore.records import SpendLine
from lore.settings import load
from tests.fakes import FakeEmbedder
from tests.gateway.gateway_server import Proxied, proxied
from tests.waiting import PATIENCE_S

PRICES = ("dear input=1000 output=1000",)


@contextmanager
def paying(
    home: Path,
    url: str,
    turning_class: type[MemoryPlugin] = MemoryPlugin,
    *,
    within_s: float = PATIENCE_S,
    **settings: Any,
) -> Iterator[tuple[Memory, Proxied]]:
    config = replace(load({}, home=home).settings, prices=PRICES, **settings)
    with Memory.open(config=config, embedder=FakeEmbedder()) as memory:
        plugin = turning_class(memory, PromptComposer(memory))
        with proxied(home, url, plugin=plugin, within_s=within_s) as gateway:
            yield memory, gateway
        plugin.close()


def total(memory: Memory) -> SpendLine:
    memory.database.write(lambda _: None)
    return memory.budget.spend_report().total
