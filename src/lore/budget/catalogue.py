"""The catalogue: what a token of each model costs, and how much the model reads.

Prices come from the lists of a package, or from the settings, which go before them. The package
takes half a second to load: that is done by a thread of its own, once, when it is first needed.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from lore import clock
from lore.budget.prices import FREE, LISTS, find_price
from lore.llm.chat import Usage
from lore.records.dialogues import ModelPrice, TokenUse

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice as ListedPrice

LOCAL = (*FREE, "lmstudio", "llamacpp", "local")
"""Providers that run on a machine of one's own, and charge nothing."""

WINDOWS = {"google": 1_048_576, "anthropic": 200_000}
"""How much models of a provider read whose window the lists do not tell."""

USUAL_WINDOW = 128_000
"""The same for any other provider."""

LONG_WINDOW = 1_000_000
"""What a model with `[1m]` behind its name reads."""

_LONG = re.compile(r"\[1m\]$", re.IGNORECASE)

LONG_WRITE = 2.0
"""What is cached for an hour costs twice the input where only the five minutes are listed, as
Anthropic has it."""

FAST, FAST_FIRST = 2.0, 6.0
"""So many times as dear is Anthropic's fast mode, which no list has; that of the first models that
had it was the dearer."""

_FIRST_FAST = ("claude-opus-4-6", "claude-opus-4-7")

_USUAL_SERVICES = ("", "auto", "default", "standard")
"""What providers call the service that has the usual price."""

FREE_PRICE = ModelPrice(0.0, 0.0, 0.0, 0.0, 0.0, USUAL_WINDOW)


_MOST_FOUND = 1_000
"""A client may name any model; so many are remembered."""

_GOOD_FOR_S = 900
"""Some prices are those of an hour of the day, and change at half past: so long one is good for."""

_AT_ONCE = frozenset({"input", "window"})
"""What has to be told of a model for a prompt to be planned before the lists are loaded."""

LOAD_S = 30.0
"""No machine takes so long to load the lists: whoever waits goes on without a price."""


@dataclass(frozen=True, slots=True)
class Pricing:
    """The price of a model, and those of prompts that are longer than a number of tokens."""

    usual: ModelPrice
    longer: tuple[tuple[int, ModelPrice], ...] = ()
    """From how many tokens on, and what all tokens of such a request cost; the shortest first."""

    def price_of(self, input_tokens: int) -> ModelPrice:
        """Return the price of a request by how long its prompt is."""
        return self.whole.at(input_tokens) if self.longer else self.usual

    @property
    def whole(self) -> ModelPrice:
        """Return the usual price, which knows those of longer prompts."""
        return replace(self.usual, longer=self.longer) if self.longer else self.usual

    def cost(self, use: TokenUse) -> float:
        """Return what a request costs in US dollars."""
        return self.price_of(use.input_tokens).cost(use)

    def times(self, factor: float) -> Pricing:
        """Return what a service costs that is so many times as dear."""
        longer = tuple((start, _times(price, factor)) for start, price in self.longer)
        return Pricing(_times(self.usual, factor), longer)


class PriceLists(Protocol):
    """Where prices are listed."""

    def find(self, model: str, provider: str, at: datetime, service: str = "") -> Pricing | None:
        """Return what a model costs with a service, None where it is not listed."""


class Catalogue:
    """Prices by model, found once in a while each; safe to use from many threads."""

    def __init__(
        self,
        configured: Iterable[str] = (),
        *,
        lists: PriceLists | None = None,
        now: clock.Clock = clock.now,
    ) -> None:
        self._configured = dict(map(_configured, configured))
        self._lists = lists or _Listed()
        self._now = now
        self._found: dict[tuple[str, str, str], tuple[int, Pricing | None]] = {}
        """Prices with the quarter of an hour that they are of."""
        self._loaded = threading.Event()
        self._loading: threading.Thread | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Begin to load the lists, if nobody did; who starts a gateway does so first."""
        with self._lock:
            if self._loading is None:
                self._loading = threading.Thread(target=self._load, name="lore-prices", daemon=True)
                self._loading.start()

    def wait(self, within_s: float) -> bool:
        """Wait until the lists are loaded, and tell whether they are."""
        return self._loaded.wait(within_s)

    def find(
        self, model: str, provider: str = "", *, service: str = "", wait_s: float = LOAD_S
    ) -> Pricing | None:
        """Return what a model costs, None where nobody knows, or not within `wait_s`.

        A provider may have dearer and cheaper services; one that is not listed costs the usual.
        """
        service = "" if service in _USUAL_SERVICES else service
        key, at = (provider, model, service), self._now()
        quarter = int(at.timestamp() // _GOOD_FOR_S)
        known = self._found.get(key)
        if known is not None and known[0] == quarter:
            return known[1]
        if _is_local(model, provider):
            found = self._assembled(model, provider, None)
        else:
            self.load()
            if not self._loaded.wait(wait_s):
                told = self._configured.get(model, {})
                return _overridden(told, None) if told.keys() >= _AT_ONCE else None
            found = self._assembled(model, provider, self._listed(model, provider, service, at))
        if len(self._found) >= _MOST_FOUND:
            self._found.clear()
        self._found[key] = (quarter, found)
        return found

    def cost(self, identity: str, usage: Usage, at: datetime) -> float | None:
        """Return what a call to a chat costs: by the settings, else as it and the lists say."""
        provider, _, model = identity.partition(":")
        if usage.usd is not None or model not in self._configured:
            return find_price(identity, usage, at)
        pricing = self.find(model, provider)
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        fresh = max(0, usage.input_tokens - read - written)
        tokens = TokenUse(fresh, read, written, 0, usage.output_tokens)
        return None if pricing is None else pricing.cost(tokens)

    def _listed(self, model: str, provider: str, service: str, at: datetime) -> Pricing | None:
        name, list_ = _LONG.sub("", model), LISTS.get(provider, provider)
        found = self._lists.find(name, list_, at, service)
        if found is None or (list_, service) != ("anthropic", "fast"):
            return found
        return found.times(FAST_FIRST if name.startswith(_FIRST_FAST) else FAST)

    def _assembled(self, model: str, provider: str, listed: Pricing | None) -> Pricing | None:
        if listed is None and _is_local(model, provider):
            listed = Pricing(FREE_PRICE)
        if model in self._configured:
            listed = _overridden(self._configured[model], listed)
        if listed is not None and _LONG.search(model):
            listed = replace(listed, usual=replace(listed.usual, window_tokens=LONG_WINDOW))
        return listed

    def _load(self) -> None:
        try:
            self._lists.find("", "", self._now())
        finally:
            self._loaded.set()


class _Listed:
    """The lists of the package `genai-prices`, as they came with it: nothing is fetched."""

    def find(self, model: str, provider: str, at: datetime, service: str = "") -> Pricing | None:
        """Return what a model costs by the list of a provider, or of whoever made it."""
        from genai_prices.data_snapshot import get_snapshot

        snapshot = get_snapshot()
        ways = ((provider or None, model), (None, model), (None, model.rpartition("/")[2]))
        for provider_id, name in ways:
            try:
                found, info = snapshot.find_provider_model(name, None, provider_id, None)
            except LookupError:
                continue
            window = info.context_window or WINDOWS.get(found.id, USUAL_WINDOW)
            return _as_pricing(info.get_prices(at, {"service_tier": service}), window)
        return None


def _as_pricing(listed: ListedPrice, window_tokens: int) -> Pricing:
    """Return a listed price, with the steps that it has for longer prompts."""
    starts = sorted({
        step.start for value in vars(listed).values() for step in getattr(value, "tiers", ())
    })
    longer = tuple((start, _at(listed, start + 1, window_tokens)) for start in starts)
    return Pricing(_at(listed, 0, window_tokens), longer)


def _at(listed: ListedPrice, tokens: int, window_tokens: int) -> ModelPrice:
    """Return what a listed model costs for a prompt so long."""

    def named(name: str) -> float | None:
        value = getattr(listed, f"{name}_mtok", None)
        if value is None:
            return None
        steps = [step.price for step in getattr(value, "tiers", ()) if tokens > step.start]
        return float(steps[-1] if steps else getattr(value, "base", value))

    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    return _filled(
        {name: price for name in names if (price := named(name)) is not None}, window_tokens
    )


def _times(price: ModelPrice, factor: float) -> ModelPrice:
    return ModelPrice(
        price.input_usd * factor,
        price.output_usd * factor,
        price.cache_read_usd * factor,
        price.cache_write_usd * factor,
        price.cache_write_1h_usd * factor,
        price.window_tokens,
    )


def _filled(named: dict[str, float], window_tokens: int) -> ModelPrice:
    """Return a price from what is told; what is cached without a price of its own is input."""
    fresh = named.get("input", 0.0)
    write = named.get("cache_write", fresh)
    usual_long = max(write, fresh * LONG_WRITE) if "cache_write" in named else write
    return ModelPrice(
        fresh,
        named.get("output", 0.0),
        named.get("cache_read", fresh),
        write,
        named.get("cache_write_1h", usual_long),
        window_tokens,
    )


def _configured(row: str) -> tuple[str, dict[str, float]]:
    """Read a text of the setting `prices`."""
    model, *told = row.split(" ")
    pairs = (one.partition("=") for one in told)
    return model, {name: float(value) for name, _, value in pairs}


def _overridden(named: dict[str, float], listed: Pricing | None) -> Pricing | None:
    """Return what the settings tell: all of a price that no list has, or a part of a listed one."""
    window = int(named.get("window", listed.usual.window_tokens if listed else USUAL_WINDOW))
    is_listed = listed is not None and listed.usual != FREE_PRICE
    if "input" in named and not is_listed:
        return Pricing(_filled(named, window))
    if listed is None:
        return None
    prices: dict[str, Any] = {
        f"{name}_usd": price for name, price in named.items() if name != "window"
    }
    longer = tuple(
        (start, _as_much_dearer(price, prices, listed.usual, window))
        for start, price in listed.longer
    )
    return Pricing(replace(listed.usual, window_tokens=window, **prices), longer)


def _as_much_dearer(
    long: ModelPrice, told: dict[str, float], usual: ModelPrice, window_tokens: int
) -> ModelPrice:
    """Return the price of longer prompts where the usual one is told: the list has how much."""
    prices: dict[str, Any] = {}
    for name, price in told.items():
        listed, longer = getattr(usual, name), getattr(long, name)
        prices[name] = price * longer / listed if listed else max(price, longer)
    return replace(long, window_tokens=window_tokens, **prices)


def _is_local(model: str, provider: str) -> bool:
    return provider in LOCAL or model.partition("/")[0] in LOCAL
