"""Prices: the cost per token, the window and the output limit of each model.

Prices come from the settings, else from the lists of a package. Loading it takes half a second, so
a thread does it once, on first use.
"""

from __future__ import annotations

import importlib.util
import re
import threading
from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

from lore import clock
from lore.llm.chat import Usage
from lore.records.gateway import ModelPrice, TokenUse

if TYPE_CHECKING:
    from genai_prices.types import ModelPrice as ListedPrice


FREE_PROVIDERS = ("ollama", "vllm")
"""Providers that run on the user's own machine."""

PRICE_LISTS = {
    "anthropic": "anthropic",
    "claude-cli": "anthropic",
    "codex-cli": "openai",
    "gemini": "google",
    "gemini-cli": "google",
    "openai": "openai",
    "openrouter": "openrouter",
}
"""The price list of each provider, as the package names it."""

_ALIASES = {
    "haiku": "claude-haiku-5-5",
    "opus": "claude-opus-5-5",
    "sonnet": "claude-sonnet-5-5",
}
"""Model names that `claude` accepts as abbreviations."""


def find_call_cost(identity: str, usage: Usage, at: datetime) -> float | None:
    """Return the cost of a call in US dollars, None if the price is unknown."""
    provider, _, model = identity.partition(":")
    if usage.usd is not None:
        return usage.usd
    if provider in FREE_PROVIDERS:
        return 0.0
    if provider not in PRICE_LISTS or importlib.util.find_spec("genai_prices") is None:
        return None
    # Imported here: the package loads an HTTP client and takes 0.4 s.
    import genai_prices

    counted = genai_prices.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cache_read_tokens=min(usage.cache_read_tokens, usage.input_tokens),
        cache_write_tokens=min(
            usage.cache_write_tokens, max(0, usage.input_tokens - usage.cache_read_tokens)
        ),
    )
    try:
        calculation = genai_prices.calc_price(
            counted,
            _ALIASES.get(model, model),
            provider_id=PRICE_LISTS[provider],
            genai_request_timestamp=at,
        )
    except (LookupError, ValueError):
        return None
    return float(calculation.total_price)


LOCAL_PROVIDERS = (*FREE_PROVIDERS, "lmstudio", "llamacpp", "local")
"""Providers that run on the user's own machine and are free."""

WINDOWS = {"google": 1_048_576, "anthropic": 200_000}
"""The window of a provider's models if the lists do not contain it."""

DEFAULT_WINDOW = 128_000
"""The window of the models of all other providers."""

LONG_WINDOW = 1_000_000
"""The window of a model whose name ends in `[1m]`."""

_LONG = re.compile(r"\[1m\]$", re.IGNORECASE)

LONG_WRITE_FACTOR = 2.0
"""Writing to the one-hour cache costs twice the input if only the price for five minutes is listed,
as at Anthropic."""

FAST_FACTOR, FIRST_FAST_FACTOR = 2.0, 6.0
"""The price factor of Anthropic's fast mode, which no list contains.

It was higher for the first models that had it."""

_FIRST_FAST_MODELS = ("claude-opus-4-6", "claude-opus-4-7")

_STANDARD_SERVICES = ("", "auto", "default", "standard")
"""Names of the service tier with the standard price."""

FREE_PRICE = ModelPrice(0.0, 0.0, 0.0, 0.0, 0.0, DEFAULT_WINDOW)

_MAX_CACHED_PRICES = 1_000
"""Maximum number of cached prices: a client may send any model name."""

_PRICE_TTL_S = 900
"""How long a cached price is valid: some depend on the time of day and change at half past."""

_NEEDED_TO_PLAN = frozenset({"input", "window"})
"""The price fields that planning needs before the lists are loaded."""

LOAD_TIMEOUT_S = 30.0
"""Timeout for loading the lists; callers go on without a price then."""


class PriceSource(Protocol):
    """A source of list prices."""

    def find(self, model: str, provider: str, at: datetime, service: str = "") -> ModelPrice | None:
        """Return the price of a model and service, None if it is not listed."""


class PriceCatalogue:
    """Cache of prices by model; thread-safe."""

    def __init__(
        self,
        configured: Iterable[str] = (),
        *,
        lists: PriceSource | None = None,
        now: clock.Clock = clock.now,
    ) -> None:
        self._configured = dict(map(_parse_setting, configured))
        self._lists = lists or _PackagedPrices()
        self._now = now
        self._found: dict[tuple[str, str, str], tuple[int, ModelPrice | None]] = {}
        """Prices with the quarter of an hour in which they are valid."""
        self._loaded = threading.Event()
        self._loading: threading.Thread | None = None
        self._lock = threading.Lock()

    def load(self) -> None:
        """Start to load the price lists in the background, unless someone has."""
        with self._lock:
            if self._loading is None:
                self._loading = threading.Thread(target=self._load, name="lore-prices", daemon=True)
                self._loading.start()

    def wait(self, within_s: float) -> bool:
        """Wait until the lists are loaded, and return whether they are."""
        return self._loaded.wait(within_s)

    def find(
        self, model: str, provider: str = "", *, service: str = "", wait_s: float = LOAD_TIMEOUT_S
    ) -> ModelPrice | None:
        """Return the price of a model, None if it is unknown or not loaded within `wait_s`.

        Providers may have service tiers of different prices; one that is not listed has the
        standard price.
        """
        service = "" if service in _STANDARD_SERVICES else service
        key, at = (provider, model, service), self._now()
        quarter = int(at.timestamp() // _PRICE_TTL_S)
        cached = self._found.get(key)
        if cached is not None and cached[0] == quarter:
            return cached[1]
        if _is_local(model, provider):
            pricing = self._assembled(model, provider, None)
        else:
            self.load()
            if not self._loaded.wait(wait_s):
                configured = self._configured.get(model, {})
                return _override(configured, None) if configured.keys() >= _NEEDED_TO_PLAN else None
            pricing = self._assembled(model, provider, self._listed(model, provider, service, at))
        if len(self._found) >= _MAX_CACHED_PRICES:
            self._found.clear()
        self._found[key] = (quarter, pricing)
        return pricing

    def cost(self, identity: str, usage: Usage, at: datetime) -> float | None:
        """Return the cost of a chat call, from the settings, the response or the lists."""
        provider, _, model = identity.partition(":")
        if usage.usd is not None or model not in self._configured:
            return find_call_cost(identity, usage, at)
        pricing = self.find(model, provider)
        read, written = usage.cache_read_tokens, usage.cache_write_tokens
        fresh = max(0, usage.input_tokens - read - written)
        tokens = TokenUse(fresh, read, written, 0, usage.output_tokens)
        return None if pricing is None else pricing.cost(tokens)

    def _listed(self, model: str, provider: str, service: str, at: datetime) -> ModelPrice | None:
        name, list_ = _LONG.sub("", model), PRICE_LISTS.get(provider, provider)
        pricing = self._lists.find(name, list_, at, service)
        if pricing is None or (list_, service) != ("anthropic", "fast"):
            return pricing
        is_first = name.startswith(_FIRST_FAST_MODELS)
        return _scale(pricing, FIRST_FAST_FACTOR if is_first else FAST_FACTOR)

    def _assembled(self, model: str, provider: str, listed: ModelPrice | None) -> ModelPrice | None:
        if listed is None and _is_local(model, provider):
            listed = FREE_PRICE
        if model in self._configured:
            listed = _override(self._configured[model], listed)
        if listed is not None and _LONG.search(model):
            listed = replace(listed, window_tokens=LONG_WINDOW)
        return listed

    def _load(self) -> None:
        try:
            self._lists.find("", "", self._now())
        finally:
            self._loaded.set()


class _PackagedPrices:
    """The lists that the package `genai-prices` contains; nothing is downloaded."""

    def find(self, model: str, provider: str, at: datetime, service: str = "") -> ModelPrice | None:
        """Return the price of a model from the list of its provider or maker."""
        from genai_prices.data_snapshot import get_snapshot

        snapshot = get_snapshot()
        ways = ((provider or None, model), (None, model), (None, model.rpartition("/")[2]))
        for provider_id, name in ways:
            try:
                provider_info, info = snapshot.find_provider_model(name, None, provider_id, None)
            except LookupError:
                continue
            window = info.context_window or WINDOWS.get(provider_info.id, DEFAULT_WINDOW)
            return _as_pricing(info.get_prices(at, {"service_tier": service}), window)
        return None


def _as_pricing(listed: ListedPrice, window_tokens: int) -> ModelPrice:
    """Return a listed price with its steps for longer prompts."""
    starts = sorted({
        step.start for value in vars(listed).values() for step in getattr(value, "tiers", ())
    })
    longer = tuple((start, _price_at(listed, start + 1, window_tokens)) for start in starts)
    return replace(_price_at(listed, 0, window_tokens), longer=longer)


def _price_at(listed: ListedPrice, tokens: int, window_tokens: int) -> ModelPrice:
    """Return the listed price for a prompt of this size."""

    def named(name: str) -> float | None:
        value = getattr(listed, f"{name}_mtok", None)
        if value is None:
            return None
        steps = [step.price for step in getattr(value, "tiers", ()) if tokens > step.start]
        return float(steps[-1] if steps else getattr(value, "base", value))

    names = ("input", "output", "cache_read", "cache_write", "cache_write_1h")
    return _complete_price(
        {name: price for name in names if (price := named(name)) is not None}, window_tokens
    )


def _scale(price: ModelPrice, factor: float) -> ModelPrice:
    return ModelPrice(
        price.input_usd * factor,
        price.output_usd * factor,
        price.cache_read_usd * factor,
        price.cache_write_usd * factor,
        price.cache_write_1h_usd * factor,
        price.window_tokens,
        tuple((start, _scale(longer, factor)) for start, longer in price.longer),
    )


def _complete_price(prices: dict[str, float], window_tokens: int) -> ModelPrice:
    """Return a price with defaults: cache reads and writes cost as much as input."""
    fresh = prices.get("input", 0.0)
    write = prices.get("cache_write", fresh)
    usual_long = max(write, fresh * LONG_WRITE_FACTOR) if "cache_write" in prices else write
    return ModelPrice(
        fresh,
        prices.get("output", 0.0),
        prices.get("cache_read", fresh),
        write,
        prices.get("cache_write_1h", usual_long),
        window_tokens,
    )


def _parse_setting(row: str) -> tuple[str, dict[str, float]]:
    model, *fields = row.split(" ")
    pairs = (one.partition("=") for one in fields)
    return model, {name: float(value) for name, _, value in pairs}


def _override(overrides: dict[str, float], listed: ModelPrice | None) -> ModelPrice | None:
    """Return the price from the settings, which may override parts of a listed price."""
    window = int(overrides.get("window", listed.window_tokens if listed else DEFAULT_WINDOW))
    is_listed = listed is not None and replace(listed, longer=()) != FREE_PRICE
    if "input" in overrides and not is_listed:
        return _complete_price(overrides, window)
    if listed is None:
        return None
    prices: dict[str, Any] = {
        f"{name}_usd": price for name, price in overrides.items() if name != "window"
    }
    longer = tuple(
        (start, _override_long_price(price, prices, listed, window))
        for start, price in listed.longer
    )
    return replace(listed, window_tokens=window, longer=longer, **prices)


def _override_long_price(
    long: ModelPrice, overrides: dict[str, float], usual: ModelPrice, window_tokens: int
) -> ModelPrice:
    """Return the price of longer prompts for an overridden standard price, scaled as listed."""
    prices: dict[str, Any] = {}
    for name, price in overrides.items():
        listed, longer = getattr(usual, name), getattr(long, name)
        prices[name] = price * longer / listed if listed else max(price, longer)
    return replace(long, window_tokens=window_tokens, **prices)


def _is_local(model: str, provider: str) -> bool:
    return provider in LOCAL_PROVIDERS or model.partition("/")[0] in LOCAL_PROVIDERS


MAX_OUTPUT_TOKENS = {
    "claude-3-5": 8_192,
    "claude-3-7": 64_000,
    "claude-3": 4_096,
    "claude-haiku-4": 64_000,
    "claude-opus-4-0": 32_000,
    "claude-opus-4-1": 32_000,
    "claude-opus-4-5": 64_000,
    "claude-sonnet-4": 64_000,
    "claude": 128_000,
    "deepseek": 64_000,
    "gemini-1": 8_192,
    "gemini-2.0": 8_192,
    "gemini": 65_536,
    "gpt-3.5": 4_096,
    "gpt-4.1": 32_768,
    "gpt-4o": 16_384,
    "gpt-4": 8_192,
    "gpt": 128_000,
    "o1": 100_000,
    "o3": 100_000,
    "o4": 100_000,
}
"""Output limits by the beginning of a model's name, as its maker publishes them.

Price lists do not contain them. New models tend to allow more than earlier ones."""

DEFAULT_OUTPUT_TOKENS = 32_000
"""The output limit of an unknown model."""


def max_output_tokens(model: str) -> int:
    """Return the output limit of a model, by the longest known beginning of its name."""
    name = model.rpartition("/")[2].lower()
    prefixes = [begin for begin in MAX_OUTPUT_TOKENS if name.startswith(begin)]
    return MAX_OUTPUT_TOKENS[max(prefixes, key=len)] if prefixes else DEFAULT_OUTPUT_TOKENS
