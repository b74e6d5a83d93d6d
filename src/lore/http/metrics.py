"""Metrics of this process in the Prometheus text format.

Model names are the only detail of requests: no sessions, projects or contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from anyio import to_thread
from starlette.requests import Request
from starlette.responses import Response

from lore.errors import StoreError
from lore.http import middleware

if TYPE_CHECKING:
    from lore.memory import Memory
    from lore.records import SpendCounter

MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"

_MAX_LABEL_CHARS = 100
"""A client may send any model name."""

Samples = Iterable[tuple[dict[str, str], float]]


def serve_metrics(memory: Memory) -> Callable[[Request], Any]:
    """Return the handler of `/metrics`, which needs the read scope."""

    async def serve(request: Request) -> Response:
        middleware.require_scope(request.scope, "read")
        text = await to_thread.run_sync(_render, memory)
        return Response(text, 200, {"cache-control": "no-store"}, MEDIA_TYPE)

    return serve


def _render(memory: Memory) -> str:
    counted = memory.budget.spend_counters()
    degraded = sorted(memory.context.gateway_stats.degraded().items())
    lines = [
        *family("lore_requests_total", "Requests that were forwarded to a model.",
                 _by_model(counted, lambda one: one.requests)),
        *family("lore_requests_refused_total", "Requests that the budget of the day refused.",
                 _by_model(counted, lambda one: one.refused)),
        *family("lore_requests_degraded_total", "Requests that went without memory, by reason.",
                 [({"reason": reason}, count) for reason, count in degraded]),
        *family("lore_tokens_total", "Tokens by class, each counted once.", _tokens(counted)),
        *family("lore_spend_usd_total", "What requests cost in US dollars.",
                 _by_model(counted, lambda one: one.usd)),
        *family("lore_without_usd_total", "What they would have cost without Lore (estimated).",
                 _by_model(counted, lambda one: one.without_usd)),
        *family("lore_throttle_events_total", "Requests that were delayed.",
                 _by_model(counted, lambda one: one.delayed)),
        *family("lore_throttle_delay_ms_total", "How long they waited in all.",
                 _by_model(counted, lambda one: one.delay_ms)),
        *family("lore_saved_usd", "What Lore saved by its own estimate, of requests alone.",
                 _by_model(counted, lambda one: one.without_usd - one.usd), kind="gauge"),
        *_budget_lines(memory),
    ]  # fmt: skip
    return "\n".join(lines) + "\n"


def _budget_lines(memory: Memory) -> Iterator[str]:
    """Yield today's budget and spend, unless the store fails."""
    try:
        day = memory.budget.day_budget()
    except StoreError:
        return
    spend_help = "What was spent today (UTC), by all processes and in the background too."
    yield from family("lore_day_spend_usd", spend_help, [({}, day.spent_usd)], kind="gauge")
    pressure_help = "The used share of today's budget or of a provider's quota, 0 to 1."
    pressure: Samples = [({}, memory.budget.budget_pressure())]
    yield from family("lore_budget_pressure", pressure_help, pressure, kind="gauge")
    if day.budget_usd is not None:
        budget_help = "What may be spent in a day."
        yield from family("lore_day_budget_usd", budget_help, [({}, day.budget_usd)], kind="gauge")


def _by_model(counted: list[SpendCounter], of: Callable[[SpendCounter], float]) -> Samples:
    return [({"model": one.model}, of(one)) for one in counted]


def _tokens(counted: list[SpendCounter]) -> Samples:
    for one in counted:
        tokens = one.tokens
        by_class = {
            "fresh": tokens.fresh_tokens,
            "cache_read": tokens.cache_read_tokens,
            "cache_write": tokens.cache_write_tokens,
            "cache_write_1h": tokens.cache_write_1h_tokens,
            "output": tokens.output_tokens,
        }
        for name, count in by_class.items():
            yield {"model": one.model, "class": name}, count


def family(name: str, help_text: str, samples: Samples, *, kind: str = "counter") -> Iterator[str]:
    """Yield the lines of one metric with its samples."""
    yield f"# HELP {name} {help_text}"
    yield f"# TYPE {name} {kind}"
    for labels, value in samples:
        inner = ",".join(f'{label}="{_escape_label(text)}"' for label, text in labels.items())
        yield f"{name}{{{inner}}} {value!r}" if inner else f"{name} {value!r}"


def _escape_label(text: str) -> str:
    """Escape a label value, and replace what is not printable."""
    shown = "".join(one if one.isprintable() else "?" for one in text[:_MAX_LABEL_CHARS])
    return shown.replace("\\", "\\\\").replace('"', '\\"')
